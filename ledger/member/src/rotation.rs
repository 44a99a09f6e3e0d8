//! The way of a FastPay committee on a ledger from one epoch to the next, for the demo: its operators all sign at once.

use std::time::Duration;

use fastpay_core::{
    AccountKey, Authority, AuthorityKeys, Committee, ContractVote, CouncilStatement, Digest, Domain, Epoch,
    PossessionProof, sign_council_vote,
};
use fastpay_ledger_client::{ClientError, CommitteeClient};
use fastpay_ledger_statement::{Action, Announcing, CurrentEpoch, NextCommittee, Outcome, Rejection, Time};
use tokio::time::sleep;

/// So often an announcement is asked to mature while its delay passes.
const TRIES: usize = 300;
const PAUSE: Duration = Duration::from_millis(100);

/// Why there is no new epoch.
#[derive(Debug, thiserror::Error)]
pub enum RotationFailure {
    /// The ledger does not answer, or refuses.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The members cannot be a committee.
    #[error("the members are no committee")]
    Committee,
    /// It did not mature, or was not kept.
    #[error("the announcement does not mature")]
    NotMatured,
}

/// Has the same members begin the next epoch: they announce it, the guardian endorses, and they accept. `by` brings
/// what anybody can. Gives the epoch that began.
///
/// # Errors
/// See [`RotationFailure`].
pub async fn renew(
    ledger: &CommitteeClient,
    by: &AccountKey,
    guardian: &AccountKey,
    members: &[AuthorityKeys],
) -> Result<CurrentEpoch, RotationFailure> {
    let (domain, number) = (ledger.domain(), ledger.number());
    let settlement = ledger.client().partition().settlement;
    let instruct =
        async |key: &AccountKey, action: Action| ledger.client().instruct(key, settlement, None, &action).await;
    let current = ledger.current_epoch(Time(0)).await?;
    let epoch = Epoch(current.epoch.0.saturating_add(1));
    let committee = Committee::new(epoch, members.iter().map(AuthorityKeys::public).collect());
    let committee = committee.map_err(|_| RotationFailure::Committee)?;
    let deadline = fastpay_program::Clock::system().now_ms() / 1_000 + 86_400;
    let (compromised_since, checkpoint) = (epoch, Digest::ZERO);
    let next = NextCommittee { committee, guardian: current.guardian, compromised_since, checkpoint, deadline };
    let statement = next.announcement();
    let id = next.id(&domain);
    let proof = |authority: &Authority| {
        let keys = members.iter().find(|keys| keys.public() == *authority);
        keys.map(|keys| PossessionProof::new(keys, &domain).into())
    };
    let proofs = next.committee.members().iter().map(proof).collect::<Option<_>>().ok_or(RotationFailure::Committee)?;
    let quorum = next.committee.quorum();
    let votes = votes(members, quorum, &domain, &CouncilStatement::Announcement(&statement));
    instruct(by, Action::Announce(Box::new(Announcing { committee: number, next, proofs, votes }))).await?;
    instruct(guardian, Action::Endorse { committee: number, announcement: id }).await?;
    let mut matured = None;
    for _ in 0..TRIES {
        match instruct(by, Action::Mature { committee: number, announcement: id }).await {
            Err(ClientError::Rejected(Rejection::NotInstallable(_))) => sleep(PAUSE).await,
            Ok(Outcome::Matured) | Err(ClientError::Rejected(Rejection::AlreadyMatured)) => {
                matured = ledger.announcement(id, Time(0)).await?;
                if matured.as_ref().is_some_and(|announced| announced.matured.is_some()) {
                    break;
                }
                sleep(PAUSE).await;
            }
            other => drop(other?),
        }
    }
    let acceptance =
        matured.as_ref().and_then(|announced| announced.acceptance(id)).ok_or(RotationFailure::NotMatured)?;
    let votes = self::votes(members, quorum, &domain, &acceptance);
    instruct(by, Action::Install { committee: number, announcement: id, votes }).await?;
    Ok(ledger.current_epoch(Time(0)).await?)
}

/// The votes of the first members on a statement, in the order of names.
fn votes(
    members: &[AuthorityKeys],
    count: usize,
    domain: &Domain,
    statement: &CouncilStatement<'_>,
) -> Vec<ContractVote> {
    let mut votes: Vec<_> = members.iter().map(|keys| sign_council_vote(keys, domain, statement)).collect();
    votes.sort_by_key(|vote| vote.authority);
    votes.truncate(count);
    votes
}
