//! States as they are stored. A state may have more rows than fit into memory, so it is read row by row, and what a
//! segment changes is merged with it as it is read.
//!
//! ```text
//!  stored S_(k−1) ──► rows of the accounts that the segment touches ──► [`Application`] ─┐
//!        └────────────────────── all other rows ───────────────────────────────────────┴─► merged ─► stored S_k, roots
//! ```
//! [`Application`]: super::Application

use std::collections::{BTreeSet, btree_set};
use std::io::{Read, Result, Write};
use std::iter::Peekable;

use super::installations::{Installations, InstalledCommittee};
use super::leaf::Leaf;
use super::state::{CheckpointState, NumberState};
use super::stream::{encode_into, invalid, read_item, read_magic, write_stream};
use super::tree::RootBuilder;
use crate::Digest;
use crate::amount::{Asset, Balance, Epoch, SequenceNumber, TransactionIndex};
use crate::identity::AccountId;
use crate::merkle::merkle_leaf;

pub(super) const MAGIC: &[u8; 8] = b"FPSTAT\0\x01";

/// What a checkpoint says of a state, and its committees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSummary {
    /// Every event of the Primary up to this index is included.
    pub up_to: TransactionIndex,
    /// The accounts of which numbers are included.
    pub accounts: u64,
    /// All committees up to the cut.
    pub installations: Installations,
    /// The root of the cut.
    pub cut: Digest,
    /// The root of the state.
    pub state: Digest,
}

impl StateSummary {
    /// Reads a stored state to its end.
    ///
    /// # Errors
    /// Those of [`StateReader`].
    pub fn read(reader: &mut impl Read) -> Result<Self> {
        Self::of(StateReader::new(reader)?)
    }

    /// Reads a stored state of unknown origin to its end, and holds no committee in memory after that of the epoch
    /// `newest`.
    ///
    /// # Errors
    /// Those of [`StateReader`]; `InvalidData` at a committee of a later epoch.
    pub fn read_up_to(newest: Epoch, reader: &mut impl Read) -> Result<Self> {
        let leaves = StateReader::new(reader)?.map(|leaf| match leaf {
            Ok(Leaf::Committee(next)) if next.committee.epoch() > newest => {
                Err(invalid("a committee that is not known"))
            }
            leaf => leaf,
        });
        Self::of(leaves)
    }

    /// Of all leaves of a state, in their order.
    pub(super) fn of(leaves: impl Iterator<Item = Result<Leaf>>) -> Result<Self> {
        let (mut cut, mut state) = (RootBuilder::default(), RootBuilder::default());
        let (mut up_to, mut accounts, mut installations) = (None, 0_u64, None);
        let mut bytes = Vec::new();
        for leaf in leaves {
            let leaf = leaf?;
            encode_into(&leaf, &mut bytes);
            let hash = merkle_leaf(&bytes);
            state.push_hashed(hash, false);
            match leaf {
                Leaf::UpTo(index) => {
                    up_to = Some(index);
                    cut.push_hashed(hash, false);
                }
                Leaf::Next(..) => {
                    accounts = accounts.saturating_add(1);
                    cut.push_hashed(hash, false);
                }
                Leaf::Committee(next) => install(&mut installations, next)?,
                _ => {}
            }
        }
        let roots = cut.finish().zip(state.finish());
        let (Some(up_to), Some(installations), Some(((cut, _), (state, _)))) = (up_to, installations, roots) else {
            return Err(no_committee());
        };
        Ok(Self { up_to, accounts, installations, cut, state })
    }
}

/// Adds the committee of a state's next leaf.
pub(super) fn install(installations: &mut Option<Installations>, next: InstalledCommittee) -> Result<()> {
    match installations {
        None => {
            let first = Installations::from_first(next).ok_or_else(|| invalid("no first committee"))?;
            *installations = Some(first);
            Ok(())
        }
        Some(installations) => installations.install(next).map_err(|_| invalid("a committee is missing")),
    }
}

pub(super) fn no_committee() -> std::io::Error {
    invalid("the state has no committee")
}

/// The leaves of a stored state, in their order. After an error it ends.
///
/// # Errors
/// Those of the reader; `InvalidData` or `UnexpectedEof` if the bytes are not the one encoding of a state. Whether a
/// checkpoint names it is for the caller to see to, by its digest.
#[derive(Debug)]
pub struct StateReader<R> {
    reader: R,
    item: Vec<u8>,
    /// The last leaf, encoded again.
    encoded: Vec<u8>,
    last: Option<Key>,
    has_ended: bool,
}

impl<R: Read> StateReader<R> {
    /// Reads the beginning of a state.
    ///
    /// # Errors
    /// As each of its leaves.
    pub fn new(mut reader: R) -> Result<Self> {
        read_magic(&mut reader, MAGIC)?;
        Ok(Self { reader, item: Vec::new(), encoded: Vec::new(), last: None, has_ended: false })
    }

    fn leaf(&mut self) -> Result<Option<Leaf>> {
        let Some(leaf) = read_item(&mut self.reader, &mut self.item)? else {
            return match self.last {
                Some(Key::UpTo | Key::Next(_)) | None => Err(no_committee()),
                Some(_) => Ok(None),
            };
        };
        let is_telling = match &leaf {
            Leaf::Next(_, next) => *next != SequenceNumber(0),
            Leaf::Balance(_, _, balance) => *balance != Balance::ZERO,
            Leaf::Number(_, _, number) => *number != NumberState::default(),
            _ => true,
        };
        encode_into(&leaf, &mut self.encoded);
        let key = Key::of(&leaf).filter(|_| is_telling && self.encoded == self.item);
        let key = key.ok_or_else(|| invalid("a leaf that no state has"))?;
        let follows = match (&self.last, &key) {
            (None, first) => *first == Key::UpTo,
            (Some(Key::UpTo | Key::Next(_)), Key::Balance(..) | Key::Number(..) | Key::Unpaid(..)) => false,
            (Some(last), next) => last < next,
        };
        if !follows {
            return Err(invalid("the leaves of the state are not in order"));
        }
        self.last = Some(key);
        Ok(Some(leaf))
    }
}

impl<R: Read> Iterator for StateReader<R> {
    type Item = Result<Leaf>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let leaf = self.leaf().transpose();
        self.has_ended = !matches!(leaf, Some(Ok(_)));
        leaf
    }
}

/// The place of a leaf in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    UpTo,
    Next(AccountId),
    Committee(Epoch),
    Balance(AccountId, Asset),
    Number(AccountId, SequenceNumber),
    Unpaid(AccountId, SequenceNumber),
}

impl Key {
    fn of(leaf: &Leaf) -> Option<Self> {
        Some(match leaf {
            Leaf::UpTo(_) => Self::UpTo,
            Leaf::Next(account, _) => Self::Next(*account),
            Leaf::Committee(installed) => Self::Committee(installed.committee.epoch()),
            Leaf::Balance(account, asset, _) => Self::Balance(*account, *asset),
            Leaf::Number(account, sequence, _) => Self::Number(*account, *sequence),
            Leaf::Unpaid(redemption) => Self::Unpaid(redemption.sender, redemption.sequence),
            Leaf::Event(_)
            | Leaf::Executed(_)
            | Leaf::Void(..)
            | Leaf::Paid(_)
            | Leaf::Recovery
            | Leaf::ExecutedPrivate(_) => return None,
        })
    }

    /// The account whose row it is.
    fn account(&self) -> Option<&AccountId> {
        match self {
            Self::UpTo | Self::Committee(_) => None,
            Self::Next(account) | Self::Balance(account, _) | Self::Number(account, _) | Self::Unpaid(account, _) => {
                Some(account)
            }
        }
    }
}

/// An account of a stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRow {
    /// The account.
    pub account: AccountId,
    /// Every number below is included.
    pub next: SequenceNumber,
    /// Its balances that are not zero.
    pub balances: Vec<(Asset, Balance)>,
}

impl AccountRow {
    /// The accounts of a stored state that took a number or hold something, in their order. Next numbers and balances
    /// are in two places of it, so two readers of the same state are needed.
    ///
    /// # Errors
    /// Those of [`StateReader`].
    pub fn read_all<R: Read>(of_numbers: R, of_balances: R) -> Result<impl Iterator<Item = Result<Self>>> {
        let taken = StateReader::new(of_numbers)?.skip(1).map_while(|leaf| match leaf {
            Ok(Leaf::Next(account, next)) => Some(Ok((account, next))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        let held = StateReader::new(of_balances)?.filter_map(|leaf| match leaf {
            Ok(Leaf::Balance(account, asset, balance)) => Some(Ok((account, (asset, balance)))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        let (mut taken, mut held) = (taken.peekable(), held.peekable());
        Ok(std::iter::from_fn(move || {
            let account = match (taken.peek(), held.peek()) {
                (Some(Err(_)), _) => return taken.next().and_then(Result::err).map(Err),
                (_, Some(Err(_))) => return held.next().and_then(Result::err).map(Err),
                (Some(Ok((account, _))), Some(Ok((other, _)))) => *account.min(other),
                (Some(Ok((account, _))), None) | (None, Some(Ok((account, _)))) => *account,
                (None, None) => return None,
            };
            let next = taken.next_if(|row| matches!(row, Ok((of, _)) if *of == account));
            let next = next.and_then(Result::ok).map(|(_, next)| next).unwrap_or_default();
            let row = || held.next_if(|row| matches!(row, Ok((of, _)) if *of == account))?.ok();
            let balances = std::iter::from_fn(row).map(|(_, balance)| balance).collect();
            Some(Ok(Self { account, next, balances }))
        }))
    }
}

/// Tells which accounts are among others. Rows of one kind come by account, so they are found in one pass over the set.
struct Among<'a> {
    accounts: &'a BTreeSet<AccountId>,
    rest: Peekable<btree_set::Iter<'a, AccountId>>,
    last: Option<AccountId>,
}

impl<'a> Among<'a> {
    fn new(accounts: &'a BTreeSet<AccountId>) -> Self {
        Self { accounts, rest: accounts.iter().peekable(), last: None }
    }

    fn has(&mut self, account: &AccountId) -> bool {
        if self.last.is_some_and(|last| *account < last) {
            // Another kind of rows begins.
            self.rest = self.accounts.iter().peekable();
        }
        self.last = Some(*account);
        while self.rest.next_if(|other| *other < account).is_some() {}
        self.rest.peek() == Some(&account)
    }
}

/// Whether the Primary spent a number on a redemption that the state does not debit yet.
fn is_undebited(leaf: &Leaf) -> bool {
    matches!(leaf, Leaf::Number(_, _, number) if number.is_owed())
}

/// Of a stored state the cut's index, the committees, the rows of some accounts, and of all others the numbers whose
/// redemption is paid and not debited: a recovery must debit each. A segment that touches no other account makes of it
/// what it makes of the whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePart {
    accounts: BTreeSet<AccountId>,
    rows: CheckpointState,
}

impl StatePart {
    /// Reads a state to its end, and keeps the rows of `accounts`, and what a recovery must debit.
    ///
    /// # Errors
    /// Those of [`StateReader`].
    pub fn read(reader: &mut impl Read, accounts: BTreeSet<AccountId>) -> Result<Self> {
        let mut among = Among::new(&accounts);
        let mut is_wanted = |leaf: &Leaf| Key::of(leaf).is_some_and(|key| key.account().is_none_or(|of| among.has(of)));
        let mut is_kept = |leaf: &Leaf| is_wanted(leaf) || is_undebited(leaf);
        let leaves = StateReader::new(reader)?.filter(|leaf| leaf.as_ref().map_or(true, &mut is_kept));
        let rows = CheckpointState::of(leaves)?;
        Ok(Self { accounts, rows })
    }

    /// The accounts all of whose rows it has, whether or not there are any.
    #[must_use]
    pub fn accounts(&self) -> &BTreeSet<AccountId> {
        &self.accounts
    }

    /// The rows, as if there were no others.
    #[must_use]
    pub fn rows(&self) -> &CheckpointState {
        &self.rows
    }

    /// Changes the rows, and returns what `change` gives beside them. `change` follows entries that touch no other
    /// account ([`super::SegmentEntry::accounts`]).
    ///
    /// # Errors
    /// Those of `change`.
    pub fn change<T, E>(
        self,
        change: impl FnOnce(CheckpointState) -> std::result::Result<(CheckpointState, T), E>,
    ) -> std::result::Result<(Self, T), E> {
        let (rows, given) = change(self.rows)?;
        Ok((Self { accounts: self.accounts, rows }, given))
    }

    /// The summary of the whole state with the changed rows. `base` is the state that the part was read from.
    ///
    /// # Errors
    /// Those of [`StateReader`].
    pub fn summary(&self, base: &mut impl Read) -> Result<StateSummary> {
        StateSummary::of(self.merged(base)?)
    }

    /// Writes the whole state with the changed rows. `base` is the state that the part was read from.
    ///
    /// # Errors
    /// Those of [`StateReader`], and of the writer.
    pub fn write(&self, base: &mut impl Read, writer: &mut impl Write) -> Result<()> {
        write_stream(writer, MAGIC, self.merged(base)?)
    }

    /// All leaves of the whole state with the changed rows.
    pub fn merged<'a, R: Read + 'a>(&'a self, base: R) -> Result<impl Iterator<Item = Result<Leaf>> + 'a> {
        let (mut reopened, mut among) = (None, Among::new(&self.accounts));
        let others = StateReader::new(base)?.filter_map(move |leaf| {
            let leaf = match leaf {
                Ok(leaf) => leaf,
                error => return Some(error),
            };
            if let Leaf::Committee(installed) = &leaf {
                reopened = self.reopened_after(installed.committee.epoch());
            }
            let account = Key::of(&leaf).and_then(|key| key.account().copied())?;
            if among.has(&account) || is_undebited(&leaf) {
                return None;
            }
            match (leaf, reopened) {
                (Leaf::Number(account, sequence, mut number), Some(since)) => {
                    number.reopen(since);
                    (number != NumberState::default()).then_some(Ok(Leaf::Number(account, sequence, number)))
                }
                (leaf, _) => Some(Ok(leaf)),
            }
        });
        let (mut others, mut own) = (others.peekable(), self.rows.leaves().peekable());
        Ok(std::iter::from_fn(move || match (others.peek(), own.peek()) {
            (Some(Ok(other)), Some(leaf)) if Key::of(leaf) < Key::of(other) => own.next().map(Ok),
            (None, _) => own.next().map(Ok),
            _ => others.next(),
        }))
    }

    /// The first epoch whose keys an installation after an epoch declared out: numbers that were decided in it and later
    /// are open again.
    fn reopened_after(&self, epoch: Epoch) -> Option<Epoch> {
        let later = self.rows.installations().iter().filter(|installed| installed.committee.epoch() > epoch);
        later.filter(|installed| installed.is_recovery()).map(|installed| installed.compromised_since).min()
    }
}
