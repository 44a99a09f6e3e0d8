//! The deployment that this authority serves: a contract on the Primary, a committee on a ledger, or a genesis without a
//! Primary; and the committees of each.
//!
//! The data folder keeps the committees, so that a node can start, vote and confirm while its Ethereum node is away. Those
//! of a ledger are known from the groups that were followed, so it is never ahead of them.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use fastpay_core::{AuthorityName, CommitteeError, Committees, Domain, Epoch, EpochsError, Genesis};
use fastpay_ethereum::{DepositsError, EpochReader, Primary, PrimaryConfig, PrimaryError};

use crate::authority::config::{Config, PrimarySection};
use crate::authority::funding::{LedgerConfig, LedgerDeployment, LedgerError, LedgerSource};
use crate::authority::known_committees;
use crate::authority::storage::FolderIdentity;

/// The interval at which the node checks whether the contract's deployment is final.
const FINALITY_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A deployment with its committees.
pub enum Deployment {
    /// A contract on the Primary.
    OnPrimary {
        /// The address of the contract.
        config: PrimaryConfig,
        /// Its committees, up to the newest that is final.
        committees: Committees,
        /// Whether the data folder may not have followed the contract to the newest committee's installation.
        is_ahead: bool,
    },
    /// On a ledger.
    OnLedger {
        /// The committee's place on it.
        ledger: Box<LedgerDeployment>,
        /// Its committees, up to the newest whose installation was followed.
        committees: Committees,
    },
    /// Without a Primary.
    StandAlone(Genesis),
}

/// Why the committee cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The genesis file cannot be read.
    #[error("cannot read the genesis {path}: {reason}")]
    Genesis {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// Its list of members is not a committee.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    /// The Primary's URLs cannot be used.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The contract cannot be read and its committees were never read before, or its answer is impossible.
    #[error("the committee cannot be read from the contract: {0}")]
    Epochs(#[from] DepositsError),
    /// The ledger's file cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Who reads a deployment.
#[derive(Clone, Copy, Debug)]
pub enum Reader<'a> {
    /// An authority, with its configuration.
    Authority(&'a Config),
    /// Somebody who knows the contract and an Ethereum node, or the ledger's file: nothing else is needed, and no key.
    Anybody(&'a PrimarySection),
}

impl<'a> From<&'a Config> for Reader<'a> {
    fn from(config: &'a Config) -> Self {
        Self::Authority(config)
    }
}

impl<'a> From<&'a PrimarySection> for Reader<'a> {
    fn from(primary: &'a PrimarySection) -> Self {
        Self::Anybody(primary)
    }
}

/// Loads the deployment with its committees. Waits until the contract's deployment is final.
///
/// # Errors
/// See [`DeploymentError`].
pub async fn load(reader: impl Into<Reader<'_>>) -> Result<Deployment, DeploymentError> {
    match reader.into() {
        Reader::Anybody(PrimarySection::Ethereum(primary)) => read(primary.clone(), None).await,
        Reader::Anybody(PrimarySection::Ledger(ledger)) => {
            let (ledger, first) = on_ledger(ledger)?;
            let committees = LedgerSource::new(&ledger)?.all_committees(first).await?;
            Ok(Deployment::OnLedger { ledger, committees })
        }
        Reader::Authority(Config { genesis: Some(path), .. }) => {
            let wrong = |reason: String| DeploymentError::Genesis { path: path.clone(), reason };
            let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
            let genesis: Genesis = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            genesis.committee()?;
            Ok(Deployment::StandAlone(genesis))
        }
        Reader::Authority(config) => {
            let known = known_committees::read(&config.data);
            match config.primary.clone().expect("a configuration has a Primary or a genesis") {
                PrimarySection::Ethereum(primary) => read(primary, known).await,
                PrimarySection::Ledger(ledger) => {
                    let (ledger, first) = on_ledger(&ledger)?;
                    Ok(Deployment::OnLedger { ledger, committees: known.unwrap_or(first) })
                }
            }
        }
    }
}

/// The domain of all signatures of a deployment. Nobody is asked. Must be called within a tokio runtime.
///
/// # Errors
/// If the ledger's file cannot be used.
pub fn domain_of(primary: &PrimarySection) -> Result<Domain, LedgerError> {
    match primary {
        PrimarySection::Ethereum(config) => Ok(Domain::new(config.chain_id, config.contract)),
        PrimarySection::Ledger(config) => Ok(LedgerDeployment::read(config)?.ledger().domain()),
    }
}

/// A committee on a ledger, and the one of epoch 0.
fn on_ledger(config: &LedgerConfig) -> Result<(Box<LedgerDeployment>, Committees), LedgerError> {
    let ledger = Box::new(LedgerDeployment::read(config)?);
    let first = Committees::new(ledger.ledger().first().clone()).expect("a ledger's committee begins in epoch 0");
    Ok((ledger, first))
}

/// Reads the committees from the contract, of which `known` were read before.
async fn read(primary: PrimaryConfig, known: Option<Committees>) -> Result<Deployment, DeploymentError> {
    let reader = EpochReader::new(Primary::connect_lazily(primary.clone())?);
    let committees = loop {
        match (reader.read_with_recovery(known.as_ref()).await, &known) {
            (Ok(committees), _) => break committees,
            (Err(error), Some(known)) if error.is_retryable() => {
                tracing::warn!(%error, "the Primary does not answer; continuing with the stored committees");
                break known.clone();
            }
            (Err(error @ DepositsError::Lagging { .. }), None) => {
                tracing::info!(%error, "waiting until the contract's deployment is final");
                tokio::time::sleep(FINALITY_POLL_INTERVAL).await;
            }
            (Err(error), _) => return Err(error.into()),
        }
    };
    let is_ahead = is_ahead(known.as_ref(), &committees);
    Ok(Deployment::OnPrimary { config: primary, committees, is_ahead })
}

impl Deployment {
    /// The domain of all its signatures.
    #[must_use]
    pub fn domain(&self) -> Domain {
        match self {
            Self::OnPrimary { config, .. } => Domain::new(config.chain_id, config.contract),
            Self::OnLedger { ledger, .. } => ledger.ledger().domain(),
            Self::StandAlone(genesis) => genesis.domain(),
        }
    }

    /// The genesis, if there is no Primary.
    #[must_use]
    pub fn genesis(&self) -> Option<&Genesis> {
        match self {
            Self::OnPrimary { .. } | Self::OnLedger { .. } => None,
            Self::StandAlone(genesis) => Some(genesis),
        }
    }

    /// Whether the data folder may not have followed the contract to the newest committee's installation: then it has
    /// not closed the epoch before, and does not vote yet.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        matches!(self, Self::OnPrimary { is_ahead: true, .. })
    }

    /// The committees known now.
    ///
    /// # Errors
    /// If a genesis lists no committee.
    pub fn committees(&self) -> Result<Committees, EpochsError> {
        match self {
            Self::OnPrimary { committees, .. } | Self::OnLedger { committees, .. } => Ok(committees.clone()),
            Self::StandAlone(genesis) => Committees::new(genesis.committee()?),
        }
    }
}

/// Whether the newest of these committees is not stored as followed. That of epoch 0 has no epoch before it to close.
fn is_ahead(known: Option<&Committees>, committees: &Committees) -> bool {
    committees.current().epoch() > known.map_or(Epoch(0), |known| known.current().epoch())
}

/// The identity that binds a data folder to the authority with these names.
#[must_use]
pub fn folder_identity(names: &[AuthorityName], shards: NonZeroU32, domain: &Domain) -> FolderIdentity {
    FolderIdentity {
        names: names.iter().map(ToString::to_string).collect(),
        shards: shards.get(),
        chain_id: domain.chain_id(),
        contract: domain.contract().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::TestCommittee;

    #[test]
    fn only_a_committee_that_was_stored_once_it_was_followed_and_the_first_one_vote_at_once() {
        let first = TestCommittee::new(4);
        let mut one = Committees::new(first.committee.clone()).unwrap();
        let zero = one.clone();
        one.install(first.rotated().committee).unwrap();
        for (known, newest, expected) in
            [(None, &zero, false), (Some(&zero), &zero, false), (None, &one, true), (Some(&zero), &one, true)]
        {
            assert_eq!(is_ahead(known, newest), expected);
        }
        assert!(!is_ahead(Some(&one), &one));
    }
}
