//! Watches all honest authorities through what they have on disk, and what leaves them. It keeps books of its own
//! from their records, in its own arithmetic, and never asks the code that it watches whether all is well.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;

use fastpay_core::{
    AccountId, AppliedCredit, Asset, Certificate, CrossShardCredit, Deposit, Destination, Digest, Domain, Effect,
    PrimaryAddress, Receipt, Record, Redemption, ShardId, ShardLayout, TransactionIndex, Transfer, TransferOrder,
};
use fastpay_ethereum::IFastPay;
use fastpay_node::authority::shard::Command;

use super::plan::Plan;
use super::terms::Term;

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach(pub String);

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Ends a check where something does not hold.
macro_rules! require {
    ($condition:expr, $($what:tt)*) => {
        if !$condition {
            return Err($crate::sim::oracle::Breach(format!($($what)*)));
        }
    };
}
pub(super) use require;

/// An account's order by its number.
pub(super) type Slot = (AccountId, u64);

/// See the [module](self).
pub struct Oracle {
    pub(super) domain: Domain,
    /// The number of shards of each honest authority.
    pub(super) layouts: Vec<ShardLayout>,
    /// The committees that are installed.
    pub(super) terms: Vec<Term>,
    /// Whether their members hand over.
    pub(super) hands_over: bool,
    pub(super) deposits: Vec<Deposit>,
    /// Orders that owners signed with their own keys.
    pub(super) signed: BTreeSet<Digest>,
    /// Orders that the wallets of correct clients sent.
    sent_by_wallets: BTreeMap<Slot, Digest>,
    /// Which honest authorities stand by which order, and in which epoch.
    pub(super) supporters: BTreeMap<Slot, BTreeMap<Digest, BTreeSet<(u64, usize)>>>,
    /// The redemptions among it.
    redemptions: BTreeMap<Slot, Vec<Redemption>>,
    /// Redemptions that the contract has finally paid.
    paid: BTreeMap<Slot, (Asset, i128)>,
    /// Certificates that were confirmed anywhere.
    pub(super) certified: BTreeMap<Slot, Certificate>,
    pub(super) books: Vec<Books>,
    /// The epoch in which an honest authority first executed a number, or an earlier one.
    executed_in: BTreeMap<(usize, Slot), u64>,
    /// By honest authority, the number of epochs that a shard has ever closed on disk.
    pub(super) closed: BTreeMap<usize, u64>,
    /// The numbers that owners asked to unlock, and those that are void in a final block.
    pub(super) asked: BTreeSet<Slot>,
    pub(super) void: BTreeSet<Slot>,
}

/// A redemption that the Primary has paid.
pub struct Paid {
    slot: Slot,
    recipient: PrimaryAddress,
    asset: Asset,
    amount: u128,
    fee: u128,
}

impl From<&IFastPay::Redeemed> for Paid {
    fn from(event: &IFastPay::Redeemed) -> Self {
        let (slot, asset) = ((AccountId(event.sender.0), event.sequence), Asset(event.asset));
        Self { slot, recipient: event.recipient, asset, amount: event.amount, fee: event.fee }
    }
}

impl From<&Redemption> for Paid {
    fn from(paid: &Redemption) -> Self {
        let (slot, recipient) = ((paid.sender, paid.sequence.0), paid.recipient);
        Self { slot, recipient, asset: paid.asset, amount: paid.amount.0, fee: paid.fee.0 }
    }
}

/// Those of one credit, in order.
pub(super) type Payments = Vec<Receipt>;

/// The actions of one honest authority, by its records.
#[derive(Clone, Default)]
pub struct Books {
    pub(super) balances: BTreeMap<(AccountId, Asset), i128>,
    pub(super) sent: BTreeMap<AccountId, u64>,
    /// With the number of epochs that the shard had closed before.
    pub(super) locks: BTreeMap<Slot, (Digest, u64)>,
    /// Votes that left.
    pub(super) votes: BTreeMap<Slot, Digest>,
    /// Between two shards: what was sent, and how much of it has arrived.
    pub(super) credits: BTreeMap<(ShardId, ShardId), (Vec<Payments>, usize)>,
    pub(super) deposits: BTreeSet<u64>,
    pub(super) redeemed: BTreeMap<Asset, i128>,
    /// How many orders of each account were ever confirmed, also where that was forgotten since.
    pub(super) sent_ever: BTreeMap<AccountId, u64>,
    /// Votes that left and are not in the older copy of its folder that the authority came back with.
    pub(super) forgotten: BTreeSet<Slot>,
    /// Orders that Closings have told it of, of numbers that were not taken.
    pub(super) inherited: BTreeMap<Slot, BTreeSet<Digest>>,
    /// By shard, the number of epochs that it has closed.
    pub(super) closed: BTreeMap<ShardId, u64>,
    /// By shard, the newest epoch that it has joined.
    pub(super) joined: BTreeMap<ShardId, u64>,
    /// Whether it is an older copy that has not joined an epoch since.
    pub(super) is_restored: bool,
    pub(super) executed: BTreeSet<Slot>,
    /// The orders among it, and nothing for void numbers.
    pub(super) orders: BTreeMap<Slot, Option<TransferOrder>>,
    /// By shard, the newest event that it has applied.
    pub(super) applied: BTreeMap<ShardId, TransactionIndex>,
    /// Numbers whose certificate it keeps.
    pub(super) seen: BTreeSet<Slot>,
    pub(super) void_voted: BTreeSet<Slot>,
}

impl Oracle {
    /// At the beginning of a run.
    #[must_use]
    pub fn new(plan: &Plan, first: &Term) -> Self {
        let layout = |shards: &u32| ShardLayout::new(NonZeroU32::new(*shards).expect("an authority has shards"));
        Self {
            domain: first.committee.domain,
            layouts: plan.shards.iter().take(plan.honest()).map(layout).collect(),
            terms: vec![first.clone()],
            hands_over: plan.hand_over.is_some(),
            deposits: Vec::new(),
            signed: BTreeSet::new(),
            sent_by_wallets: BTreeMap::new(),
            redemptions: BTreeMap::new(),
            paid: BTreeMap::new(),
            supporters: BTreeMap::new(),
            certified: BTreeMap::new(),
            books: vec![Books::default(); plan.honest()],
            executed_in: BTreeMap::new(),
            closed: BTreeMap::new(),
            asked: BTreeSet::new(),
            void: BTreeSet::new(),
        }
    }

    /// The contract has another deposit.
    pub fn deposited(&mut self, deposit: Deposit) {
        self.deposits.push(deposit);
    }

    /// The contract has another committee.
    pub fn rotated(&mut self, next: &Term) {
        self.terms.push(next.clone());
    }

    /// A correct client's wallet sends an order: one for each number.
    pub fn wallet_sends(&mut self, order: &TransferOrder) -> Result<(), Breach> {
        let (slot, digest) =
            ((order.transfer.sender(), order.transfer.sequence().0), self.domain.transfer_digest(&order.transfer));
        let first = *self.sent_by_wallets.entry(slot).or_insert(digest);
        require!(first == digest, "the wallet of {} sends two orders for #{}", slot.0, slot.1);
        self.signs(order);
        Ok(())
    }

    /// A correct client has had so many transfers settled, and sent nothing else.
    pub fn has_sent(&self, account: AccountId, count: u64) -> Result<(), Breach> {
        let sent = self.sent_by_wallets.range((account, 0)..=(account, u64::MAX)).count() as u64;
        require!(sent == count, "the wallet of {account} sent {sent} orders for {count} transfers");
        Ok(())
    }

    /// An honest authority executes a number, in this epoch or a later one.
    pub fn executed_in(&mut self, authority: usize, slot: Slot, epoch: u64) {
        self.executed_in.entry((authority, slot)).or_insert(epoch);
    }

    /// A correct client says that an order is settled, or its wallet notes so, when honest authorities are in these epochs:
    /// a quorum has confirmed it in one epoch by then. Byzantine authorities may have said so to the client.
    pub fn is_settled(&self, transfer: &Transfer, epochs: &[u64]) -> Result<(), Breach> {
        let (sender, sequence) = (transfer.sender(), transfer.sequence().0);
        let certified = self.certified.get(&(sender, sequence)).map(|certificate| &certificate.order.transfer);
        require!(certified.is_none_or(|other| other == transfer), "{sender} #{sequence} is settled as another order");
        let confirms_in = |authority: usize, epoch: u64| {
            let since = self.executed_in.get(&(authority, (sender, sequence)));
            let has_it = self.books[authority].sent_ever(sender) > sequence;
            let taken_up = self.closed.get(&authority).copied().unwrap_or_default().max(epochs[authority]);
            has_it && since.is_none_or(|since| *since <= epoch) && epoch <= taken_up
        };
        let confirmed = |epoch| {
            let members = self.honest_in(epoch).filter(|authority| confirms_in(*authority, epoch as u64));
            members.count() + self.byzantine_in(epoch)
        };
        let is_settled = (0..self.terms.len()).any(|epoch| confirmed(epoch) >= self.quorum(epoch));
        require!(is_settled, "a client takes #{sequence} of {sender} for settled, and no epoch's quorum confirmed it");
        Ok(())
    }

    /// An owner signs an order with the account's own key.
    pub fn signs(&mut self, order: &TransferOrder) {
        if let Transfer::Redemption(redemption) = &order.transfer {
            let slot = (redemption.sender, redemption.sequence.0);
            self.redemptions.entry(slot).or_default().push(redemption.clone());
        }
        self.signed.insert(self.domain.transfer_digest(&order.transfer));
    }

    /// The Primary has paid a redemption, for good: one that its owner signed, and none twice.
    pub fn redeemed(&mut self, paid: &Paid) -> Result<(), Breach> {
        let slot = paid.slot;
        let what = (paid.asset, signed(paid.amount));
        require!(self.paid.insert(slot, what).is_none(), "{} #{} is paid twice", slot.0, slot.1);
        let is_paid = |order: &Redemption| {
            (order.recipient, order.asset, order.amount.0, order.fee.0)
                == (paid.recipient, paid.asset, paid.amount, paid.fee)
        };
        let signed = self.redemptions.get(&slot).is_some_and(|orders| orders.iter().any(is_paid));
        require!(signed, "{} #{} is paid as its owner never signed", slot.0, slot.1);
        let certified = self.certified.get(&slot).map(|certificate| &certificate.order.transfer);
        let same = certified.is_none_or(|transfer| matches!(transfer, Transfer::Redemption(order) if is_paid(order)));
        require!(same, "{} #{} is paid as another order than was certified", slot.0, slot.1);
        Ok(())
    }

    /// Whether the contract has paid an order, for good.
    #[must_use]
    pub fn is_paid(&self, sender: AccountId, sequence: u64) -> bool {
        self.paid.contains_key(&(sender, sequence))
    }

    /// The amount of an asset that the contract has paid and an honest authority does not know of: a misbehaving party
    /// may withhold a certificate from it, and the account stays locked on the order.
    #[must_use]
    pub fn paid_ahead(&self, authority: usize, asset: Asset) -> i128 {
        let books = &self.books[authority];
        let ahead = self.paid.iter().filter(|((sender, sequence), _)| *sequence >= books.sent(*sender));
        ahead.filter(|(_, (of, _))| *of == asset).map(|(_, (_, amount))| amount).sum()
    }

    /// The sum of all accounts' balances of an asset at an honest authority.
    #[must_use]
    pub fn held(&self, authority: usize, asset: Asset) -> i128 {
        let balances = self.books[authority].balances.iter();
        balances.filter(|((_, of), _)| *of == asset).map(|(_, balance)| balance).sum()
    }

    /// An honest authority is back with an older copy of its folder, of when its books were these. What it has said
    /// since stays said.
    pub fn restored(&mut self, authority: usize, copy: Books) {
        let now = std::mem::replace(&mut self.books[authority], copy);
        let books = &mut self.books[authority];
        let is_forgotten = |(slot, digest): &(&Slot, &Digest)| {
            books.locks.get(slot).map(|(lock, _)| lock) != Some(digest)
                && books.sent.get(&slot.0).copied().unwrap_or_default() <= slot.1
        };
        books.forgotten = now.votes.iter().filter(is_forgotten).map(|(slot, _)| *slot).collect();
        (books.votes, books.sent_ever, books.is_restored) = (now.votes, now.sent_ever, true);
    }

    /// How many votes decide in an epoch, worked out here.
    pub(super) fn quorum(&self, epoch: usize) -> usize {
        let size = self.terms[epoch].behind.len();
        (size + (size - 1) / 3) / 2 + 1
    }

    /// The honest members of an epoch. One whose keys are misused later is none.
    pub(super) fn honest_in(&self, epoch: usize) -> impl Iterator<Item = usize> {
        let term = &self.terms[epoch];
        term.behind.iter().copied().filter(|authority| !term.faulty.contains_key(authority))
    }

    /// The number of its other members.
    pub(super) fn byzantine_in(&self, epoch: usize) -> usize {
        self.terms[epoch].behind.len() - self.honest_in(epoch).count()
    }

    /// A message goes from one shard of an honest authority to another: it speaks of what is on disk.
    pub fn passes(&self, authority: usize, from: ShardId, to: ShardId, message: &Command) -> Result<(), Breach> {
        let credits = |from, to| self.books[authority].credits.get(&(from, to));
        match message {
            Command::Credit(passing) => {
                let sent = credits(from, to).map_or(0, |(sent, _)| sent.len() as u64);
                let newest = passing.last().map_or(0, |credit| credit.number);
                require!(newest <= sent, "credit {newest} of authority {authority} left that is not on its disk");
            }
            Command::Acknowledge { number, .. } => {
                let arrived = credits(to, from).map_or(0, |(_, arrived)| *arrived as u64);
                require!(*number <= arrived, "authority {authority} acknowledged credit {number}, not on its disk");
            }
            _ => {}
        }
        Ok(())
    }

    /// An honest authority has a record on disk that was not there before.
    pub fn record(&mut self, authority: usize, shard: ShardId, record: &Record) -> Result<(), Breach> {
        self.books[authority].note(shard, record);
        match record {
            Record::Lock { order, digest } => {
                let slot = (order.transfer.sender(), order.transfer.sequence().0);
                require!(*digest == self.domain.transfer_digest(&order.transfer), "a lock on a wrong digest");
                let books = &mut self.books[authority];
                let closed = books.closed.get(&shard).copied().unwrap_or_default();
                let (first, _) = *books.locks.entry(slot).or_insert((*digest, closed));
                require!(first == *digest, "authority {authority} locked {} #{} on two orders", slot.0, slot.1);
                let sent = books.sent.get(&slot.0).copied().unwrap_or_default();
                require!(
                    sent == slot.1,
                    "authority {authority} locked {} on #{} when #{sent} was next",
                    slot.0,
                    slot.1
                );
                self.supports((authority, closed), slot, *digest)
            }
            Record::Confirmation { certificate, effect, .. } => {
                self.certificate(certificate)?;
                let slot = (certificate.order.transfer.sender(), certificate.order.transfer.sequence().0);
                require!(!self.void.contains(&slot), "authority {authority} executes #{}, which is void", slot.1);
                self.books[authority].executed.insert(slot);
                self.books[authority].confirm(shard, certificate, effect)
            }
            Record::Credit(AppliedCredit { credit, .. }) => self.books[authority].credit(shard, credit),
            Record::Synchronization { order, .. } => match &order.deposit {
                None => Ok(()),
                Some(deposit) => {
                    let index = deposit.index.0;
                    // The contract numbers its deposits among all of its events.
                    let real = self.deposits.iter().find(|real| real.index == deposit.index);
                    require!(real == Some(deposit), "authority {authority} credits deposit {index}, which is another");
                    let books = &mut self.books[authority];
                    require!(books.deposits.insert(index), "authority {authority} credits deposit {index} twice");
                    books.change(deposit.recipient, deposit.asset, signed(deposit.amount.0));
                    Ok(())
                }
            },
            Record::Unlock(_) | Record::Installation(_) => Ok(()),
            Record::Closed { epoch } => self.closes((authority, shard), *epoch),
            Record::Inherited { order, digest } => self.inherits(authority, order, *digest),
            Record::Joined { epoch } => self.joins((authority, shard), *epoch),
            Record::Base(_) => Err(Breach("a running node writes a base".into())),
            Record::PrivateLock(_)
            | Record::PrivateConfirmation(_)
            | Record::PrivateSeen(_)
            | Record::PrivateInherited(_) => Err(Breach("no node knows private transfers".into())),
            Record::Seen { certificate } => {
                let transfer = &certificate.order.transfer;
                self.books[authority].seen.insert((transfer.sender(), transfer.sequence().0));
                Ok(())
            }
            Record::VoidVoted { account, sequence, .. } => {
                let slot = (*account, sequence.0);
                require!(self.asked.contains(&slot), "authority {authority} votes to void what nobody asked for");
                self.books[authority].void_voted.insert(slot);
                Ok(())
            }
            Record::Void { account, .. } => {
                let books = &mut self.books[authority];
                let sent = books.sent.entry(*account).or_default();
                let slot = (*account, *sent);
                *sent += 1;
                require!(self.void.contains(&slot), "authority {authority} voids {} #{}", slot.0, slot.1);
                Ok(())
            }
        }
    }

    /// A certificate was confirmed somewhere.
    fn certificate(&mut self, certificate: &Certificate) -> Result<(), Breach> {
        let transfer = &certificate.order.transfer;
        let slot = (transfer.sender(), transfer.sequence().0);
        let digest = self.domain.transfer_digest(transfer);
        if let Some(known) = self.certified.get(&slot) {
            let same = self.domain.transfer_digest(&known.order.transfer) == digest;
            require!(same, "two certificates for {} #{}", slot.0, slot.1);
            return Ok(());
        }
        require!(self.signed.contains(&digest), "{} #{} was never signed by its owner", slot.0, slot.1);
        let epoch = usize::try_from(certificate.epoch.0).unwrap_or(usize::MAX);
        let Some(term) = self.terms.get(epoch) else {
            return Err(Breach(format!("a certificate of epoch {epoch}, which never was")));
        };
        let committee = &term.committee.committee;
        let order = certificate.order.clone().verify(&self.domain);
        let order = order.map_err(|error| Breach(format!("the order in a certificate is bad: {error}")))?;
        let voters =
            certificate.votes.iter().filter(|vote| (*vote).clone().verify(&self.domain, committee, &order).is_ok());
        let voters: BTreeSet<_> = voters.map(|vote| vote.authority).collect();
        require!(voters.len() >= self.quorum(epoch), "a certificate of {} votes was confirmed", voters.len());
        self.certified.insert(slot, certificate.clone());
        Ok(())
    }

    /// Everything that was confirmed anywhere, each sender's in order.
    #[must_use]
    pub fn certificates(&self) -> Vec<Certificate> {
        self.certified.values().cloned().collect()
    }

    /// The books of an honest authority.
    #[must_use]
    pub fn books(&self, authority: usize) -> &Books {
        &self.books[authority]
    }

    /// Every account that anything is known of.
    #[must_use]
    pub fn accounts(&self) -> BTreeSet<AccountId> {
        let books = self.books.iter();
        books
            .flat_map(|books| books.balances.keys().map(|(id, _)| *id).chain(books.locks.keys().map(|(id, _)| *id)))
            .collect()
    }

    /// Whether an authority has not credited all deposits that are final.
    #[must_use]
    pub fn lacks_deposits(&self, authority: usize) -> bool {
        self.books[authority].deposits.len() < self.deposits.len()
    }

    /// Once all is quiet: nothing is in flight, nobody owes, all deposits are there, and nothing was made or lost.
    pub fn is_solvent(&self, authority: usize) -> Result<(), Breach> {
        let books = &self.books[authority];
        for ((from, to), (sent, arrived)) in &books.credits {
            require!(sent.len() == *arrived, "credits from shard {from} to {to} of authority {authority} are lost");
        }
        require!(books.deposits.len() == self.deposits.len(), "authority {authority} lacks deposits");
        let mut sums: BTreeMap<Asset, i128> = books.redeemed.clone();
        for ((account, asset), balance) in &books.balances {
            require!(*balance >= 0, "authority {authority}: account {account} owes {balance}");
            *sums.entry(*asset).or_default() += balance;
        }
        let mut deposited: BTreeMap<Asset, i128> = BTreeMap::new();
        for deposit in &self.deposits {
            *deposited.entry(deposit.asset).or_default() += signed(deposit.amount.0);
        }
        sums.retain(|_, sum| *sum != 0);
        require!(sums == deposited, "authority {authority} holds {sums:?}, and {deposited:?} was deposited");
        Ok(())
    }
}

impl Books {
    /// Notes what checkpoints are made of.
    fn note(&mut self, shard: ShardId, record: &Record) {
        match record {
            Record::Confirmation { certificate, .. } => {
                let order = &certificate.order;
                let slot = (order.transfer.sender(), order.transfer.sequence().0);
                self.orders.insert(slot, Some(order.clone()));
            }
            Record::Void { account, sent } => drop(self.orders.insert((*account, sent.number), None)),
            Record::Synchronization { order, .. } => drop(self.applied.insert(shard, order.up_to)),
            Record::Unlock(event) => drop(self.applied.insert(shard, event.index)),
            Record::Installation(installed) => drop(self.applied.insert(shard, installed.index)),
            _ => {}
        }
    }

    pub(super) fn change(&mut self, account: AccountId, asset: Asset, by: i128) {
        *self.balances.entry((account, asset)).or_default() += by;
    }

    fn confirm(&mut self, shard: ShardId, certificate: &Certificate, effect: &Effect) -> Result<(), Breach> {
        let transfer = &certificate.order.transfer;
        let (sender, sequence) = (transfer.sender(), transfer.sequence().0);
        let sent = self.sent.entry(sender).or_default();
        require!(*sent == sequence, "{sender} #{sequence} is confirmed when #{sent} was next");
        *sent += 1;
        let ever = self.sent_ever.entry(sender).or_default();
        *ever = (*ever).max(*sent);
        let amount = signed(transfer.amount().0);
        self.change(sender, transfer.asset(), -amount);
        match (effect, transfer) {
            (Effect::Credited { .. }, Transfer::Payment(payment)) => {
                self.change(payment.recipient, payment.asset, amount);
            }
            (Effect::Forwarded { to, number }, Transfer::Payment(payment)) => {
                let (credits, _) = self.credits.entry((shard, *to)).or_default();
                require!(
                    credits.len() as u64 + 1 == *number,
                    "credit {number} from shard {shard} to {to} is out of order"
                );
                credits.push(vec![Receipt { payment: payment.clone(), output: None }]);
            }
            (Effect::PaidOut { outputs, .. }, Transfer::Payout(payout)) => {
                require!(outputs.len() == payout.outputs.len(), "{sender} #{sequence} pays another number of outputs");
                let mut parts = BTreeMap::<_, Vec<_>>::new();
                for (paid, destination) in transfer.receipts().zip(outputs) {
                    match destination {
                        Destination::Credited { .. } => {
                            self.change(paid.payment.recipient, payout.asset, signed(paid.payment.amount.0));
                        }
                        Destination::Forwarded { to, number } => parts.entry((*to, *number)).or_default().push(paid),
                    }
                }
                for ((to, number), part) in parts {
                    let (credits, _) = self.credits.entry((shard, to)).or_default();
                    let expected = credits.len() as u64 + 1;
                    require!(expected == number, "credit {number} from shard {shard} to {to} is out of order");
                    credits.push(part);
                }
            }
            (Effect::Redeemed { .. }, Transfer::Redemption(redemption)) => {
                *self.redeemed.entry(redemption.asset).or_default() += amount;
            }
            (Effect::Kept, Transfer::Redemption(redemption)) => self.change(sender, redemption.asset, amount),
            _ => return Err(Breach(format!("{sender} #{sequence} is not executed as what it is"))),
        }
        Ok(())
    }

    fn credit(&mut self, to: ShardId, credit: &CrossShardCredit) -> Result<(), Breach> {
        let from = credit.from;
        let (sent, arrived) = self.credits.entry((from, to)).or_default();
        let part: Vec<Receipt> = credit.receipts().collect();
        let fits = sent.get(*arrived) == Some(&part);
        require!(fits, "a credit from shard {from} to {to} was applied that is not the next one");
        *arrived += 1;
        for Receipt { payment, .. } in part {
            self.change(payment.recipient, payment.asset, signed(payment.amount.0));
        }
        Ok(())
    }

    /// The votes that left the authority, and that its folder must have.
    pub fn votes(&self) -> impl Iterator<Item = (AccountId, u64, Digest)> {
        let kept = self.votes.iter().filter(|(slot, _)| !self.forgotten.contains(slot));
        kept.map(|((account, sequence), digest)| (*account, *sequence, *digest))
    }

    /// The number of redemptions that were executed.
    #[must_use]
    pub fn redemptions(&self) -> u64 {
        let orders = self.orders.values().flatten();
        orders.filter(|order| matches!(order.transfer, Transfer::Redemption(_))).count() as u64
    }

    /// An account's balance of one asset.
    #[must_use]
    pub fn balance(&self, account: AccountId, asset: Asset) -> i128 {
        self.balances.get(&(account, asset)).copied().unwrap_or_default()
    }

    /// How many orders of an account were ever confirmed.
    fn sent_ever(&self, account: AccountId) -> u64 {
        self.sent_ever.get(&account).copied().unwrap_or_default()
    }

    /// How many orders of an account were confirmed.
    #[must_use]
    pub fn sent(&self, account: AccountId) -> u64 {
        self.sent.get(&account).copied().unwrap_or_default()
    }
}

/// No simulation deals in amounts that do not fit.
pub(super) fn signed(amount: u128) -> i128 {
    i128::try_from(amount).expect("amounts of a simulation are small")
}
