//! The auditor's books: what every account must hold, from deposits and certificates alone. They count once by the
//! certificates of all authorities together, and once for each authority by those that it has confirmed. Pure.
//!
//! ```text
//!  balance = deposits + received − sent − redeemed + credited back         (per account and asset)
//! ```
//! A redemption is credited back if the contract spent its number on another order, or released it unpaid.
//!
//! An authority's state of an account is consistent if it counts the same orders, payments and deposits as these books,
//! and its balances equal their result. An authority that has confirmed less than others is behind, but its balances
//! must still be consistent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fastpay_core::{
    AccountId, Amount, Asset, AuthorityName, Balance, Deposit, Digest, Receipt, Redemption, SequenceNumber, Transfer,
    VerifiedCertificate,
};
use fastpay_rpc::{AccountState, ShardStatus};
use serde::Serialize;

use super::proof::Proof;
use super::totals::{Moved, Name, Reading, Spendings};

/// The number of certificates of an account that are requested at once from each authority.
pub(super) const SLICE: u64 = 32;
/// The maximum number of stored proofs.
const PROOFS_MAX: usize = 1_000;

/// The defect of an authority's answer for a certificate. In words, it is a prefix of the certificate's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It has confirmed the certificate, but does not return it.
    Hidden,
    /// It has confirmed the certificate, but can no longer read it.
    Unreadable(String),
    /// It returns something else.
    Bogus(String),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => write!(f, "it has confirmed a certificate and does not show it: sequence number"),
            Self::Unreadable(why) => {
                write!(f, "it has confirmed a certificate and can no longer read it ({why}): sequence number")
            }
            Self::Bogus(why) => write!(f, "it shows a certificate that is not valid ({why}): sequence number"),
        }
    }
}

/// The data read of an account.
pub(super) struct Visit {
    pub(super) account: AccountId,
    /// The states by authority; `None` if it did not answer.
    pub(super) states: Vec<Option<AccountState>>,
    /// By number, the answer of each authority that has confirmed it. Authorities that did not answer are missing.
    pub(super) slots: BTreeMap<u64, Slot>,
    /// By number, what a checkpoint proves where authorities have pruned the certificate and none shows it.
    pub(super) archived: BTreeMap<u64, Archived>,
    /// The authorities that have pruned a number.
    pub(super) pruned_by: BTreeSet<usize>,
}

/// What a quorum did with a number, proven by a checkpoint.
pub(super) struct Archived {
    /// The transfer with its digest; none if the number is void.
    pub(super) transfer: Option<(Digest, Transfer)>,
}

/// The answers of authorities for one number.
pub(super) type Slot = BTreeMap<usize, Result<VerifiedCertificate, Flaw>>;

/// How much an authority has not confirmed that others have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Behind {
    /// The number of certificates that it lacks.
    pub certificates: u64,
    /// The number of accounts concerned.
    pub accounts: u64,
}

/// The effect of certificates on one account.
#[derive(Clone, Debug, Default)]
struct View {
    /// The number of its certificates that are counted, which is the number of its next order.
    sent: u64,
    received: u64,
    /// The amounts received less the amounts sent.
    flow: BTreeMap<Asset, Balance>,
}

#[derive(Clone, Debug)]
struct Book {
    /// By asset, each deposit with its place among all deposits of the account, from 1, and the sum of the asset so
    /// far. Anyone can deposit any asset for anyone, so no sum may iterate over all deposits.
    deposits: BTreeMap<Asset, Vec<(usize, Balance)>>,
    deposit_count: usize,
    /// The views by authority, in the order of the books.
    views: Vec<View>,
    /// The view of all authorities together.
    all: View,
    /// The last state of each authority.
    states: Vec<Option<AccountState>>,
    /// The account's redemptions, by number.
    redemptions: BTreeMap<u64, Moved>,
    /// The redemptions that the contract never pays.
    credited_back: BTreeMap<u64, Moved>,
}

/// The books: see the module's description.
#[derive(Debug)]
pub(super) struct Books {
    authorities: Vec<AuthorityName>,
    accounts: BTreeMap<AccountId, Book>,
    flaws: BTreeMap<(AccountId, SequenceNumber, AuthorityName), Flaw>,
    doubles: BTreeSet<(AccountId, SequenceNumber)>,
    /// The numbers that the contract voided, which have no certificate.
    voided: BTreeSet<(AccountId, SequenceNumber)>,
    proofs: BTreeMap<(AuthorityName, AccountId, SequenceNumber), Proof>,
    certificates: u64,
    /// The authorities whose journals begin at a checkpoint. What one had not executed of it is in its balances, and not in
    /// its lists of received payments, so their lengths say nothing.
    pruned_by: BTreeSet<usize>,
    /// Since a recovery, so it is at all authorities.
    is_recovered: bool,
}

impl Books {
    pub(super) fn new(authorities: Vec<AuthorityName>) -> Self {
        Self {
            authorities,
            accounts: BTreeMap::new(),
            flaws: BTreeMap::new(),
            doubles: BTreeSet::new(),
            voided: BTreeSet::new(),
            proofs: BTreeMap::new(),
            certificates: 0,
            pruned_by: BTreeSet::new(),
            is_recovered: false,
        }
    }

    /// A committee was installed that begins from a rebuilt checkpoint.
    pub(super) fn recovered(&mut self) {
        self.is_recovered = true;
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = AccountId> {
        self.accounts.keys().copied()
    }

    /// The number of different sequence numbers with a certificate.
    pub(super) fn certificates(&self) -> u64 {
        self.certificates
    }

    pub(super) fn proofs(&self) -> Vec<Proof> {
        self.proofs.values().cloned().collect()
    }

    /// Opens the book of an account. Returns whether it is new.
    pub(super) fn open(&mut self, account: AccountId) -> bool {
        let is_new = !self.accounts.contains_key(&account);
        self.book(account);
        is_new
    }

    fn book(&mut self, account: AccountId) -> &mut Book {
        let count = self.authorities.len();
        self.accounts.entry(account).or_insert_with(|| Book {
            deposits: BTreeMap::new(),
            deposit_count: 0,
            views: vec![View::default(); count],
            all: View::default(),
            states: vec![None; count],
            redemptions: BTreeMap::new(),
            credited_back: BTreeMap::new(),
        })
    }

    /// Adds a deposit. Deposits must come in the order of their indices.
    pub(super) fn deposit(&mut self, deposit: &Deposit) {
        self.book(deposit.recipient).deposit(deposit.asset, deposit.amount);
    }

    /// Notes that the contract voided a number, which therefore needs no certificate.
    pub(super) fn void(&mut self, account: AccountId, sequence: SequenceNumber) {
        self.voided.insert((account, sequence));
    }

    /// All certified redemptions.
    pub(super) fn redemptions(&self) -> impl Iterator<Item = (Name, Moved)> {
        self.accounts.iter().flat_map(|(account, book)| {
            book.redemptions.iter().map(|(number, moved)| ((*account, SequenceNumber(*number)), *moved))
        })
    }

    /// The certified redemptions with a number below the next one that an authority reports for the account.
    pub(super) fn redemptions_confirmed_by(&self, authority: AuthorityName) -> impl Iterator<Item = (Name, Moved)> {
        let index = self.authorities.iter().position(|name| *name == authority);
        let next = move |account: &AccountId| {
            let state = self.accounts.get(account)?.states.get(index?)?.as_ref();
            state.map(|state| state.next_sequence)
        };
        self.redemptions().filter(move |((account, sequence), _)| next(account).is_some_and(|next| *sequence < next))
    }

    /// Credits back the redemptions that the contract never pays, by the numbers that it has spent.
    pub(super) fn credit_back(&mut self, spendings: &Spendings) {
        for ((account, sequence), spending) in spendings {
            let Some(book) = self.accounts.get_mut(account) else { continue };
            if let Some(moved) = book.redemptions.get(&sequence.0).filter(|moved| !spending.pays(moved)) {
                book.credited_back.insert(sequence.0, *moved);
            }
        }
    }

    /// The numbers of an account for which an authority gave no valid answer.
    pub(super) fn flawed(&self, account: AccountId) -> BTreeSet<u64> {
        let first = (account, SequenceNumber(0), AuthorityName([0; 32]));
        let keys = self.flaws.range(first..).map(|(key, _)| key);
        let numbers = keys.take_while(|(of, ..)| *of == account).map(|(_, sequence, _)| sequence.0);
        numbers.take(usize::try_from(SLICE).unwrap_or(usize::MAX)).collect()
    }

    /// The number of an account's certificates that are counted, by authority.
    pub(super) fn counted(&self, account: AccountId) -> Vec<u64> {
        let none = || vec![0; self.authorities.len()];
        self.accounts.get(&account).map_or_else(none, |book| book.views.iter().map(|view| view.sent).collect())
    }

    /// Adds the data read of an account. Returns the new accounts, and whether there is more to read of this one.
    pub(super) fn take_in(
        &mut self,
        visit: Visit,
        prove: impl Fn(&[VerifiedCertificate]) -> Vec<Proof>,
    ) -> (Vec<AccountId>, bool) {
        let Visit { account, states, slots, mut archived, mut pruned_by } = visit;
        self.pruned_by.append(&mut pruned_by);
        let counted = self.counted(account);
        let mut new = Vec::new();
        for (number, slot) in slots {
            let archived = archived.remove(&number);
            new.extend(self.take_slot(account, SequenceNumber(number), (slot, archived), &states, &prove));
        }
        let book = self.book(account);
        // Require progress: an authority that claims numbers which nobody can prove must not keep us here.
        let has_advanced = book.views.iter().zip(&counted).any(|(view, before)| view.sent > *before);
        let is_unread = |(state, view): (&Option<AccountState>, &View)| {
            state.as_ref().is_some_and(|state| view.sent < state.next_sequence.0)
        };
        let more = has_advanced && states.iter().zip(&book.views).any(is_unread);
        book.states = states;
        (new, more)
    }

    /// Adds the answers of all authorities for one number, and what a checkpoint proves of it. Returns the new recipients.
    fn take_slot(
        &mut self,
        account: AccountId,
        sequence: SequenceNumber,
        (slot, archived): (Slot, Option<Archived>),
        states: &[Option<AccountState>],
        prove: impl Fn(&[VerifiedCertificate]) -> Vec<Proof>,
    ) -> Vec<AccountId> {
        let mut valid: Vec<VerifiedCertificate> = Vec::new();
        let is_void = self.voided.contains(&(account, sequence))
            || archived.as_ref().is_some_and(|archived| archived.transfer.is_none());
        if is_void && !slot.values().any(Result::is_ok) {
            self.step_over(account, sequence, states);
            return Vec::new();
        }
        for certificate in slot.values().flatten() {
            if valid.iter().all(|known| known.digest() != certificate.digest()) {
                valid.push(certificate.clone());
            }
        }
        if valid.len() > 1 {
            self.doubles.insert((account, sequence));
            let proofs = prove(&valid).into_iter().map(|proof| ((proof.authority, account, sequence), proof));
            self.proofs.extend(proofs.take(PROOFS_MAX.saturating_sub(self.proofs.len())));
        }
        let of_certificates = valid.iter().map(|certificate| (certificate.digest(), certificate.transfer()));
        let archived = archived.as_ref().and_then(|archived| archived.transfer.as_ref());
        let archived = archived.filter(|_| valid.is_empty()).map(|(digest, transfer)| (*digest, transfer));
        let proven: Vec<(Digest, &Transfer)> = of_certificates.chain(archived).collect();
        let mut new = Vec::new();
        for (_, transfer) in &proven {
            for Receipt { payment, .. } in transfer.receipts() {
                if self.open(payment.recipient) {
                    new.push(payment.recipient);
                }
            }
        }
        if let Some((digest, first)) = proven.first().copied() {
            if self.book(account).all.sent == sequence.0 {
                self.certificates = self.certificates.saturating_add(1);
                self.count(None, first);
                if let Transfer::Redemption(Redemption { asset, amount, .. }) = *first {
                    let moved = Moved { asset, amount, digest };
                    self.book(account).redemptions.insert(sequence.0, moved);
                }
            }
            for (index, state) in states.iter().enumerate() {
                let has_confirmed = state.as_ref().is_some_and(|state| state.next_sequence > sequence);
                let is_next = self.book(account).views.get(index).is_some_and(|view| view.sent == sequence.0);
                if has_confirmed && is_next {
                    // Count its own certificate, or that of others if it returns no valid one.
                    let own = slot.get(&index).and_then(|found| found.as_ref().ok());
                    self.count(Some(index), own.map_or(first, VerifiedCertificate::transfer));
                }
            }
        }
        self.note_flaws(account, sequence, slot);
        new
    }

    /// Counts a number that has no certificate because the contract voided it.
    fn step_over(&mut self, account: AccountId, sequence: SequenceNumber, states: &[Option<AccountState>]) {
        let book = self.book(account);
        let has_stepped =
            |state: &Option<AccountState>| state.as_ref().is_some_and(|state| state.next_sequence > sequence);
        let views = book.views.iter_mut().zip(states).filter(|(_, state)| has_stepped(state)).map(|(view, _)| view);
        for view in views.chain([&mut book.all]).filter(|view| view.sent == sequence.0) {
            view.sent = view.sent.saturating_add(1);
        }
    }

    fn note_flaws(&mut self, account: AccountId, sequence: SequenceNumber, slot: Slot) {
        for (index, found) in slot {
            let Some(name) = self.authorities.get(index) else { continue };
            match found {
                Ok(_) => drop(self.flaws.remove(&(account, sequence, *name))),
                Err(flaw) => drop(self.flaws.insert((account, sequence, *name), flaw)),
            }
        }
    }

    /// Counts a certificate for one authority, or for all together if `None`.
    fn count(&mut self, authority: Option<usize>, transfer: &Transfer) {
        let (asset, amount) = (transfer.asset(), transfer.amount());
        let mut change = |account: AccountId, change: &dyn Fn(&mut View)| {
            let book = self.book(account);
            let view = match authority {
                Some(index) => book.views.get_mut(index),
                None => Some(&mut book.all),
            };
            view.into_iter().for_each(change);
        };
        change(transfer.sender(), &|view| {
            view.sent = view.sent.saturating_add(1);
            let flow = view.flow.entry(asset).or_default();
            *flow = flow.debit(amount);
        });
        for Receipt { payment, .. } in transfer.receipts() {
            change(payment.recipient, &|view| {
                view.received = view.received.saturating_add(1);
                let flow = view.flow.entry(asset).or_default();
                *flow = flow.credit(payment.amount);
            });
        }
    }

    /// The assets that an account may hold.
    pub(super) fn assets_of(&self, account: AccountId) -> BTreeSet<Asset> {
        self.accounts.get(&account).map_or_else(BTreeSet::new, Book::assets)
    }

    /// By asset, the sum of deposits, and the sum that all accounts must hold by all certificates.
    pub(super) fn sums(&self) -> BTreeMap<Asset, (Balance, Balance)> {
        let mut sums: BTreeMap<Asset, (Balance, Balance)> = BTreeMap::new();
        for book in self.accounts.values() {
            for asset in book.assets() {
                let (deposited, held) = sums.entry(asset).or_default();
                *deposited = deposited.plus(book.deposited(usize::MAX, asset));
                *held = held.plus(book.expected(&book.all, usize::MAX, asset));
            }
        }
        sums
    }

    /// All assets that were deposited or moved.
    pub(super) fn assets(&self) -> BTreeSet<Asset> {
        self.accounts.values().flat_map(Book::assets).collect()
    }

    /// The authorities that lack certificates which others have.
    pub(super) fn behind(&self) -> BTreeMap<AuthorityName, Behind> {
        let mut behind: BTreeMap<AuthorityName, Behind> = BTreeMap::new();
        for book in self.accounts.values() {
            for (name, state) in self.authorities.iter().zip(&book.states) {
                let Some(state) = state else { continue };
                let lacking = book.all.sent.saturating_sub(state.next_sequence.0);
                if lacking > 0 {
                    let entry = behind.entry(*name).or_default();
                    entry.certificates = entry.certificates.saturating_add(lacking);
                    entry.accounts = entry.accounts.saturating_add(1);
                }
            }
        }
        behind
    }

    /// Describes the contradictions.
    pub(super) fn findings(&self, readings: &BTreeMap<AuthorityName, Reading>) -> Vec<String> {
        let mut findings = Vec::new();
        for (account, sequence) in &self.doubles {
            findings.push(format!("account {account} has two different certificates with sequence number {sequence}"));
        }
        for (authority, account, sequence) in self.proofs.keys() {
            findings.push(format!(
                "authority {authority} voted for two orders of account {account} with sequence number {sequence}: proven"
            ));
        }
        for ((account, sequence, authority), flaw) in &self.flaws {
            findings.push(format!("authority {authority}, account {account}: {flaw} {sequence}"));
        }
        for (account, book) in &self.accounts {
            for asset in book.assets() {
                let held = book.expected(&book.all, usize::MAX, asset);
                if held < Balance::ZERO {
                    findings.push(format!(
                        "account {account} has sent more of {asset} than it received: its balance is {held}"
                    ));
                }
            }
            for (index, (name, state)) in self.authorities.iter().zip(&book.states).enumerate() {
                let Some(state) = state else { continue };
                let has_whole_lists = !self.is_recovered && !self.pruned_by.contains(&index);
                let misfits = book.misfits(index, state, has_whole_lists);
                findings.extend(misfits.into_iter().map(|what| format!("authority {name}, account {account}: {what}")));
            }
        }
        for (index, name) in self.authorities.iter().enumerate() {
            if let Some(reading) = readings.get(name) {
                self.check_totals(index, *name, &reading.statuses, &mut findings);
            }
        }
        findings
    }

    /// Checks that an authority's own sums equal those of the accounts that deposits and payments lead to.
    fn check_totals(&self, index: usize, name: AuthorityName, statuses: &[ShardStatus], findings: &mut Vec<String>) {
        let mut totals: BTreeMap<Asset, (Balance, Balance)> = BTreeMap::new();
        for (asset, of) in statuses.iter().flat_map(|shard| &shard.totals) {
            let (accounts, redeemed) = totals.entry(*asset).or_default();
            (*accounts, *redeemed) = (accounts.plus(of.accounts), redeemed.plus(of.redeemed));
        }
        let mut held: BTreeMap<Asset, Balance> = BTreeMap::new();
        for state in self.accounts.values().filter_map(|book| book.states.get(index)?.as_ref()) {
            for (asset, balance) in holdings(state) {
                let held = held.entry(asset).or_default();
                *held = held.plus(balance);
            }
        }
        for (asset, (accounts, redeemed)) in totals {
            let held = held.get(&asset).copied().unwrap_or_default();
            if held != accounts {
                findings.push(format!(
                    "authority {name}: its accounts sum to {accounts} of {asset}, and those reachable from deposits \
                     and payments hold {held}"
                ));
            }
            let sum = |part: fn(&Book) -> &BTreeMap<u64, Moved>| {
                self.accounts.values().fold(Balance::ZERO, |sum, book| {
                    sum.plus(moved_below(part(book), book.views.get(index).map_or(0, |view| view.sent), asset))
                })
            };
            let (all, back) = (sum(|book| &book.redemptions), sum(|book| &book.credited_back));
            let certified = all.plus(back.negated());
            if redeemed != certified && redeemed != all {
                findings.push(format!(
                    "authority {name}: reports {redeemed} of {asset} as redeemed, and certificates prove {certified}"
                ));
            }
        }
    }
}

/// The sum of an asset over the numbers below `end`.
fn moved_below(redemptions: &BTreeMap<u64, Moved>, end: u64, asset: Asset) -> Balance {
    let below = redemptions.range(..end).filter(|(_, moved)| moved.asset == asset);
    below.fold(Balance::ZERO, |sum, (_, moved)| sum.credit(moved.amount))
}

impl Book {
    fn deposit(&mut self, asset: Asset, amount: Amount) {
        self.deposit_count = self.deposit_count.saturating_add(1);
        let of = self.deposits.entry(asset).or_default();
        let before = of.last().map_or(Balance::ZERO, |(_, sum)| *sum);
        of.push((self.deposit_count, before.credit(amount)));
    }

    fn assets(&self) -> BTreeSet<Asset> {
        self.deposits.keys().chain(self.all.flow.keys()).copied().collect()
    }

    /// The sum of an asset in the account's first `count` deposits.
    fn deposited(&self, count: usize, asset: Asset) -> Balance {
        let of = self.deposits.get(&asset).map_or(&[][..], Vec::as_slice);
        let within = of.partition_point(|(place, _)| *place <= count);
        within.checked_sub(1).and_then(|last| of.get(last)).map_or(Balance::ZERO, |(_, sum)| *sum)
    }

    /// The balance that results from the first deposits and a view's certificates.
    fn expected(&self, view: &View, deposits: usize, asset: Asset) -> Balance {
        let flow = view.flow.get(&asset).copied().unwrap_or_default();
        self.deposited(deposits, asset).plus(flow).plus(moved_below(&self.credited_back, view.sent, asset))
    }

    /// The contradictions in an authority's state of this account.
    fn misfits(&self, index: usize, state: &AccountState, has_whole_lists: bool) -> Vec<String> {
        let Some(view) = self.views.get(index) else { return Vec::new() };
        if state.next_sequence.0 != view.sent {
            let (next, sent) = (state.next_sequence, view.sent);
            return vec![format!("it reports next sequence number {next}, and certificates prove {sent}")];
        }
        if state.received != view.received && has_whole_lists {
            let (reported, made) = (state.received, view.received);
            return vec![format!("it reports {reported} received payments, and its certificates prove {made}")];
        }
        let deposits = usize::try_from(state.deposits).unwrap_or(usize::MAX);
        if deposits > self.deposit_count {
            let made = self.deposit_count;
            return vec![format!("it reports {deposits} deposits, and the Primary has {made}")];
        }
        let mut assets = self.assets();
        assets.extend(view.flow.keys().copied());
        let held = holdings(state);
        assets.extend(held.keys());
        let wrong = assets.into_iter().filter_map(|asset| {
            let reported = held.get(&asset).copied().unwrap_or_default();
            let made = self.expected(view, deposits, asset);
            // An authority that lags behind the contract's events has not credited it back yet.
            let before = made.plus(moved_below(&self.credited_back, view.sent, asset).negated());
            let text = || format!("it reports {reported} of {asset}, and deposits and certificates prove {made}");
            (reported != made && reported != before).then(text)
        });
        wrong.collect()
    }
}

/// The balances that an authority reports for an account. If it reports an asset twice, the first entry counts.
fn holdings(state: &AccountState) -> BTreeMap<Asset, Balance> {
    state.holdings.iter().rev().copied().collect()
}
