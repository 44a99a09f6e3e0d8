//! The Primary as these commands read it: the council of a contract, through all configured Ethereum nodes, or a committee
//! on a ledger, from certified states (`on_ledger`).

use fastpay_core::{Announcement, Committees, CouncilStatement, Digest, Domain, Epoch, PrimaryAddress};
use fastpay_ethereum::Clock;

use super::nodes::Nodes;
use super::on_ledger::OnLedger;
use super::proposal::State;
use super::votes::Acceptances;
use super::{CommitteeError, VoteFile};
use crate::authority::config::{Config, PrimarySection};

/// The Primary of a configuration.
pub(super) enum Council {
    Contract(Nodes),
    Ledger(Box<OnLedger>),
}

/// How far an announcement has come.
pub(super) struct Facts {
    pub(super) clock: Option<Clock>,
    pub(super) state: State,
    pub(super) accepted: Acceptances,
    /// The guardian and the recovery address now.
    pub(super) roles: (PrimaryAddress, PrimaryAddress),
    /// Whether no acceptance can name the block in which it matured any more.
    pub(super) is_forgotten: bool,
}

impl Council {
    pub(super) async fn connect(config: &Config) -> Result<Self, CommitteeError> {
        match &config.primary {
            Some(PrimarySection::Ledger(ledger)) => Ok(Self::Ledger(Box::new(OnLedger::open(ledger, &config.data)?))),
            Some(PrimarySection::Ethereum(_)) | None => Ok(Self::Contract(Nodes::connect(config).await?)),
        }
    }

    pub(super) fn domain(&self) -> Domain {
        match self {
            Self::Contract(nodes) => nodes.domain(),
            Self::Ledger(ledger) => ledger.domain(),
        }
    }

    /// Where the committee is, in words.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Contract(nodes) => {
                let domain = nodes.domain();
                format!("contract {} on chain {}", domain.contract(), domain.chain_id())
            }
            Self::Ledger(ledger) => ledger.place(),
        }
    }

    /// The committees of all epochs.
    pub(super) async fn committees(&self) -> Result<Committees, CommitteeError> {
        match self {
            Self::Contract(nodes) => nodes.committees().await,
            Self::Ledger(ledger) => ledger.committees().await,
        }
    }

    pub(super) async fn epoch(&self) -> Result<Epoch, CommitteeError> {
        match self {
            Self::Contract(nodes) => nodes.epoch().await,
            Self::Ledger(ledger) => Ok(ledger.current().await?.epoch),
        }
    }

    /// The guardian and the recovery address. A ledger has no recovery.
    pub(super) async fn roles(&self) -> Result<(PrimaryAddress, PrimaryAddress), CommitteeError> {
        match self {
            Self::Contract(nodes) => nodes.roles().await,
            Self::Ledger(ledger) => Ok((ledger.current().await?.guardian, PrimaryAddress::ZERO)),
        }
    }

    /// The time that has passed by the Primary, in seconds since 1970.
    pub(super) async fn now(&self) -> Result<u64, CommitteeError> {
        match self {
            Self::Contract(nodes) => Ok(nodes.heads().await?.earliest),
            Self::Ledger(ledger) => ledger.now_s().await,
        }
    }

    /// Checks that the Primary would accept this deadline of an announcement.
    pub(super) async fn check_deadline(&self, deadline: u64) -> Result<(), CommitteeError> {
        match self {
            Self::Contract(nodes) => nodes.check_deadline(deadline).await,
            Self::Ledger(ledger) => ledger.check_deadline(deadline).await,
        }
    }

    /// Checks that a committee with these roles, zero for nobody, can be announced, and stops what stolen keys have queued.
    pub(super) async fn check_roles(&self, announcement: &Announcement) -> Result<(), CommitteeError> {
        match self {
            Self::Contract(nodes) => nodes.check_guardian(announcement.guardian).await,
            Self::Ledger(_) if announcement.recovery.is_zero() => Ok(()),
            Self::Ledger(_) => Err(CommitteeError::NotOnLedger("a recovery address")),
        }
    }

    /// The digest that is signed, which a contract would compute, too.
    pub(super) async fn check_digest(&self, statement: &CouncilStatement<'_>) -> Result<Digest, CommitteeError> {
        match self {
            Self::Contract(nodes) => nodes.check_digest(statement).await,
            Self::Ledger(ledger) => Ok(ledger.domain().council_digest(statement)),
        }
    }

    /// How far an announcement has come, with the acceptances among `votes`.
    pub(super) async fn facts(&self, announcement: &Announcement, votes: &[VoteFile]) -> Result<Facts, CommitteeError> {
        match self {
            Self::Contract(nodes) => super::proposal::facts(nodes, announcement, votes).await,
            Self::Ledger(ledger) => ledger.facts(announcement, votes).await,
        }
    }
}
