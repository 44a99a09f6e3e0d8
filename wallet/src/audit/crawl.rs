//! Reads every account that ever held anything, at every authority, without an index. Value enters only by deposits, so
//! it visits funded accounts first, and then all recipients of certificates.
//!
//! ```text
//!  deposits ─► accounts to visit ─► states and certificates, a slice at a time ─► verified ─► Books
//!                     ▲                                                              │
//!                     └────────────────────────── recipients ◄───────────────────────┘
//! ```
//! It reads a bounded number of accounts at once, and of certificates of each, and keeps only what the books count of a
//! certificate. A later round reads the states again, the new certificates, and those for which an authority gave no
//! valid answer: a temporary failure is not held against it for ever.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use fastpay_client::{Asked, AuthorityClient, ClientError};
use fastpay_core::{AccountId, Asset, Certificate, SequenceNumber, VerifiedCertificate};
use fastpay_rpc::AccountState;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::books::{Archived, Books, Flaw, SLICE, Slot, Visit};
use super::proof::Proof;
use super::{AuditListener, AuditProgress};
use fastpay_client::Network;

/// The number of accounts that are read at once.
const ACCOUNTS_AT_ONCE: usize = 16;
/// The maximum time to read what is pruned of an account's slice. A later round reads it again.
const ARCHIVE_PATIENCE: Duration = Duration::from_secs(10);
/// The number of accounts between progress reports.
const TELL_EVERY: usize = 500;

/// Visits all accounts once, including those that it discovers on the way.
pub(super) async fn round(
    network: &Network,
    authorities: &[AuthorityClient],
    books: &mut Books,
    listener: &AuditListener,
) {
    let mut waiting: VecDeque<AccountId> = books.accounts().collect();
    let mut visiting = JoinSet::new();
    let mut visited = 0_usize;
    loop {
        while visiting.len() < ACCOUNTS_AT_ONCE
            && let Some(account) = waiting.pop_front()
        {
            let known = Known {
                counted: books.counted(account),
                flawed: books.flawed(account),
                assets: books.assets_of(account),
            };
            visiting.spawn(visit(network.clone(), authorities.to_vec(), account, known));
        }
        let Some(visit) = visiting.join_next().await else { break };
        let Ok(visit) = visit else { continue };
        let account = visit.account;
        let (new, more) = books.take_in(visit, |valid| proofs(network, valid));
        waiting.extend(new);
        if more {
            waiting.push_front(account);
        }
        visited = visited.saturating_add(1);
        if visited.is_multiple_of(TELL_EVERY) {
            let waiting = waiting.len();
            listener(&AuditProgress { visited, waiting, certificates: books.certificates() });
        }
    }
}

/// The proofs of misbehaviour in several certificates for one number.
fn proofs(network: &Network, valid: &[VerifiedCertificate]) -> Vec<Proof> {
    let others = |position: usize| valid.iter().skip(position.saturating_add(1));
    let pairs = valid.iter().enumerate().flat_map(|(position, one)| others(position).map(move |other| (one, other)));
    pairs.flat_map(|(one, other)| Proof::find(network.domain(), one.certificate(), other.certificate())).collect()
}

/// The state of an account in the books.
struct Known {
    /// The number of its certificates that are counted, by authority.
    counted: Vec<u64>,
    /// The numbers for which an authority gave no valid answer.
    flawed: BTreeSet<u64>,
    /// The assets that it may hold.
    assets: BTreeSet<Asset>,
}

async fn visit(network: Network, authorities: Vec<AuthorityClient>, account: AccountId, known: Known) -> Visit {
    let Known { counted, flawed, assets } = known;
    let states = read_states(&authorities, account, &assets).await;
    let next = |index: usize| states.get(index).and_then(Option::as_ref).map_or(0, |state| state.next_sequence.0);
    let unread: Vec<_> = counted.iter().enumerate().filter(|(index, counted)| next(*index) > **counted).collect();
    let from = unread.iter().map(|(_, counted)| **counted).min().unwrap_or_default();
    let to = unread.iter().map(|(index, _)| next(*index)).max().unwrap_or_default().min(from.saturating_add(SLICE));
    let mut slots: BTreeMap<u64, Slot> = (from..to).chain(flawed).map(|number| (number, Slot::new())).collect();
    let index_of = |name| authorities.iter().position(|authority| authority.name() == name);
    let mut asked = Asked::each(&authorities, |authority| {
        let next = index_of(authority.name()).map_or(0, next);
        let numbers: Vec<u64> = slots.keys().copied().filter(|number| next > *number).collect();
        async move { read_certificates(&authority, account, &numbers).await }
    });
    let (mut pruned, mut pruned_by) = (BTreeSet::new(), BTreeSet::new());
    while let Some((name, answers)) = asked.answer().await {
        let Some(index) = index_of(name) else { continue };
        for (number, answer) in answers {
            let Some(slot) = slots.get_mut(&number) else { continue };
            if matches!(answer, Err(ClientError::Pruned(_))) {
                pruned.insert(number);
                pruned_by.insert(index);
            }
            if let Some(found) = judge(&network, account, SequenceNumber(number), answer, slot) {
                slot.insert(index, found);
            }
        }
    }
    pruned.retain(|number| slots.get(number).is_none_or(|slot| !slot.values().any(Result::is_ok)));
    let archived = read_archived(&network, account, &pruned).await;
    Visit { account, states, slots, archived, pruned_by }
}

/// What archives prove of numbers whose certificates are pruned, or hidden.
async fn read_archived(network: &Network, account: AccountId, numbers: &BTreeSet<u64>) -> BTreeMap<u64, Archived> {
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return BTreeMap::new() };
    let until = SequenceNumber(last.saturating_add(1));
    let deadline = Instant::now() + ARCHIVE_PATIENCE;
    let entries = network.archived_sent(account, SequenceNumber(*first), until, deadline).await;
    let archived = entries.into_iter().filter(|entry| numbers.contains(&entry.sequence.0)).map(|entry| {
        let transfer = entry.transfer.map(|transfer| (network.domain().transfer_digest(&transfer), transfer));
        (entry.sequence.0, Archived { transfer })
    });
    archived.collect()
}

/// An authority's answer for each number: in pages, and singly for a number that its page lacks.
async fn read_certificates(
    authority: &AuthorityClient,
    account: AccountId,
    numbers: &[u64],
) -> Vec<(u64, Result<Certificate, ClientError>)> {
    let names: Vec<_> = numbers.iter().map(|number| (account, SequenceNumber(*number))).collect();
    let mut found = BTreeMap::new();
    for certificate in authority.certificates(&names).await.unwrap_or_default() {
        let transfer = &certificate.order.transfer;
        found.insert((transfer.sender(), transfer.sequence()), certificate);
    }
    let (mut answers, mut alone) = (Vec::new(), JoinSet::new());
    for name in names {
        if let Some(certificate) = found.remove(&name) {
            answers.push((name.1.0, Ok(certificate)));
        } else {
            let shard = authority.shard_of(&account).clone();
            alone.spawn(async move { (name.1.0, shard.certificate(account, name.1).await) });
        }
    }
    answers.extend(alone.join_all().await);
    answers
}

/// Verifies an answer for a certificate; `None` if there was no answer.
fn judge(
    network: &Network,
    account: AccountId,
    sequence: SequenceNumber,
    answer: Result<Certificate, ClientError>,
    slot: &Slot,
) -> Option<Result<VerifiedCertificate, Flaw>> {
    match answer {
        Ok(certificate) => {
            // The same bytes are valid or invalid, whoever returns them: verify them once.
            let mut good = slot.values().flatten();
            if let Some(known) = good.find(|known| *known.certificate() == certificate) {
                return Some(Ok(known.clone()));
            }
            let verified = network.verify_certificate(certificate, account, sequence);
            Some(verified.map_err(|error| Flaw::Bogus(error.to_string())))
        }
        Err(ClientError::NotFound) => Some(Err(Flaw::Hidden)),
        Err(ClientError::Unreadable(why)) => Some(Err(Flaw::Unreadable(why))),
        Err(ClientError::Malformed(why)) => Some(Err(Flaw::Bogus(why))),
        Err(_) => None,
    }
}

async fn read_states(
    authorities: &[AuthorityClient],
    account: AccountId,
    assets: &BTreeSet<Asset>,
) -> Vec<Option<AccountState>> {
    let mut asked = Asked::each(authorities, |authority| {
        let assets = assets.clone();
        async move { read_state(&authority, account, &assets).await }
    });
    let mut states = BTreeMap::new();
    while let Some((name, state)) = asked.answer().await {
        states.extend(state.ok().map(|state| (name, state)));
    }
    authorities.iter().map(|authority| states.remove(&authority.name())).collect()
}

/// An account's state. If the list of its assets is incomplete, it also reads those of `assets` that the list lacks, as
/// long as nothing has changed meanwhile.
async fn read_state(
    authority: &AuthorityClient,
    account: AccountId,
    assets: &BTreeSet<Asset>,
) -> Result<AccountState, ClientError> {
    let shard = authority.shard_of(&account);
    let mut state = shard.account(account).await?;
    if !state.truncated {
        return Ok(state);
    }
    let listed: BTreeSet<Asset> = state.holdings.iter().map(|(asset, _)| *asset).collect();
    for asset in assets.difference(&listed) {
        let more = shard.account_asset(account, *asset).await?;
        let counters = |state: &AccountState| (state.next_sequence, state.received, state.deposits);
        if counters(&more) == counters(&state) {
            state.holdings.extend(more.holdings);
        }
    }
    Ok(state)
}
