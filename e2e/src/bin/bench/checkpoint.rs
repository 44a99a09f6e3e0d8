//! The committee's checkpoints and the rebase with millions of accounts: how long each takes, and its peak of memory.
//!
//! One authority, whose folder begins at a checkpoint (`laid`), does its work in this process: it proposes and signs as the
//! leader; signs as another member, which remembers nothing of the proposal; computes as another one the cut that the
//! leader has announced, and signs it; certifies, and is rebased.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use fastpay_core::checkpoint::Checkpoint;
use fastpay_core::{AuthorityKeys, Digest, Domain, Epoch, ShardLayout};
use fastpay_e2e::{Failure, Layout, Network, Place};
use fastpay_node::authority::certification::{
    Archive, CheckpointVoteFile, Inputs, Memory, ORDERS_MAX, ProposedCut, certify, prepare, propose, sign,
};
use fastpay_node::authority::config::Config;
use fastpay_node::operator::rebase::rebase;
use fastpay_program::Clock;
use fastpay_rpc::json::Hex;
use serde::{Deserialize, Serialize};

use crate::draw;
use crate::laid::{self, Signers};
use crate::meter::{forget_peak, peak_bytes, process_time};
use crate::statistics::rounded;
use crate::workload::{self, Accounts, Voters};
use crate::{progress, runtime};

/// The figures, of an authority with one shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoints {
    pub accounts: usize,
    /// The orders since the checkpoint before, each of an account of its own.
    pub orders: usize,
    pub state_bytes: u64,
    pub propose: Cost,
    /// The part of it before the others begin.
    pub announce: Cost,
    /// By the leader, which proposed it.
    pub sign_own: Cost,
    /// By another member that missed the announcement. It reads the state before once more than one that has signed
    /// that, too.
    pub sign: Cost,
    /// By another member, as soon as the cut is announced: as `sign`.
    pub prepare: Cost,
    /// By that member, when it is proposed.
    pub sign_prepared: Cost,
    pub certify: Cost,
    pub index: Cost,
    pub rebase: Cost,
}

/// What a step costs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    pub seconds: f64,
    pub processor_seconds: f64,
    /// The most memory that the process held meanwhile.
    pub peak_mib: f64,
}

pub fn measure(accounts: usize, orders: usize) -> Result<Checkpoints, Failure> {
    progress(&format!("checkpoint: a folder and an archive of {accounts} accounts"));
    let layout = Layout { shards: 1, ..Layout::default() };
    let mut network = Network::prepare_standalone(Place::fixed("bench-checkpoint")?, layout, vec![laid::genesis()])?;
    let keys = network.authorities.iter().map(|authority| authority.secret_keys()).collect::<Result<Vec<_>, _>>()?;
    let own = keys.first().ok_or_else(|| Failure::wrong("no authority"))?;
    let (domain, committee) = (*network.domain(), network.committee().clone());
    let config = Config::read(network.authority(0)?.config(), Default::default()).map_err(Failure::wrong)?;
    let folder = config.data.with_file_name("archive");
    let archive = Archive::new(&folder);

    let payers = Accounts::new(orders);
    let voters = Voters { domain: &domain, keys: &keys, batch: 32 };
    let one_shard = ShardLayout::new(NonZeroU32::MIN);
    let payments = workload::prepare(&draw::rounds(orders, 1), &payers, one_shard, &voters);
    let signers = Signers { domain: &domain, committee: &committee, keys: &keys, payers: &payers };
    let journal = config.data.join("shard-000/journal");
    let state_bytes = laid::lay((&archive, &journal), &signers, accounts, &payments)?;
    drop((payers, payments));

    let inputs = Inputs { config: &config, archive: &folder, orders_max: ORDERS_MAX, clock: Clock::system() };
    let (runtime, mut told) = (runtime()?, |_: String| ());
    let (mut of_leader, mut of_other) = (Memory::default(), Memory::default());
    let (announced, mut announce) = (folder.join("announced"), Err(Failure::wrong("no cut was announced")));
    let (proposal, propose) = cost("propose", || {
        let meter = Meter::start();
        let mut told = |what: String| {
            if what.starts_with("announced") {
                let linked = std::fs::hard_link(archive.cut_path(2), &announced).map_err(Failure::wrong);
                announce = linked.map(|()| meter.cost());
            }
        };
        runtime.block_on(propose(inputs, &mut of_leader, &mut told)).map_err(Failure::wrong)
    })?;
    let announce = announce?;
    let cut = ProposedCut::read(&proposal.cut).map_err(Failure::wrong)?;
    let signer = (Epoch(0), std::slice::from_ref(own));
    let (_, sign_own) = cost("sign the own proposal", || {
        runtime.block_on(sign(inputs, signer, &cut, &mut of_leader, &mut told)).map_err(Failure::wrong)
    })?;
    let sign_as = |memory: &mut Memory| {
        let cut = ProposedCut::read(&proposal.cut).map_err(Failure::wrong)?;
        runtime.block_on(sign(inputs, signer, &cut, memory, &mut |_| ())).map_err(Failure::wrong)
    };
    let (signed, sign) = cost("sign as another member", || sign_as(&mut of_other))?;
    let mut of_other = Memory::default();
    let (_, prepare) = cost("compute as another member what is announced", || {
        let cut = ProposedCut::read(&announced).map_err(Failure::wrong)?;
        runtime.block_on(prepare(inputs, signer, &cut, &mut of_other, &mut told)).map_err(Failure::wrong)
    })?;
    let (_, sign_prepared) = cost("sign it", || sign_as(&mut of_other))?;
    let checkpoint = cut.checkpoint;
    let votes: Vec<_> = keys.iter().map(|keys| vote(&checkpoint, signed.vote.checkpoint, keys, &domain)).collect();
    let (_, certify) =
        cost("certify", || runtime.block_on(certify(inputs, &votes, &of_other, &mut told)).map_err(Failure::wrong))?;
    let (_, index) = cost("index", || archive.index(&checkpoint).map_err(Failure::wrong))?;
    let (rebased, rebase) =
        cost("rebase", || runtime.block_on(rebase(&config, &folder, None, None, &mut told)).map_err(Failure::wrong))?;
    let is_whole = (rebased.checkpoint, rebased.was_complete, rebased.accounts) == (2, true, accounts as u64);
    if !is_whole {
        return Err(Failure::wrong(format!("the folder was not rebased as a whole: {rebased:?}")));
    }
    Ok(Checkpoints {
        accounts,
        orders,
        state_bytes,
        propose,
        announce,
        sign_own,
        sign,
        prepare,
        sign_prepared,
        certify,
        index,
        rebase,
    })
}

struct Meter {
    begun: Instant,
    before: Duration,
}

impl Meter {
    fn start() -> Self {
        forget_peak();
        Self { begun: Instant::now(), before: process_time() }
    }

    fn cost(&self) -> Cost {
        let processor_seconds = rounded(process_time().saturating_sub(self.before).as_secs_f64(), 2);
        let peak_mib = rounded(peak_bytes() as f64 / f64::from(1 << 20), 0);
        Cost { seconds: rounded(self.begun.elapsed().as_secs_f64(), 2), processor_seconds, peak_mib }
    }
}

fn cost<T>(what: &str, work: impl FnOnce() -> Result<T, Failure>) -> Result<(T, Cost), Failure> {
    progress(&format!("checkpoint: {what}"));
    let meter = Meter::start();
    Ok((work()?, meter.cost()))
}

fn vote(checkpoint: &Checkpoint, digest: Digest, keys: &AuthorityKeys, domain: &Domain) -> CheckpointVoteFile {
    let vote = checkpoint.sign(keys, domain);
    CheckpointVoteFile {
        number: checkpoint.number,
        checkpoint: digest,
        epoch: checkpoint.epoch,
        authority: vote.authority,
        signature: Hex(vote.signature.0),
    }
}
