//! Why a command did not succeed, sorted by what to do: the kinds and exit codes of docs/CLI.md.

use std::net::SocketAddr;

use fastpay_merchant::config::ConfigError;
use fastpay_merchant::deliver::DeliverError;
use fastpay_merchant::ledger::LedgerError;
use fastpay_merchant::watch::WatchError;
use fastpay_wallet::folder::FolderError;
use fastpay_wallet::{ERROR_KINDS, WalletError};
use serde_json::{Value, json};

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
    /// An amount, or the asset's decimals.
    #[error(transparent)]
    Amount(#[from] WalletError),
    #[error("cannot listen at {0}: {1}; is the service running already, or `listen` of merchant.toml wrong?")]
    Listen(SocketAddr, std::io::Error),
    #[error("the service does not answer at {0}; start it with `fastpay-merchant run`")]
    Away(SocketAddr),
    /// The running service says no.
    #[error("{detail}{}{action}", if action.is_empty() { "" } else { ". " })]
    Refused { code: String, detail: String, action: String },
}

impl CommandError {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Config(error) => of_config(error),
            Self::Ledger(error)
            | Self::Watch(WatchError::Ledger(error))
            | Self::Deliver(DeliverError::Ledger(error)) => of_ledger(error),
            Self::Watch(WatchError::Wallet(error)) | Self::Amount(error) => error.kind(),
            Self::Deliver(DeliverError::Client(_)) | Self::Listen(..) => "config",
            Self::Away(_) => "unreachable",
            Self::Refused { code, .. } => match code.as_str() {
                "unauthorized" => "config",
                "reference-taken" | "reference-archived" | "memo-taken" => "conflict",
                "too-many-open" | "request-timeout" => "busy",
                "storage" => "storage",
                _ => "argument",
            },
        }
    }

    pub fn exit_code(&self) -> u8 {
        let kind = self.kind();
        ERROR_KINDS.iter().find(|(known, _)| *known == kind).map_or(1, |(_, code)| *code)
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({ "error": { "kind": self.kind(), "message": self.to_string() } })
    }
}

fn of_config(error: &ConfigError) -> &'static str {
    match error {
        ConfigError::Io { error, .. } if error.kind() != std::io::ErrorKind::NotFound => "storage",
        ConfigError::Wallet(error) => error.kind(),
        ConfigError::Io { .. }
        | ConfigError::Malformed { .. }
        | ConfigError::NotSetUp(_)
        | ConfigError::Exists(_)
        | ConfigError::Exposed(_) => "config",
    }
}

fn of_ledger(error: &LedgerError) -> &'static str {
    match error {
        LedgerError::Folder(FolderError::Busy { .. }) => "busy",
        LedgerError::Folder(_) | LedgerError::Journal(_) | LedgerError::Archive(_) => "storage",
        LedgerError::Request(_) => "conflict",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_merchant::book::RequestError;
    use std::io;

    #[test]
    fn each_kind_is_one_of_the_documented_ones() {
        let file = |kind: io::ErrorKind| ConfigError::Io { path: "merchant.toml".into(), error: kind.into() };
        let refused = |code: &str| CommandError::Refused { code: code.into(), detail: "no".into(), action: "".into() };
        let address: SocketAddr = ([127, 0, 0, 1], 7080).into();
        for (error, kind, code) in [
            (file(io::ErrorKind::NotFound).into(), "config", 3),
            (file(io::ErrorKind::PermissionDenied).into(), "storage", 13),
            (ConfigError::Exposed(address).into(), "config", 3),
            (ConfigError::NotSetUp("merchant".into()).into(), "config", 3),
            (LedgerError::Folder(FolderError::Busy { path: "merchant".into() }).into(), "busy", 10),
            (LedgerError::Request(RequestError::MemoTaken).into(), "conflict", 7),
            (CommandError::Listen(address, io::ErrorKind::AddrInUse.into()), "config", 3),
            (CommandError::Away(address), "unreachable", 8),
            (refused("unauthorized"), "config", 3),
            (refused("memo-taken"), "conflict", 7),
            (refused("reference-archived"), "conflict", 7),
            (refused("too-many-open"), "busy", 10),
            (refused("storage"), "storage", 13),
            (refused("malformed"), "argument", 2),
            (refused(""), "argument", 2),
        ] {
            let error: CommandError = error;
            assert_eq!((error.kind(), error.exit_code()), (kind, code), "{error}");
            assert_eq!(error.json()["error"]["kind"], kind);
        }
    }
}
