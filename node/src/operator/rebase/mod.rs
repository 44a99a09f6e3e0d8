//! The rebase: while the node is stopped, replaces its journals by a *generation* that begins at the newest certified
//! checkpoint of an archive. So journals end; the number of shards can change; and an empty folder begins where the
//! committee is.
//!
//! ```text
//!  archive ──► verified from the folder's own base on ──► S_k ─┐
//!  chain ────► events that the shards have followed ───────────┼─► own state ─► generation-000N/ ─► synced ─► meta.json
//!  journals ─► executed beyond the cut, votes, what is Seen ───┘   (`plan`)     (`write`)                     (switch)
//! ```
//! If the archive has skipped numbers, it is verified from the last of them on, whose state is certified.
//!
//! 1. The old journals are recovered as at a start, and judged by the high-water mark: a rebase never makes a folder
//!    whole that lacks votes.
//! 2. The state is computed from S_k, the chain's events and the executed certificates, apart from the shards' rules.
//!    Where nothing was missing here, it must be what the shards hold, or nothing is changed.
//! 3. All shards are written, and replayed while they are. The switch is one atomic write of `meta.json`. Before it,
//!    the old generation counts and the command begins anew; after it, the new one does.
//!
//! After a recovery the first rebase begins *anew*: from the checkpoint that the contract adopted, or one that follows.
//! What the authority executed, locked and kept before counts for nothing, and nothing of it is compared.
//!
//! The old generation stays until `fastpay-node prune`, which demands that the node was started on the new one.

mod own;
mod plan;
mod shards;
#[cfg(test)]
mod tests;
mod write;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::{Checkpoint, PrimaryEvent, SegmentError};
use fastpay_core::{AccountId, Asset, Balance, Digest, Domain, Epoch, LedgerBase, Recovery, ShardLayout};
use fastpay_program::Clock;
use serde::Serialize;

use crate::authority::certification::{
    Archive, Base, CheckpointError, Computed, Inputs, Journals, ORDERS_MAX, Progress, installations_after,
    read_with_time,
};
use crate::authority::config::Config;
use crate::authority::deployment::{self, Deployment};
use crate::authority::rollback::{DetectionError, HighWaterMark, Memory};
use crate::authority::shard::{RecoveredShard, ShardError};
use crate::authority::storage::{DataFolder, JournalError, StorageError, remove_older_generations};
use crate::authority::{AuthorityError, check_credits, recover, shard_limits};
use own::{Own, Target};
pub use shards::{Foundation, RebasedShards, rebase_shards};

/// Why a folder was not rebased. It is what it was.
#[derive(Debug, thiserror::Error)]
pub enum RebaseError {
    /// The archive, the chain or the journals.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The data folder cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Whether the folder remembers all votes cannot be judged.
    #[error(transparent)]
    Memory(#[from] DetectionError),
    /// The authority could not start on the folder, either.
    #[error(transparent)]
    Recovery(Box<AuthorityError>),
    /// The old shards cannot be read.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The new journals cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The archive has nothing to begin from.
    #[error(
        "the archive {0} has no certified checkpoint yet; wait until the nodes have made one, or copy another \
         authority's archive"
    )]
    NoCheckpoint(PathBuf),
    /// The folder begins there already.
    #[error(
        "the data folder begins at checkpoint {0} already, the newest of the archive; rebase again once a later one is \
         certified"
    )]
    Nothing(u64),
    /// The archive has another checkpoint of the number at which the folder begins.
    #[error(
        "the data folder begins at checkpoint {number} with the digest {own}, and the archive's has the digest {found}; \
         use the archive from which the folder was rebased, or a copy of it"
    )]
    OtherArchive {
        /// The number.
        number: u64,
        /// The checkpoint at which the folder begins.
        own: Digest,
        /// The checkpoint of the archive.
        found: Digest,
    },
    /// What this authority executed cannot follow the checkpoint.
    #[error(
        "what this authority executed does not follow checkpoint {number}: {error}. Nothing was changed. More authorities \
         than the committee tolerates may be faulty: compare the archives and journals before anybody goes on"
    )]
    Contradiction {
        /// The checkpoint's number.
        number: u64,
        /// Why.
        error: Box<SegmentError>,
    },
    /// The computed state is not what the shards hold.
    #[error(
        "the state of account {account} that follows from the checkpoint is not the one that this authority holds: its \
         {what} differs. Nothing was changed; report this as a defect"
    )]
    Differs {
        /// The account.
        account: AccountId,
        /// What differs.
        what: &'static str,
    },
    /// The authority holds something in accounts of which the computed state has nothing.
    #[error(
        "this authority holds {held} of the asset {asset}, and {compared} of it in the accounts that follow from the \
         checkpoint. Nothing was changed; report this as a defect"
    )]
    OtherSum {
        /// The asset.
        asset: Asset,
        /// What its shards hold.
        held: Balance,
        /// What they hold in the accounts that are known.
        compared: Balance,
    },
    /// A recovery has not adopted anything yet.
    #[error(
        "a recovery installed epoch {0}, and the contract has adopted no checkpoint that is final: rebase once it has \
         (docs/OPERATIONS.md, When the committee is lost)"
    )]
    NotAdopted(Epoch),
    /// The archive does not lead through what a recovery adopted.
    #[error(
        "the archive's checkpoints up to number {number} do not include {adopted}, which the contract has adopted after \
         a recovery: run `fastpay-node recover` with the archive as --out, and wait until the nodes have certified it"
    )]
    WithoutAdopted {
        /// The newest number that was looked at.
        number: u64,
        /// The digest that was adopted.
        adopted: Digest,
    },
    /// The old generation may still be needed.
    #[error(
        "no node has been started on generation {0} of the data folder yet; start it, wait until it is ready, and prune \
         then. It may run meanwhile"
    )]
    NotStarted(u64),
}

impl From<AuthorityError> for RebaseError {
    fn from(error: AuthorityError) -> Self {
        Self::Recovery(Box::new(error))
    }
}

/// A data folder that was rebased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rebased {
    /// The number of the checkpoint at which it begins.
    pub checkpoint: u64,
    /// The generation of its journals.
    pub generation: u64,
    /// The number of shards, which the configuration must name.
    pub shards: u32,
    /// The newest event of the contract that all shards have applied.
    pub up_to: u64,
    /// The accounts.
    pub accounts: u64,
    /// The certificates that were executed here beyond the checkpoint, and are kept.
    pub certificates: u64,
    /// Whether this authority had executed all that the checkpoint includes. What it had not executed is in its state
    /// now, and not in the lists that it serves.
    pub was_complete: bool,
    /// Why the authority votes only above what the others know, if it does: its folder lacks votes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<String>,
    /// The bytes of the new journals.
    pub journal_bytes: u64,
}

/// Replaces the journals of the data folder by a generation that begins at a certified checkpoint of the archive at
/// `archive`, a folder or the URL of a store: at number `onto`, or the newest. It has as many shards as before, or
/// `shards`.
///
/// # Errors
/// See [`RebaseError`]; the folder is what it was then.
pub async fn rebase(
    config: &Config,
    archive: &Path,
    onto: Option<u64>,
    shards: Option<NonZeroU32>,
    told: Progress<'_>,
) -> Result<Rebased, RebaseError> {
    let deployment = deployment::load(config).await.map_err(CheckpointError::from)?;
    let domain = deployment.domain();
    let contract = domain.contract().to_string();
    let mut folder = DataFolder::open_of_deployment(&config.data, domain.chain_id(), &contract)?;
    let (own, memory, mark) = recover_own(config, &folder, &deployment).await?;
    let layout = ShardLayout::new(shards.unwrap_or(own.shards));
    let (before, committees) = (folder.adopted()?, deployment.committees().map_err(CheckpointError::from)?);
    let adopted = match committees.recovery() {
        None => None,
        Some(Recovery { epoch, adopted: None }) => return Err(RebaseError::NotAdopted(epoch)),
        Some(Recovery { adopted, .. }) => adopted,
    };
    let anew = adopted.filter(|adopted| before != Some(*adopted));

    let (place, archive) = (archive, Archive::at(archive, config).map_err(CheckpointError::from)?);
    let begins = if anew.is_some() { None } else { own.base.as_deref() };
    let base = found((begins, anew, &own), layout, (&archive, onto), (place, &deployment), told).await?;
    let archive = archive.folder();
    let inputs = Inputs { config, archive, orders_max: ORDERS_MAX, clock: Clock::system() };
    // The archive may have skipped segments with deposits that are not applied here.
    let after = own.applied_by_all().min(base.state.up_to);
    let (mut events, time) = read_with_time(&deployment, after, inputs, told).await?;
    let chain = events.last().map_or(after, |event| event.index);
    let beyond = events.split_off(events.partition_point(|event| event.index <= base.state.up_to));
    let (deposits, events) = (events.iter().filter_map(own::Deposited::of).collect(), beyond);
    judge_by_chain(&base, &events, &domain)?;
    let up_to = own.up_to.max(base.state.up_to);
    if chain < up_to {
        return Err(CheckpointError::ChainBehind { chain, wanted: up_to }.into());
    }

    let journals = Journals::open(&config.data)?;
    let number = base.checkpoint.number;
    let target = Target {
        number,
        checkpoint: domain.checkpoint_digest(&base.checkpoint),
        generation: folder.generation().saturating_add(1),
        up_to,
        voidable_at: time.map_or(0, |time| time.block_time.saturating_add(time.unlock_window)),
        layout,
        with_primary: deployment.genesis().is_none(),
        is_anew: anew.is_some(),
        domain,
    };
    let plan = plan::plan(&own, &target, &base, events, deposits, &journals, told)?;
    let next = folder.create_next(layout.count()).map_err(RebaseError::from);
    let written = match next.and_then(|next| write::write(&own, &target, &plan, &journals, next, told)) {
        Ok(written) => written,
        Err(error) => {
            // The disk may be full, and the node goes on with the old generation.
            if let Err(error) = folder.remove_next() {
                tracing::warn!(%error, "the unfinished generation is still there; `fastpay-node prune` removes it");
            }
            return Err(error);
        }
    };
    let was_complete = plan.is_complete;
    let switch = mark.switch_to(&written.ends, &own.ends());
    drop((own, journals));
    folder.switch(layout.count(), switch, adopted)?;
    Ok(Rebased {
        checkpoint: number,
        generation: target.generation,
        shards: layout.count(),
        up_to: up_to.0,
        accounts: written.accounts,
        certificates: written.certificates,
        was_complete,
        restored: match memory {
            Memory::Whole => None,
            Memory::Older { why, .. } => Some(why),
        },
        journal_bytes: written.ends.iter().fold(0, |bytes, end| bytes.saturating_add(end.0)),
    })
}

/// Recovers the shards as at a start, and judges whether they remember all votes.
async fn recover_own(
    config: &Config,
    folder: &DataFolder,
    deployment: &Deployment,
) -> Result<(Own, Memory, HighWaterMark), RebaseError> {
    let shards = NonZeroU32::new(folder.shards()).unwrap_or(NonZeroU32::MIN);
    let layout = ShardLayout::new(shards);
    let with_primary = deployment.genesis().is_none();
    let recovered = recover(folder, layout, with_primary, shard_limits(config)).await?;
    check_credits(recovered.iter().map(RecoveredShard::shard))?;
    let own = Own::new(shards, recovered);
    let mark = HighWaterMark::of(&config.data, config.high_water_mark())?;
    let memory = mark.judge_before_rebase(folder, &own.ends())?;
    Ok((own, memory, mark))
}

/// The checkpoint of the archive with number `onto`, or the newest, verified from the one on at which the folder
/// begins; or from the last skipped number on, whose state is certified. A folder that begins anew begins at none, and
/// the checkpoints must include `anew`.
async fn found(
    (begins, anew, own): (Option<&LedgerBase>, Option<Digest>, &Own),
    layout: ShardLayout,
    (archive, onto): (&Archive, Option<u64>),
    (place, deployment): (&Path, &Deployment),
    told: Progress<'_>,
) -> Result<Base, RebaseError> {
    let domain = deployment.domain();
    let committees = deployment.committees().map_err(CheckpointError::from)?;
    let (first, expected) = begins.map_or((0, None), |base| (base.number, Some(base.checkpoint)));
    let last = match onto {
        Some(number) => number,
        None => archive.newest_anywhere().await.map_err(CheckpointError::from)?,
    };
    let mut missing = anew;
    let mut pass = |checkpoint: &Checkpoint| {
        missing = missing.filter(|adopted| domain.checkpoint_digest(checkpoint) != *adopted);
    };
    let skipped = archive.skipped().map_err(CheckpointError::from)?;
    let (from, found) = match skipped.into_iter().rfind(|number| first < *number && *number <= last) {
        None => {
            let brought = archive.bring(first).await.map_err(CheckpointError::from)?;
            let begun = archive.base(first, &domain, &committees).map_err(|error| brought.explain_checkpoint(error))?;
            brought.keep();
            let found = domain.checkpoint_digest(&begun.checkpoint);
            (begun, found)
        }
        Some(landing) => {
            let linked = archive.linked((first, landing), &domain, &committees)?;
            linked.iter().for_each(&mut pass);
            let found = linked.first().map(|begun| domain.checkpoint_digest(begun)).unwrap_or_default();
            (archive.base(landing, &domain, &committees)?, found)
        }
    };
    if let Some(own) = expected.filter(|own| *own != found) {
        return Err(RebaseError::OtherArchive { number: first, own, found });
    }
    let seen = |computed: &Computed| pass(&computed.checkpoint);
    let base = archive.verify_after(from, last, (&domain, &committees), told, seen).await?;
    if let Some(adopted) = missing {
        return Err(RebaseError::WithoutAdopted { number: base.checkpoint.number, adopted });
    }
    match base.checkpoint.number {
        0 => Err(RebaseError::NoCheckpoint(place.to_owned())),
        number if begins.is_some() && number == first && layout == own.layout => Err(RebaseError::Nothing(number)),
        _ => Ok(base),
    }
}

/// Checks that the checkpoint counts on the chain as it is now.
fn judge_by_chain(base: &Base, events: &[PrimaryEvent], domain: &Domain) -> Result<(), RebaseError> {
    let installations = installations_after(base, events).map_err(CheckpointError::from)?;
    Ok(base.check(domain, &installations)?)
}

/// Removes the generations of journals that count no more. The node may run; if it does not, also what a rebase left
/// that was interrupted. Returns the folders that were removed.
///
/// # Errors
/// [`RebaseError::NotStarted`] if no node was started on the present generation; if a folder cannot be removed.
pub fn prune(config: &Config) -> Result<Vec<PathBuf>, RebaseError> {
    let mark = HighWaterMark::of(&config.data, config.high_water_mark())?;
    let left = match DataFolder::hold(&config.data) {
        Err(StorageError::InUse { .. }) => None,
        held => held?.remove_next()?,
    };
    let (generation, is_started) = mark.generation();
    if !is_started {
        return Err(RebaseError::NotStarted(generation));
    }
    let mut removed = remove_older_generations(&config.data, generation)?;
    removed.extend(left);
    Ok(removed)
}
