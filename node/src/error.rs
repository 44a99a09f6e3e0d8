//! Why a command failed, sorted by what to do about it: the kinds and exit codes of docs/CLI.md.

use std::io;
use std::path::PathBuf;

use fastpay_client::ClientError;
use fastpay_ethereum::{PrimaryError, SendError};
use fastpay_node::authority::AuthorityError;
use fastpay_node::authority::certification::{ArchiveError, CheckpointError, NoBase, StoreError};
use fastpay_node::authority::config::ConfigError;
use fastpay_node::authority::deployment::DeploymentError;
use fastpay_node::authority::funding::LedgerError;
use fastpay_node::authority::rollback::DetectionError;
use fastpay_node::authority::rotation::RotationError;
use fastpay_node::authority::shard::ShardError;
use fastpay_node::authority::storage::StorageError;
use fastpay_node::operator::backup::BackupError;
use fastpay_node::operator::committee::CommitteeError;
use fastpay_node::operator::join::JoinError;
use fastpay_node::operator::leave::LeaveError;
use fastpay_node::operator::rebase::RebaseError;
use fastpay_node::operator::recover::RecoverError;
use fastpay_node::operator::setup::SetupError;
use fastpay_node::operator::status::StatusError;
use fastpay_program::ErrorKind;
use fastpay_program::console::LostAnswer;
use fastpay_program::keystore::KeystoreError;
use fastpay_telemetry::TraceError;

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Key(#[from] KeystoreError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Authority(Box<AuthorityError>),
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    #[error(transparent)]
    Checkpoint(Box<CheckpointError>),
    #[error(transparent)]
    Rebase(Box<RebaseError>),
    #[error(transparent)]
    Recover(Box<RecoverError>),
    /// A command of an earlier version.
    #[error("the command `{old}` was replaced by `{new}`")]
    Replaced { old: &'static str, new: &'static str },
    #[error("cannot write {path}: {error}")]
    Unwritten { path: PathBuf, error: io::Error },
    /// `config check` found this many problems.
    #[error("the authority would not start: {0}")]
    Unfit(usize),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Memory(#[from] DetectionError),
    #[error(transparent)]
    Status(#[from] StatusError),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error(transparent)]
    Leave(#[from] LeaveError),
    /// What is watched has not come yet.
    #[error("{0}; run the command again, or with --wait")]
    NotYet(&'static str),
    /// What is left to do until the committee is installed.
    #[error("it is not installed yet: {0}")]
    NotInstalled(String),
    #[error("the operating system reports an error: {0}")]
    System(#[from] io::Error),
    #[error(transparent)]
    Output(#[from] LostAnswer),
}

impl From<AuthorityError> for CommandError {
    fn from(error: AuthorityError) -> Self {
        Self::Authority(Box::new(error))
    }
}

impl From<CheckpointError> for CommandError {
    fn from(error: CheckpointError) -> Self {
        Self::Checkpoint(Box::new(error))
    }
}

impl From<RebaseError> for CommandError {
    fn from(error: RebaseError) -> Self {
        Self::Rebase(Box::new(error))
    }
}

impl From<RecoverError> for CommandError {
    fn from(error: RecoverError) -> Self {
        Self::Recover(Box::new(error))
    }
}

impl CommandError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(_) | Self::Unfit(_) => ErrorKind::Config,
            Self::Key(error) if error.is_of_passphrase() => ErrorKind::Passphrase,
            Self::Key(_) => ErrorKind::Key,
            Self::Setup(error) => of_setup(error),
            Self::Authority(error) => of_authority(error),
            Self::Committee(error) => of_committee(error),
            Self::Checkpoint(error) => of_checkpoint(error),
            Self::Rebase(error) => of_rebase(error),
            Self::Recover(error) => of_recover(error),
            Self::Replaced { .. } => ErrorKind::Argument,
            Self::Unwritten { error, .. } if error.kind() == io::ErrorKind::AlreadyExists => ErrorKind::Argument,
            Self::Unwritten { .. } => ErrorKind::Storage,
            Self::Backup(error) => of_backup(error),
            Self::Memory(error) => of_detection(error),
            Self::Status(StatusError::Shard { error: ClientError::Address { .. }, .. } | StatusError::Config(_)) => {
                ErrorKind::Config
            }
            Self::Status(StatusError::Shard { .. }) => ErrorKind::Unreachable,
            Self::Status(StatusError::Archive(_)) => ErrorKind::Storage,
            Self::Join(JoinError::Node { .. }) | Self::Leave(LeaveError::Node { .. }) => ErrorKind::Unreachable,
            Self::Leave(LeaveError::Mark { .. }) => ErrorKind::Storage,
            Self::Leave(LeaveError::Storage(error)) => of_storage(error),
            Self::Leave(LeaveError::Ledger(error)) => of_ledger(error),
            Self::Join(JoinError::Config(_) | JoinError::Neither(..)) | Self::Leave(_) => ErrorKind::Config,
            Self::NotYet(_) | Self::NotInstalled(_) => ErrorKind::Timeout,
            Self::System(_) => ErrorKind::System,
            Self::Output(_) => ErrorKind::Output,
        }
    }
}

fn of_setup(error: &SetupError) -> ErrorKind {
    match error {
        SetupError::Io { error, .. } if error.kind() != io::ErrorKind::NotFound => ErrorKind::Storage,
        SetupError::Io { .. } | SetupError::Exists(_) | SetupError::Genesis { .. } | SetupError::Config(_) => {
            ErrorKind::Config
        }
        SetupError::Ledger(error) => of_ledger(error),
        SetupError::Storage(error) => of_storage(error),
        SetupError::HighWaterMark(error) => of_detection(error),
    }
}

fn of_authority(error: &AuthorityError) -> ErrorKind {
    match error {
        AuthorityError::Config(_) | AuthorityError::VoterStatus(_) | AuthorityError::Peers(_) => ErrorKind::Config,
        AuthorityError::Listen { .. } | AuthorityError::Tls(_) | AuthorityError::ArchivePeers(_) => ErrorKind::Config,
        AuthorityError::ArchiveStore(error) => of_store(error),
        AuthorityError::Deployment(error) => of_deployment(error),
        AuthorityError::Rotation(error) => of_rotation(error),
        AuthorityError::Storage(error) => of_storage(error),
        AuthorityError::Memory(error) => of_detection(error),
        AuthorityError::Epochs(_) | AuthorityError::VoteFloors(_) | AuthorityError::TornCopy { .. } => {
            ErrorKind::Storage
        }
        AuthorityError::LostCredits { .. } | AuthorityError::NoBase { .. } => ErrorKind::Storage,
        AuthorityError::Shard { error, .. } => of_shard(error),
        AuthorityError::Primary(_) => ErrorKind::Primary,
        AuthorityError::Traces(TraceError::Exporter(_)) => ErrorKind::Config,
        AuthorityError::Traces(TraceError::Thread(_)) => ErrorKind::System,
        AuthorityError::Runtime(_)
        | AuthorityError::Index(_)
        | AuthorityError::Checkpoints(_)
        | AuthorityError::Handover(_) => ErrorKind::System,
        AuthorityError::ShardPanicked(_) | AuthorityError::Server(_) => ErrorKind::System,
    }
}

fn of_deployment(error: &DeploymentError) -> ErrorKind {
    match error {
        DeploymentError::Genesis { .. } | DeploymentError::Committee(_) => ErrorKind::Config,
        DeploymentError::Primary(_) | DeploymentError::Epochs(_) => ErrorKind::Primary,
        DeploymentError::Ledger(error) => of_ledger(error),
    }
}

fn of_ledger(error: &LedgerError) -> ErrorKind {
    match error {
        LedgerError::Open(_) => ErrorKind::Config,
        LedgerError::Client(_)
        | LedgerError::Groups(_)
        | LedgerError::Impossible { .. }
        | LedgerError::OtherCommittee(_)
        | LedgerError::NotNext { .. } => ErrorKind::Primary,
    }
}

fn of_rotation(error: &RotationError) -> ErrorKind {
    match error {
        RotationError::Primary(_) => ErrorKind::Primary,
        RotationError::Ledger(error) => of_ledger(error),
        RotationError::VoterStatus(_) => ErrorKind::Config,
        RotationError::Storage(error) => of_storage(error),
        RotationError::Mark(error) => of_detection(error),
        RotationError::Remember(_) => ErrorKind::Storage,
    }
}

fn of_shard(error: &ShardError) -> ErrorKind {
    match error {
        ShardError::Thread(_) | ShardError::CommitPanicked | ShardError::CheckpointPanicked => ErrorKind::System,
        ShardError::Journal(_) | ShardError::Checkpoint(_) => ErrorKind::Storage,
        ShardError::Record(_) | ShardError::Account(_) | ShardError::Ledger => ErrorKind::Storage,
    }
}

fn of_storage(error: &StorageError) -> ErrorKind {
    match error {
        StorageError::InUse { .. } => ErrorKind::Busy,
        StorageError::NotCreated { .. } | StorageError::AlreadyCreated { .. } => ErrorKind::Config,
        StorageError::Mismatch { .. } | StorageError::UnsupportedVersion { .. } => ErrorKind::Config,
        StorageError::Io { .. } | StorageError::Malformed { .. } | StorageError::Journal(_) => ErrorKind::Storage,
    }
}

fn of_detection(error: &DetectionError) -> ErrorKind {
    match error {
        DetectionError::Storage(error) => of_storage(error),
        DetectionError::Io { .. } => ErrorKind::Storage,
        DetectionError::HighWaterMarkExists(_) => ErrorKind::Config,
        DetectionError::Incomplete(_) => ErrorKind::Argument,
    }
}

fn of_rebase(error: &RebaseError) -> ErrorKind {
    match error {
        RebaseError::Checkpoint(error) => of_checkpoint(error),
        RebaseError::Storage(error) => of_storage(error),
        RebaseError::Memory(error) => of_detection(error),
        RebaseError::Recovery(error) => of_authority(error),
        RebaseError::Shard(error) => of_shard(error),
        RebaseError::Journal(_) | RebaseError::Contradiction { .. } => ErrorKind::Storage,
        RebaseError::Differs { .. } | RebaseError::OtherSum { .. } => ErrorKind::Storage,
        RebaseError::NoCheckpoint(_) | RebaseError::Nothing(_) | RebaseError::OtherArchive { .. } => {
            ErrorKind::Argument
        }
        RebaseError::NotAdopted(_) | RebaseError::WithoutAdopted { .. } => ErrorKind::Argument,
        RebaseError::NotStarted(_) => ErrorKind::Argument,
    }
}

fn of_store(error: &StoreError) -> ErrorKind {
    match error {
        StoreError::Url(_) | StoreError::Settings { .. } => ErrorKind::Config,
        StoreError::Access { .. } => ErrorKind::Unreachable,
        StoreError::Missing(_) | StoreError::OtherArchive(_) | StoreError::Altered(_) => ErrorKind::Storage,
    }
}

fn of_recover(error: &RecoverError) -> ErrorKind {
    match error {
        RecoverError::NoContract => ErrorKind::Config,
        RecoverError::Deployment(error) => of_deployment(error),
        RecoverError::Base(NoBase::Checkpoint(error)) | RecoverError::Checkpoint(error) => of_checkpoint(error),
        RecoverError::Primary(_) => ErrorKind::Primary,
        RecoverError::Base(NoBase::Events(_) | NoBase::Missing(_) | NoBase::Compromised { .. }) => ErrorKind::Argument,
        RecoverError::Base(NoBase::Later { .. } | NoBase::WithoutAdopted { .. }) => ErrorKind::Argument,
        RecoverError::NoRecovery(_) | RecoverError::History(_) | RecoverError::File { .. } => ErrorKind::Argument,
    }
}

fn of_backup(error: &BackupError) -> ErrorKind {
    match error {
        BackupError::Storage(error) => of_storage(error),
        BackupError::Mark(error) => of_detection(error),
        BackupError::Exists(_) | BackupError::Inside(_) | BackupError::Unfinished { .. } => ErrorKind::Argument,
        BackupError::Rebased(_) => ErrorKind::Storage,
        BackupError::Io { .. } | BackupError::Journal(_) => ErrorKind::Storage,
        BackupError::Record(_) | BackupError::Torn { .. } => ErrorKind::Storage,
    }
}

fn of_committee(error: &CommitteeError) -> ErrorKind {
    use CommitteeError as E;
    match error {
        E::NoPrimary | E::OtherDigest | E::Config(_) | E::NoEndpoints => ErrorKind::Config,
        E::NotOnLedger(_) => ErrorKind::Argument,
        E::Ledger(error) => of_ledger(error),
        E::File { .. } | E::NotACommittee(_) | E::Epoch { .. } | E::Chain { .. } => ErrorKind::Argument,
        E::RaiseEpoch { .. } | E::CapNotRaised { .. } => ErrorKind::Argument,
        E::CompromisedSince(_) | E::Deadline(_) | E::GuardianIsMember(_) => ErrorKind::Argument,
        E::MissingProof(_) | E::Proof(_) | E::OtherPair { .. } => ErrorKind::Argument,
        E::NotAnnounced(_) | E::NotMatured(_) | E::Lapsed(_) | E::BlockTooEarly { .. } => ErrorKind::Argument,
        E::NotQueued | E::NotCompromised(_) | E::Confirmed | E::NotJoined(_) | E::Stale(_) => ErrorKind::Argument,
        E::Adopted { .. } | E::NotAdopted(_) | E::OtherCandidate { .. } => ErrorKind::Argument,
        E::NotBegun { .. } | E::NotCertified { .. } => ErrorKind::Argument,
        E::Archive(error) => of_archive(error),
        E::Folder(error) => of_storage(error),
        E::Mark(error) => of_detection(error),
        E::Recover(error) => of_recover(error),
        E::NotAMember(_) => ErrorKind::Key,
        E::KnownKey(_) | E::NoGuardian { .. } | E::OtherProposal(_) | E::Ended(_) => ErrorKind::Argument,
        E::RecoverySince(_) | E::RecoveryNotEndorsable(_) | E::BlockForgotten(_) => ErrorKind::Argument,
        E::NotAsked { .. } => ErrorKind::Argument,
        E::WrongSender { .. } => ErrorKind::Key,
        E::NotSettled { .. } | E::TooFewVotes { .. } | E::TooEarly { .. } | E::Alive(_) => ErrorKind::Timeout,
        E::Busy(_) => ErrorKind::Busy,
        E::Stored { .. } | E::OtherTransaction { .. } => ErrorKind::Storage,
        E::Undone | E::NoInstallation(_) => ErrorKind::Primary,
        E::Send(error) => of_send(error),
        E::Node { .. } | E::NotSynchronized { .. } | E::NotFollowed { .. } => ErrorKind::Unreachable,
        E::NotFinal { .. } | E::OtherChain(_) | E::Disagreement { .. } => ErrorKind::Primary,
        E::Primary(_) | E::Committees(_) => ErrorKind::Primary,
    }
}

fn of_send(error: &SendError) -> ErrorKind {
    match error {
        SendError::Primary(PrimaryError::InsufficientFunds) => ErrorKind::Funds,
        SendError::OtherKey { .. } => ErrorKind::Key,
        SendError::OtherChain { .. } => ErrorKind::Config,
        SendError::NotStored(_) | SendError::NoAttempt => ErrorKind::Storage,
        SendError::Signing(_) => ErrorKind::System,
        SendError::Primary(_)
        | SendError::FeesTooHigh { .. }
        | SendError::RevertedOnChain { .. }
        | SendError::Superseded { .. }
        | SendError::TooMuchGas { .. }
        | SendError::Unsendable { .. } => ErrorKind::Primary,
    }
}

fn of_archive(error: &ArchiveError) -> ErrorKind {
    use ArchiveError as E;
    match error {
        E::Io { .. } | E::Wrong { .. } | E::WrongInStore { .. } | E::NoRoom { .. } => ErrorKind::Storage,
        E::Store(error) => of_store(error),
        E::Missing(_) | E::Skipped { .. } => ErrorKind::Argument,
    }
}

fn of_checkpoint(error: &CheckpointError) -> ErrorKind {
    use CheckpointError as E;
    match error {
        E::Deployment(error) => of_deployment(error),
        E::Ledger(error) => of_ledger(error),
        E::Epochs(_) => ErrorKind::Config,
        E::Archive(error) => of_archive(error),
        E::Storage(error) => of_storage(error),
        E::Journal(_) | E::Record(_) => ErrorKind::Storage,
        E::Chain(_) | E::Primary(_) | E::Installation { .. } => ErrorKind::Primary,
        E::ChainBehind { .. } | E::ChainTooOld { .. } => ErrorKind::Primary,
        E::Nothing(_) | E::EpochEnded { .. } | E::Base { .. } | E::Certified { .. } => ErrorKind::Argument,
        E::Mismatch { .. } | E::Segment(_) | E::NotAdmitted { .. } => ErrorKind::Argument,
        E::TooManyOrders(_) | E::TooFewVotes { .. } => ErrorKind::Argument,
        E::NotExecuted { .. } | E::NotApplied { .. } | E::NotFollowed { .. } => ErrorKind::Unreachable,
        E::NotAMember(_) => ErrorKind::Key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{Epoch, ShardId};

    #[test]
    fn each_error_has_a_kind_by_what_to_do() {
        let path = || PathBuf::from("data");
        let io = |kind: io::ErrorKind| io::Error::from(kind);
        let shard = |error: ShardError| AuthorityError::Shard { shard: ShardId(0), error };
        let away = |error: ClientError| StatusError::Shard { shard: 0, address: "here".into(), error };
        let no_address = ClientError::Address { address: "here".into(), reason: "no".into() };
        let disk = StorageError::Io { action: "open", path: path(), source: io(io::ErrorKind::StorageFull) };
        let written = |kind: io::ErrorKind| CommandError::Unwritten { path: path(), error: io(kind) };
        let listen =
            AuthorityError::Listen { address: ([127, 0, 0, 1], 1).into(), error: io(io::ErrorKind::AddrInUse) };
        for (error, kind) in [
            (ConfigError::NoKeys.into(), ErrorKind::Config),
            (CommandError::Unfit(2), ErrorKind::Config),
            (KeystoreError::WrongPassphrase(path()).into(), ErrorKind::Passphrase),
            (KeystoreError::Exists(path()).into(), ErrorKind::Key),
            (SetupError::Exists(path()).into(), ErrorKind::Config),
            (SetupError::Io { path: path(), error: io(io::ErrorKind::StorageFull) }.into(), ErrorKind::Storage),
            (AuthorityError::from(StorageError::InUse { path: path() }).into(), ErrorKind::Busy),
            (AuthorityError::from(StorageError::NotCreated { path: path() }).into(), ErrorKind::Config),
            (AuthorityError::from(disk).into(), ErrorKind::Storage),
            (AuthorityError::from(PrimaryError::NoUrl).into(), ErrorKind::Primary),
            (AuthorityError::from(DeploymentError::from(PrimaryError::NoUrl)).into(), ErrorKind::Primary),
            (AuthorityError::ShardPanicked(ShardId(1)).into(), ErrorKind::System),
            (shard(ShardError::CommitPanicked).into(), ErrorKind::System),
            (shard(ShardError::Ledger).into(), ErrorKind::Storage),
            (listen.into(), ErrorKind::Config),
            (DetectionError::HighWaterMarkExists(path()).into(), ErrorKind::Config),
            (BackupError::Inside(path()).into(), ErrorKind::Argument),
            (BackupError::Unfinished { from: path(), unfinished: path() }.into(), ErrorKind::Argument),
            (CommitteeError::NoPrimary.into(), ErrorKind::Config),
            (CommitteeError::NotAMember(Epoch(1)).into(), ErrorKind::Key),
            (CommitteeError::Disagreement { node: "n".into() }.into(), ErrorKind::Primary),
            (CommitteeError::Alive(1).into(), ErrorKind::Timeout),
            (CommitteeError::Busy(path()).into(), ErrorKind::Busy),
            (CommitteeError::from(SendError::Primary(PrimaryError::InsufficientFunds)).into(), ErrorKind::Funds),
            (CommitteeError::from(SendError::NotStored(io(io::ErrorKind::StorageFull))).into(), ErrorKind::Storage),
            (CheckpointError::Nothing(3).into(), ErrorKind::Argument),
            (RecoverError::NoRecovery(Epoch(1)).into(), ErrorKind::Argument),
            (RecoverError::from(PrimaryError::NoUrl).into(), ErrorKind::Primary),
            (CommitteeError::from(Box::new(RecoverError::NoContract)).into(), ErrorKind::Config),
            (CheckpointError::NotAMember(Epoch(1)).into(), ErrorKind::Key),
            (CheckpointError::from(ArchiveError::Missing(path())).into(), ErrorKind::Argument),
            (CheckpointError::from(DeploymentError::from(PrimaryError::NoUrl)).into(), ErrorKind::Primary),
            (CommandError::Replaced { old: "a", new: "b" }, ErrorKind::Argument),
            (away(no_address).into(), ErrorKind::Config),
            (away(ClientError::Unreachable("no".into())).into(), ErrorKind::Unreachable),
            (written(io::ErrorKind::AlreadyExists), ErrorKind::Argument),
            (written(io::ErrorKind::StorageFull), ErrorKind::Storage),
            (io(io::ErrorKind::OutOfMemory).into(), ErrorKind::System),
            (LostAnswer::from(io(io::ErrorKind::StorageFull)).into(), ErrorKind::Output),
        ] {
            let error: CommandError = error;
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
