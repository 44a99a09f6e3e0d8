use super::*;
use crate::forms::LinkBase;
use crate::ledger::Ledger;
use fastpay_core::{AccountKey, Asset, Domain, PrimaryAddress};
use fastpay_wallet::PaymentLink;
use serde_json::{Value, json};

/// Written by the program before the database: as it appended, and anew with an archive.
const JOURNALS: [(&str, &str); 2] = [
    (include_str!("../../tests/journals/grown.jsonl"), include_str!("../../tests/journals/grown.expected.json")),
    (
        include_str!("../../tests/journals/rewritten.jsonl"),
        include_str!("../../tests/journals/rewritten.expected.json"),
    ),
];
const ASIDE: &str = "journal.jsonl.imported";

fn folder_with(journal: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("journal.jsonl"), journal).unwrap();
    folder
}

async fn open(folder: &Path) -> Ledger {
    let domain = Domain::new(31337, PrimaryAddress::repeat_byte(0x5f));
    let link = PaymentLink::new(AccountKey::ed25519([7; 32]).account(), &domain, Asset::ETHER);
    let page = Some("https://wallet.example/pay".parse().unwrap());
    Ledger::open(folder, LinkBase { link, page, checkout: None }, true).await.unwrap()
}

/// What the service answers, as the program before wrote it down. Events that were only made at the start have another id
/// each time.
fn answers(ledger: &Ledger) -> Value {
    let is_old = |id: &str| id.len() < 10;
    let due = ledger.due(u64::MAX, u64::MAX, 1_000).unwrap();
    let told = due.iter().map(|delivery| {
        let event = &delivery.event;
        let old = is_old(&event.id).then_some(event);
        // The body says of which invoice.
        let id = event.body.split_once("\"id\":\"").unwrap().1.split_once('"').unwrap().0;
        json!({
            "invoice": id, "state": event.state, "attempts": delivery.attempts, "due": delivery.due_at_ms(),
            "id": old.map(|event| &event.id), "body": old.map(|event| &event.body),
        })
    });
    let told: Vec<_> = told.collect();
    let mut invoices =
        serde_json::to_value(ledger.invoices(None, Order::OldestFirst, None, 1_000).unwrap().unwrap()).unwrap();
    for invoice in invoices["invoices"].as_array_mut().unwrap() {
        for webhook in invoice["webhooks"].as_array_mut().unwrap() {
            if !is_old(webhook["id"].as_str().unwrap()) {
                webhook["id"] = Value::Null;
            }
        }
    }
    let table = ledger.export(&crate::export::Place::Start, 1_000).unwrap().unwrap().table;
    json!({
        "status": ledger.status().unwrap(), "invoices": invoices["invoices"],
        "csv": String::from_utf8(table).unwrap(), "undelivered": told,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_program_before_answered_is_answered_after_the_move() {
    for (journal, expected) in JOURNALS {
        let folder = folder_with(journal.as_bytes());
        let ledger = open(folder.path()).await;
        let mut expected: Value = serde_json::from_str(expected).unwrap();
        let found = answers(&ledger);
        // Of events of the same look, those that were made at the start may stand in another order.
        let sort = |document: &Value| {
            let mut told = document["undelivered"].as_array().unwrap().clone();
            told.sort_by_key(|told| (told["id"].is_null(), told.to_string()));
            told
        };
        assert_eq!(sort(&found), sort(&expected));
        expected["undelivered"] = found["undelivered"].clone();
        assert_eq!(found, expected);
        assert!(!folder.path().join("journal.jsonl").exists());
        assert_eq!(std::fs::read_to_string(folder.path().join(ASIDE)).unwrap(), journal);
        drop(ledger);
        assert_eq!(answers(&open(folder.path()).await), found, "and after a restart");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_archive_is_never_counted_again_and_makes_no_second_invoice() {
    let folder = folder_with(JOURNALS[1].0.as_bytes());
    let ledger = open(folder.path()).await;
    let name = |sender, sequence, output| fastpay_rpc::PaymentName {
        sender: fastpay_core::AccountId([sender; 32]),
        sequence: fastpay_core::SequenceNumber(sequence),
        output,
    };
    for (sender, sequence, output, is_known) in [
        (1, 1, None, true),
        (6, 3, Some(17), true),
        (6, 3, None, false),
        (6, 3, Some(16), false),
        (5, u64::MAX, None, true),
    ] {
        assert_eq!(ledger.has(&name(sender, sequence, output)).unwrap(), is_known, "{sender} {sequence} {output:?}");
    }
    let request = |reference: &str| crate::request::Request {
        reference: reference.into(),
        asset: Asset::ETHER,
        amount: fastpay_core::Amount(700),
        memo: None,
        expires_in: 900,
        checkout: crate::checkout::Checkout::default(),
    };
    let archived = ledger.create(&request("order 1"), 9).unwrap_err().to_string();
    assert!(archived.contains("inv_0101") && archived.contains("archived invoice"), "{archived}");
    assert!(ledger.create(&request("order 9"), 9).unwrap().1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_a_crash_interrupted_is_made_again_or_finished() {
    let (journal, _) = JOURNALS[0];
    let whole = answers(&open(folder_with(journal.as_bytes()).path()).await);
    let count = |document: &Value| (document["csv"].clone(), document["status"].clone());
    // Before the change was committed: as far as SQLite came with its log.
    let folder = folder_with(journal.as_bytes());
    let store = Store::open(folder.path()).unwrap();
    let log = std::fs::read(folder.path().join("invoices.db-wal")).unwrap();
    let database = std::fs::read(folder.path().join("invoices.db")).unwrap();
    drop(store);
    for length in (0..=log.len()).step_by(1_031).chain([log.len()]) {
        let folder = folder_with(journal.as_bytes());
        std::fs::write(folder.path().join("invoices.db"), &database).unwrap();
        std::fs::write(folder.path().join("invoices.db-wal"), &log[..length]).unwrap();
        let found = answers(&open(folder.path()).await);
        assert_eq!(count(&found), count(&whole), "{length} of {}", log.len());
        assert!(folder.path().join(ASIDE).exists() && !folder.path().join("journal.jsonl").exists());
    }
    // Committed, and the journal not put aside: it is known again, and another one is not taken for it.
    let folder = folder_with(journal.as_bytes());
    drop(open(folder.path()).await);
    std::fs::rename(folder.path().join(ASIDE), folder.path().join("journal.jsonl")).unwrap();
    assert_eq!(count(&answers(&open(folder.path()).await)), count(&whole));
    std::fs::write(folder.path().join("journal.jsonl"), JOURNALS[1].0).unwrap();
    let foreign = Store::open(folder.path()).unwrap_err();
    assert!(matches!(foreign, StoreError::Journal(JournalError::Foreign { .. })), "{foreign}");
    assert!(folder.path().join("journal.jsonl").exists());
}

#[test]
fn of_a_torn_journal_the_whole_lines_are_taken_and_a_damaged_one_is_refused() {
    let journal = JOURNALS[0].0.as_bytes();
    let entries = |folder: &Path| -> i64 {
        let store = Store::open(folder).unwrap();
        let sql = "SELECT (SELECT count(*) FROM invoice) + (SELECT count(*) FROM payment)";
        store.0.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    for length in (0..journal.len()).step_by(97) {
        let torn = &journal[..length];
        let whole = torn.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let [torn, whole] = [torn, &journal[..whole]].map(folder_with);
        assert_eq!(entries(torn.path()), entries(whole.path()), "{length}");
    }
    for at in (0..journal.len() - 1).step_by(101).filter(|at| journal[*at] != b'\n') {
        let mut damaged = journal.to_vec();
        damaged[at] ^= 1;
        let folder = folder_with(&damaged);
        let line = 1 + journal[..at].iter().filter(|byte| **byte == b'\n').count();
        for _ in 0..2 {
            let error = Store::open(folder.path()).unwrap_err();
            let is_said =
                matches!(&error, StoreError::Journal(JournalError::Damaged { line: said, .. }) if *said == line);
            assert!(is_said, "byte {at}: {error}");
        }
        assert_eq!(std::fs::read(folder.path().join("journal.jsonl")).unwrap(), damaged);
    }
}

#[test]
fn each_commit_is_synced_and_the_files_are_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let setting = |name: &str| -> String {
        store
            .0
            .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            .map(|v| format!("{v:?}"))
            .unwrap()
    };
    // 2 is FULL: with a log, a sync at each commit.
    assert_eq!((setting("synchronous"), setting("journal_mode")), ("Integer(2)".into(), "Text(\"wal\")".into()));
    store.change(|rows| rows.set_looked_at_ms(7)).unwrap();
    for name in ["invoices.db", "invoices.db-wal"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_damaged_database_and_one_of_a_later_program_are_refused() {
    let folder = folder_with(JOURNALS[0].0.as_bytes());
    drop(Store::open(folder.path()).unwrap());
    let path = folder.path().join(FILE);
    let database = std::fs::read(&path).unwrap();
    let mut damaged = database.clone();
    damaged[4_096 * 3..4_096 * 4].fill(0xff);
    std::fs::write(&path, damaged).unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. } | StoreError::Database(_)), "{error}");
    std::fs::write(&path, "not a database, and longer than the head of one would be".repeat(20)).unwrap();
    assert!(matches!(Store::open(folder.path()).unwrap_err(), StoreError::Database(_)));
    std::fs::write(&path, database).unwrap();
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Store::open(folder.path()).unwrap_err(), StoreError::Newer { version: 99, .. }));
}

#[test]
fn a_database_of_the_first_version_gets_what_the_later_ones_add() {
    let folder = tempfile::tempdir().unwrap();
    let first = Connection::open(folder.path().join(FILE)).unwrap();
    first.execute_batch(SCHEMA[0]).unwrap();
    let invoice = "INSERT INTO invoice (id, reference, asset, amount, memo, created_at_ms, expires_at)
        VALUES ('inv_1', 'order 1', zeroblob(20), '5', zeroblob(32), 1, 2)";
    first.execute(invoice, []).unwrap();
    first.pragma_update(None, "user_version", 1).unwrap();
    drop(first);
    for _ in 0..2 {
        let store = Store::open(folder.path()).unwrap();
        assert_eq!((store.rows().sent_next().unwrap(), store.rows().has_open_refunds().unwrap()), (0, false));
        let old = store.rows().invoice("inv_1").unwrap().unwrap().terms;
        assert_eq!((old.checkout, old.checkout_key), (crate::checkout::Checkout::default(), None));
        assert!(store.rows().payouts_before(i64::MAX, 9).unwrap().is_empty());
    }
}
