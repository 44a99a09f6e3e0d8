//! The one owner of the book and its journal: whatever it answers is on disk.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastpay_core::AccountId;
use fastpay_ethereum::utc;
use fastpay_rpc::PaymentName;
use fastpay_wallet::folder::{FolderError, Lock, ReceivedPayment};
use tokio::sync::Notify;

use crate::archive::{Archive, ArchiveError};
use crate::book::{self, Attempt, Book, Delivery, Entry, Event, Outcome, Request, RequestError, Requested};
use crate::forms::{Invoice, InvoicePage, LinkBase, Status, WebhookBody, event_type};
use crate::invoice::{Arrival, State, state};
use crate::journal::{Journal, JournalError};

/// Why nobody was told of an event.
const NO_TARGET: &str = "no webhook_url is set";

/// Why the ledger cannot do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What ended long ago.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Another service uses the folder, or the system refuses.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The request contradicts an earlier one.
    #[error(transparent)]
    Request(#[from] RequestError),
}

#[derive(Debug)]
struct Inner {
    journal: Journal,
    book: Book,
    /// When the wallet looked last, in milliseconds since 1970: what was not seen then came later.
    looked_at_ms: u64,
    archive: Archive,
    /// Whether there is somebody to tell.
    tells_shop: bool,
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
    /// Opens the ledger in `folder`, and tells of what a crash left untold. What ended longer ago than `keep` goes to the
    /// archive when the journal is next written anew. Where there is no shop to tell, nothing waits for one: what happens,
    /// and what waited, is kept as what nobody is told of.
    ///
    /// # Errors
    /// Where another service uses it, or the journal is damaged.
    pub async fn open(folder: &Path, base: LinkBase, keep: Duration, tells_shop: bool) -> Result<Self, LedgerError> {
        let lock = Lock::acquire(folder, Duration::ZERO).await?;
        let (journal, book) = Journal::open(&folder.join("journal.jsonl"))?;
        let looked_at_ms = book.looked_at_ms();
        let archive = Archive { folder: folder.join("archive"), keep };
        let inner = Arc::new(Mutex::new(Inner { journal, book, looked_at_ms, archive, tells_shop }));
        let ledger = Self { inner, base: Arc::new(base), announced: Arc::default(), _lock: Arc::new(lock) };
        ledger.with(|inner| {
            if !tells_shop {
                inner.give_up()?;
            }
            inner.announce(&ledger.base)
        })?;
        Ok(ledger)
    }

    /// The account that is paid.
    #[must_use]
    pub fn account(&self) -> AccountId {
        self.base.link.account
    }

    /// Makes an invoice, or finds the one that the same request made before. True where it is new. At most `open_max`
    /// are open at a time.
    ///
    /// # Errors
    /// Where the reference or memo is taken, too many are open, or the disk refuses.
    pub fn create(&self, request: &Request, open_max: usize) -> Result<(Invoice, bool), LedgerError> {
        let id = format!("inv_{}", hex::encode(rand::random::<[u8; 14]>()));
        self.with(|inner| {
            // Of a clock that was set back: who pays in time must not be late by the time of before.
            let now = now_ms().max(inner.looked_at_ms);
            let (id, is_new) = match inner.book.request(request, id, now, open_max)? {
                Requested::New(terms) => {
                    let id = terms.id.clone();
                    inner.commit(vec![Entry::Created(terms)])?;
                    (id, true)
                }
                Requested::Known(id) => (id, false),
            };
            let invoice = inner.book.invoice(&id).expect("it is there, or was just made");
            Ok((inner.full_form(invoice, &self.base), is_new))
        })
    }

    /// Whether a payment was taken in.
    #[must_use]
    pub fn has(&self, name: &PaymentName) -> bool {
        self.read(|inner| inner.book.has(name))
    }

    /// Takes in what the wallet received, and tells of what follows. The wallet began at `looked_at_ms` to look for
    /// everything; 0 where it did not see everything. Payments that are known already change nothing.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn take_in(&self, received: &[ReceivedPayment], looked_at_ms: u64) -> Result<(), LedgerError> {
        self.with(|inner| {
            let arrivals = received.iter().map(|received| Arrival::new(received, inner.looked_at_ms));
            let is_new = |arrival: &Arrival| !inner.book.has(&arrival.name());
            let new = arrivals.filter(is_new).map(Entry::Arrived).collect();
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

    /// Up to `count` of those things that the shop is still to be told, and that are due, oldest first.
    #[must_use]
    pub fn undelivered(&self, is_due: impl Fn(u64) -> bool, count: usize) -> Vec<Delivery> {
        self.read(|inner| {
            let due = inner.book.undelivered().filter(|delivery| delivery.due_at_ms().is_some_and(&is_due));
            due.take(count).cloned().collect()
        })
    }

    /// Waits until there may be something new to tell.
    pub async fn until_announced(&self) {
        self.announced.notified().await;
    }

    /// An invoice with its webhooks.
    #[must_use]
    pub fn invoice(&self, id: &str) -> Option<Invoice> {
        self.read(|inner| Some(inner.full_form(inner.book.invoice(id)?, &self.base)))
    }

    /// Up to `count` invoices after one, oldest first, of one state or all. None where there is no such one.
    #[must_use]
    pub fn invoices(&self, after: Option<&str>, wanted: Option<State>, count: usize) -> Option<InvoicePage> {
        self.read(|inner| {
            let invoices = inner.book.invoices_after(after)?;
            let mut fitting =
                invoices.filter(|invoice| wanted.is_none_or(|wanted| inner.state(invoice) == wanted)).peekable();
            let page: Vec<_> = fitting.by_ref().take(count).collect();
            let next = page.last().filter(|_| fitting.peek().is_some()).map(|last| last.terms.id.clone());
            let invoices = page.into_iter().map(|invoice| inner.full_form(invoice, &self.base)).collect();
            Some(InvoicePage { invoices, next })
        })
    }

    /// Reads the book, with when the wallet looked last. Meanwhile nothing changes.
    pub fn read_book<T>(&self, f: impl FnOnce(&Book, u64) -> T) -> T {
        self.read(|inner| f(&inner.book, inner.looked_at_ms))
    }

    /// How the service does.
    #[must_use]
    pub fn status(&self) -> Status {
        self.read(|inner| {
            let waiting: Vec<_> = inner.book.undelivered().collect();
            Status {
                account: self.account().into(),
                looked_at_ms: inner.looked_at_ms,
                invoices_open: inner.book.open(),
                webhooks_waiting: waiting.len(),
                webhooks_failing: waiting.iter().filter(|delivery| delivery.attempts > 0).count(),
                unmatched_payments: inner.book.unmatched().len(),
            }
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
        if self.journal.is_due() { self.compact() } else { Ok(()) }
    }

    /// Writes the journal anew, after what ended long ago is in the archive.
    fn compact(&mut self) -> Result<(), LedgerError> {
        let keep_ms = u64::try_from(self.archive.keep.as_millis()).unwrap_or(u64::MAX);
        let compacted = self.book.compacted(self.looked_at_ms.saturating_sub(keep_ms));
        let written = self.archive.add(&compacted, self.looked_at_ms).map_err(LedgerError::from);
        let written = written.and_then(|()| Ok(self.journal.rewrite(&compacted.kept)?));
        if let Err(error) = written {
            // The old one is good for as long as there is room for it. Where it is not, nothing can be appended either.
            tracing::error!(%error, "the journal could not be written anew");
            return Ok(self.journal.append(&[])?);
        }
        self.book = Book::default();
        compacted.kept.into_iter().for_each(|entry| self.book.apply(entry));
        Ok(())
    }

    /// Nobody is told any more of what waits.
    fn give_up(&mut self) -> Result<(), LedgerError> {
        let given_up = self.book.undelivered().map(|delivery| {
            let outcome = Outcome::GivenUp { reason: NO_TARGET.into() };
            Entry::Attempted(Attempt { event: delivery.event.id.clone(), at_ms: now_ms(), outcome })
        });
        let given_up: Vec<_> = given_up.collect();
        if !given_up.is_empty() {
            tracing::warn!(count = given_up.len(), "{NO_TARGET}: webhooks that waited are given up");
        }
        self.commit(given_up)
    }

    fn announce(&mut self, base: &LinkBase) -> Result<(), LedgerError> {
        let changed = self.book.changed(self.looked_at_ms);
        let events = changed.into_iter().map(|(invoice, state)| {
            let event = Event {
                id: format!("evt_{}", hex::encode(rand::random::<[u8; 16]>())),
                invoice: invoice.terms.id.clone(),
                state,
                arrivals: invoice.arrivals.len(),
                looked_at_ms: self.looked_at_ms,
                body: String::new(),
            };
            if !self.tells_shop {
                return Entry::Told(Delivery::given_up(event, NO_TARGET.into()));
            }
            let body = WebhookBody {
                r#type: event_type(state),
                timestamp: utc(now_ms() / 1_000),
                data: Invoice::new(invoice, state, base),
            };
            let body = serde_json::to_string(&body).expect("a form is text and numbers");
            Entry::Announced(Event { body, ..event })
        });
        let events = events.collect();
        self.commit(events)
    }

    fn state(&self, invoice: &book::Invoice) -> State {
        state(&invoice.terms, &invoice.arrivals, self.looked_at_ms)
    }

    fn full_form(&self, invoice: &book::Invoice, base: &LinkBase) -> Invoice {
        let deliveries = invoice.events.iter().filter_map(|id| self.book.delivery(id));
        Invoice::new(invoice, self.state(invoice), base).with_webhooks(deliveries)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{Amount, Asset, Domain};
    use fastpay_wallet::PaymentLink;

    async fn open(folder: &Path, tells_shop: bool) -> Ledger {
        let link = PaymentLink::new(AccountId([7; 32]), &Domain::new(1, [5; 20].into()), Asset::ETHER);
        Ledger::open(folder, LinkBase { link, page: None }, Duration::MAX, tells_shop).await.unwrap()
    }

    /// An invoice of this reference that expires, and the delivery of the event that tells of it.
    fn expire(ledger: &Ledger, reference: &str) -> Delivery {
        let (asset, amount, memo) = (Asset::ETHER, Amount(5), None);
        let request = Request { reference: reference.into(), asset, amount, memo, expires_in: 1 };
        ledger.create(&request, 1).unwrap();
        let last = |book: &Book| book.invoices_after(None).unwrap().last().unwrap().clone();
        let end = ledger.read_book(|book, _| last(book).terms.expires_at_ms());
        ledger.take_in(&[], end).unwrap();
        ledger.read_book(|book, _| book.delivery(&last(book).events[0]).unwrap().clone())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn without_a_shop_to_tell_nothing_waits_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let untold = Some(Outcome::GivenUp { reason: NO_TARGET.into() });
        let ledger = open(folder.path(), true).await;
        let waiting = expire(&ledger, "order 1");
        assert!(!waiting.event.body.is_empty());
        assert_eq!(ledger.undelivered(|_| true, 9), std::slice::from_ref(&waiting));
        drop(ledger);
        // What waited, and what happens then.
        let ledger = open(folder.path(), false).await;
        let given_up = ledger.read_book(|book, _| book.delivery(&waiting.event.id).unwrap().clone());
        assert_eq!((given_up.last, given_up.event.body.as_str()), (untold.clone(), ""));
        let silent = expire(&ledger, "order 2");
        assert_eq!((silent.last, silent.attempts, silent.event.body.as_str()), (untold, 0, ""));
        assert_eq!((ledger.undelivered(|_| true, 9), ledger.status().webhooks_waiting), (vec![], 0));
        // So all of it can go to the archive.
        let archived = ledger.read_book(|book, _| book.compacted(u64::MAX).forgotten);
        assert_eq!(archived.invoices_after(None).unwrap().count(), 2);
        drop(ledger);
        // A shop that is there later is told what happens from then on.
        let ledger = open(folder.path(), true).await;
        assert_eq!(ledger.undelivered(|_| true, 9), []);
        let told = expire(&ledger, "order 3");
        assert_eq!(ledger.undelivered(|_| true, 9), [told]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_is_said_that_the_journal_does_not_have() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = open(folder.path(), true).await;
        let waiting = expire(&ledger, "order 1");
        let (asset, amount, memo) = (Asset::ETHER, Amount(5), None);
        let request = |reference: &str| Request { reference: reference.into(), asset, amount, memo, expires_in: 1 };
        ledger.create(&request("order 2"), 9).unwrap();
        ledger.break_journal();
        assert!(ledger.create(&request("order 3"), 9).is_err());
        assert!(ledger.attempted(&waiting.event.id, Outcome::Delivered).is_err());
        // By then the second has expired, too.
        assert!(ledger.take_in(&[], now_ms() + 60_000).is_err());
        let references: Vec<_> = ledger.read_book(|book, _| {
            book.invoices_after(None).unwrap().map(|invoice| invoice.terms.reference.clone()).collect()
        });
        assert_eq!(references, ["order 1", "order 2"]);
        assert_eq!(ledger.undelivered(|_| true, 9), [waiting], "what was not noted is told again, and nothing else");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_cannot_be_archived_stays_in_the_journal() {
        let (folder, blocked) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = PaymentLink::new(AccountId([7; 32]), &Domain::new(1, [5; 20].into()), Asset::ETHER);
        let open = async || {
            let base = LinkBase { link: link.clone(), page: None };
            Ledger::open(folder.path(), base, Duration::ZERO, false).await.unwrap()
        };
        let count = |ledger: &Ledger| ledger.read_book(|book, _| book.invoices_after(None).unwrap().count());
        let ledger = open().await;
        expire(&ledger, "order 1");
        ledger.take_in(&[], now_ms() + 60_000).unwrap();
        // In the way of the archive's folder.
        std::fs::write(folder.path().join("archive"), b"").unwrap();
        ledger.with(Inner::compact).unwrap();
        assert_eq!(count(&ledger), 1);
        drop(ledger);
        let ledger = open().await;
        assert_eq!(count(&ledger), 1, "the journal on disk has it still");
        std::fs::rename(folder.path().join("archive"), blocked.path().join("archive")).unwrap();
        ledger.take_in(&[], now_ms() + 60_000).unwrap();
        ledger.with(Inner::compact).unwrap();
        assert_eq!(count(&ledger), 0);
        assert_eq!(std::fs::read_dir(folder.path().join("archive")).unwrap().count(), 1);
    }
}
