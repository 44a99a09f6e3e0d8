//! Reads every account that ever held anything, at every authority, without an index: value comes in by deposits
//! alone, so who was funded is visited first, and then whoever a certificate pays.
//!
//! ```text
//!  deposits ─► accounts to visit ─► states and certificates, a slice at a time ─► verified ─► Books
//!                     ▲                                                              │
//!                     └────────────────────────── recipients ◄───────────────────────┘
//! ```
//! Bounded: so many accounts at once, so many certificates of each; nothing of a certificate is kept but what the
//! books count. A later round reads the states again and only those certificates that are new.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use fastpay_core::{AccountId, Asset, SequenceNumber, VerifiedCertificate};
use fastpay_rpc::{AccountState, AuthorityClient, ClientError};
use tokio::task::JoinSet;

use super::books::Books;
use super::proof::Proof;
use super::{AuditListener, AuditProgress};
use crate::network::Network;

/// So many accounts are read at once.
const ACCOUNTS_AT_ONCE: usize = 16;
/// So many certificates of an account are asked for at once, of each authority.
const SLICE: u64 = 32;
/// Progress is told after so many accounts.
const TELL_EVERY: usize = 500;

/// What is wrong with how an authority answers for a certificate. Read on with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It has confirmed it and does not show it.
    Hidden,
    /// It shows something else.
    Bogus(String),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => write!(f, "it has confirmed a certificate and does not show it: sequence number"),
            Self::Bogus(why) => write!(f, "it shows a certificate that is not valid ({why}): sequence number"),
        }
    }
}

/// What was read of an account.
pub(super) struct Visit {
    pub(super) account: AccountId,
    /// The number of the first slot.
    pub(super) from: u64,
    /// By authority; none where it did not answer.
    pub(super) states: Vec<Option<AccountState>>,
    /// Number by number, what each authority that has confirmed it shows. Who did not answer is not there.
    pub(super) slots: Vec<BTreeMap<usize, Result<VerifiedCertificate, Flaw>>>,
}

/// Visits all accounts once, and those that it hears of on the way.
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
            let (counted, assets) = (books.counted(account), books.assets_of(account));
            visiting.spawn(visit(network.clone(), authorities.to_vec(), account, counted, assets));
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

/// What different certificates for one number prove.
fn proofs(network: &Network, valid: &[VerifiedCertificate]) -> Vec<Proof> {
    let others = |position: usize| valid.iter().skip(position.saturating_add(1));
    let pairs = valid.iter().enumerate().flat_map(|(position, one)| others(position).map(move |other| (one, other)));
    pairs.flat_map(|(one, other)| Proof::find(network.domain(), one.certificate(), other.certificate())).collect()
}

async fn visit(
    network: Network,
    authorities: Vec<AuthorityClient>,
    account: AccountId,
    counted: Vec<u64>,
    assets: Vec<Asset>,
) -> Visit {
    let mut asked = JoinSet::new();
    for (index, authority) in authorities.iter().cloned().enumerate() {
        let assets = assets.clone();
        asked.spawn(async move { (index, read_state(&authority, account, &assets).await) });
    }
    let mut states = vec![None; authorities.len()];
    while let Some(answer) = asked.join_next().await {
        let Ok((index, Ok(state))) = answer else { continue };
        if let Some(place) = states.get_mut(index) {
            *place = Some(state);
        }
    }
    let next = |index: usize| states.get(index).and_then(Option::as_ref).map_or(0, |state| state.next_sequence.0);
    let unread: Vec<_> = counted.iter().enumerate().filter(|(index, counted)| next(*index) > **counted).collect();
    let from = unread.iter().map(|(_, counted)| **counted).min().unwrap_or_default();
    let to = unread.iter().map(|(index, _)| next(*index)).max().unwrap_or_default().min(from.saturating_add(SLICE));
    let mut slots = Vec::new();
    let mut asked = JoinSet::new();
    for number in from..to {
        slots.push(BTreeMap::new());
        for (index, authority) in authorities.iter().enumerate().filter(|(index, _)| next(*index) > number) {
            let shard = authority.shard_of(&account).clone();
            asked.spawn(async move { (number, index, shard.certificate(account, SequenceNumber(number)).await) });
        }
    }
    while let Some(answer) = asked.join_next().await {
        let Ok((number, index, answer)) = answer else { continue };
        let slot = usize::try_from(number.saturating_sub(from)).ok().and_then(|slot| slots.get_mut(slot));
        let Some(slot): Option<&mut BTreeMap<_, _>> = slot else { continue };
        let found = match answer {
            Ok(certificate) => {
                // The same bytes are good or bad whoever shows them.
                let known = slot.values().find_map(|found: &Result<VerifiedCertificate, Flaw>| {
                    found.as_ref().ok().filter(|known| *known.certificate() == certificate).cloned()
                });
                match known {
                    Some(known) => Ok(known),
                    None => network
                        .verify_certificate(certificate, account, SequenceNumber(number))
                        .map_err(|error| Flaw::Bogus(error.to_string())),
                }
            }
            Err(ClientError::NotFound) => Err(Flaw::Hidden),
            Err(ClientError::Malformed(why)) => Err(Flaw::Bogus(why)),
            Err(_) => continue,
        };
        slot.insert(index, found);
    }
    Visit { account, from, states, slots }
}

/// An account's state. Where the list of its assets is cut, also those of `assets` that are not in it, as long as
/// nothing has changed meanwhile.
async fn read_state(
    authority: &AuthorityClient,
    account: AccountId,
    assets: &[Asset],
) -> Result<AccountState, ClientError> {
    let shard = authority.shard_of(&account);
    let mut state = shard.account(account).await?;
    let missing = |state: &AccountState, asset: &Asset| state.holdings.iter().all(|(listed, _)| listed != asset);
    for asset in assets.iter().filter(|_| state.truncated).copied().collect::<Vec<_>>() {
        if !missing(&state, &asset) {
            continue;
        }
        let more = shard.account_asset(account, asset).await?;
        let counters = |state: &AccountState| (state.next_sequence, state.received, state.deposits);
        if counters(&more) == counters(&state) {
            state.holdings.extend(more.holdings);
        }
    }
    Ok(state)
}
