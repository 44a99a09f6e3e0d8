//! Cuts and states. A cut names a part of the history that does not depend on the order of execution: of each account
//! the numbers below its next one, and of the Primary's order the events up to an index. Its state follows from it
//! alone [LIFE §4].

use std::collections::BTreeMap;
use std::io::{Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};

use super::installations::Installations;
use super::leaf::{Leaf, root_of};
use super::stored::{MAGIC, StateReader, StateSummary, install, no_committee};
use super::stream::{invalid, write_stream};
use super::tree::LeafPath;
use crate::Digest;
use crate::amount::{Asset, Balance, Epoch, SequenceNumber, TransactionIndex};
use crate::committee::Committee;
use crate::epochs::EpochsError;
use crate::identity::AccountId;
use crate::transfer::Redemption;
use crate::unlock::RELEASED;

/// V and D of LIFE §4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Every event of the Primary up to this index is included.
    pub up_to: TransactionIndex,
    /// Per account, every number below this one is included. Accounts whose next number is 0 are absent.
    pub next: BTreeMap<AccountId, SequenceNumber>,
}

impl Cut {
    /// The next number of an account.
    #[must_use]
    pub fn next(&self, account: &AccountId) -> SequenceNumber {
        self.next.get(account).copied().unwrap_or_default()
    }

    /// The root over the index and the next numbers by account.
    #[must_use]
    pub fn digest(&self) -> Digest {
        root_of(self.leaves(), None).0
    }

    /// The path of one of its leaves. `None` if it has no such leaf.
    #[must_use]
    pub fn path(&self, leaf: &Leaf) -> Option<LeafPath> {
        root_of(self.leaves(), Some(leaf)).1
    }

    fn leaves(&self) -> impl Iterator<Item = Leaf> {
        let next = self.next.iter().map(|(account, next)| Leaf::Next(*account, *next));
        std::iter::once(Leaf::UpTo(self.up_to)).chain(next)
    }
}

/// What the Primary said of a number, up to a cut. It is what [`crate::Unlock`] holds, without what is one authority's
/// own: certificates that it keeps, its votes, and its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct NumberState {
    /// Its owner asked to unlock it, so it is frozen: nothing but an upheld order may be executed.
    pub is_requested: bool,
    /// The Primary's decision.
    pub outcome: Option<Outcome>,
    /// The redemption on which the Primary spent it.
    pub spent: Option<Spent>,
}

/// The Primary's decision about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[borsh(use_discriminant = true)]
#[repr(u8)]
pub enum Outcome {
    /// The order with this digest alone may be executed.
    Upheld {
        /// The order's digest.
        digest: Digest,
        /// The epoch in which it was upheld.
        epoch: Epoch,
    } = 0,
    /// No order of this number is ever executed.
    Voided = 1,
}

/// How the Primary spent a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Spent {
    /// The digest of the redemption; [`RELEASED`] if it left the queue and is never paid.
    pub digest: Digest,
    /// Whether it was paid. Until then it waits in the queue, or is released.
    pub is_paid: bool,
    /// The epoch in which the number was spent. `None` if keys of that epoch were out: then it upholds nothing.
    pub epoch: Option<Epoch>,
}

impl NumberState {
    /// No order of it is executed, so nothing else matters.
    pub(super) const VOIDED: Self = Self { is_requested: false, outcome: Some(Outcome::Voided), spent: None };

    /// Whether the Primary voided the number.
    #[must_use]
    pub fn is_voided(&self) -> bool {
        self.outcome == Some(Outcome::Voided)
    }

    /// The digest of the only order that may be executed while the number is frozen, as [`crate::Unlock::upheld`].
    #[must_use]
    pub fn upheld(&self) -> Option<Digest> {
        match (self.outcome, self.spent) {
            (Some(Outcome::Upheld { digest, .. }), _) => Some(digest),
            (Some(Outcome::Voided), _) | (None, None) => None,
            (None, Some(spent)) => (spent.epoch.is_some() && spent.digest != RELEASED).then_some(spent.digest),
        }
    }

    /// Keys of the epochs from `since` on were out: what was spent or upheld in them upholds nothing.
    pub(super) fn reopen(&mut self, since: Epoch) {
        self.outcome.take_if(|outcome| matches!(outcome, Outcome::Upheld { epoch, .. } if *epoch >= since));
        if let Some(spent) = &mut self.spent {
            spent.epoch.take_if(|epoch| *epoch >= since);
        }
    }
}

/// The state S_k at a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointState {
    pub(super) cut: Cut,
    pub(super) installations: Installations,
    /// Balances that are not zero. Negative ones occur while a segment is applied, and after a recovery.
    pub(super) balances: BTreeMap<(AccountId, Asset), Balance>,
    pub(super) numbers: BTreeMap<(AccountId, SequenceNumber), NumberState>,
    pub(super) unpaid: BTreeMap<(AccountId, SequenceNumber), Redemption>,
}

impl CheckpointState {
    /// S_0 of a deployment: its first committee, and nothing else. Deposits follow in segments, those of a
    /// [`crate::Genesis`] as well.
    ///
    /// # Errors
    /// [`EpochsError::Gap`] if `first` is not of epoch 0.
    pub fn new(first: Committee) -> std::result::Result<Self, EpochsError> {
        Installations::new(first).map(Self::with)
    }

    fn with(installations: Installations) -> Self {
        Self {
            cut: Cut::default(),
            installations,
            balances: BTreeMap::new(),
            numbers: BTreeMap::new(),
            unpaid: BTreeMap::new(),
        }
    }

    /// The cut whose state this is.
    #[must_use]
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// All committees up to the cut.
    #[must_use]
    pub fn installations(&self) -> &Installations {
        &self.installations
    }

    /// All balances that are not zero, by account and asset. One is negative only since a recovery, in which the
    /// Primary had paid more for the account than is known that it held.
    #[must_use]
    pub fn balances(&self) -> &BTreeMap<(AccountId, Asset), Balance> {
        &self.balances
    }

    /// What the Primary said of numbers: of each that is not included in the cut, and of each void one. A void number
    /// is kept for ever, because its certificate is never answered as confirmed (LIFE §1).
    #[must_use]
    pub fn numbers(&self) -> &BTreeMap<(AccountId, SequenceNumber), NumberState> {
        &self.numbers
    }

    /// The executed redemptions that the Primary has neither paid nor spent otherwise: those in its queue are here.
    #[must_use]
    pub fn unpaid(&self) -> &BTreeMap<(AccountId, SequenceNumber), Redemption> {
        &self.unpaid
    }

    /// What a checkpoint says of it.
    #[must_use]
    pub fn summary(&self) -> StateSummary {
        StateSummary::of(self.leaves().map(Ok)).expect("a state has its index and a committee")
    }

    /// The path of a leaf, by which a certified checkpoint proves it. `None` if the state has no such leaf.
    #[must_use]
    pub fn path(&self, leaf: &Leaf) -> Option<LeafPath> {
        root_of(self.leaves(), Some(leaf)).1
    }

    /// In the order of their kinds and keys.
    pub(super) fn leaves(&self) -> impl Iterator<Item = Leaf> {
        let committees = self.installations.iter().map(|installed| Leaf::Committee(installed.clone()));
        let balances =
            self.balances.iter().map(|((account, asset), balance)| Leaf::Balance(*account, *asset, *balance));
        let numbers =
            self.numbers.iter().map(|((account, sequence), number)| Leaf::Number(*account, *sequence, *number));
        let unpaid = self.unpaid.values().map(|redemption| Leaf::Unpaid(redemption.clone()));
        self.cut.leaves().chain(committees).chain(balances).chain(numbers).chain(unpaid)
    }

    /// Writes the state.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, writer: &mut impl Write) -> Result<()> {
        write_stream(writer, MAGIC, self.leaves().map(Ok))
    }

    /// Reads a state to the end of `reader`. Whether a checkpoint names it is for the caller to see to, by its digest.
    ///
    /// # Errors
    /// Those of the reader; `InvalidData` or `UnexpectedEof` if the bytes are not the one encoding of a state.
    pub fn read(reader: &mut impl Read) -> Result<Self> {
        Self::of(StateReader::new(reader)?)
    }

    /// The state with these leaves, which are in order.
    pub(super) fn of(leaves: impl Iterator<Item = Result<Leaf>>) -> Result<Self> {
        let (mut cut, mut installations) = (Cut::default(), None);
        // Maps are built from whole lists several times as fast as entry by entry.
        let (mut next, mut balances, mut numbers, mut unpaid) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for leaf in leaves {
            match leaf? {
                Leaf::UpTo(index) => cut.up_to = index,
                Leaf::Next(account, sequence) => next.push((account, sequence)),
                Leaf::Committee(next) => install(&mut installations, next)?,
                Leaf::Balance(account, asset, balance) => balances.push(((account, asset), balance)),
                Leaf::Number(account, sequence, number) => numbers.push(((account, sequence), number)),
                Leaf::Unpaid(redemption) => unpaid.push(((redemption.sender, redemption.sequence), redemption)),
                Leaf::Event(_)
                | Leaf::Executed(_)
                | Leaf::Void(..)
                | Leaf::Paid(_)
                | Leaf::Recovery
                | Leaf::ExecutedPrivate(_) => {
                    return Err(invalid("a leaf that no state has"));
                }
            }
        }
        let installations = installations.ok_or_else(no_committee)?;
        cut.next = next.into_iter().collect();
        let (balances, numbers) = (balances.into_iter().collect(), numbers.into_iter().collect());
        Ok(Self { cut, installations, balances, numbers, unpaid: unpaid.into_iter().collect() })
    }
}
