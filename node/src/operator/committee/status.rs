//! What is announced, as the chain and the operators' files say.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fastpay_core::{Announcement, CouncilStatement, Digest, Epoch, PrimaryAddress};
use fastpay_ethereum::RANGE_BLOCKS_DEFAULT;
use serde::Serialize;

use super::announcement::announcement;
use super::council::Council;
use super::nodes::Nodes;
use super::votes::votes;
use super::{CommitteeError, Proposal, State};
use crate::authority::config::Config;

/// How far back announcements are read: 45 days of 12 seconds a block. A recovery lapses 44 days after its announcement,
/// any other announcement after 28.
const BLOCKS_READ: u64 = 45 * 7_200;

/// What the council has to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CouncilReport {
    /// The chain's ID (EIP-155).
    pub chain_id: u64,
    /// FastPay's address.
    pub contract: PrimaryAddress,
    /// The council's address; none on a ledger.
    pub council: Option<PrimaryAddress>,
    /// The epoch in the newest block.
    pub epoch: Epoch,
    /// The guardian; zero for nobody.
    pub guardian: PrimaryAddress,
    /// The recovery address; zero for nobody.
    pub recovery: PrimaryAddress,
    /// The announcement in the file, whatever its state, and all others that can still be installed.
    pub announcements: Vec<Proposal>,
    /// How many announcements there are beside these, which were made after them: a stolen quorum can make any number.
    pub further: u64,
    /// Where the committee is, in words.
    #[serde(skip)]
    place: String,
}

/// Reads what is announced. With a `file`, also how far that announcement has come, with the members' `signed` files of
/// both kinds.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn status(config: &Config, file: Option<&Path>, signed: &[PathBuf]) -> Result<CouncilReport, CommitteeError> {
    let primary = Council::connect(config).await?;
    let (domain, files) = (primary.domain(), votes(signed)?);
    let own = file.map(|file| announcement(file, &domain)).transpose()?;
    let own_id = own.as_ref().map(|own| domain.council_digest(&CouncilStatement::Announcement(own)));
    let committees = primary.committees().await?;
    let (mut found, further) = match &primary {
        Council::Contract(nodes) => (announced(nodes).await?, 0),
        Council::Ledger(ledger) => {
            let id = |announcement: &Announcement| domain.council_digest(&CouncilStatement::Announcement(announcement));
            let (open, further) = ledger.open_announcements().await?;
            let open = open.into_iter().map(|announcement| (id(&announcement), (announcement, None)));
            (open.collect(), further)
        }
    };
    let mut announcements = Vec::new();
    if let (Some(own), Some(id)) = (&own, own_id) {
        let packed = found.remove(&id).and_then(|(_, packed)| packed);
        announcements.push(Proposal::read(&primary, own, &committees, (&files, packed.as_deref())).await?);
    }
    for (announcement, packed) in found.values() {
        let proposal = Proposal::read(&primary, announcement, &committees, (&[], packed.as_deref())).await?;
        if matches!(proposal.state, State::Announced | State::Installable | State::Matured) {
            announcements.push(proposal);
        }
    }
    let (guardian, recovery) = primary.roles().await?;
    let council = match &primary {
        Council::Contract(nodes) => Some(nodes.agree(async |node| node.council().await).await?),
        Council::Ledger(_) => None,
    };
    let (chain_id, contract, epoch, place) =
        (domain.chain_id(), domain.contract(), primary.epoch().await?, primary.place());
    Ok(CouncilReport { chain_id, contract, council, epoch, guardian, recovery, announcements, further, place })
}

/// All announcements of the last weeks that any node shows and the contract knows, each with the votes in the transaction
/// that sent it. Each node is asked up to its own newest block.
async fn announced(nodes: &Nodes) -> Result<BTreeMap<Digest, (Announcement, Option<Vec<u8>>)>, CommitteeError> {
    let mut found: BTreeMap<Digest, (Announcement, Option<Vec<u8>>)> = BTreeMap::new();
    for node in nodes.each() {
        let head = node.latest_head().await?.number();
        let mut first = node.deployment_block().await?.max(head.saturating_sub(BLOCKS_READ));
        while first <= head {
            let last = first.saturating_add(RANGE_BLOCKS_DEFAULT - 1).min(head);
            for (id, (announcement, transaction)) in node.announcements(first, last).await? {
                // A node may invent one.
                if !found.contains_key(&id) && nodes.clock_of(id).await?.is_none() {
                    continue;
                }
                let (_, packed) = found.entry(id).or_insert((announcement, None));
                if let (None, Some(transaction)) = (&packed, transaction) {
                    *packed = node.votes_announced_in(transaction).await?.map(Into::into);
                }
            }
            first = last.saturating_add(1);
        }
    }
    Ok(found)
}

impl fmt::Display for CouncilReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = |address: PrimaryAddress| if address.is_zero() { "nobody".to_owned() } else { address.to_string() };
        let council = self.council.map_or(String::new(), |council| format!(", council {council}"));
        writeln!(f, "{}{council}", self.place)?;
        write!(f, "epoch {}, guardian {}, recovery {}", self.epoch, who(self.guardian), who(self.recovery))?;
        if self.announcements.is_empty() {
            write!(f, "\nno committee is announced")?;
        }
        self.announcements.iter().try_for_each(|proposal| write!(f, "\n{proposal}"))?;
        match self.further {
            0 => Ok(()),
            further => write!(f, "\n{further} more committees are announced, after these"),
        }
    }
}
