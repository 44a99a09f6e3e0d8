//! Judges what honest authorities write down, in books of its own: it uses none of the rules.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::{AccountId, Digest, Effect, JournalPosition, Record, Transfer, UnlockEventKind};
use fastpay_testkit::TestShard;

use super::contract::{Contract, Event, Outcome, Slot};

/// One authority's actions, by its records.
#[derive(Clone, Default)]
pub struct Books {
    pub next: BTreeMap<AccountId, u64>,
    pub balances: BTreeMap<AccountId, i128>,
    pub executed: BTreeMap<Slot, Digest>,
    redeemed: i128,
    deposited: i128,
    /// The redemptions among what is executed.
    redemptions: BTreeMap<Slot, (Digest, i128)>,
    kept_or_credited_back: BTreeSet<Slot>,
    /// Per shard, up to where its journal was read.
    seen: BTreeMap<u32, JournalPosition>,
}

/// See the [module](self).
pub struct Oracle {
    byzantine: usize,
    quorum: usize,
    /// The actions of each honest authority.
    pub books: Vec<Books>,
    /// The authorities that ever executed a number, including executions that a restored copy has forgotten.
    executors: BTreeMap<Slot, BTreeSet<usize>>,
    executed: BTreeMap<Slot, Digest>,
    /// All votes of each honest authority.
    voted: BTreeMap<(usize, Slot), Digest>,
}

impl Oracle {
    pub fn new(honest: usize, byzantine: usize, quorum: usize) -> Self {
        Self {
            byzantine,
            quorum,
            books: vec![Books::default(); honest],
            executors: BTreeMap::new(),
            executed: BTreeMap::new(),
            voted: BTreeMap::new(),
        }
    }

    /// An authority votes for an order: for one of each number, whatever it has forgotten.
    pub fn votes(&mut self, at: usize, slot: Slot, digest: Digest) {
        let first = *self.voted.entry((at, slot)).or_insert(digest);
        assert_eq!(first, digest, "authority {at} votes for two orders of {} #{}", slot.0, slot.1);
    }

    /// Reads what is new in an authority's journals.
    pub fn observe(&mut self, at: usize, shards: &[TestShard], contract: &Contract) {
        for shard in shards {
            let from = self.books[at].seen.get(&shard.rules().id().0).copied().unwrap_or_default();
            for (_, record) in shard.journal().records_from(from) {
                self.record(at, &record, contract);
            }
            self.books[at].seen.insert(shard.rules().id().0, shard.journal().end());
        }
    }

    /// An authority works on an older copy of its journals, from a time when these were its books.
    pub fn restored(&mut self, at: usize, books: Books) {
        self.books[at] = books;
    }

    /// An authority begins from a checkpoint that includes these orders and void numbers, with what it executed itself,
    /// and with the first events of the contract. Its books are drawn up anew.
    pub fn rebased(
        &mut self,
        at: usize,
        (orders, next): (&BTreeMap<Slot, Transfer>, &BTreeMap<AccountId, u64>),
        events: usize,
        (contract, shards): (&Contract, &[TestShard]),
    ) {
        let before = std::mem::take(&mut self.books[at]);
        let books = &mut self.books[at];
        books.next = before.next;
        for (account, next) in next {
            let known = books.next.entry(*account).or_default();
            *known = (*known).max(*next);
        }
        for (_, event) in &contract.events[..events] {
            if let Event::Deposit(deposit) = event {
                *books.balances.entry(deposit.recipient).or_default() += signed(deposit.amount.0);
                books.deposited += signed(deposit.amount.0);
            }
        }
        let spent = contract.spent_by(events);
        for (slot, transfer) in orders {
            let is_included = next.get(&slot.0).is_some_and(|next| slot.1 < *next);
            let digest = contract.digest(transfer);
            if !is_included && before.executed.get(slot) != Some(&digest) {
                continue;
            }
            let amount = signed(transfer.amount().0);
            books.executed.insert(*slot, digest);
            let is_never_paid = spent.get(slot).is_some_and(|spent| *spent != Some(digest));
            if let Transfer::Redemption(_) = transfer {
                books.redemptions.insert(*slot, (digest, amount));
                if is_never_paid {
                    books.kept_or_credited_back.insert(*slot);
                    continue;
                }
                books.redeemed += amount;
            }
            *books.balances.entry(slot.0).or_default() -= amount;
            if let Transfer::Payment(payment) = transfer {
                *books.balances.entry(payment.recipient).or_default() += amount;
            }
        }
        assert!(before.executed.keys().all(|slot| books.executed.contains_key(slot)), "an unknown order was executed");
        books.seen = shards.iter().map(|shard| (shard.rules().id().0, shard.journal().end())).collect();
    }

    /// The votes of an authority.
    pub fn votes_of(&self, at: usize) -> impl Iterator<Item = (Slot, Digest)> {
        self.voted.iter().filter(move |((by, _), _)| *by == at).map(|((_, slot), digest)| (*slot, *digest))
    }

    /// The redemptions that an authority has executed, and whose numbers the first events do not spend.
    pub fn unpaid(&self, at: usize, contract: &Contract, events: usize) -> impl Iterator<Item = Slot> {
        let spent = contract.spent_by(events);
        self.books[at].redemptions.keys().copied().filter(move |slot| !spent.contains_key(slot))
    }

    fn record(&mut self, at: usize, record: &Record, contract: &Contract) {
        let books = &mut self.books[at];
        let mut change = |account, by| *books.balances.entry(account).or_default() += by;
        match record {
            Record::Confirmation { certificate, effect, .. } => {
                let transfer = &certificate.order.transfer;
                let (slot, amount) = ((transfer.sender(), transfer.sequence().0), signed(transfer.amount().0));
                let digest = contract.digest(transfer);
                if *effect == Effect::Kept {
                    books.kept_or_credited_back.insert(slot);
                } else {
                    change(slot.0, -amount);
                }
                match (transfer, effect) {
                    (Transfer::Payment(payment), Effect::Credited { .. }) => change(payment.recipient, amount),
                    (Transfer::Redemption(_), Effect::Redeemed { .. }) => books.redeemed += amount,
                    _ => {}
                }
                if let Transfer::Redemption(_) = transfer {
                    books.redemptions.insert(slot, (digest, amount));
                }
                books.executed.insert(slot, digest);
                self.takes_number(at, slot);
                let first = *self.executed.entry(slot).or_insert(digest);
                assert_eq!(first, digest, "two orders of {} #{} are executed", slot.0, slot.1);
                self.executors.entry(slot).or_default().insert(at);
                let is_void = contract.outcomes.get(&slot) == Some(&Outcome::Voided);
                assert!(!is_void, "authority {at} executes {} #{}, which is void", slot.0, slot.1);
            }
            Record::Credit(applied) => {
                for receipt in applied.credit.receipts() {
                    change(receipt.payment.recipient, signed(receipt.payment.amount.0));
                }
            }
            Record::Synchronization { order, .. } => {
                if let Some(deposit) = &order.deposit {
                    change(deposit.recipient, signed(deposit.amount.0));
                    books.deposited += signed(deposit.amount.0);
                }
            }
            Record::Void { account, .. } => {
                let slot = (*account, books.next.get(account).copied().unwrap_or_default());
                let is_void = contract.outcomes.get(&slot) == Some(&Outcome::Voided);
                assert!(is_void, "authority {at} steps over {} #{}, which is not void", slot.0, slot.1);
                self.takes_number(at, slot);
            }
            Record::Unlock(event) => {
                if let UnlockEventKind::CreditedBack(_, amount) = event.kind
                    && books.kept_or_credited_back.insert((event.account, event.sequence.0))
                {
                    change(event.account, signed(amount.0));
                    books.redeemed -= signed(amount.0);
                }
            }
            Record::Lock { .. } | Record::Seen { .. } | Record::VoidVoted { .. } | Record::Installation(_) => {}
            Record::Closed { .. }
            | Record::Inherited { .. }
            | Record::Joined { .. }
            | Record::PrivateLock(_)
            | Record::PrivateConfirmation(_)
            | Record::PrivateSeen(_)
            | Record::PrivateInherited(_) => {
                unreachable!("the members stay the same")
            }
            Record::Base(_) => unreachable!("books are drawn up anew after a rebase"),
        }
    }

    fn takes_number(&mut self, at: usize, slot: Slot) {
        let next = self.books[at].next.entry(slot.0).or_default();
        assert_eq!(*next, slot.1, "authority {at} takes a number of {} out of turn", slot.0);
        *next += 1;
    }

    /// The contract voids a number: nobody executed it, and a quorum never did.
    pub fn voided(&self, slot: Slot) {
        let executor = self.books.iter().position(|books| books.executed.contains_key(&slot));
        assert_eq!(executor, None, "{} #{} is voided, and an honest authority executed it", slot.0, slot.1);
        let executors = self.executors.get(&slot).map_or(0, BTreeSet::len);
        let is_settled = executors > 0 && executors + self.byzantine >= self.quorum;
        assert!(!is_settled, "{} #{} is voided, and was settled", slot.0, slot.1);
    }

    /// Once all is quiet: all authorities have the same, nobody owes but the debtor, and nothing was made or lost.
    pub fn balanced(&self, contract: &Contract, stolen: &BTreeSet<Slot>, debtor: Option<AccountId>, deposited: i128) {
        for (at, books) in self.books.iter().enumerate() {
            assert_eq!(books.next, self.books[0].next, "authorities {at} and 0 differ in numbers");
            assert_eq!(books.executed, self.books[0].executed, "authorities {at} and 0 executed different orders");
            assert_eq!(books.balances, self.books[0].balances, "authorities {at} and 0 differ in balances");
            let owes = books.balances.iter().filter(|(_, balance)| **balance < 0).map(|(account, _)| *account);
            assert!(owes.eq(debtor), "an account owes: {:?}", books.balances);
            let held: i128 = books.balances.values().sum();
            assert_eq!(held + books.redeemed, deposited, "authority {at} has more or less than was deposited");
            for (slot, digest) in contract.paid.iter().filter(|(slot, _)| !stolen.contains(slot)) {
                let executed = books.executed.get(slot);
                assert_eq!(executed, Some(digest), "{} #{} is paid and was not taken from its owner", slot.0, slot.1);
            }
            let owed = books.redemptions.iter().filter(|(slot, (digest, _))| !contract.is_never_paid(**slot, *digest));
            let owed: i128 = owed.map(|(_, (_, amount))| amount).sum();
            assert_eq!(books.redeemed, owed, "authority {at} took money for redemptions that are never paid");
        }
    }
}

pub fn signed(amount: u128) -> i128 {
    i128::try_from(amount).expect("amounts are small")
}
