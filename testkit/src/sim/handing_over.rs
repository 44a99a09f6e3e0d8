//! An authority's part in a hand-over, while its process lives: it states what it knows of an epoch that has ended, and
//! joins the next one with what a quorum states, crashing in the middle perhaps.
//!
//! What is stated, served, checked and brought into the shards, and who votes, is production code: `Report`, the network
//! service, `SignedClosing`, `PeerSync`, `Inheritance`, the shards and `Rotation`. The rounds between are the simulator's
//! own, because those of a node run on a thread apart.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::AuthorityClient;
use fastpay_core::checkpoint::{Installations, InstalledCommittee};
use fastpay_core::handover::{
    CLOSING_ENTRIES_MAX, Inheritance, JoinError, JoinPosition, ReportedEntry, SignedClosing, VerifiedClosing,
};
use fastpay_core::private::NoProofs;
use fastpay_core::{AuthorityKeys, AuthorityName, Committees, Digest, Epoch, ShardLedger, TransactionIndex};
use fastpay_node::authority::handover::{Closings, Report, ReportError};
use fastpay_node::authority::metrics::Metrics;
use fastpay_node::authority::peer_book::PeerReader;
use fastpay_node::authority::peer_sync::{Attesters, OwnShards, PeerSync, PeerSyncTimes};
use fastpay_node::authority::rotation::Rotation;
use fastpay_node::authority::shard::{Command, HistoryReader, JoinStep, ShardHandle};
use fastpay_node::authority::voter_status::VoterStatus;
use fastpay_program::files;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use super::oracle::Breach;
use super::storage::{Cut, Power};
use super::world::{Tasks, World, spawn};

/// The pause between rounds.
const PAUSE: Duration = Duration::from_secs(2);

/// The shards of an authority, with their journals.
pub(super) type Shards = Arc<Vec<(ShardHandle, HistoryReader)>>;

/// See the [module](self).
pub(super) struct Joiner {
    pub world: Arc<World>,
    pub authority: usize,
    pub rotation: Arc<Rotation>,
    pub shards: Shards,
    pub closings: Closings,
    pub metrics: Arc<Metrics>,
    pub power: Power,
    /// Where the certificates that are brought are noted.
    pub cursors: PathBuf,
}

/// What a joiner has of an epoch that ended.
#[derive(Default)]
struct Taken {
    epoch: Epoch,
    closings: BTreeMap<AuthorityName, VerifiedClosing>,
    /// How often nobody bore out a claim of these members.
    unproven: BTreeMap<AuthorityName, u64>,
}

impl Joiner {
    /// Runs while the process lives.
    pub async fn run(self, tasks: Tasks) {
        // A client number that differs from those of all clients and relayers.
        let client = self.world.owners.len() + self.world.plan.relayers + self.authority;
        let peers = self.world.network(client).authorities().to_vec();
        let (mut taken, mut bringing) = (Taken::default(), None);
        // Some processes die amid their first join.
        let mut dies = self.world.dice.chance(400);
        loop {
            sleep(PAUSE).await;
            let status = self.rotation.subscribe().borrow().clone();
            let joins = status.joins().is_some() && !status.is_ahead() && !status.is_stale();
            bringing = match bringing {
                None if joins => Some(self.bring(&peers, &tasks)),
                bringing => bringing.filter(|_| joins),
            };
            let Some(ledgers) = self.ledgers().await else { continue };
            if let Err(breach) = self.state(&status, &ledgers) {
                return self.world.trace.violation(breach);
            }
            if joins && self.join(&status, &ledgers, &peers, &mut taken, &mut dies).await.is_some() {
                self.world.trace.note("joined", format_args!("a{} {}", self.authority, status.epoch()));
            }
        }
    }

    /// Fetches what the peers have executed, until the sender is dropped.
    fn bring(&self, peers: &[AuthorityClient], tasks: &Tasks) -> watch::Sender<bool> {
        let others = (0..).zip(peers).filter(|(number, _)| *number != self.authority);
        let reader = PeerReader::of(others.map(|(_, peer)| peer.clone()).collect());
        let attesters = Attesters::over(reader.clone(), self.world.domain, self.rotation.subscribe());
        let own = OwnShards::new(self.shards.clone(), self.metrics.network.clone(), attesters);
        let (cursors, metrics) = (self.cursors.clone(), self.metrics.peers.clone());
        let sync = PeerSync::over(reader, own, cursors, metrics, PeerSyncTimes::default());
        let (stop, mut stopped) = watch::channel(false);
        let heard = stop.subscribe();
        spawn(tasks, async move {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => {}
                () = sync.run(heard) => {}
            }
        });
        stop
    }

    async fn ledgers(&self) -> Option<Vec<Arc<ShardLedger>>> {
        let mut ledgers = Vec::new();
        for (shard, _) in self.shards.iter() {
            ledgers.push(ask(shard, Command::ReadLedger).await?);
        }
        Some(ledgers)
    }

    /// Signs and serves what it knows of the newest epoch that has ended, once.
    fn state(&self, status: &VoterStatus, ledgers: &[Arc<ShardLedger>]) -> Result<(), Breach> {
        let Some(ended) = status.epoch().0.checked_sub(1).map(Epoch) else { return Ok(()) };
        let Some(keys) = status.closes(ended) else { return Ok(()) };
        let path = self.closings.path((ended, keys.public().name));
        let histories: Vec<_> = self.shards.iter().map(|(_, history)| history.clone()).collect();
        if path.is_file() {
            return Ok(());
        }
        let Some((signed, entries)) = closing(&self.world, self.authority, (ended, &**keys), &histories, ledgers)?
        else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        signed.write(entries.iter().map(Ok), &mut bytes).expect("there is memory");
        keep(&path, &bytes);
        self.world.trace.note("stated", format_args!("a{} {ended} {}", self.authority, entries.len()));
        Ok(())
    }

    /// Joins the current epoch as far as it can now. Something once it votes there.
    async fn join(
        &self,
        status: &VoterStatus,
        ledgers: &[Arc<ShardLedger>],
        peers: &[AuthorityClient],
        taken: &mut Taken,
        dies: &mut bool,
    ) -> Option<()> {
        let epoch = status.epoch();
        let committee = status.committees().get(Epoch(epoch.0.checked_sub(1)?))?.clone();
        if taken.epoch != committee.epoch() {
            *taken = Taken { epoch: committee.epoch(), ..Taken::default() };
        }
        let up_to = ledgers.iter().map(|ledger| ledger.synchronized).max()?;
        for member in committee.members() {
            if !taken.closings.contains_key(&member.name)
                && let Some(closing) = self.take(status.committees(), taken.epoch, up_to, (member.name, peers)).await
            {
                taken.closings.insert(member.name, closing);
            }
        }
        let mut found: Vec<_> = taken.closings.values().collect();
        let times = |name: AuthorityName| taken.unproven.get(&name).copied().unwrap_or_default();
        found.sort_by_key(|one| (times(one.authority()), one.closing().entries, one.authority()));
        found.truncate(committee.quorum());
        let chosen = found.into_iter().cloned().collect();
        let inheritance = Inheritance::new(&committee, chosen, |checkpoint| *checkpoint == Digest::ZERO).ok()?;
        let inheritance = Arc::new(inheritance);
        for (shard, _) in self.shards.iter() {
            ask(shard, |reply| Command::MayJoin(inheritance.clone(), reply)).await?.ok()?;
        }
        if std::mem::take(dies) {
            let cut = Cut {
                operations: self.world.dice.below(6),
                of_checkpoints: false,
                is_done: self.world.dice.chance(400),
            };
            self.world.trace.note("power cut ahead", format_args!("a{} joins, {cut:?}", self.authority));
            self.power.cut_at(cut);
        }
        for (shard, _) in self.shards.iter() {
            match join_shard(shard, &inheritance).await? {
                Ok(()) => {}
                Err(JoinError::Unproven { authority, .. }) => {
                    self.world.trace.note("claim not borne out", format_args!("a{}", self.authority));
                    *taken.unproven.entry(authority).or_default() += 1;
                    return None;
                }
                Err(_) => return None,
            }
        }
        self.rotation.join(epoch).expect("there is a disk");
        Some(())
    }

    /// A member's Closing, from its own disk or from a peer, which may be another one than its author.
    async fn take(
        &self,
        committees: &Committees,
        epoch: Epoch,
        up_to: TransactionIndex,
        (member, peers): (AuthorityName, &[AuthorityClient]),
    ) -> Option<VerifiedClosing> {
        let path = self.closings.path((epoch, member));
        let term = &self.world.chain.terms()[usize::try_from(epoch.0).expect("few epochs")];
        let author = term
            .behind
            .iter()
            .copied()
            .find(|one| term.keys_of(*one).is_some_and(|keys| keys.public().name == member))?;
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(_) if self.world.dice.chance(800) => fetch(&peers[author], (epoch, None)).await?,
            Err(_) => fetch(self.world.dice.pick(peers), (epoch, Some(member))).await?,
        };
        let (signed, entries) = SignedClosing::read(&mut &bytes[..], CLOSING_ENTRIES_MAX).ok()?;
        if signed.authority != member {
            return None;
        }
        let (of, against) = ((&self.world.domain, epoch), (&installations(committees), up_to));
        let rng = &mut StdRng::seed_from_u64(self.world.plan.seed);
        let verified = signed.verify(entries, of, against, &NoProofs, rng).ok()?;
        keep(&path, &bytes);
        Some(verified)
    }
}

/// Nobody steals a key where nobody hands over, so with new ones there is nothing to take over from the others.
pub(super) async fn join_at_once(rotation: Arc<Rotation>) {
    let mut changed = rotation.subscribe();
    loop {
        let status = changed.borrow_and_update().clone();
        let joins = status.joins().filter(|_| !status.is_ahead() && status.rollback_protection().is_none());
        if let Some(epoch) = joins {
            rotation.join(epoch).expect("there is a disk");
        }
        if changed.changed().await.is_err() {
            return;
        }
    }
}

/// What an authority states of an epoch that it has closed: it counts, and says all. Nothing before all shards have closed it.
pub(super) fn closing(
    world: &World,
    authority: usize,
    (closed, keys): (Epoch, &AuthorityKeys),
    histories: &[HistoryReader],
    ledgers: &[Arc<ShardLedger>],
) -> Result<Option<(SignedClosing, Vec<ReportedEntry>)>, Breach> {
    let wrong = |error: &dyn std::fmt::Display| Breach(format!("authority {authority} closes: {error}"));
    let report = match Report::read(closed, &world.domain, histories, ledgers, &|| false) {
        Err(ReportError::NotClosed(_)) => return Ok(None),
        report => report.map_err(|error| wrong(&error))?,
    };
    let entries = report.reported().collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error))?;
    let signed = report.closing.sign(keys, &world.domain);
    let installations = installations(&world.known_committees(world.chain.installed().len()));
    let (of, against) = ((&world.domain, closed), (&installations, report.closing.up_to));
    let rng = &mut StdRng::seed_from_u64(world.plan.seed);
    signed.clone().verify(entries.clone(), of, against, &NoProofs, rng).map_err(|error| wrong(&error))?;
    let is_based = histories.iter().any(|history| history.base().is_some());
    world.oracle().is_told(authority, &entries, is_based)?;
    Ok(Some((signed, entries)))
}

/// The committees as they were installed. No keys were out.
fn installations(committees: &Committees) -> Installations {
    let mut all = committees.iter().map(|committee| (**committee).clone());
    let mut installations = Installations::new(all.next().expect("there is the first")).expect("it is of epoch 0");
    for committee in all {
        let compromised_since = committee.epoch();
        let next = InstalledCommittee { committee, compromised_since, checkpoint: Digest::ZERO };
        installations.install(next).expect("epochs follow each other");
    }
    installations
}

/// A whole Closing, part by part.
async fn fetch(peer: &AuthorityClient, (epoch, member): (Epoch, Option<AuthorityName>)) -> Option<Vec<u8>> {
    let shard = peer.shards().first().expect("there is a shard");
    let mut bytes = Vec::new();
    loop {
        let part = shard.closing_part(epoch, member, bytes.len() as u64).await.ok()??;
        bytes.extend_from_slice(&part.bytes);
        if part.bytes.is_empty() || bytes.len() as u64 >= part.length {
            return Some(bytes);
        }
    }
}

/// The small files survive crashes as they are.
fn keep(path: &Path, bytes: &[u8]) {
    let folder = path.parent().expect("it is in a folder");
    files::create_folder(folder).and_then(|()| files::replace(path, bytes)).expect("there is a disk");
}

/// Brings what is inherited into a shard, part by part.
async fn join_shard(shard: &ShardHandle, inheritance: &Arc<Inheritance>) -> Option<Result<(), JoinError>> {
    let mut after = JoinPosition::default();
    loop {
        let join = |reply| Command::Join { inheritance: inheritance.clone(), after, reply };
        match ask(shard, join).await? {
            Ok(JoinStep::Joined) => return Some(Ok(())),
            Ok(JoinStep::UpTo(position)) => after = position,
            Err(error) => return Some(Err(error)),
        }
    }
}

/// A shard's answer, unless it has too much to do, or has failed.
async fn ask<T>(shard: &ShardHandle, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    shard.try_send(command(reply)).ok()?;
    answer.await.ok()
}
