//! Brings a signed announcement to the contract.

use std::path::{Path, PathBuf};

use fastpay_core::{Announcement, AuthorityName, Committee, CouncilStatement, Epoch, VerifiedContractVote};
use fastpay_ethereum::{Call, Step};
use fastpay_ledger_statement::{Action, Announcing};

use super::announcement::{announcement, check_members};
use super::council::Council;
use super::nodes::Nodes;
use super::on_ledger::{OnLedger, next_committee, quorum_of};
use super::prove::Proof;
use super::transaction::{Courier, Payer, Steps, Tell};
use super::votes::{valid, voters, votes};
use super::{CommitteeError, Proposal};
use crate::authority::config::Config;

/// A committee counts as lost after so long without a sign of life (`contracts/Council.sol`).
const RECOVERY_SILENCE_S: u64 = 120 * 86_400;

/// What is announced.
#[derive(Clone, Copy, Debug)]
pub struct Announce<'a> {
    /// The announcement's file.
    pub announcement: &'a Path,
    /// The members' proofs.
    pub proofs: &'a [PathBuf],
    /// The signatures of a quorum of the current committee. A recovery needs none.
    pub votes: &'a [PathBuf],
    /// Whether the recovery address announces it in place of a silent committee.
    pub is_recovery: bool,
}

/// Announces a committee, and returns once that is final. On a ledger the key signs an instruction. Does nothing if it is announced.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn announce(
    config: &Config,
    payer: Payer,
    what: &Announce<'_>,
    told: Tell<'_>,
) -> Result<Proposal, CommitteeError> {
    let council = Council::connect(config).await?;
    let domain = council.domain();
    let announcement = announcement(what.announcement, &domain)?;
    let nodes = match &council {
        Council::Contract(nodes) => nodes,
        Council::Ledger(ledger) => return announce_on(ledger, &council, &payer, (&announcement, what)).await,
    };
    let id = nodes.check_digest(&CouncilStatement::Announcement(&announcement)).await?;
    let files = votes(what.votes)?;
    let allowed = if what.is_recovery { &[Step::AnnounceRecovery] } else { &[Step::Announce] };
    let steps = Steps { announcement: what.announcement, id, allowed };
    let courier = Courier::new(nodes, payer, steps, told).await?;
    let is_done = async || Ok(nodes.clock_of(id).await?.is_some());
    let committees = nodes.committees().await?;
    let read = async || Proposal::read(&council, &announcement, &committees, (&files, None)).await;
    if is_done().await? {
        nodes.settle(None, told).await?;
        let there = read().await?;
        there.check_open()?;
        return Ok(there);
    }
    let proofs = check_members(&announcement, what.proofs, &domain, &committees)?;
    let proofs = proofs.iter().flat_map(Proof::packed).collect::<Vec<_>>().into();
    nodes.check_guardian(announcement.guardian).await?;
    nodes.check_deadline(announcement.deadline).await?;
    let call = if what.is_recovery {
        let call = Call::announce_recovery(courier.council(), &announcement, proofs);
        check_recovery(nodes, &announcement).await?;
        check_sender(nodes, &courier, &call, told).await?;
        call
    } else {
        let current = committees.current();
        let found = valid(current, id, &files);
        let packed =
            VerifiedContractVote::quorum(current, id, &found).ok_or_else(|| missing(current, &voters(&found)))?;
        Call::announce(courier.council(), &announcement, proofs, packed.into())
    };
    courier.send(call, is_done, told).await?;
    read().await
}

/// The same on a ledger.
async fn announce_on(
    ledger: &OnLedger,
    council: &Council,
    payer: &Payer,
    (announcement, what): (&Announcement, &Announce<'_>),
) -> Result<Proposal, CommitteeError> {
    if what.is_recovery {
        return Err(CommitteeError::NotOnLedger("--recovery"));
    }
    let (domain, files, committees) = (ledger.domain(), votes(what.votes)?, ledger.committees().await?);
    let id = domain.council_digest(&CouncilStatement::Announcement(announcement));
    let read = async || Proposal::read(council, announcement, &committees, (&files, None)).await;
    let there = read().await?;
    if there.announced_at.is_some() {
        there.check_open()?;
        return Ok(there);
    }
    let proofs = check_members(announcement, what.proofs, &domain, &committees)?;
    council.check_roles(announcement).await?;
    ledger.check_deadline(announcement.deadline).await?;
    let (current, proofs) = (committees.current(), proofs.iter().map(Proof::possession).collect());
    let found = valid(current, id, &files);
    let votes = quorum_of(current, &found).ok_or_else(|| missing(current, &voters(&found)))?;
    let announcing = Announcing { committee: ledger.number(), next: next_committee(announcement), proofs, votes };
    let is_done = async || Ok(read().await?.announced_at.is_some());
    ledger.carry_out(&payer.key, Action::Announce(Box::new(announcing)), is_done).await?;
    read().await
}

fn missing(committee: &Committee, found: &[AuthorityName]) -> CommitteeError {
    let names = committee.members().iter().map(|member| member.name);
    CommitteeError::TooFewVotes {
        what: "signatures",
        found: found.len(),
        needed: committee.quorum(),
        missing: names.filter(|name| !found.contains(name)).collect(),
    }
}

/// Checks what the contract asks of a recovery.
async fn check_recovery(nodes: &Nodes, announcement: &Announcement) -> Result<(), CommitteeError> {
    if announcement.compromised_since != Epoch(0) {
        return Err(CommitteeError::RecoverySince(announcement.compromised_since));
    }
    let silent_at =
        nodes.agree_soon(async |node| node.last_sign_of_life().await).await?.saturating_add(RECOVERY_SILENCE_S);
    if nodes.heads().await?.earliest < silent_at {
        return Err(CommitteeError::Alive(silent_at));
    }
    Ok(())
}

/// Checks that the key is that of the recovery address. If it is not, that may be in a wallet of its own: tells the call.
async fn check_sender(nodes: &Nodes, courier: &Courier<'_>, call: &Call, told: Tell<'_>) -> Result<(), CommitteeError> {
    let ((_, expected), found) = (nodes.roles().await?, courier.address());
    if found == expected {
        return Ok(());
    }
    told(format!("to send it from {expected} with another tool: to {}, value 0, data {}", call.to, call.data));
    Err(CommitteeError::WrongSender { role: "recovery address", expected, found })
}
