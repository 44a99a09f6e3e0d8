//! Finds which of a peer's certificates are missing here, and fetches and confirms them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{AccountId, Certificate, JournalPosition, Request, SequenceNumber};
use fastpay_rpc::{PAGE_ENTRIES_MAX, Refusal, TransferName};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::PeerFailure;
use super::attesting::{Attesters, Submitted, submit_attested};
use super::claims::Claims;
use crate::authority::metrics::NetworkMetrics;
use crate::authority::network::{ask, layout_of, submit_all};
use crate::authority::shard::{Answer, Command, HistoryReader, ShardHandle};

/// The number of simultaneous requests for certificates to one peer.
const REQUESTS_AT_A_TIME: usize = 8;
/// The maximum number of certificates fetched before the gaps are determined anew.
const CERTIFICATES_PER_ROUND_MAX: usize = REQUESTS_AT_A_TIME * PAGE_ENTRIES_MAX as usize;
/// The interval of checks whether another task has fetched what it claimed.
const CLAIMED_INTERVAL: Duration = Duration::from_millis(50);

/// Accounts, each with the number below which a peer claims to have all certificates.
pub(super) type Heads = Vec<(AccountId, SequenceNumber)>;

/// The accounts of these certificates, each with the number after its highest.
pub(super) fn heads(names: &[TransferName]) -> Heads {
    let mut heads = BTreeMap::new();
    for (account, sequence) in names {
        let after = after(*sequence);
        heads.entry(*account).and_modify(|head: &mut SequenceNumber| *head = after.max(*head)).or_insert(after);
    }
    heads.into_iter().collect()
}

fn not_now(error: impl std::fmt::Display) -> PeerFailure {
    PeerFailure::NotNow(error.to_string())
}

fn after(sequence: SequenceNumber) -> SequenceNumber {
    SequenceNumber(sequence.0.saturating_add(1))
}

/// The shards of this authority.
#[derive(Clone)]
pub struct OwnShards {
    shards: Arc<Vec<(ShardHandle, HistoryReader)>>,
    metrics: Arc<NetworkMetrics>,
    attesters: Attesters,
}

/// Certificates of one account that are missing here.
struct Gap {
    account: AccountId,
    /// The first missing number.
    from: SequenceNumber,
    /// The number after the last.
    to: SequenceNumber,
}

/// The outcome of confirming fetched certificates.
#[derive(Default)]
struct Round {
    confirmed: u64,
    /// The accounts that cannot go on now.
    waiting: BTreeSet<AccountId>,
    /// The longest wait that a busy shard asked for.
    busy: Option<Duration>,
}

impl OwnShards {
    /// The shards of this authority, from the first, and the authorities that attest certificates of epochs that ended
    /// long ago.
    #[must_use]
    pub fn new(
        shards: Arc<Vec<(ShardHandle, HistoryReader)>>,
        metrics: Arc<NetworkMetrics>,
        attesters: Attesters,
    ) -> Self {
        Self { shards, metrics, attesters }
    }

    pub(super) fn attesters(&self) -> &Attesters {
        &self.attesters
    }

    pub(super) fn metrics(&self) -> &NetworkMetrics {
        &self.metrics
    }

    /// The committed end of each journal.
    pub(super) fn journal_ends(&self) -> Vec<JournalPosition> {
        self.shards.iter().map(|(_, history)| history.end()).collect()
    }

    pub(super) fn shard_of(&self, account: AccountId) -> Result<&(ShardHandle, HistoryReader), PeerFailure> {
        let shard = layout_of(&self.shards).shard_of(&account);
        self.shards.get(shard.0 as usize).ok_or_else(|| PeerFailure::NotNow("it has no shard".into()))
    }

    /// The numbers that somebody asked the contract to unlock and that are the next one of their account here, without a
    /// certificate or a decision, each with the number after it.
    pub(super) async fn disputed(&self) -> Result<Heads, PeerFailure> {
        let mut disputed = Heads::new();
        for (handle, _) in self.shards.iter() {
            let answer = ask(handle, Command::ReadLedger).map_err(not_now)?;
            let ledger = answer.await.map_err(not_now)?;
            let open = ledger.unlocks.iter().filter(|(.., unlock)| {
                unlock.is_frozen() && unlock.outcome.is_none() && unlock.spent.is_none() && unlock.seen.is_none()
            });
            let heads: Heads = open.map(|(account, sequence, _)| (account, after(sequence))).collect();
            for some in heads.chunks(PAGE_ENTRIES_MAX as usize) {
                let gaps = self.gaps(some).await?;
                let next = gaps.into_iter().filter(|gap| after(gap.from) == gap.to);
                disputed.extend(next.map(|gap| (gap.account, gap.to)));
            }
        }
        Ok(disputed)
    }

    /// Those of these heads below which certificates are missing here, and the number of these certificates.
    pub(crate) async fn lacking(&self, heads: &[(AccountId, SequenceNumber)]) -> Result<(Heads, u64), PeerFailure> {
        let gaps = self.gaps(heads).await?;
        let missing = gaps.iter().map(|gap| gap.to.0.saturating_sub(gap.from.0)).fold(0, u64::saturating_add);
        Ok((gaps.into_iter().map(|gap| (gap.account, gap.to)).collect(), missing))
    }

    /// The certificates that are missing below these heads.
    async fn gaps(&self, heads: &[(AccountId, SequenceNumber)]) -> Result<Vec<Gap>, PeerFailure> {
        let mut asked = Vec::with_capacity(heads.len());
        // Ask for all accounts before waiting for the first: one batch of the shard answers them together.
        for (account, to) in heads {
            let (handle, _) = self.shard_of(*account)?;
            let answer = ask(handle, |reply| Command::ReadAccount(*account, reply)).map_err(not_now)?;
            asked.push((*account, *to, answer));
        }
        let mut gaps = Vec::new();
        for (account, to, answer) in asked {
            let from = answer.await.map_err(not_now)?.next_sequence();
            if from < to {
                gaps.push(Gap { account, from, to });
            }
        }
        Ok(gaps)
    }

    /// Submits certificates for confirmation, in this order, and returns the answer to each.
    async fn confirm(&self, certificates: Vec<Certificate>) -> Result<Vec<(AccountId, Answer)>, PeerFailure> {
        let mut by_shard: BTreeMap<u32, (Vec<_>, Vec<Request>)> = BTreeMap::new();
        let layout = layout_of(&self.shards);
        for certificate in certificates {
            let account = certificate.order.transfer.sender();
            let (kept, requests) = by_shard.entry(layout.shard_of(&account).0).or_default();
            let may_need_votes = self.attesters.is_ended(certificate.epoch);
            kept.push((account, may_need_votes.then(|| certificate.clone())));
            requests.push(Request::Certificate(certificate));
        }
        let mut submitted = Vec::new();
        for (kept, requests) in by_shard.into_values() {
            let Some((account, _)) = kept.first() else { continue };
            let (handle, _) = self.shard_of(*account)?;
            let answers = submit_all(handle, &self.metrics, Arc::default(), requests).await;
            let answered = kept.into_iter().zip(answers);
            submitted.extend(answered.map(|((account, certificate), answer)| Submitted {
                account,
                certificate,
                answer,
            }));
        }
        submit_attested(self, &mut submitted).await?;
        Ok(submitted.into_iter().map(|Submitted { account, answer, .. }| (account, answer)).collect())
    }
}

/// Fetches and confirms the certificates missing below these heads. Returns how many were confirmed, and the heads to
/// ask about later: the peer does not return a certificate of theirs, or the contract must first decide.
pub(super) async fn bring(
    own: &OwnShards,
    claims: &Claims,
    peer: &AuthorityClient,
    mut heads: Heads,
) -> Result<(u64, Heads), PeerFailure> {
    let (mut confirmed, mut later) = (0_u64, Heads::new());
    loop {
        let gaps = own.gaps(&heads).await?;
        if gaps.is_empty() {
            return Ok((confirmed, later));
        }
        heads = gaps.iter().map(|gap| (gap.account, gap.to)).collect();
        let mine: Vec<Gap> = gaps.into_iter().filter(|gap| claims.take(gap.account)).collect();
        if mine.is_empty() {
            sleep(CLAIMED_INTERVAL).await;
            continue;
        }
        let round = bring_round(own, peer, &mine).await;
        claims.release(mine.iter().map(|gap| &gap.account));
        let round = round?;
        confirmed = confirmed.saturating_add(round.confirmed);
        let (waiting, rest) = heads.into_iter().partition(|(account, _)| round.waiting.contains(account));
        (heads, later) = (rest, [later, waiting].concat());
        if let Some(pause) = round.busy {
            sleep(pause).await;
        }
    }
}

async fn bring_round(own: &OwnShards, peer: &AuthorityClient, gaps: &[Gap]) -> Result<Round, PeerFailure> {
    let numbers = |gap: &Gap| {
        let account = gap.account;
        (gap.from.0..gap.to.0).map(move |number| (account, SequenceNumber(number)))
    };
    let names: Vec<TransferName> = gaps.iter().flat_map(numbers).take(CERTIFICATES_PER_ROUND_MAX).collect();
    let mut found = fetch(peer, &names).await?.into_iter().peekable();
    let (mut round, mut certificates) = (Round::default(), Vec::with_capacity(names.len()));
    for (account, sequence) in names {
        let is_next = |certificate: &Certificate| {
            let transfer = &certificate.order.transfer;
            (transfer.sender(), transfer.sequence()) == (account, sequence)
        };
        match found.next_if(is_next) {
            // Nothing after a missing number can be confirmed.
            Some(certificate) if !round.waiting.contains(&account) => certificates.push(certificate),
            Some(_) => {}
            None => drop(round.waiting.insert(account)),
        }
    }
    if found.next().is_some() {
        return Err(PeerFailure::Forged("it is not one that was asked for".into()));
    }
    let (mut behind, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for (account, answer) in own.confirm(certificates).await? {
        match answer {
            Answer::Confirmed(..) => round.confirmed = round.confirmed.saturating_add(1),
            Answer::Refused(Refusal::Busy(pause)) => round.busy = Some(round.busy.unwrap_or_default().max(pause)),
            Answer::Refused(Refusal::MissingCertificate(_)) => drop(behind.insert(account)),
            Answer::Refused(refusal @ (Refusal::Invalid(_) | Refusal::Malformed(_) | Refusal::WrongShard(_))) => {
                return Err(PeerFailure::Forged(refusal.to_string()));
            }
            Answer::Refused(refusal @ (Refusal::Stopping | Refusal::PrimaryTooOld | Refusal::UnknownEpoch(_))) => {
                return Err(PeerFailure::NotNow(refusal.to_string()));
            }
            Answer::Refused(_) | Answer::Vote(..) => drop(refused.insert(account)),
        }
    }
    round.waiting.append(&mut refused);
    if round.busy.is_none() {
        // No earlier certificate of these accounts is on its way into the shard.
        round.waiting.append(&mut behind);
    }
    Ok(round)
}

/// Fetches the named certificates, in order, as far as the peer returns them.
async fn fetch(peer: &AuthorityClient, names: &[TransferName]) -> Result<Vec<Certificate>, PeerFailure> {
    let mut asked = JoinSet::new();
    for (position, names) in names.chunks(PAGE_ENTRIES_MAX as usize).enumerate() {
        let (peer, names) = (peer.clone(), names.to_vec());
        asked.spawn(async move { (position, peer.certificates(&names).await) });
    }
    let mut found = BTreeMap::new();
    while let Some(answer) = asked.join_next().await {
        let (position, certificates) =
            answer.map_err(|error| ClientError::Unreachable(format!("the request was not completed: {error}")))?;
        found.insert(position, certificates?);
    }
    Ok(found.into_values().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_account_the_number_after_the_highest_counts() {
        let (one, two) = (AccountId([1; 32]), AccountId([2; 32]));
        let names = [(two, SequenceNumber(7)), (one, SequenceNumber(1)), (one, SequenceNumber(0))];
        assert_eq!(heads(&names), vec![(one, SequenceNumber(2)), (two, SequenceNumber(8))]);
        assert_eq!(heads(&[(one, SequenceNumber(u64::MAX))]), vec![(one, SequenceNumber(u64::MAX))]);
        assert_eq!(heads(&[]), vec![]);
    }
}
