//! Everything that the service knows, as a fold over the entries of its journal. No clock, no disk, no network.

mod compact;
mod entry;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fastpay_core::{Amount, Asset, Memo};
use fastpay_rpc::PaymentName;

use crate::invoice::{Arrival, State, Terms, state};
pub use compact::Compacted;
pub use entry::{Attempt, Compaction, Delivery, Entry, Event, Outcome};

/// After so many events of an invoice the shop is told only where its state changes, which it does a few times in all:
/// anybody can pay the smallest unit to an invoice a thousand times.
const EVENTS_MAX: usize = 20;

/// An invoice with all that happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoice {
    /// What was agreed on.
    pub terms: Terms,
    /// What came for it, in the order in which the wallet saw it.
    pub arrivals: Vec<Arrival>,
    /// The events of it, oldest first.
    pub events: Vec<String>,
    /// Its place among all invoices.
    place: usize,
}

/// What the shop asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the shop calls it.
    pub reference: String,
    /// What is to be paid.
    pub asset: Asset,
    /// How much.
    pub amount: Amount,
    /// A memo of the shop's own choice.
    pub memo: Option<Memo>,
    /// How long the payment is expected, in seconds.
    pub expires_in: u64,
}

/// What a request comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// An invoice of these terms is to be made.
    New(Terms),
    /// The same was asked before: the id of that invoice.
    Known(String),
}

/// Why there is no such invoice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The reference has other terms.
    #[error("reference {0:?} belongs to an invoice of other terms already; use another reference")]
    OtherTerms(String),
    /// The reference had its invoice, which is in the archive.
    #[error(
        "reference {reference:?} belongs to {id}, which ended long ago and is in the archive; use another reference"
    )]
    Retired {
        /// The reference.
        reference: String,
        /// The invoice.
        id: String,
    },
    /// The memo is another invoice's.
    #[error("another invoice has this memo; leave the memo out, and the invoice gets one of its own")]
    MemoTaken,
    /// So many wait for their payment already.
    #[error("{0} invoices are open already; those that are paid or expire make room")]
    TooManyOpen(usize),
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    invoices: BTreeMap<String, Invoice>,
    /// Ids, oldest first.
    order: Vec<String>,
    by_reference: HashMap<String, String>,
    by_memo: HashMap<Memo, String>,
    /// Of no payment yet, by the time of their end.
    unpaid: BTreeSet<(u64, String)>,
    /// Of payments that were not announced yet.
    touched: BTreeSet<String>,
    seen: HashSet<PaymentName>,
    unmatched: Vec<Arrival>,
    deliveries: BTreeMap<String, Delivery>,
    /// The oldest first: by when the wallet had looked, and then in the order of the entries.
    undelivered: BTreeSet<(u64, usize, String)>,
    looked_at_ms: u64,
    /// How often the journal was written anew.
    generation: u64,
    /// Payments that are in the archive.
    archived: BTreeSet<PaymentName>,
    /// Ids of invoices that are in the archive, by their references.
    retired: BTreeMap<String, String>,
}

impl Book {
    /// Adds what happened. Entries are only ever made by the functions below, from this same book.
    pub fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Created(terms) => {
                let place = self.order.len();
                self.order.push(terms.id.clone());
                self.by_reference.insert(terms.reference.clone(), terms.id.clone());
                self.by_memo.insert(terms.memo, terms.id.clone());
                self.unpaid.insert((terms.expires_at, terms.id.clone()));
                let id = terms.id.clone();
                self.invoices.insert(id, Invoice { terms, arrivals: Vec::new(), events: Vec::new(), place });
            }
            Entry::Arrived(arrival) => self.arrived(arrival),
            Entry::Announced(event) => self.told(Delivery::new(event)),
            Entry::Attempted(attempt) => {
                let Some(delivery) = self.deliveries.get_mut(&attempt.event) else { return };
                delivery.attempts = delivery.attempts.saturating_add(1);
                delivery.last = Some(attempt.outcome);
                if delivery.due_at_ms().is_none() {
                    delivery.event.body = String::new();
                    self.undelivered.remove(&age(delivery));
                }
            }
            Entry::Compacted(compaction) => {
                self.generation = compaction.generation;
                self.looked_at_ms = self.looked_at_ms.max(compaction.looked_at_ms);
            }
            Entry::Told(delivery) => self.told(delivery),
            Entry::Archived { sender, sequences, outputs } => {
                let payments = sequences.into_iter().map(|sequence| (sequence, None));
                let outputs = outputs.into_iter().map(|(sequence, output)| (sequence, Some(output)));
                for (sequence, output) in payments.chain(outputs) {
                    let name = PaymentName { sender, sequence, output };
                    self.archived.insert(name);
                    self.seen.insert(name);
                }
            }
            Entry::Retired { reference, id } => drop(self.retired.insert(reference, id)),
        }
    }

    fn told(&mut self, delivery: Delivery) {
        let delivery = Delivery { place: self.deliveries.len(), ..delivery };
        let event = &delivery.event;
        self.looked_at_ms = self.looked_at_ms.max(event.looked_at_ms);
        if let Some(invoice) = self.invoices.get_mut(&event.invoice) {
            invoice.events.push(event.id.clone());
            if invoice.arrivals.len() == event.arrivals {
                self.touched.remove(&event.invoice);
            }
            self.unpaid.remove(&(invoice.terms.expires_at, event.invoice.clone()));
        }
        if delivery.due_at_ms().is_some() {
            self.undelivered.insert(age(&delivery));
        }
        self.deliveries.insert(event.id.clone(), delivery);
    }

    fn arrived(&mut self, arrival: Arrival) {
        self.looked_at_ms = self.looked_at_ms.max(arrival.after_ms);
        if !self.seen.insert(arrival.name()) {
            return;
        }
        let invoice = self.by_memo.get(&arrival.memo).and_then(|id| self.invoices.get_mut(id));
        match invoice.filter(|invoice| invoice.terms.asset == arrival.asset) {
            Some(invoice) => {
                self.unpaid.remove(&(invoice.terms.expires_at, invoice.terms.id.clone()));
                self.touched.insert(invoice.terms.id.clone());
                invoice.arrivals.push(arrival);
            }
            None => self.unmatched.push(arrival),
        }
    }

    /// What a request comes to; a new invoice would have this id, and at most `open_max` are open at a time.
    ///
    /// # Errors
    /// Where the reference is another invoice's, also of one in the archive, or the memo is, or too many are open.
    pub fn request(
        &self,
        request: &Request,
        id: String,
        now_ms: u64,
        open_max: usize,
    ) -> Result<Requested, RequestError> {
        if let Some(id) = self.by_reference.get(&request.reference)
            && let Some(Invoice { terms, .. }) = self.invoices.get(id)
        {
            let asked_for = terms.expires_at.saturating_sub(terms.created_at_ms.div_ceil(1_000));
            let is_same = (terms.asset, terms.amount, asked_for) == (request.asset, request.amount, request.expires_in)
                && request.memo.is_none_or(|memo| memo == terms.memo);
            let other = || RequestError::OtherTerms(terms.reference.clone());
            return is_same.then(|| Requested::Known(id.clone())).ok_or_else(other);
        }
        if let Some(id) = self.retired.get(&request.reference) {
            return Err(RequestError::Retired { reference: request.reference.clone(), id: id.clone() });
        }
        let memo = request.memo.unwrap_or_else(|| text_memo(&id));
        if self.by_memo.contains_key(&memo) {
            return Err(RequestError::MemoTaken);
        }
        if self.open() >= open_max {
            return Err(RequestError::TooManyOpen(open_max));
        }
        Ok(Requested::New(Terms {
            id,
            reference: request.reference.clone(),
            asset: request.asset,
            amount: request.amount,
            memo,
            created_at_ms: now_ms,
            expires_at: now_ms.div_ceil(1_000).saturating_add(request.expires_in),
        }))
    }

    /// Whether this payment is known.
    #[must_use]
    pub fn has(&self, name: &PaymentName) -> bool {
        self.seen.contains(name)
    }

    /// The invoices of which the shop is to be told, and what they are, when the wallet had looked last at
    /// `looked_at_ms`: those that payments came for, and those that ended without any.
    #[must_use]
    pub fn changed(&self, looked_at_ms: u64) -> Vec<(&Invoice, State)> {
        let ended = self.unpaid.iter().take_while(|(end, _)| end.saturating_mul(1_000) <= looked_at_ms);
        let ids = ended.map(|(_, id)| id).chain(&self.touched);
        let invoices = ids.filter_map(|id| self.invoices.get(id));
        let states = invoices.map(|invoice| (invoice, state(&invoice.terms, &invoice.arrivals, looked_at_ms)));
        states.filter(|(invoice, state)| self.is_news(invoice, *state)).collect()
    }

    /// A state that the shop was not told last is news; another payment in the same state is, a few times.
    fn is_news(&self, invoice: &Invoice, state: State) -> bool {
        let told = invoice.events.last().and_then(|id| self.deliveries.get(id)).map(|delivery| delivery.event.state);
        told != Some(state) || invoice.events.len() < EVENTS_MAX
    }

    /// When the wallet looked last, as far as the entries tell.
    #[must_use]
    pub fn looked_at_ms(&self) -> u64 {
        self.looked_at_ms
    }

    /// How often the journal was written anew.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// One invoice.
    #[must_use]
    pub fn invoice(&self, id: &str) -> Option<&Invoice> {
        self.invoices.get(id)
    }

    /// How many invoices wait for their payment.
    #[must_use]
    pub fn open(&self) -> usize {
        self.unpaid.len()
    }

    /// The invoices after the one of this id, or from the first, oldest first. None where there is no such invoice.
    pub fn invoices_after<'a>(&'a self, after: Option<&str>) -> Option<impl Iterator<Item = &'a Invoice> + use<'a>> {
        let start = match after {
            None => 0,
            Some(id) => self.invoices.get(id)?.place.saturating_add(1),
        };
        Some(self.order.iter().skip(start).filter_map(|id| self.invoices.get(id)))
    }

    /// Payments of no invoice: without its memo, or of another asset.
    #[must_use]
    pub fn unmatched(&self) -> &[Arrival] {
        &self.unmatched
    }

    /// How far the delivery of an event is.
    #[must_use]
    pub fn delivery(&self, event: &str) -> Option<&Delivery> {
        self.deliveries.get(event)
    }

    /// What the shop is still to be told, oldest first.
    pub fn undelivered(&self) -> impl Iterator<Item = &Delivery> {
        self.undelivered.iter().filter_map(|(_, _, id)| self.deliveries.get(id))
    }
}

fn age(delivery: &Delivery) -> (u64, usize, String) {
    (delivery.event.looked_at_ms, delivery.place, delivery.event.id.clone())
}

/// A text that fills a memo, or less.
fn text_memo(text: &str) -> Memo {
    let mut memo = Memo::ZERO;
    memo.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    memo
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::tests::{END, arrival, terms};

    fn request(reference: &str, amount: u128) -> Request {
        Request {
            reference: reference.into(),
            asset: Asset::ETHER,
            amount: Amount(amount),
            memo: None,
            expires_in: END,
        }
    }

    fn announce(book: &mut Book, id: &str, looked_at_ms: u64) {
        for (number, (invoice, state)) in (0..).zip(book.clone().changed(looked_at_ms)) {
            let (invoice, arrivals) = (invoice.terms.id.clone(), invoice.arrivals.len());
            let (id, body) = (format!("{id}{number}"), String::new());
            book.apply(Entry::Announced(Event { id, invoice, state, arrivals, looked_at_ms, body }));
        }
    }

    #[test]
    fn asking_twice_makes_one_invoice() {
        let mut book = Book::default();
        let Ok(Requested::New(first)) = book.request(&request("order 1", 5), "inv_a".into(), 1, 1) else { panic!() };
        assert_eq!((first.expires_at, &first.memo[..6]), (END + 1, &b"inv_a\0"[..]));
        book.apply(Entry::Created(first.clone()));
        let again = |request: &Request| book.request(request, "inv_b".into(), 999_999, 1);
        assert_eq!(again(&request("order 1", 5)), Ok(Requested::Known("inv_a".into())));
        let named = Request { memo: Some(first.memo), ..request("order 1", 5) };
        assert_eq!(again(&named), Ok(Requested::Known("inv_a".into())));
        let other_terms = Err(RequestError::OtherTerms("order 1".into()));
        assert_eq!(again(&request("order 1", 6)), other_terms);
        assert_eq!(again(&Request { expires_in: END + 1, ..request("order 1", 5) }), other_terms);
        assert_eq!(again(&Request { memo: Some(Memo::ZERO), ..request("order 1", 5) }), other_terms);
        assert_eq!(again(&Request { memo: Some(first.memo), ..request("order 2", 5) }), Err(RequestError::MemoTaken));
        // There is room for one that waits for its payment.
        assert_eq!(again(&request("order 2", 5)), Err(RequestError::TooManyOpen(1)));
        book.apply(Entry::Arrived(Arrival { memo: first.memo, ..arrival(0, 5, 1) }));
        assert!(matches!(book.request(&request("order 2", 5), "inv_b".into(), 2, 1), Ok(Requested::New(_))));
    }

    #[test]
    fn payments_of_the_smallest_unit_are_told_of_a_few_times() {
        let mut book = Book::default();
        book.apply(Entry::Created(terms(100)));
        for number in 0..99 {
            book.apply(Entry::Arrived(arrival(number, 1, 1)));
            announce(&mut book, &format!("evt_{number}_"), 2_000);
        }
        assert_eq!(book.undelivered().count(), EVENTS_MAX);
        book.apply(Entry::Arrived(arrival(99, 1, 1)));
        assert_eq!(book.changed(2_000)[0].1, State::Paid, "what matters is told");
    }

    #[test]
    fn a_payment_counts_once_for_the_invoice_of_its_memo_and_asset() {
        let mut book = Book::default();
        book.apply(Entry::Created(terms(10)));
        let other_asset = Arrival { asset: Asset([9; 20].into()), ..arrival(1, 10, 1) };
        let other_memo = Arrival { memo: Memo::repeat_byte(2), ..arrival(2, 10, 1) };
        for arrival in [arrival(0, 10, 1), arrival(0, 10, 1), other_asset.clone(), other_memo.clone()] {
            book.apply(Entry::Arrived(arrival));
        }
        assert_eq!(book.unmatched(), [other_asset, other_memo]);
        assert_eq!(book.changed(2_000).iter().map(|(_, state)| *state).collect::<Vec<_>>(), [State::Paid]);
        announce(&mut book, "evt_a", 2_000);
        assert!(book.changed(2 * END * 1_000).is_empty(), "a paid invoice does not expire");
        book.apply(Entry::Arrived(arrival(3, 10, 2)));
        assert_eq!(book.changed(3_000)[0].1, State::PaidTwice);
    }

    #[test]
    fn an_invoice_expires_once_and_what_comes_then_is_late() {
        let mut book = Book::default();
        book.apply(Entry::Created(terms(10)));
        assert!(book.changed(END * 1_000 - 1).is_empty());
        assert_eq!(book.changed(END * 1_000)[0].1, State::Expired);
        announce(&mut book, "evt_a", END * 1_000);
        assert!(book.changed(END * 2_000).is_empty());
        assert_eq!(book.looked_at_ms(), END * 1_000);
        book.apply(Entry::Arrived(arrival(0, 10, book.looked_at_ms() / 1_000)));
        assert_eq!(book.changed(END * 1_001)[0].1, State::Late);
    }

    #[test]
    fn of_what_waits_the_oldest_comes_first() {
        let mut book = Book::default();
        for number in 0..4 {
            let (id, reference) = (format!("inv_{number}"), format!("order {number}"));
            book.apply(Entry::Created(Terms { id, reference, memo: Memo::repeat_byte(number), ..terms(10) }));
        }
        let mut tell = |id: &str, invoice: &str, looked_at_ms| {
            let (id, invoice, body) = (id.into(), invoice.into(), String::new());
            let event = Event { id, invoice, state: State::Expired, arrivals: 0, looked_at_ms, body };
            book.apply(Entry::Announced(event));
        };
        tell("evt_d", "inv_3", 1);
        tell("evt_c", "inv_1", 2);
        tell("evt_a", "inv_2", 2);
        tell("evt_b", "inv_0", 3);
        let waiting = |book: &Book| -> Vec<String> { book.undelivered().map(|told| told.event.id.clone()).collect() };
        assert_eq!(waiting(&book), ["evt_d", "evt_c", "evt_a", "evt_b"]);
        // Also from a journal that was written anew, which goes by invoices.
        let mut again = Book::default();
        book.compacted(0).kept.into_iter().for_each(|entry| again.apply(entry));
        assert_eq!(waiting(&again), waiting(&book));
        let outcome = Outcome::Delivered;
        again.apply(Entry::Attempted(Attempt { event: "evt_c".into(), at_ms: 1, outcome }));
        assert_eq!(waiting(&again), ["evt_d", "evt_a", "evt_b"]);
    }

    #[test]
    fn an_event_is_due_until_it_was_taken_or_given_up() {
        let mut book = Book::default();
        book.apply(Entry::Created(terms(10)));
        book.apply(Entry::Arrived(arrival(0, 10, 1)));
        announce(&mut book, "evt_a", 2_000);
        let mut attempt = |outcome| {
            book.apply(Entry::Attempted(Attempt { event: "evt_a0".into(), at_ms: 1, outcome }));
            let due: Vec<_> = book.undelivered().map(Delivery::due_at_ms).collect();
            (due, book.delivery("evt_a0").unwrap().attempts)
        };
        let failed = |next_at_ms| Outcome::Failed { reason: "away".into(), next_at_ms };
        assert_eq!(attempt(failed(7)), (vec![Some(7)], 1));
        assert_eq!(attempt(failed(9)), (vec![Some(9)], 2));
        assert_eq!(attempt(Outcome::Delivered), (vec![], 3));
    }
}
