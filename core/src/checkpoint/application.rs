//! Computes a state from the one before and a segment, from nothing else [LIFE §4]: an authority's live state has no
//! part in it, so an error there does not spread.
//!
//! Order within a segment does not matter: an account may spend what it receives in a later entry, so balances are
//! judged at the end. Events come first, so that what the Primary said of a number is known when the number is taken.

use std::collections::{BTreeMap, VecDeque};

use rand_core::CryptoRng;

use super::recovery::Recovery;
use super::segment::{PrimaryEvent, Segment, SegmentEntry};
use super::state::{CheckpointState, NumberState};
use super::tree::RootBuilder;
use crate::Digest;
use crate::amount::{Asset, Balance, SequenceNumber, TransactionIndex};
use crate::certificate::CertificateError;
use crate::epochs::{Committees, EpochsError};
use crate::identity::AccountId;
use crate::order::{OrderError, VerifiedOrder};
use crate::private::{InvalidPrivateTransfer, PrivateOrder};
use crate::request::{Request, RequestError, VerifiedRequest};
use crate::statement::Domain;
use crate::verifier::Verifier;

/// So many signatures are checked in one equation: with AVX-512 in two thirds of the time that 256 take, each.
const ORDERS_PER_BATCH: usize = 1_024;

/// Why a segment does not follow a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// Nothing happened: there is nothing to certify.
    #[error("the segment is empty")]
    Empty,
    /// An event of the Primary is missing, repeated or out of order.
    #[error("event {found} of the Primary stands where {expected} is due")]
    EventGap {
        /// The index that is due.
        expected: TransactionIndex,
        /// The index that stands there.
        found: TransactionIndex,
    },
    /// An event after the first number that an account took.
    #[error("event {0} of the Primary stands after the numbers of accounts")]
    EventAfterNumbers(TransactionIndex),
    /// The committees do not follow each other.
    #[error(transparent)]
    Epochs(#[from] EpochsError),
    /// The accounts are not in order, or one comes twice.
    #[error("account {0} is not in its place in the order of accounts")]
    AccountsUnsorted(AccountId),
    /// A number is missing, repeated or out of order.
    #[error("sequence number {found} of account {account} stands where {expected} is due")]
    NumberGap {
        /// The account.
        account: AccountId,
        /// The number that is due.
        expected: SequenceNumber,
        /// The number that stands there.
        found: SequenceNumber,
    },
    /// The owner did not sign the order, or nobody may order the transfer.
    #[error("the order {sequence} of account {account} is invalid: {error}")]
    Order {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// Why.
        error: OrderError,
    },
    /// The owner asked to unlock the number, and the Primary has not decided: the cut must end before it.
    #[error("sequence number {sequence} of account {account} is frozen without outcome; the cut must end before it")]
    Frozen {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// The number is frozen, and another order holds: the cut must end before it.
    #[error("sequence number {sequence} of account {account} belongs to the order with the digest {upheld}")]
    Overruled {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order that holds.
        upheld: Digest,
    },
    /// The Primary voided the number, and it is executed: more than f authorities are faulty.
    #[error("sequence number {sequence} of account {account} is executed, and the Primary voided it")]
    Voided {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// The number is stepped over, and the Primary did not void it.
    #[error("sequence number {sequence} of account {account} is stepped over, and the Primary has not voided it")]
    NotVoided {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// A recovery is named elsewhere than at the beginning.
    #[error("the segment says in its middle that it is a recovery; only its first entry may")]
    RecoveryInside,
    /// The number is taken because the Primary paid it, which only a recovery may do.
    #[error(
        "sequence number {sequence} of account {account} is taken as paid, without its owner's order; only a recovery may \
         do so"
    )]
    OnlyInRecovery {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// The Primary did not spend the number on this redemption.
    #[error("sequence number {sequence} of account {account} is taken as paid, and no event says that it was")]
    NotPaid {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// A recovery forgets what the Primary paid.
    #[error("the Primary spent sequence number {sequence} of account {account}, and the recovery does not debit it")]
    NotDebited {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// A recovery that no installation made.
    #[error("the recovery does not end with the installation of a committee that ends earlier epochs at once")]
    NoRecovery,
    /// A recovery ends with the installation that made it.
    #[error("an entry stands after the installation that made the recovery")]
    AfterRecovery,
    /// Nobody may order the private transfer, or its notes are others.
    #[error("the private order {sequence} of {account} is invalid: {error}")]
    PrivateOrder {
        /// The account nullifier's account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// Why.
        error: InvalidPrivateTransfer,
    },
    /// A nullifier takes a number after one that is not void.
    #[error("{account} is spent by the number before {sequence}")]
    Spent {
        /// The nullifier's account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// A private order in a recovery: keys of more members than the committee tolerates were out, so neither the votes for
    /// it nor its proof show that the pool owes it.
    #[error("a recovery includes the private order {sequence} of {account}, of which nothing shows that it is owed")]
    PrivateInRecovery {
        /// The account nullifier's account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// The cut includes an order and not what covers it.
    #[error("account {account} would owe: its balance of {asset} is {balance}; the cut must include what covers it")]
    NegativeBalance {
        /// The account.
        account: AccountId,
        /// The asset.
        asset: Asset,
        /// Its balance.
        balance: Balance,
    },
}

impl CheckpointState {
    /// The state after a segment, and the segment's root. `rng` gives the coefficients by which signatures are checked
    /// together; no verdict depends on it.
    ///
    /// # Errors
    /// The first in the order of entries, then of balances. See [`SegmentError`].
    pub fn apply(
        self,
        segment: Segment,
        domain: &Domain,
        rng: &mut impl CryptoRng,
    ) -> Result<(Self, Digest), SegmentError> {
        let mut application = self.begin(domain)?;
        segment.entries.into_iter().try_for_each(|entry| application.take(entry, rng))?;
        application.finish(rng)
    }

    /// Begins to apply a segment whose entries come one by one, as from an archive. Memory holds the state, and few
    /// entries at a time.
    ///
    /// # Errors
    /// None that a state of this crate gives.
    pub fn begin(self, domain: &Domain) -> Result<Application, SegmentError> {
        let first = self.installations.iter().next().unwrap_or(self.installations.current());
        let committees = Committees::new(first.committee.clone())?;
        Ok(Application {
            domain: *domain,
            verifier: Verifier::with_memory(*domain, ORDERS_PER_BATCH, ORDERS_PER_BATCH),
            committees,
            waiting: Vec::with_capacity(ORDERS_PER_BATCH),
            root: RootBuilder::default(),
            leaf: Vec::new(),
            account: None,
            recovery: None,
            debts: self
                .balances
                .iter()
                .filter(|(_, held)| **held < Balance::ZERO)
                .map(|(of, held)| (*of, *held))
                .collect(),
            state: self,
        })
    }
}

/// A segment that is being applied. After an error it is of no use.
#[derive(Debug)]
pub struct Application {
    pub(super) domain: Domain,
    verifier: Verifier,
    /// For the verifier, which asks for none where it checks orders.
    committees: Committees,
    /// Entries whose signatures are checked together.
    waiting: Vec<SegmentEntry>,
    root: RootBuilder,
    /// The last leaf, encoded.
    leaf: Vec<u8>,
    /// The account whose numbers come; none while events come.
    pub(super) account: Option<AccountId>,
    /// If the segment is a recovery.
    pub(super) recovery: Option<Recovery>,
    /// What accounts owed before: an earlier recovery says so.
    debts: BTreeMap<(AccountId, Asset), Balance>,
    pub(super) state: CheckpointState,
}

impl Application {
    /// Takes the next entry.
    ///
    /// # Errors
    /// See [`SegmentError`]; an error of this entry may be reported with a later one.
    pub fn take(&mut self, entry: SegmentEntry, rng: &mut impl CryptoRng) -> Result<(), SegmentError> {
        self.waiting.push(entry);
        if self.waiting.len() < ORDERS_PER_BATCH { Ok(()) } else { self.fold(rng) }
    }

    /// The state, and the segment's root.
    ///
    /// # Errors
    /// See [`SegmentError`].
    pub fn finish(mut self, rng: &mut impl CryptoRng) -> Result<(CheckpointState, Digest), SegmentError> {
        self.fold(rng)?;
        let (root, _) = self.root.finish().ok_or(SegmentError::Empty)?;
        if let Some(recovery) = &self.recovery {
            recovery.finish(&self.state)?;
        }
        let owing = self.state.balances.iter().filter(|(_, balance)| **balance < Balance::ZERO);
        for ((account, asset), balance) in owing {
            let is_debt = self.debts.get(&(*account, *asset)).is_some_and(|before| before <= balance);
            // A pool below zero is an alarm (docs/PRIVATE.md), and must not keep the committee from being replaced.
            let is_pool = *account == AccountId::PRIVATE_POOL;
            if !is_debt
                && !is_pool
                && !self.recovery.as_ref().is_some_and(|recovery| recovery.may_owe(*account, *asset))
            {
                return Err(SegmentError::NegativeBalance { account: *account, asset: *asset, balance: *balance });
            }
        }
        let mut state = self.state;
        state.balances.retain(|_, balance| *balance != Balance::ZERO);
        state.numbers.retain(|_, number| *number != NumberState::default());
        Ok((state, root))
    }

    /// Checks the signatures of the entries that wait, and folds each into the state.
    fn fold(&mut self, rng: &mut impl CryptoRng) -> Result<(), SegmentError> {
        let waiting = std::mem::take(&mut self.waiting);
        let requests = waiting.iter().filter_map(|entry| match entry {
            SegmentEntry::Executed(order) => Some(Request::Order(order.clone())),
            SegmentEntry::Event(_)
            | SegmentEntry::Void { .. }
            | SegmentEntry::Paid(_)
            | SegmentEntry::Recovery
            | SegmentEntry::ExecutedPrivate(_) => None,
        });
        let mut verdicts: VecDeque<_> = self.verifier.verify(requests.collect(), &self.committees, rng).into();
        for entry in waiting {
            let is_first = self.root.is_empty();
            entry.encode_leaf(&mut self.leaf);
            self.root.push(&self.leaf);
            self.go_on()?;
            match entry {
                SegmentEntry::Recovery if is_first => self.recovery = Some(Recovery::default()),
                SegmentEntry::Recovery => return Err(SegmentError::RecoveryInside),
                SegmentEntry::Paid(redemption) => self.debit_paid(&redemption)?,
                SegmentEntry::Event(event) => self.follow(event)?,
                SegmentEntry::Void { account, sequence } => self.step_over(account, sequence)?,
                SegmentEntry::ExecutedPrivate(order) => self.execute_private(&order)?,
                SegmentEntry::Executed(order) => {
                    let (account, sequence) = (order.transfer.sender(), order.transfer.sequence());
                    match verdicts.pop_front().map(order_verdict) {
                        Some(Ok(verified)) => self.execute(&verified)?,
                        Some(Err(error)) => return Err(SegmentError::Order { account, sequence, error }),
                        None => unreachable!("each order has its verdict"),
                    }
                }
            }
        }
        Ok(())
    }

    fn follow(&mut self, event: PrimaryEvent) -> Result<(), SegmentError> {
        let ends_recovery = self.ends_recovery(&event)?;
        if self.account.is_some() && !ends_recovery {
            return Err(SegmentError::EventAfterNumbers(event.index));
        }
        match self.state.follow(event, &self.domain) {
            // Stolen keys voided a number that was already used. It stays used, and the recovery goes on.
            Err(SegmentError::Voided { .. }) if self.recovery.is_some() => Ok(()),
            followed => followed,
        }
    }

    /// Takes an account's next number, and gives what the Primary said of it.
    fn next(&mut self, account: AccountId, sequence: SequenceNumber) -> Result<NumberState, SegmentError> {
        self.come_to(account)?;
        if self.recovery.as_ref().is_some_and(|recovery| recovery.is_behind_gap(account)) {
            let expected = self.state.cut.next(&account);
            return Err(SegmentError::NumberGap { account, expected, found: sequence });
        }
        self.state.next(account, sequence)
    }

    /// Accounts come in their order.
    pub(super) fn come_to(&mut self, account: AccountId) -> Result<(), SegmentError> {
        if self.account.is_some_and(|before| account < before) {
            return Err(SegmentError::AccountsUnsorted(account));
        }
        self.account = Some(account);
        Ok(())
    }

    fn step_over(&mut self, account: AccountId, sequence: SequenceNumber) -> Result<(), SegmentError> {
        let number = self.next(account, sequence)?;
        self.state.step_over(account, sequence, &number)
    }

    fn execute(&mut self, order: &VerifiedOrder) -> Result<(), SegmentError> {
        let (transfer, digest) = (order.transfer(), order.digest());
        let (account, sequence) = (transfer.sender(), transfer.sequence());
        let number = self.next(account, sequence)?;
        if let Some(recovery) = &mut self.recovery {
            recovery.judge(transfer, digest, &number)?;
        } else {
            judge((account, sequence), digest, &number)?;
        }
        self.state.execute(transfer, digest, &number)
    }

    fn execute_private(&mut self, order: &PrivateOrder) -> Result<(), SegmentError> {
        let numbers @ [(account, sequence), (coin, only)] = order.transfer.taken();
        let digest = order.check(&self.domain);
        let digest = digest.map_err(|error| SegmentError::PrivateOrder { account, sequence, error })?;
        if self.recovery.is_some() {
            return Err(SegmentError::PrivateInRecovery { account, sequence });
        }
        let of_account = self.next(account, sequence)?;
        // The coin's account need not come here in the order of accounts.
        let of_coin = self.state.next(coin, only)?;
        judge((account, sequence), digest, &of_account)?;
        judge((coin, only), digest, &of_coin)?;
        self.state.execute_private(&order.transfer, numbers, [&of_account, &of_coin])
    }
}

/// Whether a frozen number is this order's: the Primary upheld it.
fn judge(
    (account, sequence): (AccountId, SequenceNumber),
    digest: Digest,
    number: &NumberState,
) -> Result<(), SegmentError> {
    if !number.is_requested || number.is_voided() {
        return Ok(());
    }
    match number.upheld() {
        None => Err(SegmentError::Frozen { account, sequence }),
        Some(upheld) if upheld != digest => Err(SegmentError::Overruled { account, sequence, upheld }),
        Some(_) => Ok(()),
    }
}

/// The verdict on a request that is an order.
pub(crate) fn order_verdict(verdict: Result<VerifiedRequest, RequestError>) -> Result<VerifiedOrder, OrderError> {
    match verdict {
        Ok(VerifiedRequest::Order(order)) => Ok(order),
        Err(RequestError::Order(error) | RequestError::Certificate(CertificateError::Order(error))) => Err(error),
        Ok(VerifiedRequest::Certificate(_) | VerifiedRequest::Attested(_))
        | Err(
            RequestError::UnknownEpoch(_)
            | RequestError::EpochEnded { .. }
            | RequestError::Certificate(_)
            | RequestError::Attestation(_),
        ) => {
            unreachable!("an order was asked about")
        }
    }
}
