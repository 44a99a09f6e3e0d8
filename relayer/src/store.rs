//! The relayer's durable state: one JSON file. It is replaced as a whole and synced before any transaction that it
//! lists is sent.
//!
//! Losing the file costs time only: the relayer reads the redemption logs again, and the chain tells which redemptions
//! are done.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use alloy::primitives::{Address, B256};
use fastpay_core::{Authority, AuthorityName};
use fastpay_ethereum::Submission;
use fastpay_program::files;
use serde::{Deserialize, Serialize};

use crate::pending::{PendingRedemption, RedemptionId};
use crate::policy::Decision;
use crate::unlocks::{UnlockStep, Unlocks};

/// The version of the file's format. Files of another version are refused.
const VERSION: u32 = 1;
/// The maximum number of redemptions that wait to be submitted. Redemption logs are not read further until some are
/// done, or give way. It bounds the file to about 3 MB.
pub(crate) const PENDING_MAX: usize = 2_000;
/// The maximum number of queued redemptions, which are small without votes. Other relayers may execute more.
pub(crate) const QUEUED_MAX: usize = 5_000;
/// The maximum number of abandoned redemptions that are remembered, the newest. Each cost a transaction or ten attempts
/// over hours, so displacing them is expensive.
const LEFT_MAX: usize = 1_000;

/// The maximum number of remembered payees that spend much gas.
const PAYEES_MAX: usize = 10_000;

/// The state that survives a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The version of the format.
    pub version: u32,
    /// The chain to which the state belongs.
    pub chain_id: u64,
    /// The contract to which the state belongs.
    pub contract: Address,
    /// The members of the contract's first committee; `None` before it was read. A restarted test chain has the same
    /// number, and its contract the same address, but another committee.
    #[serde(default)]
    pub first_committee: Option<Vec<Authority>>,
    /// The address that pays for gas; `None` in files of releases that did not store it.
    #[serde(default)]
    pub address: Option<Address>,
    /// For each shard of each authority, the number of the first entry not read yet.
    pub cursors: BTreeMap<AuthorityName, Vec<u64>>,
    /// The redemptions to submit, in the order of arrival, including those under way.
    pub items: Vec<PendingRedemption>,
    /// The transactions that are not final yet.
    pub bundles: Vec<Bundle>,
    /// Unused nonces of transactions that no node accepted. The next transactions get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub free_nonces: Vec<u64>,
    /// The redemptions that failed by themselves and are left to their owners, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// Addresses that spent more gas than usual when they were paid ETH, each with the most that it spent. It is zero
    /// for each payee of a transaction in which one of several did, until it was paid alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub payees: BTreeMap<Address, u64>,
    /// Numbers to unlock, and the amounts spent on them.
    #[serde(default)]
    pub unlock: Unlocks,
    /// Totals so far.
    pub totals: Totals,
    /// The last decision about the waiting redemptions.
    #[serde(default)]
    pub decision: Decision,
    /// If the contract is paused: until when, in seconds since 1970.
    #[serde(default)]
    pub paused_until: Option<u64>,
}

/// A transaction and the redemptions in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// The transaction.
    pub submission: Submission,
    /// The redemptions that it redeems or executes.
    pub items: Vec<RedemptionId>,
    /// The unlocking step that it performs, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlock: Option<UnlockStep>,
}

/// A redemption that is left to its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// The redemption.
    pub item: RedemptionId,
    /// The reason.
    pub reason: String,
    /// The transaction in which it failed alone, or which proves that it is never paid; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<B256>,
}

/// Counts since the state was created. Counts that only earlier releases kept are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Redemptions that this relayer submitted and that are in final blocks.
    pub redeemed: u64,
    /// Redemptions that somebody else submitted.
    pub redeemed_by_others: u64,
    /// Redemptions that are never paid: their number was spent on another order, or they were released from the queue.
    #[serde(default)]
    pub displaced: u64,
    /// Redemptions left to others because their asset is not served.
    #[serde(default)]
    pub not_served: u64,
    /// Entries of redemption logs that are not valid redemption certificates.
    pub invalid: u64,
    /// Redemptions given up because they failed too often before they were sent.
    pub given_up: u64,
    /// Redemptions that failed in a transaction of their own.
    #[serde(default)]
    pub failed_alone: u64,
    /// Redemptions left to others because their fee does not cover the gas.
    #[serde(default)]
    pub below_cost: u64,
    /// Redemptions that the contract queued, and that this relayer is to execute.
    #[serde(default)]
    pub queued: u64,
    /// The number of these that this relayer executed in a final block.
    #[serde(default)]
    pub executed: u64,
    /// Requests to unlock a number that this relayer submitted and that are in final blocks.
    #[serde(default)]
    pub unlock_requested: u64,
    /// Numbers that this relayer had upheld in a final block.
    #[serde(default)]
    pub unlock_upheld: u64,
    /// Numbers that this relayer had voided in a final block.
    #[serde(default)]
    pub unlock_voided: u64,
}

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system failed.
    #[error("cannot use the state file {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// There is no state yet.
    #[error("{0} does not exist: this relayer has not run yet, or has another data_dir; start it with `run`")]
    NeverRun(PathBuf),
    /// The file is not a state file.
    #[error(
        "the state file {path} cannot be read: {reason}; delete it to rebuild it from the redemption logs; nothing is \
         lost"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// The state belongs to another chain or contract, or to an earlier contract at the same address of a restarted
    /// chain.
    #[error(
        "the state in {0} is of another deployment: another chain, contract or first committee. Give every deployment its \
         own data_dir; where a chain for tests began anew, remove the folder: what is to be done is read from the redemption logs again"
    )]
    OtherDeployment(PathBuf),
    /// Another relayer is running on the same folder.
    #[error("another relayer uses {0}; stop it, or give this one its own data_dir and key")]
    InUse(PathBuf),
}

impl State {
    pub(crate) fn new(chain_id: u64, contract: Address) -> Self {
        let (cursors, items, bundles) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (free_nonces, left, payees) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (unlock, totals, decision) = (Unlocks::default(), Totals::default(), Decision::default());
        let (first_committee, address, paused_until) = (None, None, None);
        Self {
            version: VERSION,
            chain_id,
            contract,
            first_committee,
            address,
            cursors,
            items,
            bundles,
            free_nonces,
            left,
            payees,
            unlock,
            totals,
            decision,
            paused_until,
        }
    }

    /// Reads a state file without locking it.
    ///
    /// # Errors
    /// If the file does not exist or is damaged.
    pub fn read(data_dir: &Path) -> Result<Self, StoreError> {
        let path = data_dir.join("state.json");
        let text = std::fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => StoreError::NeverRun(path.clone()),
            _ => StoreError::Io { path: path.clone(), error },
        })?;
        let malformed = |reason: String| StoreError::Malformed { path: path.clone(), reason };
        let state: Self = serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        if state.version != VERSION {
            return Err(malformed(format!("it has version {}, not {VERSION}", state.version)));
        }
        Ok(state)
    }

    /// The position of the redemption with this id.
    pub(crate) fn position(&self, id: &RedemptionId) -> Option<usize> {
        self.items.iter().position(|item| item.id() == *id)
    }

    /// The numbers of redemptions outside and inside the contract's queue. Each certificate of a number counts.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let queued = self.items.iter().filter(|item| item.queued.is_some()).count();
        let others: usize = self.items.iter().map(|item| item.alternatives.len()).sum();
        (self.items.len().saturating_sub(queued).saturating_add(others), queued)
    }

    /// Remembers that a redemption is left to its owner.
    pub(crate) fn remember(&mut self, left: Left) {
        if self.left.len() >= LEFT_MAX {
            self.left.remove(0);
        }
        self.left.push(left);
    }

    /// Notes the gas that a payee spent. If there are too many payees, the one that spent least is removed.
    pub(crate) fn note_payee(&mut self, payee: Address, gas: u64) {
        let most = self.payees.entry(payee).or_default();
        *most = gas.max(*most);
        if self.payees.len() > PAYEES_MAX {
            let least = self.payees.iter().min_by_key(|(_, gas)| **gas).map(|(payee, _)| *payee);
            least.and_then(|payee| self.payees.remove(&payee));
        }
    }

    /// Removes a payee that was only known to have shared a transaction in which some payee spent gas.
    pub(crate) fn acquit_payee(&mut self, payee: &Address) {
        if self.payees.get(payee) == Some(&0) {
            self.payees.remove(payee);
        }
    }

    /// Whether a transaction waits that cannot be included before one with a free nonce is.
    pub(crate) fn has_gap(&self) -> bool {
        let highest = self.bundles.iter().map(|bundle| bundle.submission.nonce).max();
        self.free_nonces.iter().any(|free| highest.is_some_and(|highest| *free < highest))
    }

    /// Whether a transaction that redeems it is not final yet.
    pub(crate) fn is_under_way(&self, id: &RedemptionId) -> bool {
        self.bundles.iter().any(|bundle| bundle.items.contains(id))
    }
}

/// The state file, locked by this process.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    _lock: File,
}

impl Store {
    /// Opens the folder and reads the state, or starts a new one.
    pub(crate) fn open(folder: &Path, chain_id: u64, contract: Address) -> Result<(Self, State), StoreError> {
        let io = |error| StoreError::Io { path: folder.to_owned(), error };
        std::fs::create_dir_all(folder).map_err(io)?;
        let lock = File::create(folder.join("lock")).map_err(io)?;
        lock.try_lock().map_err(|_| StoreError::InUse(folder.to_owned()))?;
        let store = Self { folder: folder.to_owned(), _lock: lock };
        let state = match State::read(folder) {
            Ok(state) => state,
            Err(StoreError::NeverRun(_)) => State::new(chain_id, contract),
            Err(error) => return Err(error),
        };
        if (state.chain_id, state.contract) != (chain_id, contract) {
            return Err(StoreError::OtherDeployment(folder.to_owned()));
        }
        Ok((store, state))
    }

    /// Replaces the file. It is on disk when this returns.
    pub(crate) fn save(&self, state: &State) -> Result<(), StoreError> {
        let path = self.folder.join("state.json");
        serde_json::to_vec(state)
            .map_err(Into::into)
            .and_then(|bytes| files::replace(&path, &bytes))
            .map_err(|error| StoreError::Io { path, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::tests::item;
    use fastpay_ethereum::Queued;

    #[test]
    fn what_is_saved_is_read_again_and_only_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let contract = Address::repeat_byte(3);
        let (store, mut state) = Store::open(folder.path(), 1, contract).unwrap();
        state.items.push(item(4));
        state.cursors.insert(AuthorityName([5; 32]), vec![1, 2]);
        store.save(&state).unwrap();
        assert!(matches!(Store::open(folder.path(), 1, contract), Err(StoreError::InUse(_))));
        drop(store);
        let (store, again) = Store::open(folder.path(), 1, contract).unwrap();
        assert_eq!(again, state);
        drop(store);
        assert!(matches!(Store::open(folder.path(), 2, contract), Err(StoreError::OtherDeployment(_))));
    }

    #[test]
    fn a_damaged_or_newer_file_is_refused_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["{", r#"{"version": 2}"#] {
            std::fs::write(folder.path().join("state.json"), text).unwrap();
            let error = Store::open(folder.path(), 1, Address::ZERO).unwrap_err().to_string();
            assert!(error.contains("delete it to rebuild it"), "{error}");
        }
    }

    #[test]
    fn of_too_many_payees_the_one_that_spent_least_is_forgotten() {
        let mut state = State::new(1, Address::ZERO);
        let payee = |number: usize| Address::left_padding_from(&number.to_be_bytes());
        state.note_payee(payee(0), 115_000);
        state.note_payee(payee(0), 7);
        (1..PAYEES_MAX).for_each(|number| state.note_payee(payee(number), 30_000));
        state.note_payee(payee(PAYEES_MAX), 20_001);
        assert_eq!((state.payees.len(), state.payees.get(&payee(0))), (PAYEES_MAX, Some(&115_000)));
        assert!(!state.payees.contains_key(&payee(PAYEES_MAX)));
        // A payee with nothing against it is removed first, and counts as harmless.
        state.note_payee(payee(PAYEES_MAX), 0);
        assert!(!state.payees.contains_key(&payee(PAYEES_MAX)));
        state.payees.remove(&payee(1));
        state.note_payee(payee(PAYEES_MAX), 0);
        state.acquit_payee(&payee(0));
        state.acquit_payee(&payee(PAYEES_MAX));
        assert!(state.payees.contains_key(&payee(0)) && !state.payees.contains_key(&payee(PAYEES_MAX)));
    }

    #[test]
    fn the_file_is_bounded() {
        let size = serde_json::to_vec(&item(u64::MAX)).unwrap().len() + 85 * 66 * 2;
        assert!(size * PENDING_MAX < 32 << 20, "{size} bytes for an item of a committee of 127");
        let mut queued = item(u64::MAX);
        queued.enqueue(Queued {
            executable_at: u64::MAX,
            relayer: Address::repeat_byte(9),
            epoch: 0,
            needs_votes: false,
        });
        let mut state = State::new(1, Address::ZERO);
        for sequence in 0..LEFT_MAX as u64 + 5 {
            let (reason, transaction) = ("x".repeat(300), Some(B256::ZERO));
            state.remember(Left { item: item(sequence).id(), reason, transaction });
        }
        assert_eq!((state.left.len(), state.left[0].item), (LEFT_MAX, item(5).id()));
        assert!(serde_json::to_vec(&state.left).unwrap().len() < 1 << 20);
        let size = serde_json::to_vec(&queued).unwrap().len();
        assert!(size * QUEUED_MAX < 4 << 20, "{size} bytes for an item in the queue");
    }

    #[test]
    fn a_free_nonce_is_a_gap_where_something_waits_above_it() {
        let call = fastpay_ethereum::Call { to: Address::ZERO, value: Default::default(), data: Default::default() };
        let at = |nonce| Bundle {
            submission: Submission { call: call.clone(), from: Address::ZERO, nonce, gas_limit: 1, attempts: vec![] },
            items: vec![],
            unlock: None,
        };
        let mut state = State::new(1, Address::ZERO);
        state.free_nonces = vec![5];
        assert!(!state.has_gap());
        state.bundles = vec![at(4)];
        assert!(!state.has_gap());
        state.bundles.push(at(6));
        assert!(state.has_gap());
    }

    #[test]
    fn a_file_of_before_queues_is_still_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut old = serde_json::to_value(State::new(1, Address::ZERO)).unwrap();
        for new in ["first_committee", "address", "decision", "paused_until"] {
            old.as_object_mut().unwrap().remove(new).unwrap();
        }
        for new in ["below_cost", "queued", "executed", "not_served", "failed_alone"] {
            old["totals"].as_object_mut().unwrap().remove(new).unwrap();
        }
        old["totals"]["below_minimum"] = 3.into();
        std::fs::write(folder.path().join("state.json"), old.to_string()).unwrap();
        assert_eq!(State::read(folder.path()).unwrap(), State::new(1, Address::ZERO));
    }
}
