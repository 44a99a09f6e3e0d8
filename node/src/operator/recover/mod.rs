//! Rebuilds the checkpoint of a committee that begins anew, because the one before is lost or keys of too many of its
//! members were stolen: from the newest certified checkpoint, the contract's events, the members' data folders, and the
//! certificates that anybody still has. Equal inputs give equal checkpoints, so everybody can repeat it, and add
//! certificates, before the new committee adopts one.
//!
//! ```text
//!  archive ──────────────► verified, same events as the chain ─► base ─┐
//!  chain ────────────────► events up to the installation ──────────────┼─► history ─► candidate ─► folder, report
//!  files, old journals ──► certificates, each verified ────────────────┘
//! ```
//! Of an archive, a file or a journal nothing is believed but what a member executed: orders count with their
//! certificates, events as the Ethereum nodes agree on them. What members executed decides between two certified orders of
//! one number, which thieves make.

mod certificates;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::{
    CheckpointState, InstalledCommittee, KnownFacts, PrimaryEvent, PrimaryEventKind, Recovered, RecoveryError,
};
use fastpay_core::{Committees, Digest, Domain, Epoch, EpochsError, Recovery, Redemption};
use fastpay_ethereum::{EpochReader, PaidRedemption, Primary, PrimaryError};
use fastpay_program::Clock;

use crate::authority::certification::{
    Archive, Base, CheckpointError, Computed, NoBase, Progress, follow_segment, read_all,
};
use crate::authority::deployment::{self, Deployment, DeploymentError, Reader};
use certificates::{Certificates, Gathered};

use report::Made;
pub use report::{Debt, Folders, LeftOutOrder, PaidOrder, QueuedOrder, Report};

/// From what a checkpoint is rebuilt. The order does not matter.
#[derive(Clone, Debug)]
pub struct Sources {
    /// A folder of certified checkpoints, or the URL of a store.
    pub archive: PathBuf,
    /// Files of certificates, or folders of such files: one certificate in each line, as `fastpay show --certificate`
    /// prints it.
    pub certificates: Vec<PathBuf>,
    /// Data folders of authorities of the old committees. After a theft, of a quorum: then what was settled counts.
    pub journals: Vec<PathBuf>,
    /// JSON files of redemptions that the contract paid, where its events and calls do not show all fields.
    pub redemptions: Vec<PathBuf>,
}

/// Why nothing was rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// There is no contract that would adopt what is rebuilt.
    #[error("only a contract on Ethereum adopts a rebuilt checkpoint: a committee on a ledger cannot be recovered")]
    NoContract,
    /// The newest committee goes on with what the one before knows.
    #[error(
        "the installation of epoch {0} ends no earlier epoch at once: there is nothing to rebuild. After a recovery is \
         announced, or a committee with `compromisedSince`, wait until it is installed and final, and collect \
         certificates meanwhile"
    )]
    NoRecovery(Epoch),
    /// The committees or the contract cannot be read.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The archive has nothing to begin from.
    #[error(transparent)]
    Base(#[from] NoBase),
    /// The chain, a journal or the candidate.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The contract cannot be asked.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The history cannot be rebuilt.
    #[error(transparent)]
    History(#[from] RecoveryError),
    /// A file cannot be read or written.
    #[error("cannot access {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
}

fn unreadable(path: &Path, reason: &dyn ToString) -> RecoverError {
    RecoverError::File { path: path.to_owned(), reason: reason.to_string() }
}

/// A rebuilt checkpoint, which the new committee may adopt.
pub struct Candidate {
    computed: Computed,
    base: Base,
    /// What was fetched for the base is removed with it.
    _archive: Archive,
    /// What it is made of, and what is missing.
    pub report: Report,
}

impl Candidate {
    /// Writes segment, state, cut and `report.json` into a folder. Returns the folder's files of the cut and the report.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&self, folder: &Path) -> Result<[PathBuf; 2], RecoverError> {
        let (cut, report) = (self.computed.write(&self.base, folder)?, folder.join("report.json"));
        let written =
            fastpay_program::files::replace_with(&report, |file| Ok(serde_json::to_writer_pretty(file, &self.report)?));
        written.map_err(|error| unreadable(&report, &error))?;
        Ok([cut, report])
    }
}

/// Rebuilds the checkpoint. Anybody can: the contract and the sources are all that it takes.
///
/// # Errors
/// See [`RecoverError`].
pub async fn recover(
    reader: impl Into<Reader<'_>>,
    sources: &Sources,
    clock: Clock,
    told: Progress<'_>,
) -> Result<Candidate, RecoverError> {
    let reader = reader.into();
    let deployment = deployment::load(reader).await?;
    let (domain, committees) = (deployment.domain(), deployment.committees().map_err(CheckpointError::from)?);
    let Deployment::OnPrimary { config: primary, .. } = &deployment else { return Err(RecoverError::NoContract) };
    // Of each redemption all that the contract says, oldest first, also after the recovery.
    let mut paid = BTreeMap::<Digest, Vec<PaidRedemption>>::new();
    let mut events = read_all(primary, clock, &mut *told, &mut |event, blocks| {
        if let Some(redemption) = PaidRedemption::new(event, blocks) {
            paid.entry(redemption.digest).or_default().push(redemption);
        }
    })
    .await?;
    let installed = end_at_recovery(&mut events)?;
    let epoch = installed.committee.epoch();
    let contract = EpochReader::new(Primary::connect_lazily(primary.clone())?);
    let mut earlier = Vec::new();
    for event in &events {
        match &event.kind {
            PrimaryEventKind::Installed(before) if before.is_recovery() && before.committee.epoch() < epoch => {
                let epoch = before.committee.epoch();
                let adopted = contract.adopted(epoch).await.map_err(DeploymentError::from)?;
                earlier.push(Recovery { epoch, adopted });
            }
            _ => {}
        }
    }
    let archive = Archive::at(&sources.archive, reader).map_err(CheckpointError::from)?;
    let base = archive.base_of_recovery((&installed, &earlier), &events, (&domain, &committees), &mut *told).await;
    let (base, without_checkpoint) = base?;
    let state = base.read(|mut stored| CheckpointState::read(&mut stored)).map_err(CheckpointError::from)?;
    events.retain(|event| event.index > state.cut().up_to);

    let certified = as_if_none_had_ended(&committees).map_err(CheckpointError::from)?;
    let mut known = Certificates::new(&domain, &certified, (state.cut(), base.checkpoint.number));
    for path in &sources.certificates {
        known.read(path, &mut *told)?;
    }
    for data in &sources.journals {
        known.read_journals(data, &mut *told)?;
    }
    let Gathered { verified: certificates, invalid, executed_by, folders } = known.finish();
    let primary = Primary::connect(primary.clone()).await?;
    // What is only queued, with keys that were out, is not debited without a certificate.
    let last = events.last().map(|event| event.index).unwrap_or_default();
    let since = installed.compromised_since;
    let binds = |said: &PaidRedemption| said.queued_with.map_or(said.index <= last, |epoch| epoch < since);
    let is_open = |said: &PaidRedemption| said.redemption.sequence >= state.cut().next(&said.redemption.sender);
    let owed: Vec<_> = paid.values().filter(|said| said.iter().any(binds) && said.iter().any(is_open)).collect();
    let redemptions = redemptions(&primary, &sources.redemptions, &owed, &certificates).await?;
    let count = certificates.len() as u64;
    told(format!("rebuilding from {count} certificates"));
    let queued_with = paid.values().flatten().filter_map(|said| Some((said.digest, said.queued_with?))).collect();
    let facts = KnownFacts { redemptions, queued_with, executed_by, without_checkpoint };
    let recovered = state.recover(events, certificates.into_values(), &facts, &domain)?;
    let adopted = Some(primary.adopted(epoch).await?).filter(|adopted| !adopted.is_zero());
    let ended = epoch.0.checked_sub(1).and_then(|ended| committees.get(Epoch(ended)));
    let folders = Folders { read: folders, quorum: ended.map_or(0, |committee| committee.quorum() as u64) };
    let Recovered { segment, paid, left_out, queued } = recovered;
    let made = Made { certificates: count, paid, queued, left_out, invalid };
    let computed = follow_segment(&base, segment, &domain, told).map_err(CheckpointError::from)?;
    let computed = computed.map_err(CheckpointError::from)?;
    let report = Report::new(&computed, &domain, (&base, adopted, folders), made).map_err(CheckpointError::from)?;
    Ok(Candidate { computed, base, _archive: archive, report })
}

/// The committees of all epochs, as if no recovery had ended one: what they certified is rebuilt. An earlier recovery
/// is among the events, which say what does not count.
fn as_if_none_had_ended(committees: &Committees) -> Result<Committees, EpochsError> {
    let mut all = committees.iter().map(|committee| (**committee).clone());
    let mut known = Committees::new(all.next().ok_or(EpochsError::Empty)?)?;
    all.try_for_each(|next| known.install(next))?;
    Ok(known)
}

/// Drops the events after the newest installation, which must have made a recovery.
fn end_at_recovery(events: &mut Vec<PrimaryEvent>) -> Result<InstalledCommittee, RecoverError> {
    while let Some(event) = events.last() {
        match &event.kind {
            PrimaryEventKind::Installed(installed) if event.kind.is_recovery() => return Ok(installed.clone()),
            PrimaryEventKind::Installed(installed) => {
                return Err(RecoverError::NoRecovery(installed.committee.epoch()));
            }
            _ => drop(events.pop()),
        }
    }
    Err(RecoverError::NoRecovery(Epoch(0)))
}

/// Redemptions from files, and those that the contract owes, as far as its calls show them and no certificate does.
async fn redemptions(
    primary: &Primary,
    files: &[PathBuf],
    owed: &[&Vec<PaidRedemption>],
    certificates: &certificates::Verified,
) -> Result<BTreeMap<Digest, Redemption>, RecoverError> {
    let domain: Domain = primary.domain();
    let mut known = BTreeMap::new();
    for path in files {
        let text = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
        let redemption: Redemption = serde_json::from_slice(&text).map_err(|error| unreadable(path, &error))?;
        known.insert(domain.transfer_digest(&redemption.clone().into()), redemption);
    }
    let certified: BTreeSet<_> = certificates.keys().map(|(digest, _)| *digest).collect();
    for said in owed.iter().copied().flatten() {
        let digest = said.digest;
        // Each event of it is in another call, and one of these may show its memo.
        if !certified.contains(&digest)
            && !known.contains_key(&digest)
            && let Some(redemption) = primary.whole(said).await?
        {
            known.insert(digest, redemption);
        }
    }
    Ok(known)
}
