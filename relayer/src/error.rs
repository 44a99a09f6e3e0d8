//! Why a command failed, sorted by what to do about it: the kinds and exit codes of docs/CLI.md.

use std::net::SocketAddr;
use std::path::PathBuf;

use fastpay_ethereum::SendError;
use fastpay_ledger_client::{JournalError, OpenCommitteeError, ReserveError};
use fastpay_program::console::LostAnswer;
use fastpay_program::keystore::KeystoreError;
use fastpay_program::{ErrorKind, LockError};
use fastpay_relayer::{ConfigError, RelayerError, StoreError};
use fastpay_telemetry::TraceError;

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot write the configuration {path}: {error}")]
    Unwritten { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Key(#[from] KeystoreError),
    #[error("the key file contains no secp256k1 key")]
    NoKey,
    #[error(transparent)]
    Relayer(#[from] RelayerError),
    #[error("cannot serve metrics on {0}: {1}")]
    Metrics(SocketAddr, std::io::Error),
    #[error("cannot publish the fees on {0}: {1}")]
    Http(SocketAddr, std::io::Error),
    #[error("the operating system reports an error: {0}")]
    System(#[from] std::io::Error),
    #[error(transparent)]
    Output(#[from] LostAnswer),
}

impl From<OpenCommitteeError> for CommandError {
    fn from(error: OpenCommitteeError) -> Self {
        Self::Relayer(error.into())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::Relayer(error.into())
    }
}

impl CommandError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unwritten { error, .. } if error.kind() != std::io::ErrorKind::AlreadyExists => ErrorKind::Storage,
            Self::Config(_) | Self::Unwritten { .. } | Self::Metrics(..) | Self::Http(..) => ErrorKind::Config,
            Self::Key(error) if error.is_of_passphrase() => ErrorKind::Passphrase,
            Self::Key(_) | Self::NoKey => ErrorKind::Key,
            Self::Relayer(error) => of_relayer(error),
            Self::System(_) => ErrorKind::System,
            Self::Output(_) => ErrorKind::Output,
        }
    }
}

fn of_relayer(error: &RelayerError) -> ErrorKind {
    match error {
        RelayerError::Store(StoreError::InUse(_)) => ErrorKind::Busy,
        RelayerError::Store(StoreError::Io { .. } | StoreError::Malformed { .. }) => ErrorKind::Storage,
        RelayerError::Store(StoreError::NeverRun(_) | StoreError::OtherDeployment(_)) => ErrorKind::Config,
        RelayerError::Endpoints(_) | RelayerError::Address(_) => ErrorKind::Config,
        RelayerError::Send(SendError::OtherChain { .. }) | RelayerError::OpenLedger(_) => ErrorKind::Config,
        RelayerError::Reserve(ReserveError::Journal(JournalError::Lock(LockError::Busy(_)))) => ErrorKind::Busy,
        RelayerError::Reserve(ReserveError::Journal(_)) => ErrorKind::Storage,
        RelayerError::Reserve(ReserveError::Unfinished(_) | ReserveError::UnknownOutcome(..)) => ErrorKind::Conflict,
        RelayerError::Ledger(_) | RelayerError::Reserve(_) => ErrorKind::Primary,
        RelayerError::Send(SendError::OtherKey { .. }) => ErrorKind::Key,
        RelayerError::Traces(TraceError::Exporter(_)) => ErrorKind::Config,
        RelayerError::Traces(TraceError::Thread(_)) => ErrorKind::System,
        RelayerError::Primary(_) | RelayerError::Send(_) => ErrorKind::Primary,
        RelayerError::NoAuthority => ErrorKind::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_ethereum::PrimaryError;
    use fastpay_ledger_client::ClientError;
    use fastpay_ledger_statement::{ClusterId, CommitteeNumber};
    use std::io;

    #[test]
    fn each_error_has_a_kind_by_what_to_do() {
        let unwritten =
            |kind: io::ErrorKind| CommandError::Unwritten { path: "relayer.toml".into(), error: kind.into() };
        let store = |error: StoreError| CommandError::from(error);
        let reserve = |error: JournalError| CommandError::from(RelayerError::from(ReserveError::from(error)));
        let full = StoreError::Io { path: "state.json".into(), error: io::ErrorKind::StorageFull.into() };
        let damaged = StoreError::Malformed { path: "state.json".into(), reason: "no".into() };
        let other_key = SendError::OtherKey { stored: [1; 20].into(), given: [2; 20].into() };
        for (error, kind) in [
            (unwritten(io::ErrorKind::AlreadyExists), ErrorKind::Config),
            (unwritten(io::ErrorKind::StorageFull), ErrorKind::Storage),
            (KeystoreError::WrongPassphrase("gas.key".into()).into(), ErrorKind::Passphrase),
            (KeystoreError::Exposed("gas.key".into()).into(), ErrorKind::Key),
            (store(full), ErrorKind::Storage),
            (store(damaged), ErrorKind::Storage),
            (store(StoreError::NeverRun("data".into())), ErrorKind::Config),
            (store(StoreError::OtherDeployment("data".into())), ErrorKind::Config),
            (store(StoreError::InUse("data".into())), ErrorKind::Busy),
            (RelayerError::from(PrimaryError::NoUrl).into(), ErrorKind::Primary),
            (RelayerError::from(other_key).into(), ErrorKind::Key),
            (RelayerError::NoAuthority.into(), ErrorKind::Unreachable),
            (OpenCommitteeError::NoCommittee(CommitteeNumber(3)).into(), ErrorKind::Config),
            (reserve(LockError::Busy("ledger".into()).into()), ErrorKind::Busy),
            (reserve(JournalError::Damaged { path: "1.json".into(), reason: "no".into() }), ErrorKind::Storage),
            (RelayerError::from(ClientError::UnknownCluster(ClusterId(1))).into(), ErrorKind::Primary),
            (CommandError::NoKey, ErrorKind::Key),
            (CommandError::Metrics(([127, 0, 0, 1], 1).into(), io::ErrorKind::AddrInUse.into()), ErrorKind::Config),
            (CommandError::Http(([127, 0, 0, 1], 1).into(), io::ErrorKind::AddrInUse.into()), ErrorKind::Config),
            (io::Error::from(io::ErrorKind::OutOfMemory).into(), ErrorKind::System),
            (LostAnswer::from(io::Error::from(io::ErrorKind::StorageFull)).into(), ErrorKind::Output),
        ] {
            let error: CommandError = error;
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
