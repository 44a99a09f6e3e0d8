//! The oracle's invariants of votes, and of committees whose members change: no two orders of a number can have
//! certificates, whatever epochs they are of, and who joins an epoch knows of each order that can have one.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::handover::{ClosingEntry, ReportedEntry};
use fastpay_core::{AccountId, AuthorityKeys, Digest, Epoch, ShardId, TransferOrder};

use super::oracle::{Books, Breach, Oracle, Slot, require};
use super::terms::Term;

impl Oracle {
    /// A vote under this epoch leaves an honest authority.
    pub fn vote_leaves(
        &mut self,
        authority: usize,
        epoch: u64,
        (account, sequence, digest): (AccountId, u64, Digest),
    ) -> Result<(), Breach> {
        let slot = (account, sequence);
        let closed = self.closed_by_all(authority);
        require!(epoch <= closed, "authority {authority} votes in epoch {epoch} and has closed those before {closed}");
        let may_vote = !self.hands_over || self.books[authority].is_restored || self.is_full(authority, epoch);
        require!(may_vote, "authority {authority} votes in epoch {epoch}, which it has to join");
        let books = &mut self.books[authority];
        let first = *books.votes.entry(slot).or_insert(digest);
        require!(first == digest, "authority {authority} voted for two orders of {account} #{sequence}");
        let (locked, closed_before) = books.locks.get(&slot).copied().unzip();
        require!(locked == Some(digest), "a vote of authority {authority} left that is not on its disk");
        let is_late = closed_before.is_some_and(|closed| epoch < closed);
        require!(!is_late, "authority {authority} votes in epoch {epoch}, which it has closed");
        let has_joined = books.joined_by_all(self.layouts[authority].count()) == Some(epoch);
        let is_taken_over = has_joined && books.other_inherited(slot, digest);
        require!(
            !is_taken_over,
            "authority {authority} votes for another order of {account} #{sequence} than it took over"
        );
        self.supports((authority, epoch), slot, digest)
    }

    /// Whether the shard of an account has closed an epoch on an honest authority's disk.
    pub fn has_closed(&self, authority: usize, account: AccountId, epoch: u64) -> bool {
        let shard = self.layouts[authority].shard_of(&account);
        self.books[authority].closed.get(&shard).is_some_and(|closed| *closed > epoch)
    }

    /// The epoch that an authority can vote in: all its shards have closed those before.
    fn closed_by_all(&self, authority: usize) -> u64 {
        let closed = |shard| self.books[authority].closed.get(&shard).copied().unwrap_or_default();
        self.layouts[authority].shards().map(closed).min().unwrap_or_default()
    }

    /// Whether an authority's memory is enough to vote in an epoch: it was there from the beginning, or has joined, and
    /// stayed with the same keys, in committees in which those who know nothing of an order decide nothing.
    fn is_full(&self, authority: usize, epoch: u64) -> bool {
        let joined = self.books[authority].joined_by_all(self.layouts[authority].count());
        let (begun, at) = (joined.unwrap_or_default(), usize::try_from(epoch).expect("few epochs"));
        let Some(terms) = usize::try_from(begun).ok().and_then(|begun| self.terms.get(begun..=at)) else {
            return false;
        };
        let keys = |term: &Term| term.keys_of(authority).map(AuthorityKeys::public);
        let stays = terms.iter().all(|term| keys(term).is_some() && keys(term) == keys(&terms[terms.len() - 1]));
        let decides = |before: usize, after: usize| {
            let unaware = self.terms[before].behind.len() - self.quorum(before);
            unaware + (self.terms[after].behind.len() - 1) / 3 >= self.quorum(after)
        };
        let epochs = at + 1 - terms.len()..=at;
        stays && !epochs.clone().any(|after| epochs.clone().any(|before| before < after && decides(before, after)))
    }

    /// An honest authority stands by an order in an epoch. No two orders of one number may both get a quorum, whatever
    /// Byzantine authorities sign.
    pub(super) fn supports(
        &mut self,
        (authority, epoch): (usize, u64),
        slot: Slot,
        digest: Digest,
    ) -> Result<(), Breach> {
        // Where nobody hands over, an authority stands by its order under all of its keys.
        let epoch = if self.hands_over { epoch } else { 0 };
        self.supporters.entry(slot).or_default().entry(digest).or_default().insert((epoch, authority));
        let possible = self.possible(slot, self.terms.len()).count();
        require!(possible <= 1, "two orders of {} #{} can have certificates", slot.0, slot.1);
        Ok(())
    }

    /// The orders of a number that can have certificates of the first so many epochs.
    fn possible(&self, slot: Slot, epochs: usize) -> impl Iterator<Item = Digest> {
        let orders = self.supporters.get(&slot).into_iter().flatten();
        orders.filter_map(move |(digest, by)| {
            let votes = |epoch: usize| {
                let honest = self.honest_in(epoch).filter(|one| by.contains(&(epoch as u64, *one)));
                honest.count() + self.byzantine_in(epoch)
            };
            (0..epochs).any(|epoch| votes(epoch) >= self.quorum(epoch)).then_some(*digest)
        })
    }

    /// A shard of an honest authority has closed an epoch on disk.
    pub(super) fn closes(&mut self, (authority, shard): (usize, ShardId), epoch: Epoch) -> Result<(), Breach> {
        let is_installed = epoch.0 + 1 < self.terms.len() as u64;
        require!(is_installed, "authority {authority} closes epoch {epoch}, which goes on");
        let closed = self.books[authority].closed.entry(shard).or_default();
        *closed = (epoch.0 + 1).max(*closed);
        let ever = self.closed.entry(authority).or_default();
        *ever = (*ever).max(*closed);
        Ok(())
    }

    /// An honest authority has taken over a lock on disk.
    pub(super) fn inherits(&mut self, authority: usize, order: &TransferOrder, digest: Digest) -> Result<(), Breach> {
        require!(
            digest == self.domain.transfer_digest(&order.transfer),
            "a lock that is taken over has a wrong digest"
        );
        require!(self.signed.contains(&digest), "authority {authority} takes over an order that nobody signed");
        let slot = (order.transfer.sender(), order.transfer.sequence().0);
        self.books[authority].inherited.entry(slot).or_default().insert(digest);
        Ok(())
    }

    /// A shard of an honest authority has joined an epoch on disk: it knows of each order that can have a certificate of an
    /// earlier epoch.
    pub(super) fn joins(&mut self, (authority, shard): (usize, ShardId), epoch: Epoch) -> Result<(), Breach> {
        let is_installed = epoch.0 < self.terms.len() as u64;
        require!(is_installed, "authority {authority} joins epoch {epoch}, which has not begun");
        let (layout, earlier) = (self.layouts[authority], usize::try_from(epoch.0).expect("few epochs"));
        for slot in self.supporters.keys().filter(|slot| layout.shard_of(&slot.0) == shard) {
            let books = &self.books[authority];
            let is_known = |digest: &Digest| {
                books.sent(slot.0) > slot.1
                    || books.locks.get(slot).is_some_and(|(lock, _)| lock == digest)
                    || books.inherited.get(slot).is_some_and(|orders| orders.contains(digest))
            };
            let unknown = self.possible(*slot, earlier).find(|digest| !is_known(digest));
            require!(
                unknown.is_none(),
                "authority {authority} joins epoch {epoch} and knows nothing of an order of {} #{} that can be certified",
                slot.0,
                slot.1
            );
        }
        let books = &mut self.books[authority];
        books.joined.insert(shard, epoch.0);
        // From its first vote in the epoch on it has all that it must have.
        if books.is_restored && books.joined_by_all(layout.count()) == Some(epoch.0) {
            let forgotten = std::mem::take(&mut books.forgotten);
            books.votes.retain(|slot, _| !forgotten.contains(slot));
            books.is_restored = false;
        }
        Ok(())
    }

    /// What an honest authority states of an epoch that has ended says all that it executed, voted for and took over. A
    /// checkpoint may have the beginning.
    pub fn is_told(&self, authority: usize, entries: &[ReportedEntry], is_based: bool) -> Result<(), Breach> {
        let books = &self.books[authority];
        let (mut next, mut locks) = (BTreeMap::new(), BTreeSet::new());
        for entry in entries.iter().map(ReportedEntry::entry) {
            match *entry {
                ClosingEntry::Account { account, next: told, .. } => drop(next.insert(account, told.0)),
                ClosingEntry::Lock { account, sequence, order } => drop(locks.insert(((account, sequence.0), order))),
                ClosingEntry::Seen { .. }
                | ClosingEntry::Spent { .. }
                | ClosingEntry::PrivateLock { .. }
                | ClosingEntry::PrivateSeen { .. } => {}
            }
        }
        for (account, sent) in &books.sent {
            let told = next.get(account).copied();
            let is_told = told == Some(*sent) || told.is_none() && (is_based || *sent == 0);
            require!(is_told, "authority {authority} states {told:?} as the next number of {account}, which is {sent}");
        }
        let votes = books.votes.iter().map(|(slot, digest)| (*slot, *digest));
        for (slot, digest) in votes.chain(books.taken_over()) {
            let is_told = books.sent(slot.0) > slot.1 || locks.contains(&(slot, digest));
            require!(
                is_told,
                "authority {authority} does not state an order of {} #{} that it is bound to",
                slot.0,
                slot.1
            );
        }
        Ok(())
    }
}

impl Books {
    /// The newest epoch that all of its so many shards have joined.
    fn joined_by_all(&self, shards: u32) -> Option<u64> {
        let is_by_all = self.joined.len() as u64 == u64::from(shards);
        self.joined.values().copied().min().filter(|_| is_by_all)
    }

    /// Whether it took over another order of the number.
    fn other_inherited(&self, slot: Slot, digest: Digest) -> bool {
        self.inherited.get(&slot).is_some_and(|orders| orders.iter().any(|order| *order != digest))
    }

    /// The orders that it took over, of numbers that are not taken.
    pub(super) fn taken_over(&self) -> impl Iterator<Item = (Slot, Digest)> {
        let open = self.inherited.iter().filter(|(slot, _)| self.sent(slot.0) <= slot.1);
        open.flat_map(|(slot, orders)| orders.iter().map(|digest| (*slot, *digest)))
    }
}
