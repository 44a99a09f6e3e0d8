//! Why a command failed, sorted by what to do about it: the kinds and exit codes of docs/CLI.md.

use std::net::SocketAddr;

use fastpay_merchant::config::ConfigError;
use fastpay_merchant::deliver::DeliverError;
use fastpay_merchant::ledger_error::LedgerError;
use fastpay_merchant::watch::WatchError;
use fastpay_program::console::LostAnswer;
use fastpay_wallet::folder::FolderError;
use fastpay_wallet::{ErrorKind, WalletError};

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(transparent)]
    Deliver(#[from] DeliverError),
    /// An amount is not valid, or the asset's decimals are unknown.
    #[error(transparent)]
    Amount(#[from] WalletError),
    #[error("cannot listen on {0}: {1}; check whether the service is already running, and `listen` in merchant.toml")]
    Listen(SocketAddr, std::io::Error),
    #[error("the service does not answer at {0}; start it with `fastpay-merchant run`")]
    Away(SocketAddr),
    #[error("the operating system reports an error: {0}")]
    System(#[from] std::io::Error),
    #[error(transparent)]
    Output(#[from] LostAnswer),
    /// The running service refused the request.
    #[error("{detail}{}{action}", if action.is_empty() { "" } else { ". " })]
    Refused { code: String, detail: String, action: String },
}

impl CommandError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config(error) => of_config(error),
            Self::Ledger(error)
            | Self::Watch(WatchError::Ledger(error))
            | Self::Deliver(DeliverError::Ledger(error)) => of_ledger(error),
            Self::Watch(WatchError::Wallet(error)) | Self::Amount(error) => error.kind(),
            Self::Deliver(DeliverError::Client(_)) | Self::Listen(..) => ErrorKind::Config,
            Self::System(_) => ErrorKind::System,
            Self::Output(_) => ErrorKind::Output,
            Self::Away(_) => ErrorKind::Unreachable,
            Self::Refused { code, .. } => match code.as_str() {
                "unauthorized" => ErrorKind::Config,
                "reference-taken" | "reference-archived" | "memo-taken" | "not-refundable" | "fee-too-high" => {
                    ErrorKind::Conflict
                }
                "too-many-open" | "request-timeout" => ErrorKind::Busy,
                "storage" => ErrorKind::Storage,
                _ => ErrorKind::Argument,
            },
        }
    }
}

fn of_config(error: &ConfigError) -> ErrorKind {
    match error {
        ConfigError::Io { error, .. } if error.kind() != std::io::ErrorKind::NotFound => ErrorKind::Storage,
        ConfigError::Wallet(error) => error.kind(),
        ConfigError::Label(_) => ErrorKind::Argument,
        ConfigError::Io { .. }
        | ConfigError::Malformed { .. }
        | ConfigError::NotSetUp(_)
        | ConfigError::Exists(_)
        | ConfigError::Exposed(_)
        | ConfigError::Readable(_)
        | ConfigError::KeepDays => ErrorKind::Config,
    }
}

fn of_ledger(error: &LedgerError) -> ErrorKind {
    match error {
        LedgerError::Folder(FolderError::Busy { .. }) => ErrorKind::Busy,
        LedgerError::Folder(_) | LedgerError::Store(_) => ErrorKind::Storage,
        LedgerError::Request(_) => ErrorKind::Conflict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_merchant::ledger_error::RequestError;
    use std::io;

    #[test]
    fn each_kind_is_one_of_the_documented_ones() {
        let file = |kind: io::ErrorKind| ConfigError::Io { path: "merchant.toml".into(), error: kind.into() };
        let refused = |code: &str| CommandError::Refused { code: code.into(), detail: "no".into(), action: "".into() };
        let address: SocketAddr = ([127, 0, 0, 1], 7080).into();
        for (error, kind) in [
            (file(io::ErrorKind::NotFound).into(), ErrorKind::Config),
            (file(io::ErrorKind::PermissionDenied).into(), ErrorKind::Storage),
            (ConfigError::Exposed(address).into(), ErrorKind::Config),
            (ConfigError::NotSetUp("merchant".into()).into(), ErrorKind::Config),
            (LedgerError::Folder(FolderError::Busy { path: "merchant".into() }).into(), ErrorKind::Busy),
            (LedgerError::Request(RequestError::MemoTaken).into(), ErrorKind::Conflict),
            (CommandError::Listen(address, io::ErrorKind::AddrInUse.into()), ErrorKind::Config),
            (CommandError::Away(address), ErrorKind::Unreachable),
            (refused("unauthorized"), ErrorKind::Config),
            (refused("memo-taken"), ErrorKind::Conflict),
            (refused("reference-archived"), ErrorKind::Conflict),
            (refused("too-many-open"), ErrorKind::Busy),
            (refused("storage"), ErrorKind::Storage),
            (refused("malformed"), ErrorKind::Argument),
            (refused(""), ErrorKind::Argument),
        ] {
            let error: CommandError = error;
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
