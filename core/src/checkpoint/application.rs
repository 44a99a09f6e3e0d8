//! Computes a state from the one before and a segment, from nothing else [LIFE §4]: an authority's live state has no
//! part in it, so an error there does not spread.
//!
//! Order within a segment does not matter: an account may spend what it receives in a later entry, so balances are
//! judged at the end. Events come first, so that what the Primary said of a number is known when the number is taken.

use std::collections::VecDeque;

use rand_core::CryptoRng;

use super::leaf::encode;
use super::segment::{PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry};
use super::state::{CheckpointState, NumberState, Outcome, Spent};
use super::tree::RootBuilder;
use crate::Digest;
use crate::amount::{Amount, Asset, Balance, SequenceNumber, TransactionIndex};
use crate::certificate::CertificateError;
use crate::epochs::{Committees, EpochsError};
use crate::identity::AccountId;
use crate::order::{OrderError, VerifiedOrder};
use crate::request::{Request, RequestError, VerifiedRequest};
use crate::statement::Domain;
use crate::transfer::Transfer;
use crate::unlock::RELEASED;
use crate::verifier::Verifier;

/// So many signatures are checked in one equation: more save nothing.
const ORDERS_PER_BATCH: usize = 256;

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
            account: None,
            state: self,
        })
    }
}

/// A segment that is being applied. After an error it is of no use.
#[derive(Debug)]
pub struct Application {
    domain: Domain,
    verifier: Verifier,
    /// For the verifier, which asks for none where it checks orders.
    committees: Committees,
    /// Entries whose signatures are checked together.
    waiting: Vec<SegmentEntry>,
    root: RootBuilder,
    /// The account whose numbers come; none while events come.
    account: Option<AccountId>,
    state: CheckpointState,
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
        let mut state = self.state;
        if let Some(((account, asset), balance)) = state.balances.iter().find(|(_, balance)| **balance < Balance::ZERO)
        {
            return Err(SegmentError::NegativeBalance { account: *account, asset: *asset, balance: *balance });
        }
        state.balances.retain(|_, balance| *balance != Balance::ZERO);
        state.numbers.retain(|_, number| *number != NumberState::default());
        Ok((state, root))
    }

    /// Checks the signatures of the entries that wait, and folds each into the state.
    fn fold(&mut self, rng: &mut impl CryptoRng) -> Result<(), SegmentError> {
        let waiting = std::mem::take(&mut self.waiting);
        let requests = waiting.iter().filter_map(|entry| match entry {
            SegmentEntry::Executed(order) => Some(Request::Order(order.clone())),
            SegmentEntry::Event(_) | SegmentEntry::Void { .. } => None,
        });
        let mut verdicts: VecDeque<_> = self.verifier.verify(requests.collect(), &self.committees, rng).into();
        for entry in waiting {
            self.root.push(&encode(&entry.leaf()));
            match entry {
                SegmentEntry::Event(event) => self.follow(event)?,
                SegmentEntry::Void { account, sequence } => self.step_over(account, sequence)?,
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
        let PrimaryEvent { index, kind } = event;
        if self.account.is_some() {
            return Err(SegmentError::EventAfterNumbers(index));
        }
        let expected = self.state.cut.up_to.next().unwrap_or_default();
        if index != expected {
            return Err(SegmentError::EventGap { expected, found: index });
        }
        self.state.cut.up_to = index;
        match kind {
            PrimaryEventKind::Deposit { recipient, asset, amount } => {
                self.change(recipient, asset, |balance| balance.credit(amount));
            }
            PrimaryEventKind::Installed(installed) => {
                let (since, epoch) = (installed.compromised_since, installed.committee.epoch());
                self.state.installations.install(installed)?;
                if since < epoch {
                    self.state.numbers.values_mut().for_each(|number| number.reopen(since));
                }
            }
            PrimaryEventKind::UnlockRequested { account, sequence, is_authorized } => {
                if let Some(number) = self.open(account, sequence).filter(|_| is_authorized) {
                    number.is_requested = true;
                }
            }
            PrimaryEventKind::Upheld { account, sequence, digest } => {
                let epoch = self.state.installations.epoch();
                if let Some(number) = self.open(account, sequence) {
                    number.outcome = Some(Outcome::Upheld { digest, epoch });
                }
            }
            PrimaryEventKind::Voided { account, sequence } => {
                // A void number below the cut before this one has been voided there, and is voided once.
                let number = self.open(account, sequence).ok_or(SegmentError::Voided { account, sequence })?;
                *number = NumberState::VOIDED;
            }
            PrimaryEventKind::Redeemed { account, sequence, digest } => self.spend(account, sequence, digest, true),
            PrimaryEventKind::Queued { account, sequence, digest } => self.spend(account, sequence, digest, false),
            PrimaryEventKind::Released { account, sequence, digest } => self.release(account, sequence, digest),
        }
        Ok(())
    }

    /// What is known of a number that the cut before this one does not include.
    fn open(&mut self, account: AccountId, sequence: SequenceNumber) -> Option<&mut NumberState> {
        let is_open = sequence >= self.state.cut.next(&account);
        is_open.then(|| self.state.numbers.entry((account, sequence)).or_default())
    }

    /// The Primary paid a redemption, or queued it. Another one that is executed under the number is never paid.
    fn spend(&mut self, account: AccountId, sequence: SequenceNumber, digest: Digest, is_paid: bool) {
        let epoch = Some(self.state.installations.epoch());
        if let Some(number) = self.open(account, sequence) {
            number.spent = Some(Spent { digest, is_paid, epoch });
        } else if let Some(executed) = self.unpaid_digest(account, sequence) {
            if executed != digest {
                self.credit_back(account, sequence);
            } else if is_paid {
                self.state.unpaid.remove(&(account, sequence));
            }
        }
    }

    /// A redemption left the Primary's queue unpaid.
    fn release(&mut self, account: AccountId, sequence: SequenceNumber, digest: Digest) {
        if let Some(number) = self.open(account, sequence) {
            let epoch = number.spent.and_then(|spent| spent.epoch);
            number.spent = Some(Spent { digest: RELEASED, is_paid: false, epoch });
        } else if self.unpaid_digest(account, sequence) == Some(digest) {
            self.credit_back(account, sequence);
        }
    }

    fn unpaid_digest(&self, account: AccountId, sequence: SequenceNumber) -> Option<Digest> {
        let redemption = self.state.unpaid.get(&(account, sequence))?;
        Some(self.domain.transfer_digest(&redemption.clone().into()))
    }

    /// The redemption that the cut before this one includes is never paid: its amount goes back, once.
    fn credit_back(&mut self, account: AccountId, sequence: SequenceNumber) {
        if let Some(redemption) = self.state.unpaid.remove(&(account, sequence)) {
            self.change(account, redemption.asset, |balance| balance.credit(redemption.amount));
        }
    }

    /// Takes an account's next number, and gives what the Primary said of it.
    fn next(&mut self, account: AccountId, sequence: SequenceNumber) -> Result<NumberState, SegmentError> {
        if self.account.is_some_and(|before| account < before) {
            return Err(SegmentError::AccountsUnsorted(account));
        }
        self.account = Some(account);
        let expected = self.state.cut.next(&account);
        let gap = SegmentError::NumberGap { account, expected, found: sequence };
        let next = sequence.next().filter(|_| sequence == expected).ok_or(gap)?;
        self.state.cut.next.insert(account, next);
        Ok(self.state.numbers.remove(&(account, sequence)).unwrap_or_default())
    }

    fn step_over(&mut self, account: AccountId, sequence: SequenceNumber) -> Result<(), SegmentError> {
        let number = self.next(account, sequence)?;
        if !number.is_voided() {
            return Err(SegmentError::NotVoided { account, sequence });
        }
        self.state.numbers.insert((account, sequence), NumberState::VOIDED);
        Ok(())
    }

    fn execute(&mut self, order: &VerifiedOrder) -> Result<(), SegmentError> {
        let (transfer, digest) = (order.transfer(), order.digest());
        let (account, sequence, asset) = (transfer.sender(), transfer.sequence(), transfer.asset());
        let number = self.next(account, sequence)?;
        if number.is_voided() {
            return Err(SegmentError::Voided { account, sequence });
        }
        if number.is_requested {
            match number.upheld() {
                None => return Err(SegmentError::Frozen { account, sequence }),
                Some(upheld) if upheld != digest => {
                    return Err(SegmentError::Overruled { account, sequence, upheld });
                }
                Some(_) => {}
            }
        }
        match transfer {
            Transfer::Payment(payment) => self.pay(payment.recipient, asset, payment.amount),
            Transfer::Payout(payout) => {
                payout.outputs.iter().for_each(|output| self.pay(output.recipient, asset, output.amount));
            }
            Transfer::Redemption(redemption) => match number.spent {
                // The Primary never pays it: it stays in the account.
                Some(spent) if spent.digest != digest => return Ok(()),
                Some(spent) if spent.is_paid => {}
                _ => {
                    self.state.unpaid.insert((account, sequence), redemption.clone());
                }
            },
        }
        self.change(account, asset, |balance| balance.debit(transfer.amount()));
        Ok(())
    }

    fn pay(&mut self, recipient: AccountId, asset: Asset, amount: Amount) {
        self.change(recipient, asset, |balance| balance.credit(amount));
    }

    fn change(&mut self, account: AccountId, asset: Asset, change: impl FnOnce(Balance) -> Balance) {
        let balance = self.state.balances.entry((account, asset)).or_default();
        *balance = change(*balance);
    }
}

/// The verdict on a request that is an order.
fn order_verdict(verdict: Result<VerifiedRequest, RequestError>) -> Result<VerifiedOrder, OrderError> {
    match verdict {
        Ok(VerifiedRequest::Order(order)) => Ok(order),
        Err(RequestError::Order(error) | RequestError::Certificate(CertificateError::Order(error))) => Err(error),
        Ok(VerifiedRequest::Certificate(_)) | Err(RequestError::UnknownEpoch(_) | RequestError::Certificate(_)) => {
            unreachable!("an order was asked about")
        }
    }
}
