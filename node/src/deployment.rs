//! What this authority votes for: a contract on the Primary, or a genesis without one; and the
//! committee that either names.
//!
//! The committee of a contract is remembered in the data folder, so that a node can start, vote and
//! confirm while its Ethereum node is away.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use fastpay_core::{Authority, AuthorityName, Committee, CommitteeError, Domain, Epoch, Genesis};
use fastpay_ethereum::{Primary, PrimaryConfig, PrimaryError};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::storage::{FolderIdentity, replace_file};

const COMMITTEE_FILE: &str = "committee.json";

/// Which committee this is, and for which money.
pub enum Deployment {
    /// A contract's.
    OnPrimary {
        /// Where the contract is.
        config: PrimaryConfig,
        /// Its committee.
        committee: Committee,
    },
    /// Without a Primary.
    StandAlone(Genesis),
}

/// Why the committee cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The genesis file cannot be read.
    #[error("cannot read the genesis {path}: {reason}")]
    Genesis {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// What it lists is not a committee.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    /// The contract cannot be asked, and its committee was never read before.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The remembered committee cannot be written.
    #[error("cannot remember the committee in {path}: {error}")]
    Remember {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RememberedCommittee {
    epoch: Epoch,
    members: Vec<Authority>,
}

/// Learns the committee.
///
/// # Errors
/// See [`DeploymentError`].
pub async fn load(config: &Config) -> Result<Deployment, DeploymentError> {
    if let Some(path) = &config.genesis {
        let wrong = |reason: String| DeploymentError::Genesis { path: path.clone(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let genesis: Genesis = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        genesis.committee()?;
        return Ok(Deployment::StandAlone(genesis));
    }
    let primary = config.primary.clone().expect("a configuration has a Primary or a genesis");
    let committee = match read_committee(&primary).await {
        Ok(committee) => committee,
        Err(error) if error.is_retryable() => match remembered(&config.data) {
            Some(committee) => {
                tracing::warn!(%error, "the Primary cannot be asked; going on with the committee of an earlier run");
                committee?
            }
            None => return Err(error.into()),
        },
        Err(error) => return Err(error.into()),
    };
    Ok(Deployment::OnPrimary { config: primary, committee })
}

async fn read_committee(config: &PrimaryConfig) -> Result<Committee, PrimaryError> {
    let primary = Primary::connect(config.clone()).await?;
    let epoch = primary.epoch().await?;
    primary.committee(epoch).await
}

/// Safe to trust: the data folder is bound to the contract, whose committee of an epoch never changes.
fn remembered(data: &Path) -> Option<Result<Committee, CommitteeError>> {
    let bytes = std::fs::read(data.join(COMMITTEE_FILE)).ok()?;
    let remembered: RememberedCommittee = serde_json::from_slice(&bytes).ok()?;
    Some(Committee::new(remembered.epoch, remembered.members))
}

impl Deployment {
    /// The domain of everything signed for it.
    #[must_use]
    pub fn domain(&self) -> Domain {
        match self {
            Self::OnPrimary { config, .. } => Domain::new(config.chain_id, config.contract),
            Self::StandAlone(genesis) => genesis.domain(),
        }
    }

    /// The genesis, where there is no Primary.
    #[must_use]
    pub fn genesis(&self) -> Option<&Genesis> {
        match self {
            Self::OnPrimary { .. } => None,
            Self::StandAlone(genesis) => Some(genesis),
        }
    }

    /// The committee.
    #[must_use]
    pub fn committee(&self) -> Committee {
        match self {
            Self::OnPrimary { committee, .. } => committee.clone(),
            Self::StandAlone(genesis) => genesis.committee().expect("checked when it was loaded"),
        }
    }

    /// What the data folder is bound to.
    #[must_use]
    pub fn folder_identity(&self, authority: AuthorityName, shards: NonZeroU32) -> FolderIdentity {
        folder_identity(authority, shards, &self.domain())
    }

    /// Keeps the committee for a start without the Primary.
    ///
    /// # Errors
    /// [`DeploymentError::Remember`].
    pub fn remember(&self, data: &Path) -> Result<(), DeploymentError> {
        let Self::OnPrimary { committee, .. } = self else { return Ok(()) };
        let path = data.join(COMMITTEE_FILE);
        let remembered = RememberedCommittee { epoch: committee.epoch(), members: committee.members().to_vec() };
        let written = serde_json::to_vec_pretty(&remembered).map_err(std::io::Error::from);
        written.and_then(|bytes| replace_file(&path, &bytes)).map_err(|error| DeploymentError::Remember { path, error })
    }
}

/// What the data folder of an authority is bound to.
#[must_use]
pub fn folder_identity(authority: AuthorityName, shards: NonZeroU32, domain: &Domain) -> FolderIdentity {
    FolderIdentity {
        authority: authority.to_string(),
        shards: shards.get(),
        chain_id: domain.chain_id(),
        contract: domain.contract().to_string(),
    }
}
