use super::*;
use crate::checkout::Checkout;
use crate::ledger_error::RequestError;
use fastpay_core::{Amount, Asset, Domain, Memo, Payment, SequenceNumber};
use fastpay_wallet::PaymentLink;
use fastpay_wallet::folder::FolderError;
use serde_json::{Value, json};

const EXPIRES_IN: u64 = 1_000;
const ALL: u64 = u64::MAX;

async fn open(folder: &Path, tells_shop: bool) -> Ledger {
    let link = PaymentLink::new(AccountId([7; 32]), &Domain::new(1, [5; 20].into()), Asset::ETHER);
    Ledger::open(folder, LinkBase { link, page: None, checkout: None }, tells_shop).await.unwrap()
}

/// A ledger in a folder of its own.
async fn alone() -> (Ledger, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (open(folder.path(), true).await, folder)
}

fn request(reference: &str, amount: u128) -> Request {
    let (reference, amount) = (reference.into(), Amount(amount));
    Request {
        reference,
        asset: Asset::ETHER,
        amount,
        memo: Some(Memo::repeat_byte(1)),
        expires_in: EXPIRES_IN,
        checkout: Checkout::default(),
    }
}

fn received(sequence: u64, amount: u128) -> ReceivedPayment {
    let payment = Payment {
        sender: AccountId([9; 32]),
        recipient: AccountId([7; 32]),
        asset: Asset::ETHER,
        amount: Amount(amount),
        sequence: SequenceNumber(sequence),
        memo: Memo::repeat_byte(1),
    };
    of_payment(&payment)
}

fn of_payment(payment: &Payment) -> ReceivedPayment {
    serde_json::from_value(json!({ "receivedAtMs": 5, "payment": payment, "certificate": "" })).unwrap()
}

impl Ledger {
    fn made(&self, request: &Request) -> Result<(Value, bool), RequestError> {
        match self.create(request, 1_000) {
            Ok((invoice, is_new)) => Ok((serde_json::to_value(invoice).unwrap(), is_new)),
            Err(LedgerError::Request(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    fn shown(&self, id: &Value) -> Value {
        serde_json::to_value(self.invoice(id.as_str().unwrap()).unwrap().unwrap()).unwrap()
    }

    fn due_states(&self) -> Vec<State> {
        self.due(ALL, ALL, 1_000).unwrap().iter().map(|delivery| delivery.event.state).collect()
    }

    fn table(&self, from: &str, count: usize) -> (Vec<String>, Option<String>) {
        let from = if from.is_empty() { Place::Start } else { from.parse().unwrap() };
        let page = self.export(&from, count).unwrap().unwrap();
        let lines: Vec<_> = String::from_utf8(page.table).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), page.rows + 1);
        (lines[1..].to_vec(), page.next.map(|next| next.to_string()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_twice_makes_one_invoice() {
    let (ledger, _folder) = alone().await;
    let (first, is_new) = ledger.made(&request("order 1", 5)).unwrap();
    assert!(is_new);
    let again = |request: &Request| ledger.made(request).map(|(invoice, is_new)| (invoice["id"].clone(), is_new));
    let known = Ok((first["id"].clone(), false));
    assert_eq!(again(&request("order 1", 5)), known);
    assert_eq!(again(&Request { memo: None, ..request("order 1", 5) }), known);
    let other_terms = Err(RequestError::OtherTerms("order 1".into()));
    assert_eq!(again(&request("order 1", 6)), other_terms);
    assert_eq!(again(&Request { expires_in: EXPIRES_IN + 1, ..request("order 1", 5) }), other_terms);
    assert_eq!(again(&Request { memo: Some(Memo::ZERO), ..request("order 1", 5) }), other_terms);
    assert_eq!(again(&request("order 2", 5)), Err(RequestError::MemoTaken));
    // There is room for one that waits for its payment.
    let second = Request { memo: None, ..request("order 2", 5) };
    let full = ledger.create(&second, 1);
    assert!(matches!(full, Err(LedgerError::Request(RequestError::TooManyOpen(1)))));
    ledger.take_in(&[received(0, 5)], 0).unwrap();
    assert!(ledger.create(&second, 1).unwrap().1);
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_of_the_smallest_unit_are_announced_a_few_times_and_hide_no_other() {
    let (ledger, _folder) = alone().await;
    let (invoice, _) = ledger.made(&request("order 1", 700)).unwrap();
    let payments = (0..999).map(|number| match number {
        500 => received(number, 300),
        900 => received(number, 400),
        _ => received(number, 1),
    });
    let payments: Vec<_> = payments.collect();
    payments[..50].iter().for_each(|payment| ledger.take_in(std::slice::from_ref(payment), 0).unwrap());
    payments[50..].chunks(100).for_each(|payments| ledger.take_in(payments, 0).unwrap());
    let shown = ledger.shown(&invoice["id"]);
    let payments = shown["payments"].as_array().unwrap();
    let listed = payments.iter().map(|payment| {
        (payment["sequence"].as_u64().unwrap(), payment["amount"].as_str().unwrap().parse::<u128>().unwrap())
    });
    // Of equal ones the first; all in the order in which they came.
    let mut expected: Vec<_> = (0..98).map(|number| (number, 1)).collect();
    expected.extend([(500, 300), (900, 400)]);
    assert_eq!(listed.collect::<Vec<_>>(), expected);
    assert_eq!((shown["paymentCount"].as_u64(), shown["received"].as_str()), (Some(999), Some("1697")));
    let told = ledger.due_states();
    assert_eq!(told.len() as u64, EVENTS_MAX + 1, "what matters is told: {told:?}");
    assert_eq!(told.last(), Some(&State::Overpaid));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_counts_once_for_the_invoice_of_its_memo_and_asset() {
    let (ledger, _folder) = alone().await;
    let (invoice, _) = ledger.made(&request("order 1", 10)).unwrap();
    let of = |sequence, change: fn(&mut Payment)| {
        let mut payment = received(sequence, 10).payment;
        change(&mut payment);
        of_payment(&payment)
    };
    let other_asset = of(1, |payment| payment.asset = Asset([9; 20].into()));
    let other_memo = of(2, |payment| payment.memo = Memo::repeat_byte(2));
    ledger.take_in(&[received(0, 10), received(0, 10), other_asset, other_memo], 5).unwrap();
    ledger.take_in(&[received(0, 10)], 6).unwrap();
    assert!(ledger.has(&received(2, 10).name()).unwrap() && !ledger.has(&received(3, 10).name()).unwrap());
    assert_eq!((ledger.due_states(), ledger.status().unwrap().unmatched_payments), (vec![State::Paid], 2));
    let end = invoice["expiresAt"].as_u64().unwrap() * 1_000;
    ledger.take_in(&[], end + 1).unwrap();
    assert_eq!(ledger.due_states(), [State::Paid], "a paid invoice does not expire");
    ledger.take_in(&[received(3, 10)], end + 2).unwrap();
    assert_eq!(ledger.due_states(), [State::Paid, State::PaidTwice]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_expires_once_and_what_comes_then_is_late_also_after_a_restart() {
    let (ledger, folder) = alone().await;
    let (invoice, _) = ledger.made(&request("order 1", 10)).unwrap();
    let end = invoice["expiresAt"].as_u64().unwrap() * 1_000;
    ledger.take_in(&[], end - 1).unwrap();
    assert_eq!(ledger.due_states(), []);
    ledger.take_in(&[], end).unwrap();
    ledger.take_in(&[], end + 1).unwrap();
    assert_eq!((ledger.due_states(), ledger.status().unwrap().invoices_open), (vec![State::Expired], 0));
    drop(ledger);
    let ledger = open(folder.path(), true).await;
    assert_eq!(ledger.status().unwrap().looked_at_ms, end);
    ledger.take_in(&[received(0, 10)], 0).unwrap();
    assert_eq!(ledger.due_states(), [State::Expired, State::Late]);
    assert_eq!(ledger.shown(&invoice["id"])["payments"][0]["late"], true);
}

/// An invoice of this reference that expires, and the delivery of the event that tells of it.
fn expire(ledger: &Ledger, reference: &str) -> (Value, Delivery) {
    let (invoice, _) = ledger.made(&Request { memo: None, ..request(reference, 5) }).unwrap();
    ledger.take_in(&[], invoice["expiresAt"].as_u64().unwrap() * 1_000).unwrap();
    let events = ledger.read(|rows| Ok(rows.events(rows.invoice(invoice["id"].as_str().unwrap())?.unwrap().number)?));
    (invoice, events.unwrap().remove(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_due_until_it_was_taken_or_given_up_oldest_first() {
    let (ledger, _folder) = alone().await;
    let events: Vec<_> = (0..3).map(|number| expire(&ledger, &format!("order {number}")).1.event.id).collect();
    let due = |by, beyond| -> Vec<_> {
        ledger.due(by, beyond, 9).unwrap().into_iter().map(|delivery| delivery.event.id).collect()
    };
    assert_eq!(due(0, ALL), events);
    let failed = |next_at_ms| Outcome::Failed { reason: "away".into(), next_at_ms };
    ledger.attempted(&events[0], &failed(7)).unwrap();
    ledger.attempted(&events[0], &failed(9)).unwrap();
    assert_eq!((due(8, ALL), due(9, ALL)), (events[1..].to_vec(), events.clone()));
    // By a clock that was set back, the time seems to be too far away to be one.
    assert_eq!((due(5, 9), due(5, 8)), (events[1..].to_vec(), events.clone()));
    let delivery = ledger.due(9, ALL, 1).unwrap().remove(0);
    assert_eq!((delivery.attempts, delivery.last.clone(), delivery.due_at_ms()), (2, Some(failed(9)), Some(9)));
    ledger.attempted(&events[0], &Outcome::Delivered).unwrap();
    ledger.attempted(&events[1], &Outcome::GivenUp { reason: "410".into() }).unwrap();
    assert_eq!(due(ALL, ALL), events[2..]);
    let status = ledger.status().unwrap();
    assert_eq!((status.webhooks_waiting, status.webhooks_failing), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_webhook_url_no_webhook_waits() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path(), true).await;
    let (invoice, waiting) = expire(&ledger, "order 1");
    assert!(!waiting.event.body.is_empty());
    drop(ledger);
    // What waited, and what happens then.
    let ledger = open(folder.path(), false).await;
    let untold =
        |webhook: &Value| (webhook["delivery"].clone(), webhook["attempts"].clone(), webhook["lastError"].clone());
    let given_up = (json!("given_up"), json!(0), json!(NO_TARGET));
    assert_eq!(untold(&ledger.shown(&invoice["id"])["webhooks"][0]), given_up);
    let (silent, delivery) = expire(&ledger, "order 2");
    assert_eq!(untold(&ledger.shown(&silent["id"])["webhooks"][0]), given_up);
    assert_eq!((delivery.event.body.as_str(), ledger.due_states()), ("", vec![]));
    drop(ledger);
    // A shop that is there later is told what happens from then on.
    let ledger = open(folder.path(), true).await;
    assert_eq!(ledger.due_states(), []);
    expire(&ledger, "order 3");
    assert_eq!(ledger.due_states(), [State::Expired]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_sent_before_it_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path(), true).await;
    let (_, waiting) = expire(&ledger, "order 1");
    let (invoice, _) = ledger.made(&request("order 2", 5)).unwrap();
    ledger.inner.lock().unwrap().store.fill_disk();
    let long = Request { memo: None, ..request(&"x".repeat(50_000), 5) };
    assert!(matches!(ledger.create(&long, 9), Err(LedgerError::Store(_))));
    let outcome = Outcome::GivenUp { reason: "x".repeat(50_000) };
    assert!(matches!(ledger.attempted(&waiting.event.id, &outcome), Err(LedgerError::Store(_))));
    // So many that they need another page.
    let many: Vec<_> = (0..500).map(|number| received(number, 5)).collect();
    assert!(matches!(ledger.take_in(&many, 0), Err(LedgerError::Store(_))));
    let check = |ledger: &Ledger| {
        assert_eq!(ledger.due_states(), [State::Expired], "what was not noted is told again, and nothing else");
        let shown = ledger.shown(&invoice["id"]);
        assert_eq!((shown["state"].as_str(), shown["paymentCount"].as_u64()), (Some("open"), Some(0)));
        assert_eq!(ledger.invoices(None, Order::OldestFirst, None, 9).unwrap().unwrap().invoices.len(), 2);
        assert!(!ledger.has(&received(0, 5).name()).unwrap());
    };
    check(&ledger);
    drop(ledger);
    let ledger = open(folder.path(), true).await;
    check(&ledger);
    ledger.take_in(&many, 0).unwrap();
    assert_eq!(ledger.due_states(), [State::Expired, State::PaidTwice]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_service_is_refused_and_anybody_may_read() {
    let (ledger, folder) = alone().await;
    ledger.made(&request("order 1", 5)).unwrap();
    let link = PaymentLink::new(AccountId([7; 32]), &Domain::new(1, [5; 20].into()), Asset::ETHER);
    let second = Ledger::open(folder.path(), LinkBase { link, page: None, checkout: None }, true).await;
    assert!(matches!(second, Err(LedgerError::Folder(FolderError::Busy { .. }))));
    let reader = rusqlite::Connection::open(folder.path().join("invoices.db")).unwrap();
    let reference: String = reader.query_row("SELECT reference FROM invoice", [], |row| row.get(0)).unwrap();
    assert_eq!(reference, "order 1");
}

/// Two invoices, of three payments and of none, and two payments of no invoice.
fn fill(ledger: &Ledger) -> (Value, Value) {
    let (first, _) = ledger.made(&request("order 1", 10)).unwrap();
    let second = Request { memo: None, ..request("=1+1, \"x\"", 5) };
    let (second, _) = ledger.made(&second).unwrap();
    let mut payments: Vec<_> = (0..5).map(|number| received(number, u128::from(number) + 4)).collect();
    for received in &mut payments[3..] {
        received.payment.memo = Memo::ZERO;
        received.payment.memo[..9].copy_from_slice(b"@cmd|calc");
    }
    ledger.take_in(&payments, 0).unwrap();
    (first["id"].clone(), second["id"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_payment_has_a_row_and_no_cell_is_a_formula() {
    let (ledger, _folder) = alone().await;
    let (first, second) = fill(&ledger);
    let (rows, next) = ledger.table("", 9);
    assert_eq!((rows.len(), next), (6, None), "{rows:?}");
    let [first, second] = [&first, &second].map(|id| id.as_str().unwrap());
    assert!(rows[0].starts_with(&format!("{first},order 1,overpaid,0x")) && rows[0].contains(",4,"), "{rows:?}");
    assert!(
        rows[2].contains(",6,") && rows[3].starts_with(&format!("{second},\"'=1+1, \"\"x\"\"\",open,")),
        "{rows:?}"
    );
    assert!(rows[4].starts_with(",,,0x") && rows[4].contains("'@cmd|calc,7,"), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_any_length_are_the_whole_table() {
    let (ledger, _folder) = alone().await;
    let (first, _) = fill(&ledger);
    let (whole, _) = ledger.table("", 9);
    for count in 1..=6 {
        let (mut all, mut next) = (Vec::new(), Some(String::new()));
        while let Some(place) = next {
            let (rows, following) = ledger.table(&place, count);
            assert!(rows.len() <= count);
            all.extend(rows);
            next = following;
        }
        assert_eq!(all, whole, "{count}");
    }
    assert_eq!(ledger.table(first.as_str().unwrap(), 9).0, whole[3..]);
    for (place, is_there) in [("none:1", true), ("none:99", true), ("inv_9", false), ("inv_9:1", false)] {
        assert_eq!(ledger.export(&place.parse().unwrap(), 9).unwrap().is_some(), is_there, "{place}");
    }
    for text in ["inv_1:", "inv_1:x", "inv_1:-1", "none:", "a:1:2", "none:0:1"] {
        assert!(text.parse::<Place>().is_err(), "{text}");
    }
}

impl Ledger {
    fn prepared(&self, request: &RefundRequest) -> Result<(Value, bool), RequestError> {
        match self.prepare_refunds(request) {
            Ok((list, is_new)) => Ok((serde_json::to_value(list).unwrap(), is_new)),
            Err(LedgerError::Request(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }
}

fn of_all(reference: &str) -> RefundRequest {
    RefundRequest { reference: reference.into(), invoices: vec![], due: true, unmatched: true }
}

fn of_one(reference: &str, id: &str, amount: Option<u128>) -> RefundRequest {
    let invoices = vec![(id.to_owned(), amount.map(Amount))];
    RefundRequest { reference: reference.into(), invoices, due: false, unmatched: false }
}

/// The amounts of a list, and of which payments' senders.
fn lines(list: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    list["refunds"].as_array().unwrap().iter().map(|line| (text(&line["amount"]), text(&line["recipient"]))).collect()
}

/// A payment of a sender with the memo of an invoice.
fn paid(sender: u8, sequence: u64, memo: u8, amount: u128) -> ReceivedPayment {
    let payment = received(sequence, amount).payment;
    of_payment(&Payment { sender: AccountId([sender; 32]), memo: Memo::repeat_byte(memo), ..payment })
}

/// Invoices of 10 that were overpaid in two payments, paid twice, paid, paid in part, and paid late; and a payment of none.
fn in_excess(ledger: &Ledger) -> Vec<String> {
    let mut make = |number: u8| {
        let memo = Some(Memo::repeat_byte(number));
        ledger.made(&Request { memo, ..request(&format!("order {number}"), 10) }).unwrap().0
    };
    let invoices: Vec<_> = (1..=5).map(&mut make).collect();
    let payments =
        [paid(1, 0, 1, 7), paid(2, 0, 1, 5), paid(1, 1, 2, 10), paid(2, 1, 2, 10), paid(1, 2, 3, 10), paid(1, 3, 4, 4)];
    ledger.take_in(&payments, 0).unwrap();
    let end = invoices[4]["expiresAt"].as_u64().unwrap() * 1_000;
    ledger.take_in(&[], end).unwrap();
    // The account itself is not paid back.
    ledger.take_in(&[paid(3, 0, 5, 10), paid(3, 1, 9, 2), paid(7, 0, 9, 1)], end).unwrap();
    invoices.iter().map(|invoice| invoice["id"].as_str().unwrap().to_owned()).collect()
}

fn account(byte: u8) -> String {
    AccountId([byte; 32]).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_refund_is_on_one_list_only() {
    let (ledger, _folder) = alone().await;
    in_excess(&ledger);
    let (list, is_new) = ledger.prepared(&of_all("monday")).unwrap();
    assert!(is_new);
    let expected = [("2", 2), ("10", 2), ("10", 3), ("4", 1), ("2", 3)];
    assert_eq!(lines(&list), expected.map(|(amount, sender)| (amount.to_owned(), account(sender))));
    let memos: std::collections::BTreeSet<_> =
        list["refunds"].as_array().unwrap().iter().map(|line| line["memo"].as_str().unwrap()).collect();
    assert!(memos.len() == 5 && memos.iter().all(|memo| memo.starts_with("rfd_") && memo.len() == 32), "{memos:?}");
    assert_eq!(ledger.prepared(&of_all("monday")), Ok((list.clone(), false)));
    let other = RefundRequest { unmatched: false, ..of_all("monday") };
    assert_eq!(ledger.prepared(&other), Err(RequestError::OtherRefunds("monday".into())));
    assert_eq!(ledger.prepared(&of_all("tuesday")), Err(RequestError::NothingDue));
    assert_eq!(ledger.refunds("tuesday").unwrap(), None, "a refusal leaves nothing");
    // What comes later goes on the next list.
    ledger.take_in(&[paid(4, 0, 2, 3)], 0).unwrap();
    assert_eq!(lines(&ledger.prepared(&of_all("tuesday")).unwrap().0), [("3".to_owned(), account(4))]);
    let lists = serde_json::to_value(ledger.refund_lists(None, 9).unwrap().unwrap()).unwrap();
    assert_eq!(
        (lists["lists"][0]["refunds"].as_u64(), lists["lists"][1]["reference"].as_str()),
        (Some(5), Some("tuesday"))
    );
    assert!(ledger.refund_lists(Some("friday"), 9).unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoices_refund_is_what_is_due_or_named_and_never_more_than_received() {
    let (ledger, _folder) = alone().await;
    let ids = in_excess(&ledger);
    let asked = |reference: &str, id: &str, amount| {
        ledger.prepared(&of_one(reference, id, amount)).map(|(list, _)| lines(&list))
    };
    assert_eq!(asked("a", &ids[0], None), Ok(vec![("2".into(), account(2))]));
    // A paid one has nothing due, and may still be paid back.
    assert_eq!(asked("b", &ids[2], None), Err(RequestError::NothingDue));
    assert_eq!(asked("b", &ids[2], Some(4)), Ok(vec![("4".into(), account(1))]));
    let left = |left| Err(RequestError::NotSoMuch { invoice: ids[2].clone(), left: Amount(left) });
    assert_eq!(asked("c", &ids[2], Some(7)), left(6));
    assert_eq!(asked("c", &ids[2], Some(6)), Ok(vec![("6".into(), account(1))]));
    assert_eq!(asked("d", &ids[2], Some(1)), left(0));
    // The newest payment first, and of the older ones the rest.
    assert_eq!(asked("e", &ids[0], Some(9)), Ok(vec![("3".into(), account(2)), ("6".into(), account(1))]));
    assert_eq!(asked("f", "inv_9", None), Err(RequestError::UnknownInvoice("inv_9".into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_bounded_and_the_next_one_has_the_rest() {
    let (ledger, _folder) = alone().await;
    let many: Vec<_> = (0..1_100).map(|number| paid(1, number, 9, 1)).collect();
    ledger.take_in(&many, 0).unwrap();
    let counts = ["a", "b"].map(|reference| lines(&ledger.prepared(&of_all(reference)).unwrap().0).len());
    assert_eq!(counts, [crate::refund::LINES_MAX, 100]);
    assert_eq!(ledger.prepared(&of_all("c")), Err(RequestError::NothingDue));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_is_paid_by_the_order_that_carries_its_memo_once() {
    use fastpay_core::{Output, Outputs, Payout};
    let (ledger, folder) = alone().await;
    in_excess(&ledger);
    assert_eq!(ledger.expects_sent().unwrap(), None);
    let (list, _) = ledger.prepared(&of_all("monday")).unwrap();
    let committee = fastpay_testkit::TestCommittee::new(4);
    let owner = fastpay_testkit::TestAccount::numbered(1);
    let output = |line: usize, more: u128| {
        let line = &list["refunds"][line];
        let text = |name: &str| line[name].as_str().unwrap();
        let memo = fastpay_wallet::parse_memo(text("memo")).unwrap();
        let amount = Amount(text("amount").parse::<u128>().unwrap() + more);
        Output { recipient: text("recipient").parse().unwrap(), amount, memo }
    };
    let send = |sequence: u64, outputs: Vec<Output>| {
        let outputs = Outputs::new(outputs).unwrap();
        let (sender, asset, memo) = (owner.id(), Asset::ETHER, Memo::ZERO);
        let payout = Payout { sender, asset, outputs, sequence: SequenceNumber(sequence), memo };
        committee.certified(&owner.key.order(&committee.domain, payout.into()))
    };
    let take = |ledger: &Ledger, sent: &fastpay_core::VerifiedCertificate| {
        ledger.take_sent(sent.transfer(), &sent.digest()).unwrap();
    };
    // A stranger's output, two refunds, and one of another amount; then one again.
    let elsewhere = Output { recipient: AccountId([1; 32]), amount: Amount(1), memo: Memo::repeat_byte(8) };
    let first = send(0, vec![elsewhere, output(0, 0), output(1, 0), output(2, 1)]);
    let again = send(1, vec![output(0, 0), output(3, 0)]);
    take(&ledger, &first);
    assert_eq!(ledger.expects_sent().unwrap(), Some(SequenceNumber(1)));
    take(&ledger, &again);
    let paid = |ledger: &Ledger| -> Vec<_> {
        let list = serde_json::to_value(ledger.refunds("monday").unwrap().unwrap()).unwrap();
        let lines = list["refunds"].as_array().unwrap().iter();
        lines.map(|line| (line["paid"]["sequence"].as_u64(), line["paid"]["output"].as_u64())).collect()
    };
    let expected = [(Some(0), Some(1)), (Some(0), Some(2)), (None, None), (Some(1), Some(1)), (None, None)];
    assert_eq!(paid(&ledger), expected);
    drop(ledger);
    let ledger = open(folder.path(), true).await;
    assert_eq!((paid(&ledger), ledger.expects_sent().unwrap()), (expected.to_vec(), Some(SequenceNumber(2))));
    take(&ledger, &send(2, vec![output(2, 0), output(4, 0)]));
    assert_eq!(ledger.expects_sent().unwrap(), None, "all are paid");
}
