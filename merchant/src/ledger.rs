//! The one owner of the book and its journal: whatever it answers is on disk.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastpay_core::{AccountId, SequenceNumber};
use fastpay_ethereum::utc;
use fastpay_wallet::folder::{FolderError, Lock, ReceivedPayment};
use fastpay_wallet::{PaymentLink, format_memo};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::book::{Attempt, Book, Delivery, Entry, Event, Invoice, Outcome, Request, RequestError, Requested};
use crate::invoice::{Arrival, State, state};
use crate::journal::{Journal, JournalError};

/// Why the ledger cannot do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Another service uses the folder, or the system refuses.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The request contradicts an earlier one.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// What links of this shop have in common.
#[derive(Clone, Debug)]
pub struct LinkBase {
    /// To the shop's account, for nothing in particular.
    pub link: PaymentLink,
    /// The page of a web wallet that opens links.
    pub page: Option<url::Url>,
}

#[derive(Debug)]
struct Inner {
    journal: Journal,
    book: Book,
    /// When the wallet looked last, in milliseconds since 1970: what was not seen then came later.
    looked_at_ms: u64,
}

/// The ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger {
    inner: Arc<Mutex<Inner>>,
    base: Arc<LinkBase>,
    announced: Arc<Notify>,
    _lock: Arc<Lock>,
}

impl Ledger {
    /// Opens the ledger in `folder`, and tells of what a crash left untold.
    ///
    /// # Errors
    /// Where another service uses it, or the journal is damaged.
    pub async fn open(folder: &Path, base: LinkBase) -> Result<Self, LedgerError> {
        let lock = Lock::acquire(folder, Duration::ZERO).await?;
        let (journal, book) = Journal::open(&folder.join("journal.jsonl"))?;
        let looked_at_ms = book.looked_at_ms();
        let inner = Arc::new(Mutex::new(Inner { journal, book, looked_at_ms }));
        let ledger = Self { inner, base: Arc::new(base), announced: Arc::default(), _lock: Arc::new(lock) };
        ledger.with(|inner| inner.announce(&ledger.base))?;
        Ok(ledger)
    }

    /// The account that is paid.
    #[must_use]
    pub fn account(&self) -> AccountId {
        self.base.link.account
    }

    /// Makes an invoice, or finds the one that the same request made before. True where it is new.
    ///
    /// # Errors
    /// Where the reference or memo is taken, or the disk refuses.
    pub fn create(&self, request: &Request) -> Result<(Value, bool), LedgerError> {
        let id = format!("inv_{}", hex::encode(rand::random::<[u8; 14]>()));
        self.with(|inner| {
            let (id, is_new) = match inner.book.request(request, id, now_ms())? {
                Requested::New(terms) => {
                    let id = terms.id.clone();
                    inner.commit(vec![Entry::Created(terms)])?;
                    (id, true)
                }
                Requested::Known(id) => (id, false),
            };
            let document = inner.book.invoice(&id).map(|invoice| inner.document(invoice, &self.base));
            Ok((document.unwrap_or_default(), is_new))
        })
    }

    /// Whether a payment was taken in.
    #[must_use]
    pub fn has(&self, sender: AccountId, sequence: SequenceNumber) -> bool {
        self.read(|inner| inner.book.has(sender, sequence))
    }

    /// Takes in what the wallet received, and tells of what follows. The wallet began at `looked_at_ms` to look for
    /// everything; 0 where it did not see everything. Payments that are known already change nothing.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn take_in(&self, received: &[ReceivedPayment], looked_at_ms: u64) -> Result<(), LedgerError> {
        self.with(|inner| {
            let arrivals = received.iter().map(|received| Arrival::new(received, inner.looked_at_ms));
            let new = arrivals
                .filter(|arrival| !inner.book.has(arrival.sender, arrival.sequence))
                .map(Entry::Arrived)
                .collect();
            inner.commit(new)?;
            inner.looked_at_ms = inner.looked_at_ms.max(looked_at_ms);
            inner.announce(&self.base)
        })?;
        self.announced.notify_one();
        Ok(())
    }

    /// Keeps what came of an attempt to tell the shop.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn attempted(&self, event: &str, outcome: Outcome) -> Result<(), LedgerError> {
        let attempt = Attempt { event: event.to_owned(), at_ms: now_ms(), outcome };
        self.with(|inner| inner.commit(vec![Entry::Attempted(attempt)]))
    }

    /// What the shop is still to be told.
    #[must_use]
    pub fn undelivered(&self) -> Vec<Delivery> {
        self.read(|inner| inner.book.undelivered().cloned().collect())
    }

    /// Waits until there may be something new to tell.
    pub async fn until_announced(&self) {
        self.announced.notified().await;
    }

    /// An invoice for programs, with its webhooks.
    #[must_use]
    pub fn invoice(&self, id: &str) -> Option<Value> {
        self.read(|inner| Some(inner.full_document(inner.book.invoice(id)?, &self.base)))
    }

    /// Up to `count` invoices after one, oldest first, of one state or all.
    #[must_use]
    pub fn invoices(&self, after: Option<&str>, wanted: Option<State>, count: usize) -> Vec<Value> {
        self.read(|inner| {
            let invoices = inner.book.invoices_after(after);
            let fitting = invoices.filter(|invoice| wanted.is_none_or(|wanted| inner.state(invoice) == wanted));
            fitting.take(count).map(|invoice| inner.full_document(invoice, &self.base)).collect()
        })
    }

    /// A copy of the book, and when the wallet looked last.
    #[must_use]
    pub fn book(&self) -> (Book, u64) {
        self.read(|inner| (inner.book.clone(), inner.looked_at_ms))
    }

    /// How the service does.
    #[must_use]
    pub fn status(&self) -> Value {
        self.read(|inner| {
            let waiting: Vec<_> = inner.book.undelivered().collect();
            let failing = waiting.iter().filter(|delivery| delivery.attempts > 0).count();
            json!({
                "account": self.account(),
                "lookedAtMs": inner.looked_at_ms,
                "webhooksWaiting": waiting.len(),
                "webhooksFailing": failing,
                "unmatchedPayments": inner.book.unmatched().len(),
            })
        })
    }

    #[cfg(test)]
    pub(crate) fn break_journal(&self) {
        self.inner.lock().unwrap().journal.break_off();
    }

    fn read<T>(&self, f: impl FnOnce(&Inner) -> T) -> T {
        f(&self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes go to disk: the runtime is told that this thread will wait.
    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> Result<T, LedgerError>) -> Result<T, LedgerError> {
        tokio::task::block_in_place(|| f(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Inner {
    fn commit(&mut self, entries: Vec<Entry>) -> Result<(), LedgerError> {
        // Nothing, too: a journal that is broken ends the service by this.
        self.journal.append(&entries)?;
        entries.into_iter().for_each(|entry| self.book.apply(entry));
        Ok(())
    }

    fn announce(&mut self, base: &LinkBase) -> Result<(), LedgerError> {
        let changed = self.book.changed(self.looked_at_ms);
        let events = changed.into_iter().map(|(invoice, state)| {
            let body = json!({
                "type": format!("invoice.{state}"),
                "timestamp": utc(now_ms() / 1_000),
                "data": self.document(invoice, base),
            });
            Entry::Announced(Event {
                id: format!("evt_{}", hex::encode(rand::random::<[u8; 16]>())),
                invoice: invoice.terms.id.clone(),
                state,
                arrivals: invoice.arrivals.len(),
                looked_at_ms: self.looked_at_ms,
                body: body.to_string(),
            })
        });
        let events = events.collect();
        self.commit(events)
    }

    fn state(&self, invoice: &Invoice) -> State {
        state(&invoice.terms, &invoice.arrivals, self.looked_at_ms)
    }

    /// What the shop is told of an invoice, in webhooks too.
    fn document(&self, invoice: &Invoice, base: &LinkBase) -> Value {
        let terms = &invoice.terms;
        let link = PaymentLink {
            asset: terms.asset,
            amount: Some(terms.amount),
            memo: Some(terms.memo),
            expires: Some(terms.expires_at),
            ..base.link.clone()
        };
        let received = invoice.arrivals.iter().fold(0_u128, |sum, arrival| sum.saturating_add(arrival.amount.0));
        let payments = invoice.arrivals.iter().map(|arrival| {
            json!({
                "sender": arrival.sender,
                "sequence": arrival.sequence,
                "amount": arrival.amount,
                "receivedAtMs": arrival.received_at_ms,
                "late": arrival.is_late(terms),
            })
        });
        json!({
            "id": terms.id,
            "reference": terms.reference,
            "state": self.state(invoice),
            "account": base.link.account,
            "asset": terms.asset,
            "amount": terms.amount,
            "received": received.to_string(),
            "memo": terms.memo,
            "memoText": format_memo(&terms.memo),
            "createdAtMs": terms.created_at_ms,
            "expiresAt": terms.expires_at,
            "link": link.to_string(),
            "webLink": base.page.as_ref().map(|page| link.behind(page)),
            "payments": payments.collect::<Vec<_>>(),
        })
    }

    fn full_document(&self, invoice: &Invoice, base: &LinkBase) -> Value {
        let mut document = self.document(invoice, base);
        let deliveries = invoice.events.iter().filter_map(|id| self.book.delivery(id));
        let webhooks: Vec<_> = deliveries.map(describe_delivery).collect();
        if let Some(object) = document.as_object_mut() {
            object.insert("webhooks".into(), webhooks.into());
        }
        document
    }
}

fn describe_delivery(delivery: &Delivery) -> Value {
    let (name, reason, next) = match &delivery.last {
        None => ("waiting", None, None),
        Some(Outcome::Delivered) => ("delivered", None, None),
        Some(Outcome::Failed { reason, next_at_ms }) => ("failing", Some(reason), Some(next_at_ms)),
        Some(Outcome::GivenUp { reason }) => ("given_up", Some(reason), None),
    };
    json!({
        "id": delivery.event.id,
        "type": format!("invoice.{}", delivery.event.state),
        "delivery": name,
        "attempts": delivery.attempts,
        "lastError": reason,
        "nextAttemptAtMs": next,
    })
}

/// In milliseconds since 1970.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "invoices end by it and webhooks wait by it; what came in counts by any clock"
)]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
