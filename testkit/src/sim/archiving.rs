//! The archives of the authorities: folders that are brought up to date from the other authorities, by the code of a node.
//! A folder can be lost, some of the others lie, and others have lost theirs, too.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointState, PrimaryEventKind, Segment, SegmentEntry,
};
use fastpay_core::{Amount, AuthorityKeys, Epoch};
use fastpay_node::authority::certification::{Admission, Archive, CheckpointError, NotAdmitted, read_over};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::timeout;

use super::checkpointing::Checkpointed;
use super::oracle::{Breach, require};
use super::process::Keeper;
use super::world::{World, lock};

/// The maximum time in which the chain is read.
const READ_PATIENCE: Duration = Duration::from_secs(60);
/// More than a run has.
const ORDERS_MAX: usize = 1_000_000;

/// What an authority shows of its archive: certificates, each with the bytes of its segment.
type Shown = Vec<(CheckpointCertificate, Vec<u8>)>;

impl Keeper {
    /// Brings the authority's archive up to date, and returns its newest checkpoint; none before the first.
    pub(super) async fn bring(&mut self) -> Result<Option<(Checkpoint, CheckpointState)>, Breach> {
        let (world, authority) = (self.world.clone(), self.authority);
        let folder = self.folder.0.path().join("archive");
        if !world.is_calm() && world.dice.chance(150) && folder.is_dir() {
            world.trace.note("archive lost", format_args!("a{authority}"));
            fs::remove_dir_all(&folder).expect("it is there");
        }
        fs::create_dir_all(&folder).expect("the run has a folder");
        let archive = Archive::new(&folder);
        let (certified, known) = (lock(&world.checkpoints).clone(), world.known_committees(world.committees().len()));
        let broken = |error: CheckpointError| Breach(format!("the archive of authority {authority}: {error}"));
        let mut peers: Vec<_> = (0..world.plan.authorities()).filter(|peer| *peer != authority).collect();
        while !peers.is_empty() {
            let peer = peers.swap_remove(world.dice.below(peers.len()));
            let tip = archive.tip(&known).map_err(broken)?;
            let lies = peer >= world.plan.honest();
            let shown = if lies { lie(&world, &certified, tip.number) } else { show(&world, &certified, tip.number) };
            if shown.is_empty() {
                continue;
            }
            match admit(&world, authority, &archive, &tip, shown).await {
                Ok(()) => {}
                Err(error @ CheckpointError::NotAdmitted { .. }) if lies => {
                    world.trace.note("archive lie", format_args!("of a{peer} is refused by a{authority}: {error}"));
                }
                // Its view of the chain is an older one, or the epoch of the newest has ended meanwhile.
                Err(
                    error @ (CheckpointError::NotAdmitted { reason: NotAdmitted::Certificate(_), .. }
                    | CheckpointError::ChainBehind { .. }
                    | CheckpointError::ChainTooOld { .. }
                    | CheckpointError::Chain(_)),
                ) => world.trace.note("archive waits", format_args!("a{authority}: {error}")),
                Err(error) => return Err(broken(error)),
            }
            is_certified(&archive, &certified, tip.number, (authority, peer))?;
        }
        let tip = archive.tip(&known).map_err(broken)?;
        if tip.number == 0 {
            return Ok(None);
        }
        Ok(Some((tip, state(&archive, tip.number)?)))
    }
}

/// Every number after `tip` that the archive has is what a quorum certified.
fn is_certified(
    archive: &Archive,
    certified: &[Checkpointed],
    tip: u64,
    (authority, peer): (usize, usize),
) -> Result<(), Breach> {
    let new = certified.iter().filter(|one| one.checkpoint.number > tip);
    let held = new.filter(|one| archive.certificate_path(one.checkpoint.number).exists());
    for Checkpointed { checkpoint, state: theirs, .. } in held {
        let number = checkpoint.number;
        let is_same = state(archive, number)? == *theirs;
        require!(is_same, "authority {authority} archives another checkpoint {number} than was certified, from {peer}");
    }
    let beyond = certified.len() as u64;
    require!(
        !archive.certificate_path(beyond).exists(),
        "authority {authority} archives checkpoint {beyond}, which nobody certified, from {peer}"
    );
    Ok(())
}

fn state(archive: &Archive, number: u64) -> Result<CheckpointState, Breach> {
    let read = fs::read(archive.state_path(number)).and_then(|bytes| CheckpointState::read(&mut bytes.as_slice()));
    read.map_err(|error| Breach(format!("the archived state {number}: {error}")))
}

/// As a member of the committee does.
async fn admit(
    world: &Arc<World>,
    authority: usize,
    archive: &Archive,
    tip: &Checkpoint,
    shown: Shown,
) -> Result<(), CheckpointError> {
    let known = world.known_committees(world.committees().len());
    let (certificates, segments): (Vec<_>, Vec<_>) = shown.into_iter().unzip();
    let first = certificates.first().map_or(0, |first| first.checkpoint.number);
    let base = Admission::base(archive, tip, &certificates, (&world.domain, &known))?;
    let (primary, clock, mut told) = (world.chain.connect(world), world.clock_of(authority), |_| ());
    let mut seen = |_: &_, _| ();
    let read = read_over(primary, None, base.state.up_to, clock, &mut told, &mut seen);
    let Ok(read) = timeout(READ_PATIENCE, read).await else {
        world.trace.note("archive waits", format_args!("a{authority} cannot read the chain"));
        return Ok(());
    };
    let (domain, archive) = (world.domain, archive.clone());
    let mut admission = Admission::over(archive, (domain, ORDERS_MAX), base, (tip, certificates), read?.0)?;
    while let Some((number, bytes_max)) = admission.next() {
        let segment = number.checked_sub(first).and_then(|at| segments.get(usize::try_from(at).ok()?));
        let segment = segment.map(Vec::as_slice).unwrap_or_default();
        assert!(segment.len() as u64 <= bytes_max, "a segment of {} bytes is longer than it can be", segment.len());
        admission.admit(&mut &*segment, &mut told)?;
    }
    Ok(())
}

/// What an honest authority shows of the numbers after `tip`. Its archive may be behind, or gone.
fn show(world: &World, certified: &[Checkpointed], tip: u64) -> Shown {
    let up_to =
        if !world.is_calm() && world.dice.chance(300) { world.dice.below(certified.len()) } else { certified.len() };
    let held = certified.iter().take(up_to).filter(|one| one.checkpoint.number > tip);
    held.filter_map(|one| Some((one.certificate.clone()?, bytes(&one.segment)))).collect()
}

fn bytes(segment: &Segment) -> Vec<u8> {
    let mut bytes = Vec::new();
    segment.write(&mut bytes).expect("writing to memory does not fail");
    bytes
}

/// What a Byzantine one shows of the numbers after `tip`.
fn lie(world: &World, certified: &[Checkpointed], tip: u64) -> Shown {
    let dice = &world.dice;
    let mut shown: Shown = certified
        .iter()
        .filter(|one| one.checkpoint.number > tip)
        .filter_map(|one| Some((one.certificate.clone()?, bytes(&one.segment))))
        .collect();
    if shown.is_empty() {
        return shown;
    }
    let at = dice.below(shown.len());
    let number = usize::try_from(shown[at].0.checkpoint.number).expect("few");
    let changed = dice.pick(&[without_last, without_last, without_entry, entry_twice, larger_deposit]);
    let segment = changed(world, &certified[number].segment);
    match dice.below(8) {
        0 => drop(shown.remove(at)),
        1 => shown[at].0.checkpoint.state.0[0] ^= 1,
        2 => {
            let length = dice.below(shown[at].1.len());
            shown[at].1.truncate(length);
        }
        3 => shown[at].1 = bytes(&segment),
        _ => {
            shown.truncate(at);
            shown.extend(own_checkpoint(world, &certified[number - 1], segment));
        }
    }
    shown
}

/// A checkpoint that nobody else certified, and that follows from what was, with the votes of all Byzantine members, once
/// or as often as a quorum needs.
fn own_checkpoint(world: &World, base: &Checkpointed, segment: Segment) -> Option<(CheckpointCertificate, Vec<u8>)> {
    let mut rng = StdRng::seed_from_u64(base.checkpoint.number);
    let (state, root) = base.state.clone().apply(segment.clone(), &world.domain, &mut rng).ok()?;
    let epoch = state.installations().epoch();
    let checkpoint = base.checkpoint.next(&world.domain, epoch, &state.summary(), root)?;
    let byzantine = world.plan.honest()..world.plan.authorities();
    let mut votes: Vec<_> = byzantine.map(|one| checkpoint.sign(&keys(world, one, epoch), &world.domain)).collect();
    if world.dice.chance(700) {
        let quorum = state.installations().current().committee.quorum();
        votes = votes.iter().cycle().take(quorum).cloned().collect();
    }
    votes.sort_by_key(|vote| vote.authority);
    Some((CheckpointCertificate { checkpoint, votes }, bytes(&segment)))
}

fn keys(world: &World, authority: usize, epoch: Epoch) -> Arc<AuthorityKeys> {
    world.keys(authority)[usize::try_from(epoch.0).expect("few epochs")].clone()
}

fn without_last(_: &World, segment: &Segment) -> Segment {
    let mut entries = segment.entries.clone();
    entries.pop();
    Segment { entries }
}

fn without_entry(world: &World, segment: &Segment) -> Segment {
    let mut entries = segment.entries.clone();
    entries.remove(world.dice.below(entries.len()));
    Segment { entries }
}

fn entry_twice(world: &World, segment: &Segment) -> Segment {
    let mut entries = segment.entries.clone();
    let at = world.dice.below(entries.len());
    entries.insert(at, entries[at].clone());
    Segment { entries }
}

fn larger_deposit(_: &World, segment: &Segment) -> Segment {
    let mut entries = segment.entries.clone();
    for entry in &mut entries {
        if let SegmentEntry::Event(event) = entry
            && let PrimaryEventKind::Deposit { amount, .. } = &mut event.kind
        {
            *amount = Amount(amount.0 + 1);
        }
    }
    Segment { entries }
}
