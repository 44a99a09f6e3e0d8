//! Asks the other authorities what this one may have voted for.
//!
//! Every authority that voted for the order before a forgotten one remembers it, and a quorum of the others contains an
//! honest one of these. The answers of a quorum about an account therefore give a number above every forgotten vote. A
//! peer that claims more certificates than this authority has must return the newest of them, so that a lie cannot keep
//! the authority from voting forever.
//!
//! Only members of the current committee are asked, looked up anew for each question: a former member answers from what
//! it knows, and need not have seen any vote of the epochs since.

use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{
    Asked, AuthorityClient, ClientError, ClientOptions, Endpoints, EndpointsError, verify_certificate,
};
use fastpay_core::{AccountId, AuthorityName, Committees, Domain, SequenceNumber};
use fastpay_rpc::AccountState;
use tokio::sync::{Semaphore, mpsc};

use super::{Question, RollbackProtection};
use crate::authority::voter_status::VoterStatusWatch;

/// The maximum number of accounts that are asked about at a time.
const ACCOUNTS_AT_A_TIME: usize = 32;
pub(super) const OPTIONS: ClientOptions =
    ClientOptions { connect_timeout: Duration::from_secs(2), request_timeout: Duration::from_secs(5) };

/// Why the other authorities cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// The endpoints file cannot be used.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// An address is malformed.
    #[error(transparent)]
    Address(#[from] ClientError),
    /// They are fewer than a quorum.
    #[error(
        "the endpoints file has {known} members of the current committee beside this one, and {needed} are needed; get the \
         newest file from whoever runs the committee"
    )]
    TooFew {
        /// The number of current members in the file.
        known: usize,
        /// The number of peers needed.
        needed: usize,
    },
}

/// Answers the questions of the rollback protection.
pub struct CatchUp {
    protection: Arc<RollbackProtection>,
    questions: mpsc::Receiver<Question>,
    asker: Arc<Asker>,
}

struct Asker {
    peers: Vec<AuthorityClient>,
    domain: Domain,
    voter_status: VoterStatusWatch,
}

/// Clients of the authorities in the file, except this one under any of its `names`. Those of other epochs may become
/// members later.
fn peers(
    endpoints: &Endpoints,
    committees: &Committees,
    names: &[AuthorityName],
) -> Result<Vec<AuthorityClient>, PeersError> {
    let others = endpoints.authorities.iter().filter(|entry| !names.contains(&entry.name));
    let peers: Vec<_> = others.map(|entry| AuthorityClient::new(entry, OPTIONS)).collect::<Result<_, _>>()?;
    let (known, needed) = (members(&peers, committees).count(), committees.current().quorum());
    if known < needed {
        return Err(PeersError::TooFew { known, needed });
    }
    Ok(peers)
}

/// Those of these peers that are members of the current committee.
fn members<'a>(
    peers: &'a [AuthorityClient],
    committees: &Committees,
) -> impl Iterator<Item = &'a AuthorityClient> + use<'a> {
    let current = committees.current().clone();
    peers.iter().filter(move |peer| current.member(&peer.name()).is_some())
}

impl CatchUp {
    /// Asks the authorities of `endpoints` except this one, whose names are `names`. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// See [`PeersError`].
    pub fn new(
        protection: Arc<RollbackProtection>,
        questions: mpsc::Receiver<Question>,
        endpoints: &Endpoints,
        names: &[AuthorityName],
        domain: Domain,
        voter_status: VoterStatusWatch,
    ) -> Result<Self, PeersError> {
        let peers = peers(endpoints, voter_status.borrow().committees(), names)?;
        Ok(Self::over(protection, questions, peers, domain, voter_status))
    }

    /// Asks these authorities, which do not include this one.
    #[must_use]
    pub fn over(
        protection: Arc<RollbackProtection>,
        questions: mpsc::Receiver<Question>,
        peers: Vec<AuthorityClient>,
        domain: Domain,
        voter_status: VoterStatusWatch,
    ) -> Self {
        Self { protection, questions, asker: Arc::new(Asker { peers, domain, voter_status }) }
    }

    /// Runs as long as the authority.
    pub async fn run(mut self) {
        let free = Arc::new(Semaphore::new(ACCOUNTS_AT_A_TIME));
        while let Some((account, sequence)) = self.questions.recv().await {
            let Ok(permit) = free.clone().acquire_owned().await else { return };
            let (protection, asker) = (self.protection.clone(), self.asker.clone());
            tokio::spawn(async move {
                let votes_from = asker.votes_from(account, sequence).await;
                protection.learn(account, votes_from);
                drop(permit);
            });
        }
    }
}

impl Asker {
    /// The number from which on this authority may vote for the account; `None` if too few of the others answer.
    async fn votes_from(self: &Arc<Self>, account: AccountId, own_next: SequenceNumber) -> Option<SequenceNumber> {
        let committees = self.voter_status.borrow().committees().clone();
        let mut asked = Asked::each(members(&self.peers, &committees), |peer| {
            let (asker, committees) = (self.clone(), committees.clone());
            async move { asker.ask(&peer, account, own_next, &committees).await }
        });
        let (mut answers, mut reasons, needed) = (Vec::new(), Vec::new(), committees.current().quorum());
        while answers.len() < needed {
            match asked.answer().await {
                Some((_, Ok(answer))) => answers.push(answer),
                Some((name, Err(reason))) => reasons.push(format!("{name}: {reason}")),
                None => {
                    let (answers, reasons) = (answers.len(), reasons.join("; "));
                    tracing::warn!(%account, answers, needed, reasons, "too few others say what this authority may have voted for; it is asked again with the next order");
                    break;
                }
            }
        }
        above_forgotten_votes(&answers, needed)
    }

    /// One peer's answer, verified if it claims more than this authority's own state.
    async fn ask(
        &self,
        peer: &AuthorityClient,
        account: AccountId,
        own_next: SequenceNumber,
        committees: &Committees,
    ) -> Result<Answer, String> {
        let shard = peer.shard_of(&account);
        let state = shard.account(account).await.map_err(|error| error.to_string())?;
        if state.next_sequence > own_next {
            let newest = SequenceNumber(state.next_sequence.0.saturating_sub(1));
            let certificate = shard.certificate(account, newest).await.map_err(|error| error.to_string())?;
            verify_certificate(certificate, account, newest, &self.domain, committees)
                .map_err(|error| error.to_string())?;
        }
        answer(&state)
    }
}

/// How many certificates of the account may exist, as far as this peer can know: those that it has confirmed, and the
/// one that its vote may have led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer(u64);

fn answer(state: &AccountState) -> Result<Answer, String> {
    if state.catching_up {
        return Err("it was restored from an older copy itself".into());
    }
    Ok(Answer(state.next_sequence.0.saturating_add(u64::from(state.pending.is_some()))))
}

/// The first number that this authority cannot have voted for. It voted for a number only with all certificates before
/// it, so its last vote is at most for the number after the last that can have a certificate.
fn above_forgotten_votes(answers: &[Answer], needed: usize) -> Option<SequenceNumber> {
    let certificates = answers.iter().map(|answer| answer.0).max()?;
    (answers.len() >= needed).then_some(SequenceNumber(certificates.saturating_add(1)))
}

#[cfg(test)]
mod tests;
