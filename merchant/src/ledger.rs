//! The ledger, the only owner of the database: everything that it answers or announces to the shop is on disk.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastpay_core::{AccountId, Amount, Asset, Digest, SequenceNumber, Transfer};
use fastpay_ethereum::utc;
use fastpay_program::Lock;
use fastpay_rpc::PaymentName;
use fastpay_wallet::folder::{FolderError, ReceivedPayment};
use tokio::sync::Notify;

use crate::event::{Delivery, Event, Outcome};
use crate::export::{Page, Place, to_csv};
use crate::forms::{
    Invoice, InvoicePage, LinkBase, PAYMENTS_SHOWN_MAX, RefundLists, RefundPage, RefundSummary, Status, WebhookBody,
    event_type,
};
use crate::invoice::{Arrival, State};
use crate::ledger_error::LedgerError;
use crate::payout::PayoutRequest;
use crate::refund::{RefundRequest, take_sent};
use crate::request::Request;
use crate::store::{Order, Payout, Record, Rows, Store};

/// Why an event was given up without an attempt.
const NO_TARGET: &str = "no webhook_url is set";
/// After this many events of an invoice, the shop is notified only of changes of its state, which are a few in all:
/// anybody can pay the smallest unit to an invoice a thousand times.
const EVENTS_MAX: u64 = 20;

#[derive(Debug)]
struct Inner {
    store: Store,
    /// When the wallet last read, in milliseconds since 1970: a payment that it did not see came later.
    looked_at_ms: u64,
}

/// The ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger {
    inner: Arc<Mutex<Inner>>,
    teller: Arc<Teller>,
    announced: Arc<Notify>,
    _lock: Arc<Lock>,
}

/// Makes the events of changes.
#[derive(Debug)]
struct Teller {
    base: LinkBase,
    /// Whether a shop is configured.
    tells_shop: bool,
}

impl Ledger {
    /// Opens the ledger in `folder`, and announces what a crash left unannounced. Without a shop to notify, no event
    /// waits: new and waiting ones are stored as given up.
    ///
    /// # Errors
    /// If another service uses it, or its files are damaged.
    pub async fn open(folder: &Path, base: LinkBase, tells_shop: bool) -> Result<Self, LedgerError> {
        let lock = Lock::acquire(folder, Duration::ZERO).await.map_err(FolderError::from)?;
        let teller = Teller { base, tells_shop };
        let inner = tokio::task::block_in_place(|| {
            let mut store = Store::open(folder)?;
            let looked_at_ms = store.rows().looked_at_ms()?;
            store.change(|rows| {
                if !tells_shop {
                    give_up(rows)?;
                }
                teller.announce(rows, looked_at_ms)
            })?;
            Ok::<_, LedgerError>(Inner { store, looked_at_ms })
        })?;
        let inner = Arc::new(Mutex::new(inner));
        Ok(Self { inner, teller: Arc::new(teller), announced: Arc::default(), _lock: Arc::new(lock) })
    }

    /// The account to be paid.
    #[must_use]
    pub fn account(&self) -> AccountId {
        self.teller.base.link.account
    }

    /// Creates an invoice, or finds the one that the same request created before. Returns whether it is new. At most
    /// `open_max` are open at a time.
    ///
    /// # Errors
    /// If the reference or memo is taken, too many are open, or the database fails.
    pub fn create(&self, request: &Request, open_max: usize) -> Result<(Invoice, bool), LedgerError> {
        let id = format!("inv_{}", hex::encode(rand::random::<[u8; 14]>()));
        self.with(|inner| {
            // The clock may have been set back. A payment in time must not count as late because of an earlier reading.
            let now = now_ms().max(inner.looked_at_ms);
            let (id, is_new) = inner.store.change(|rows| match request.answer(rows, id, now, open_max)? {
                Ok(known) => Ok::<_, LedgerError>((known.terms.id, false)),
                Err(terms) => rows.add_invoice(&terms).map(|()| (terms.id, true)).map_err(LedgerError::from),
            })?;
            let rows = inner.store.rows();
            let record = rows.invoice(&id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            Ok((self.teller.full_form(&rows, &record)?, is_new))
        })
    }

    /// Whether a payment is in the ledger.
    ///
    /// # Errors
    /// If the database fails.
    pub fn has(&self, name: &PaymentName) -> Result<bool, LedgerError> {
        self.read(|rows| Ok(rows.has_payment(name)?))
    }

    /// Adds received payments and the resulting events, in one change. The wallet began to read all lists at
    /// `looked_at_ms`; 0 if it did not read all of them. Known payments change nothing.
    ///
    /// # Errors
    /// If the database fails.
    pub fn take_in(&self, received: &[ReceivedPayment], looked_at_ms: u64) -> Result<(), LedgerError> {
        self.with(|inner| {
            let (before, now) = (inner.looked_at_ms, inner.looked_at_ms.max(looked_at_ms));
            inner.store.change(|rows| {
                for received in received {
                    rows.set_looked_at_ms(before)?;
                    rows.add_payment(&Arrival::new(received, before))?;
                }
                self.teller.announce(rows, now)
            })?;
            inner.looked_at_ms = now;
            Ok(())
        })?;
        self.announced.notify_one();
        Ok(())
    }

    /// Stores the outcome of an attempt to deliver an event.
    ///
    /// # Errors
    /// If the database fails.
    pub fn attempted(&self, event: &str, outcome: &Outcome) -> Result<(), LedgerError> {
        self.with(|inner| inner.store.change(|rows| Ok(rows.attempted(event, outcome)?)))
    }

    /// Up to `count` events that are not delivered yet, and are due by `by_ms` or only after `beyond_ms`, oldest first.
    ///
    /// # Errors
    /// If the database fails.
    pub fn due(&self, by_ms: u64, beyond_ms: u64, count: usize) -> Result<Vec<Delivery>, LedgerError> {
        self.read(|rows| Ok(rows.due(by_ms, beyond_ms, count)?))
    }

    /// Waits until there may be a new event.
    pub async fn until_announced(&self) {
        self.announced.notified().await;
    }

    /// An invoice with its webhooks.
    ///
    /// # Errors
    /// If the database fails.
    pub fn invoice(&self, id: &str) -> Result<Option<Invoice>, LedgerError> {
        self.read(|rows| rows.invoice(id)?.map(|record| self.teller.full_form(rows, &record)).transpose())
    }

    /// The invoice with the shop's reference, with its webhooks.
    ///
    /// # Errors
    /// If the database fails.
    pub fn invoice_of_reference(&self, reference: &str) -> Result<Option<Invoice>, LedgerError> {
        self.read(|rows| {
            rows.invoice_of_reference(reference)?.map(|record| self.teller.full_form(rows, &record)).transpose()
        })
    }

    /// Up to `count` invoices that follow `after`, in one state or all. `None` if there is no invoice `after`.
    ///
    /// # Errors
    /// If the database fails.
    pub fn invoices(
        &self,
        after: Option<&str>,
        order: Order,
        wanted: Option<State>,
        count: usize,
    ) -> Result<Option<InvoicePage>, LedgerError> {
        self.read(|rows| {
            let after = match after {
                None => order.start(),
                Some(id) => match rows.invoice(id)? {
                    Some(record) => record.number,
                    None => return Ok(None),
                },
            };
            let mut records = rows.invoices_after(after, order, wanted, count.saturating_add(1))?;
            let is_more = records.len() > count;
            records.truncate(count);
            let next = records.last().filter(|_| is_more).map(|last| last.terms.id.clone());
            let invoices = records.iter().map(|record| self.teller.full_form(rows, record));
            Ok(Some(InvoicePage { invoices: invoices.collect::<Result<_, _>>()?, next }))
        })
    }

    /// Up to `count` rows of the table of invoices and payments. `None` if there is no such place in it.
    ///
    /// # Errors
    /// If the database fails.
    pub fn export(&self, from: &Place, count: usize) -> Result<Option<Page>, LedgerError> {
        self.read(|rows| Ok(to_csv(rows, from, count)?))
    }

    /// Prepares a list of refunds, or finds the one that the same request prepared before. Returns whether it is new.
    ///
    /// # Errors
    /// If the reference is taken, nothing can be refunded, or the database fails.
    pub fn prepare_refunds(&self, request: &RefundRequest) -> Result<(RefundPage, bool), LedgerError> {
        self.with(|inner| {
            let looked_at_ms = inner.looked_at_ms;
            let prepared = inner.store.change(|rows| request.answer(rows, self.account(), now_ms(), looked_at_ms));
            let (list, is_new) = prepared?;
            Ok((RefundPage::new(&list, &inner.store.rows().refunds(list.number)?), is_new))
        })
    }

    /// A list of refunds.
    ///
    /// # Errors
    /// If the database fails.
    pub fn refunds(&self, reference: &str) -> Result<Option<RefundPage>, LedgerError> {
        self.read(|rows| {
            let Some(list) = rows.refund_list(reference)? else { return Ok(None) };
            Ok(Some(RefundPage::new(&list, &rows.refunds(list.number)?)))
        })
    }

    /// Up to `count` lists after the one named `after`, oldest first. `None` if there is no such list.
    ///
    /// # Errors
    /// If the database fails.
    pub fn refund_lists(&self, after: Option<&str>, count: usize) -> Result<Option<RefundLists>, LedgerError> {
        self.read(|rows| {
            let after = match after {
                None => 0,
                Some(reference) => match rows.refund_list(reference)? {
                    Some(list) => list.number,
                    None => return Ok(None),
                },
            };
            let mut lists = rows.refund_lists_after(after, count.saturating_add(1))?;
            let is_more = lists.len() > count;
            lists.truncate(count);
            let next = lists.last().filter(|_| is_more).map(|last| last.reference.clone());
            Ok(Some(RefundLists { lists: lists.iter().map(RefundSummary::from).collect(), next }))
        })
    }

    /// The invoice of a checkout page with this key, and its payments.
    ///
    /// # Errors
    /// If the database fails.
    pub fn checkout(&self, key: &str) -> Result<Option<(Record, Vec<Arrival>)>, LedgerError> {
        self.read(|rows| {
            let Some(record) = rows.invoice_of_checkout(key)? else { return Ok(None) };
            let payments = rows.greatest(record.number, PAYMENTS_SHOWN_MAX)?;
            Ok(Some((record, payments)))
        })
    }

    /// The common part of the shop's payment links.
    #[must_use]
    pub fn base(&self) -> &LinkBase {
        &self.teller.base
    }

    /// The assets of all invoices.
    ///
    /// # Errors
    /// If the database fails.
    pub fn assets(&self) -> Result<Vec<Asset>, LedgerError> {
        self.read(|rows| Ok(rows.assets()?))
    }

    /// The payout that the same request prepared before.
    ///
    /// # Errors
    /// If the reference is taken, or the database fails.
    pub fn known_payout(&self, request: &PayoutRequest) -> Result<Option<Payout>, LedgerError> {
        self.read(|rows| request.known(rows))
    }

    /// Prepares a payout with this fee, or finds that of the same request before. Returns whether it is new.
    ///
    /// # Errors
    /// If the reference is taken, or the database fails.
    pub fn prepare_payout(&self, request: &PayoutRequest, fee: Amount) -> Result<(Payout, bool), LedgerError> {
        self.with(|inner| inner.store.change(|rows| request.answer(rows, fee, now_ms())))
    }

    /// A payout.
    ///
    /// # Errors
    /// If the database fails.
    pub fn payout(&self, reference: &str) -> Result<Option<Payout>, LedgerError> {
        self.read(|rows| Ok(rows.payout(reference)?))
    }

    /// Up to `count` payouts after `after`, newest first, and whether there are more. `None` if `after` does not exist.
    ///
    /// # Errors
    /// If the database fails.
    pub fn payouts(&self, after: Option<&str>, count: usize) -> Result<Option<(Vec<Payout>, bool)>, LedgerError> {
        self.read(|rows| {
            let before = match after {
                None => i64::MAX,
                Some(reference) => match rows.payout(reference)? {
                    Some(payout) => payout.number,
                    None => return Ok(None),
                },
            };
            let mut payouts = rows.payouts_before(before, count.saturating_add(1))?;
            let is_more = payouts.len() > count;
            payouts.truncate(count);
            Ok(Some((payouts, is_more)))
        })
    }

    /// The payouts that are ordered, and whose state on Ethereum may still change.
    ///
    /// # Errors
    /// If the database fails.
    pub fn payouts_on_their_way(&self) -> Result<Vec<Payout>, LedgerError> {
        self.read(|rows| Ok(rows.payouts_on_their_way()?))
    }

    /// Stores the state of a payout on Ethereum, and whether that is final.
    ///
    /// # Errors
    /// If the database fails.
    pub fn payout_is(&self, payout: &Payout, state: &str, is_done: bool) -> Result<(), LedgerError> {
        self.with(|inner| inner.store.change(|rows| Ok(rows.set_ethereum(payout.number, state, is_done)?)))
    }

    /// The number of the account's next order that may pay a refund or payout; `None` while none is open.
    ///
    /// # Errors
    /// If the database fails.
    pub fn expects_sent(&self) -> Result<Option<SequenceNumber>, LedgerError> {
        self.read(|rows| {
            let is_open = rows.has_open_refunds()? || rows.has_unordered_payouts()?;
            Ok(if is_open { Some(SequenceNumber(rows.sent_next()?)) } else { None })
        })
    }

    /// Adds a settled order of the account, with its digest: the one that [`Ledger::expects_sent`] named.
    ///
    /// # Errors
    /// If the database fails.
    pub fn take_sent(&self, transfer: &Transfer, digest: &Digest) -> Result<(), LedgerError> {
        self.with(|inner| inner.store.change(|rows| take_sent(rows, transfer, digest)))
    }

    /// Skips a number of the account that the contract voided: the one that [`Ledger::expects_sent`] named.
    ///
    /// # Errors
    /// If the database fails.
    pub fn step_over(&self, sequence: SequenceNumber) -> Result<(), LedgerError> {
        self.with(|inner| inner.store.change(|rows| Ok(rows.set_sent_next(sequence.0.saturating_add(1))?)))
    }

    /// The service's status.
    ///
    /// # Errors
    /// If the database fails.
    pub fn status(&self) -> Result<Status, LedgerError> {
        self.with(|inner| {
            let rows = inner.store.rows();
            Ok(Status {
                account: self.account().into(),
                looked_at_ms: inner.looked_at_ms,
                invoices_open: rows.count_open()?,
                webhooks_waiting: rows.count_waiting()?,
                webhooks_failing: rows.count_failing()?,
                unmatched_payments: rows.count_unmatched()?,
            })
        })
    }

    fn read<T>(&self, f: impl FnOnce(&Rows) -> Result<T, LedgerError>) -> Result<T, LedgerError> {
        self.with(|inner| f(&inner.store.rows()))
    }

    /// Calls `f` after telling the runtime that this thread will wait for the disk.
    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> Result<T, LedgerError>) -> Result<T, LedgerError> {
        tokio::task::block_in_place(|| f(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Gives up the waiting webhooks.
fn give_up(rows: &Rows) -> Result<(), LedgerError> {
    let given_up = rows.give_up(NO_TARGET)?;
    if given_up > 0 {
        tracing::warn!(count = given_up, "{NO_TARGET}: webhooks that waited are given up");
    }
    Ok(())
}

impl Teller {
    /// Adds the events of changes since the last ones. The wallet last read at `looked_at_ms`.
    fn announce(&self, rows: &Rows, looked_at_ms: u64) -> Result<(), LedgerError> {
        let ended = rows.ended(looked_at_ms)?;
        for number in &ended {
            rows.set_state(*number, State::Expired)?;
        }
        for number in ended.into_iter().chain(rows.unreported()?) {
            let Some(record) = rows.invoice_numbered(number)? else { continue };
            let (count, reported) = rows.reported(number)?;
            // Report further payments in the same state, too, but only a few times.
            if reported != Some(record.state) || count < EVENTS_MAX {
                rows.set_looked_at_ms(looked_at_ms)?;
                rows.add_event(number, looked_at_ms, &self.delivery(rows, &record)?)?;
            }
            rows.announced(number)?;
        }
        Ok(())
    }

    fn delivery(&self, rows: &Rows, record: &Record) -> Result<Delivery, LedgerError> {
        let id = format!("evt_{}", hex::encode(rand::random::<[u8; 16]>()));
        let event = Event { id, state: record.state, body: String::new() };
        if !self.tells_shop {
            let last = Some(Outcome::GivenUp { reason: NO_TARGET.into() });
            return Ok(Delivery { event, attempts: 0, last });
        }
        let body = WebhookBody {
            r#type: event_type(record.state),
            timestamp: utc(now_ms() / 1_000),
            data: self.form(rows, record)?,
        };
        let body = serde_json::to_string(&body).expect("a form is text and numbers");
        Ok(Delivery { event: Event { body, ..event }, attempts: 0, last: None })
    }

    fn form(&self, rows: &Rows, record: &Record) -> Result<Invoice, LedgerError> {
        Ok(Invoice::new(record, &rows.greatest(record.number, PAYMENTS_SHOWN_MAX)?, &self.base))
    }

    fn full_form(&self, rows: &Rows, record: &Record) -> Result<Invoice, LedgerError> {
        Ok(self.form(rows, record)?.with_webhooks(&rows.events(record.number)?))
    }
}

/// The time, in milliseconds since 1970.
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
mod tests;
