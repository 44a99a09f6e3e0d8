//! The archives of the authorities: folders that are brought up to date from the other authorities, by the code of a
//! node. A folder can be lost, some of the others lie, and others have lost theirs, too. Numbers are skipped at random,
//! and completed later.

use std::fs;
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::Amount;
use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointState, PrimaryEventKind, Segment, SegmentEntry,
};
use fastpay_node::authority::certification::{Admission, Archive, CheckpointError, Memory, NotAdmitted, read_over};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::timeout;

use super::checkpointing::Checkpointed;
use super::oracle::{Breach, require};
use super::process::Keeper;
use super::world::{World, lock};
use crate::richer_state;

/// The maximum time in which the chain is read.
const READ_PATIENCE: Duration = Duration::from_secs(60);
/// More than a run has.
const ORDERS_MAX: usize = 1_000_000;

/// What an authority shows of its archive.
type Shown = Vec<ShownNumber>;

/// A certificate, and the bytes of its segment and its state.
struct ShownNumber {
    certificate: CheckpointCertificate,
    segment: Vec<u8>,
    state: Vec<u8>,
}

impl ShownNumber {
    /// None of the first checkpoint, which nobody signs.
    fn of(one: &Checkpointed) -> Option<Self> {
        let (certificate, segment) = (one.certificate.clone()?, bytes(&one.segment));
        Some(Self { certificate, segment, state: bytes_of_state(&one.state) })
    }
}

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
            refill(&world, &archive, &certified, (authority, peer))?;
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
    let certificates: Vec<_> = shown.iter().map(|one| one.certificate.clone()).collect();
    let first = certificates.first().map_or(0, |first| first.checkpoint.number);
    let base = Admission::base(archive, tip, &certificates, &Memory::default(), (&world.domain, &known))?;
    let (primary, clock, mut told) = (world.chain.connect(world), world.clock_of(authority), |_| ());
    let mut seen = |_: &_, _| ();
    let read = read_over(primary, None, base.state.up_to, clock, &mut told, &mut seen);
    let Ok(read) = timeout(READ_PATIENCE, read).await else {
        world.trace.note("archive waits", format_args!("a{authority} cannot read the chain"));
        return Ok(());
    };
    let (domain, archive) = (world.domain, archive.clone());
    let mut admission = Admission::over(archive, (domain, ORDERS_MAX), base, (tip, certificates), read?.0)?;
    let of = |number: u64| number.checked_sub(first).and_then(|at| shown.get(usize::try_from(at).ok()?));
    if let Some((number, bytes_max)) = admission.landing(0)?.filter(|_| world.dice.chance(500)) {
        let state = of(number).map(|one| one.state.as_slice()).unwrap_or_default();
        assert!(state.len() as u64 <= bytes_max, "a state of {} bytes is longer than it can be", state.len());
        admission.skip(&mut Cursor::new(state))?;
        world.trace.note("archive skips", format_args!("a{authority} to {number}"));
    }
    while let Some((number, bytes_max)) = admission.next() {
        let segment = of(number).map(|one| one.segment.as_slice()).unwrap_or_default();
        assert!(segment.len() as u64 <= bytes_max, "a segment of {} bytes is longer than it can be", segment.len());
        admission.admit(&mut &*segment, &mut told)?;
    }
    Ok(())
}

/// Completes some of the numbers that the archive skipped, from one peer.
fn refill(
    world: &World,
    archive: &Archive,
    certified: &[Checkpointed],
    (authority, peer): (usize, usize),
) -> Result<(), Breach> {
    let broken = |error: CheckpointError| Breach(format!("the archive of authority {authority}: {error}"));
    let known = world.known_committees(world.committees().len());
    let refilled = Admission::refill(archive, ORDERS_MAX, (&world.domain, &known)).map_err(broken)?;
    let Some(mut admission) = refilled else { return Ok(()) };
    let lies = peer >= world.plan.honest();
    while let Some((number, _)) = admission.next() {
        if !world.is_calm() && world.dice.chance(300) {
            return Ok(());
        }
        let one = &certified[usize::try_from(number).expect("few")];
        let changed = if lies { without_entry(world, &one.segment) } else { one.segment.clone() };
        match admission.admit(&mut bytes(&changed).as_slice(), &mut |_| ()) {
            Ok(()) => {}
            Err(CheckpointError::NotAdmitted { .. }) if lies => return Ok(()),
            Err(error) => return Err(broken(error)),
        }
        require!(!lies, "authority {authority} completes checkpoint {number} with a false segment, from {peer}");
        let is_same = state(archive, number)? == one.state;
        require!(is_same, "authority {authority} completes checkpoint {number} with another state, from {peer}");
    }
    Ok(())
}

/// What an honest authority shows of the numbers after `tip`. Its archive may be behind, or gone.
fn show(world: &World, certified: &[Checkpointed], tip: u64) -> Shown {
    let up_to =
        if !world.is_calm() && world.dice.chance(300) { world.dice.below(certified.len()) } else { certified.len() };
    let held = certified.iter().take(up_to).filter(|one| one.checkpoint.number > tip);
    held.filter_map(ShownNumber::of).collect()
}

fn bytes(segment: &Segment) -> Vec<u8> {
    let mut bytes = Vec::new();
    segment.write(&mut bytes).expect("writing to memory does not fail");
    bytes
}

fn bytes_of_state(state: &CheckpointState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.write(&mut bytes).expect("writing to memory does not fail");
    bytes
}

/// What a Byzantine one shows of the numbers after `tip`.
fn lie(world: &World, certified: &[Checkpointed], tip: u64) -> Shown {
    let dice = &world.dice;
    let mut shown: Shown =
        certified.iter().filter(|one| one.checkpoint.number > tip).filter_map(ShownNumber::of).collect();
    if shown.is_empty() {
        return shown;
    }
    let at = dice.below(shown.len());
    let number = usize::try_from(shown[at].certificate.checkpoint.number).expect("few");
    let changed = dice.pick(&[without_last, without_last, without_entry, entry_twice, larger_deposit]);
    let segment = changed(world, &certified[number].segment);
    // The state of the last but one may be skipped to.
    let landing = shown.len().saturating_sub(2);
    match dice.below(12) {
        0 => drop(shown.remove(at)),
        1 => shown[at].certificate.checkpoint.state.0[0] ^= 1,
        2 => {
            let length = dice.below(shown[at].segment.len());
            shown[at].segment.truncate(length);
        }
        3 | 7 => shown[at].segment = bytes(&segment),
        4 => {
            let length = dice.below(shown[landing].state.len());
            shown[landing].state.truncate(length);
        }
        5 => shown[landing].state = bytes_of_state(&certified[number - 1].state),
        6 => {
            let of = usize::try_from(shown[landing].certificate.checkpoint.number).expect("few");
            shown[landing].state = richer_state(&bytes_of_state(&certified[of].state));
        }
        _ => {
            shown.truncate(at);
            shown.extend(own_checkpoint(world, &certified[number - 1], segment));
        }
    }
    shown
}

/// A checkpoint that nobody else certified, and that follows from what was, with the votes of all Byzantine members,
/// once or as often as a quorum needs.
fn own_checkpoint(world: &World, base: &Checkpointed, segment: Segment) -> Option<ShownNumber> {
    let mut rng = StdRng::seed_from_u64(base.checkpoint.number);
    let (state, root) = base.state.clone().apply(segment.clone(), &world.domain, &mut rng).ok()?;
    let epoch = state.installations().epoch();
    let checkpoint = base.checkpoint.next(&world.domain, epoch, &state.summary(), root)?;
    let byzantine = world.plan.honest()..world.plan.authorities();
    let keys = |authority| world.keys_in(authority, epoch).expect("all are members");
    let mut votes: Vec<_> = byzantine.map(|one| checkpoint.sign(keys(one), &world.domain)).collect();
    if world.dice.chance(700) {
        let quorum = state.installations().current().committee.quorum();
        votes = votes.iter().cycle().take(quorum).cloned().collect();
    }
    votes.sort_by_key(|vote| vote.authority);
    let certificate = CheckpointCertificate { checkpoint, votes };
    Some(ShownNumber { certificate, segment: bytes(&segment), state: bytes_of_state(&state) })
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
