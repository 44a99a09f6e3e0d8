//! The section `[primary]`: a contract on Ethereum, or a committee on a ledger.

use std::path::PathBuf;

use fastpay_core::PrimaryAddress;
use fastpay_ethereum::{Finality, PrimaryConfig};
use fastpay_ledger_statement::CommitteeNumber;
use serde::Deserialize;
use url::Url;

use crate::authority::funding::LedgerConfig;

/// The Primary, by its `kind`: `"ethereum"`, which need not be given, or `"ledger"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "PrimaryFields")]
pub enum PrimarySection {
    /// A contract on Ethereum.
    Ethereum(PrimaryConfig),
    /// A committee on a ledger.
    Ledger(LedgerConfig),
}

impl From<PrimaryConfig> for PrimarySection {
    fn from(config: PrimaryConfig) -> Self {
        Self::Ethereum(config)
    }
}

/// The fields of `[primary]`, of either kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrimaryFields {
    #[serde(default)]
    kind: PrimaryKind,
    rpc_urls: Option<Vec<Url>>,
    chain_id: Option<u64>,
    contract: Option<PrimaryAddress>,
    finality: Option<Finality>,
    request_timeout_ms: Option<u64>,
    file: Option<PathBuf>,
    committee: Option<CommitteeNumber>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PrimaryKind {
    #[default]
    Ethereum,
    Ledger,
}

/// Why `[primary]` describes no Primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum PrimaryFieldError {
    #[error("missing field `{0}`")]
    Missing(&'static str),
    #[error("`{0}` is for the other kind of Primary")]
    OtherKind(&'static str),
}

impl TryFrom<PrimaryFields> for PrimarySection {
    type Error = PrimaryFieldError;

    fn try_from(fields: PrimaryFields) -> Result<Self, PrimaryFieldError> {
        use PrimaryFieldError::{Missing, OtherKind};
        let PrimaryFields { kind, rpc_urls, chain_id, contract, finality, request_timeout_ms, file, committee } =
            fields;
        let of_ledger = [("file", file.is_some()), ("committee", committee.is_some())];
        let of_ethereum = [
            ("rpc_urls", rpc_urls.is_some()),
            ("chain_id", chain_id.is_some()),
            ("contract", contract.is_some()),
            ("finality", finality.is_some()),
            ("request_timeout_ms", request_timeout_ms.is_some()),
        ];
        let others = match kind {
            PrimaryKind::Ethereum => &of_ledger[..],
            PrimaryKind::Ledger => &of_ethereum[..],
        };
        if let Some((field, _)) = others.iter().find(|(_, is_given)| *is_given) {
            return Err(OtherKind(field));
        }
        Ok(match kind {
            PrimaryKind::Ethereum => {
                let rpc_urls = rpc_urls.ok_or(Missing("rpc_urls"))?;
                let chain_id = chain_id.ok_or(Missing("chain_id"))?;
                let mut config = PrimaryConfig::new(rpc_urls, chain_id, contract.ok_or(Missing("contract"))?);
                config.finality = finality.unwrap_or_default();
                config.request_timeout_ms = request_timeout_ms.unwrap_or(config.request_timeout_ms);
                Self::Ethereum(config)
            }
            PrimaryKind::Ledger => Self::Ledger(LedgerConfig {
                file: file.ok_or(Missing("file"))?,
                committee: committee.ok_or(Missing("committee"))?,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::config::tests::{GOOD, read};
    use crate::authority::config::{ConfigError, Overrides};

    #[test]
    fn a_primary_is_on_ethereum_or_on_a_ledger() {
        let (without, section) = (GOOD.replace("genesis", "#"), "\n[primary]\n");
        let ledger = format!("{without}{section}kind = \"ledger\"\nfile = \"ledger.toml\"\ncommittee = 2\n");
        let config = read(&ledger, Overrides::default()).unwrap();
        let Some(PrimarySection::Ledger(LedgerConfig { file, committee })) = &config.primary else { panic!() };
        assert!(file.is_absolute() && file.ends_with("ledger.toml"), "{}", file.display());
        assert!(*committee == CommitteeNumber(2) && config.ethereum().is_none());
        let contract = "chain_id = 1\ncontract = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"\n";
        for kind in ["", "kind = \"ethereum\"\n"] {
            let ethereum = format!("{without}{section}{kind}rpc_urls = [\"http://localhost:1\"]\n{contract}");
            let config = read(&ethereum, Overrides::default()).unwrap();
            assert_eq!(config.ethereum().unwrap().request_timeout_ms, 10_000);
            let named = format!("{ethereum}finality = \"safe\"\nrequest_timeout_ms = 5\n");
            let named = read(&named, Overrides::default()).unwrap().ethereum().unwrap().clone();
            assert_eq!((named.finality, named.request_timeout_ms), (Finality::Safe, 5));
        }
        let check = |text: String, expected: &str| {
            let error = read(&text, Overrides::default()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(format!("{without}{section}{contract}"), "missing field `rpc_urls`");
        check(format!("{without}{section}kind = \"ledger\"\ncommittee = 2\n"), "missing field `file`");
        check(format!("{without}{section}kind = \"paper\"\n"), "expected `ethereum` or `ledger`");
        check(format!("{ledger}chain_id = 1\n"), "`chain_id` is for the other kind of Primary");
        check(format!("{without}{section}{contract}file = \"a\"\n"), "`file` is for the other kind of Primary");
        let archive = format!("endpoints = \"endpoints.json\"\n{ledger}\n[archive]\nfolder = \"archive\"\n");
        assert!(read(&archive, Overrides::default()).unwrap().archive.is_some());
        let rpc_urls = vec!["http://localhost:8545".parse().unwrap()];
        let useless = read(&ledger, Overrides { rpc_urls, ..Overrides::default() });
        assert!(matches!(useless, Err(ConfigError::NoPrimary)), "{useless:?}");
    }
}
