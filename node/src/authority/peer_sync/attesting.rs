//! Certificates of epochs that ended long ago do not count by themselves. This authority brings them to its own shards
//! with the votes of f + 1 members of the current committee, which it asks for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fastpay_client::{AuthorityClient, ClientOptions, attest};
use fastpay_core::{AccountId, AttestedCertificate, Certificate, Committees, Domain, Epoch, Request};
use fastpay_rpc::Refusal;
use tokio::task::JoinSet;

use super::missing::OwnShards;
use super::{PeerFailure, PeerSyncTimes};
use crate::authority::network::submit_all;
use crate::authority::peer_book::{PeerBook, PeerReader};
use crate::authority::shard::Answer;
use crate::authority::voter_status::VoterStatusWatch;

/// The maximum number of accounts of which certificates are attested at the same time.
const ACCOUNTS_AT_A_TIME: usize = 16;

/// The authorities that are asked for votes, and what these must be about.
#[derive(Clone)]
pub struct Attesters {
    peers: Arc<Mutex<Peers>>,
    domain: Domain,
    voter_status: VoterStatusWatch,
}

/// Those that are known so far.
struct Peers {
    reader: PeerReader,
    known: Vec<AuthorityClient>,
}

impl Attesters {
    /// Asks the authorities of a book. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(book: &PeerBook, domain: Domain, voter_status: VoterStatusWatch) -> Self {
        let call = PeerSyncTimes::default().call;
        Self::over(book.reader(ClientOptions { connect_timeout: call, request_timeout: call }), domain, voter_status)
    }

    /// Asks these authorities.
    #[must_use]
    pub fn over(reader: PeerReader, domain: Domain, voter_status: VoterStatusWatch) -> Self {
        Self { peers: Arc::new(Mutex::new(Peers { reader, known: Vec::new() })), domain, voter_status }
    }

    /// Whether an epoch is before the current one.
    pub(super) fn is_ended(&self, epoch: Epoch) -> bool {
        epoch < self.voter_status.borrow().epoch()
    }

    /// See [`readings`].
    pub(super) fn readings(&self, now: u64) -> u64 {
        readings(self.voter_status.borrow().committees(), now)
    }

    fn peers(&self) -> Vec<AuthorityClient> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let Peers { reader, known } = &mut *peers;
        reader.update(known, AuthorityClient::name, |client| client);
        known.clone()
    }

    async fn attest(&self, certificate: &Certificate) -> Option<AttestedCertificate> {
        let committee = self.voter_status.borrow().committees().current().clone();
        let digest = self.domain.transfer_digest(&certificate.order.transfer);
        let peers = self.peers();
        attest(&peers, &self.domain, &committee, certificate, digest).await.ok()
    }
}

/// How often what peers executed had to be read to its end, up to this time in seconds since 1970: at the end of each
/// epoch, and in the middle of the time in which its certificates are only kept, also if other epochs have ended since.
/// Whoever executed one at the last moment shows it to the others so, whose clocks and views of the chain may be late.
fn readings(committees: &Committees, now: u64) -> u64 {
    let of_epoch = |epoch| {
        let end = committees.end(epoch);
        1 + u64::from(now >= end.executed_until.midpoint(end.kept_until))
    };
    (0..committees.current().epoch().0).map(|epoch| of_epoch(Epoch(epoch))).sum()
}

/// A submitted certificate, with the answer to it.
pub(super) struct Submitted {
    pub account: AccountId,
    /// Kept where its epoch has ended.
    pub certificate: Option<Certificate>,
    pub answer: Answer,
}

/// Submits again, with votes, what did not count by itself, and what follows it in its account.
pub(super) async fn submit_attested(own: &OwnShards, submitted: &mut [Submitted]) -> Result<(), PeerFailure> {
    let mut chains: BTreeMap<AccountId, Vec<usize>> = BTreeMap::new();
    for (place, Submitted { account, certificate, answer }) in submitted.iter().enumerate() {
        let Answer::Refused(refusal) = answer else { continue };
        let begins = matches!(refusal, Refusal::Unattested(_));
        let goes_on = matches!(refusal, Refusal::MissingCertificate(_)) && chains.contains_key(account);
        if certificate.is_some() && (begins || goes_on) {
            chains.entry(*account).or_default().push(place);
        }
    }
    let chains: Vec<_> = chains.into_values().collect();
    for some in chains.chunks(ACCOUNTS_AT_A_TIME) {
        let mut asked = JoinSet::new();
        for chain in some {
            let certificates: Vec<_> =
                chain.iter().filter_map(|place| submitted.get(*place)?.certificate.clone()).collect();
            let (own, chain) = (own.clone(), chain.clone());
            asked.spawn(async move { (chain, submit_chain(&own, certificates).await) });
        }
        while let Some(answered) = asked.join_next().await {
            let Ok((chain, answers)) = answered else { continue };
            for (place, answer) in chain.into_iter().zip(answers?) {
                if let Some(submitted) = submitted.get_mut(place) {
                    submitted.answer = answer;
                }
            }
        }
    }
    Ok(())
}

/// The answers to certificates of one account, in order, up to the first that is refused.
async fn submit_chain(own: &OwnShards, certificates: Vec<Certificate>) -> Result<Vec<Answer>, PeerFailure> {
    let mut answers = Vec::new();
    for certificate in certificates {
        let (handle, _) = own.shard_of(certificate.order.transfer.sender())?;
        let submit = async |request| submit_all(handle, own.metrics(), Arc::default(), vec![request]).await.pop();
        // One that follows an attested one may count by itself.
        let Some(mut answer) = submit(Request::Certificate(certificate.clone())).await else { break };
        if matches!(answer, Answer::Refused(Refusal::Unattested(_))) {
            let Some(attested) = own.attesters().attest(&certificate).await else { break };
            let Some(again) = submit(Request::Attested(Box::new(attested))).await else { break };
            answer = again;
        }
        let is_confirmed = matches!(answer, Answer::Confirmed(..));
        answers.push(answer);
        if !is_confirmed {
            break;
        }
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::EpochEnd;
    use fastpay_testkit::TestCommittee;

    #[test]
    fn logs_are_read_at_each_end_and_in_the_middle_after_it_also_if_the_next_epoch_ends_before() {
        let first = TestCommittee::new(4);
        let mut committees = Committees::new(first.committee.clone()).unwrap();
        assert_eq!(readings(&committees, 99), 0);
        let (second, ends) = (first.rotated(), [EpochEnd::new(1_000, 400), EpochEnd::new(1_300, 400)]);
        committees.note_end(Epoch(0), ends[0]);
        committees.install(second.committee.clone()).unwrap();
        assert_eq!([700, 799, 800].map(|now| readings(&committees, now)), [1, 1, 2]);
        committees.note_end(Epoch(1), ends[1]);
        committees.install(second.rotated().committee.clone()).unwrap();
        assert_eq!([750, 800, 1_099, 1_100].map(|now| readings(&committees, now)), [2, 3, 3, 4]);
    }
}
