//! A shop's payments: the real service with real authorities, links paid by the `fastpay` command, and webhooks that
//! the shop verifies.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use fastpay_core::AccountId;
use fastpay_e2e::{Network, PATIENCE, User, run, wait_for};
use serde_json::{Value, json};

use crate::merchant_scene::{Merchant, Mood};
use crate::scene::{key, standalone};

/// In ETH.
const SMALLEST: &str = "0.000000000000000001";

/// The customer, and the paid account.
struct People {
    payer: User,
    owner: User,
    account: AccountId,
}

impl People {
    async fn with_a_merchant(name: &str) -> (Network, Merchant, Self) {
        let mut network = standalone(name, &[key(0).account()]);
        network.start_authorities().await.unwrap();
        let payer = User::new(&network, "payer").await.unwrap();
        let secret = network.place().write("secret", "01".repeat(32)).unwrap();
        let import = ["keys", "import", "own", "--ed25519", "--secret-file", &secret.to_string_lossy()];
        payer.fastpay(import).await.unwrap();
        let owner = User::new(&network, "owner").await.unwrap();
        let account = owner.new_ed25519_key("till").await.unwrap();
        let merchant = Merchant::start(&mut network, &owner, account).await;
        (network, merchant, Self { payer, owner, account })
    }

    async fn pay(&self, invoice: &Value) -> Value {
        self.payer.fastpay(["pay", invoice["link"].as_str().unwrap(), "--yes"]).await.unwrap()
    }

    /// Pays another amount than that of the link, in ETH.
    async fn pay_amount(&self, invoice: &Value, amount: &str) {
        let memo = invoice["memo"].as_str().unwrap();
        self.payer.fastpay(["pay", &self.account.to_string(), amount, "--memo", memo]).await.unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "an invoice says until when it is to be paid, in the time of day")]
fn has_ended(invoice: &Value) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs() > invoice["expiresAt"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_is_paid_and_notified() {
    let (network, mut merchant, people) = People::with_a_merchant("merchant").await;

    // An invoice paid by its link is announced once, even if the shop repeats its request.
    let cake = merchant.create("cake", "700", "600");
    assert_eq!(
        (cake["state"].as_str(), cake["account"].as_str()),
        (Some("open"), Some(people.account.to_string().as_str()))
    );
    assert_eq!(merchant.create("cake", "700", "600")["id"], cake["id"]);
    let other = merchant.try_ask(&["invoice", "create", "--reference", "cake", "--amount", "8"]);
    assert_eq!(other, Err((Some(7), json!("conflict"))));
    // Commands use whole units, JSON the smallest unit.
    let roll = ["invoice", "create", "--reference", "roll", "--amount", "0.012"];
    assert_eq!(merchant.try_ask(&roll).unwrap()["amount"], "12000000000000000");
    let [shown, listed] = [&roll[..], &["invoice", "list"]].map(|words| run(&mut merchant.command(words)).unwrap());
    assert!(shown.out.contains("  amount     0.012 native\n  received   0 native\n"), "{}", shown.out);
    assert!(listed.out.lines().any(|line| line.ends_with("  0.012 native  roll")), "{}", listed.out);
    for (amount, word) in [("0.0000000000000000001", "more decimals"), ("-3", "not an amount"), ("0", "at least 1")] {
        let refused = ["invoice", "create", "--reference", "crumb", "--amount", amount];
        let refused = run(&mut merchant.command(&refused)).unwrap();
        assert!(refused.status.code() == Some(2) && refused.err.contains(word), "{amount}: {}", refused.err);
    }
    assert_eq!(merchant.try_ask(&["invoice", "show", "inv_0"]), Err((Some(2), json!("argument"))));
    assert_eq!(merchant.try_ask(&["run"]), Err((Some(10), json!("busy"))));
    assert_eq!(people.pay(&cake).await["value"]["units"], "700");
    let paid = merchant.until(&cake, "paid", "delivered").await;
    assert_eq!((paid["received"].as_str(), paid["webhooks"][0]["attempts"].as_u64()), (Some("700"), Some(1)));
    assert_eq!(paid["payments"][0]["sender"], key(0).account().to_string());
    assert_eq!(merchant.webhook_types(&cake), ["invoice.paid"]);

    // An underpayment while the shop is down is announced again with the same ID; then the rest is paid; then once
    // more.
    let bread = merchant.create("bread", "2", "600");
    merchant.shop_will(Mood::Refuse(2));
    people.pay_amount(&bread, SMALLEST).await;
    let under = merchant.until(&bread, "underpaid", "delivered").await;
    assert_eq!(under["webhooks"][0]["attempts"], 3);
    let messages = merchant.messages(&bread);
    assert!(messages.len() == 3 && messages.iter().all(|message| *message == messages[0]), "{messages:?}");
    assert_eq!(people.pay(&under).await["value"]["units"], "1", "the link asks for the rest");
    merchant.until(&bread, "paid", "delivered").await;
    people.pay_amount(&bread, SMALLEST).await;
    merchant.until(&bread, "overpaid", "delivered").await;
    assert_eq!(merchant.webhook_types(&bread)[2..], ["invoice.underpaid", "invoice.paid", "invoice.overpaid"]);

    // The whole amount is paid twice while the shop never answers: the same message is sent until it does.
    let pie = merchant.create("pie", "7", "600");
    people.pay(&pie).await;
    merchant.until(&pie, "paid", "delivered").await;
    merchant.shop_will(Mood::Hang);
    people.pay(&pie).await;
    let silent = merchant.until(&pie, "paid_twice", "failing").await;
    assert_eq!(silent["webhooks"][1]["lastError"], "it did not answer in time");
    merchant.shop_will(Mood::Take);
    let twice = merchant.until(&pie, "paid_twice", "delivered").await;
    assert_eq!((twice["received"].as_str(), twice["paymentCount"].as_u64()), (Some("14"), Some(2)));
    let ids: BTreeSet<_> = merchant.messages(&pie).into_iter().map(|message| message.id).collect();
    assert_eq!(ids.len(), 2, "{:?}", merchant.messages(&pie));

    // The overpayment is refunded once: listed by the service, paid by the owner's wallet, and matched by the service.
    let list = merchant.try_ask(&["refunds", "prepare", "monday", "--due"]).unwrap();
    let amounts: Vec<_> = list["refunds"].as_array().unwrap().iter().map(|line| line["amount"].clone()).collect();
    assert_eq!(amounts, ["1", "7"], "{list}");
    assert_eq!(merchant.try_ask(&["refunds", "prepare", "tuesday", "--due"]), Err((Some(7), json!("conflict"))));
    let csv = run(&mut merchant.command(&["refunds", "csv", "monday"])).unwrap().out;
    let file = network.place().write("monday.csv", &csv).unwrap();
    for _ in 0..2 {
        let paid = people.owner.fastpay(["pay", "--csv", &file.to_string_lossy(), "--yes"]).await.unwrap();
        let states: Vec<_> = paid["lines"].as_array().unwrap().iter().map(|line| line["status"].clone()).collect();
        assert_eq!((states, paid["orders"].as_u64()), (vec![json!("settled"); 2], Some(1)), "{paid}");
    }
    wait_for(PATIENCE, async || {
        let list = merchant.try_ask(&["refunds", "show", "monday"]).unwrap();
        let lines = list["refunds"].as_array().unwrap().clone();
        if lines.iter().all(|line| line["paid"]["sequence"] == 0) { Ok(()) } else { Err(list.to_string()) }
    })
    .await
    .unwrap();
    assert_eq!(run(&mut merchant.command(&["refunds", "csv", "monday"])).unwrap().out, csv, "the same file");
    let back = people.payer.fastpay(["receive"]).await.unwrap();
    assert_eq!(back["payments"].as_array().unwrap().len(), 2, "{back}");

    // The service is killed while the payment arrives. At the next start it is found, and counts as in time, because
    // nothing observed the expiry.
    let tea = merchant.create("tea", "5", "60");
    let coffee = merchant.create("coffee", "5", "60");
    merchant.shop_will(Mood::Refuse(usize::MAX));
    merchant.kill();
    people.pay(&tea).await;
    wait_for(PATIENCE, async || if has_ended(&coffee) { Ok(()) } else { Err("it can still be paid".into()) })
        .await
        .unwrap();
    merchant.run().await;
    merchant.until(&tea, "paid", "failing").await;
    let expired = merchant.until(&coffee, "expired", "failing").await;
    // A webhook that failed before a crash is sent after it, with the same ID.
    merchant.kill();
    merchant.shop_will(Mood::Take);
    merchant.run().await;
    let told = merchant.until(&coffee, "expired", "delivered").await;
    assert_eq!(told["webhooks"][0]["id"], expired["webhooks"][0]["id"]);
    people.pay_amount(&coffee, "0.000000000000000005").await;
    let late = merchant.until(&coffee, "late", "delivered").await;
    assert_eq!(late["payments"][0]["late"], true);

    // A payment without an invoice is not announced, and is in the books.
    people.payer.fastpay(["pay", &people.account.to_string(), SMALLEST, "--memo", "tip"]).await.unwrap();
    wait_for(PATIENCE, async || {
        let table = run(&mut merchant.command(&["invoice", "export"])).unwrap().out;
        let rows = table.lines().count();
        let has = table.contains(",tip,1,") && table.contains("cake,paid") && table.contains("coffee,late");
        // The head, cake, the roll, three for bread, two for the pie, tea, coffee, the tip.
        if has && rows == 11 { Ok(()) } else { Err(table) }
    })
    .await
    .unwrap();
    let document = run(&mut merchant.command(&["--json", "invoice", "export"])).unwrap().out;
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["csv"].as_str().unwrap().lines().count(), 11);
    let token = std::fs::read_to_string(merchant.home.join("secrets/token")).unwrap();
    let log = std::fs::read_to_string(&merchant.log).unwrap();
    assert!(!log.contains(token.trim()) && !log.contains("whsec_"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_survives_a_kill_in_every_phase() {
    let (_network, mut merchant, people) = People::with_a_merchant("webhook-kills").await;

    // The shop has received the webhook, and the service dies before the answer.
    let cake = merchant.create("cake", "700", "600");
    merchant.shop_will(Mood::Hang);
    people.pay(&cake).await;
    let sent = merchant.until_messages(&cake, 1).await;
    merchant.kill();
    merchant.shop_will(Mood::Take);
    merchant.run().await;
    merchant.until(&cake, "paid", "delivered").await;
    let messages = merchant.messages(&cake);
    assert!(messages.len() >= 2 && messages.iter().all(|message| *message == sent[0]), "{messages:?}");

    // The service recovers from each state that a crash between two writes to SQLite's log can leave.
    merchant.kill();
    let mut sent_again = messages.len();
    let mut phases = vec![];
    for (database, log) in merchant.cuts() {
        let phase @ (was_announced, was_taken) = match phase_of(&database, &log, cake["id"].as_str().unwrap()) {
            Some(phase) if !phases.contains(&phase) => phase,
            _ => continue,
        };
        phases.push(phase);
        merchant.restore(&database, &log);
        merchant.run().await;
        merchant.until(&cake, "paid", "delivered").await;
        let messages = merchant.messages(&cake);
        merchant.kill();
        if was_taken {
            assert_eq!(messages.len(), sent_again, "what was taken is not sent again");
        } else {
            assert_eq!(messages.len(), sent_again + 1, "after {phase:?}");
            let last = messages.last().unwrap();
            // An event that was never on disk was never sent; another one announces the same.
            assert_eq!(last.id == sent[0].id, was_announced, "after {phase:?}");
            assert!(last.body.contains("invoice.paid"));
        }
        sent_again = messages.len();
    }
    assert_eq!(phases, [(false, false), (true, false), (true, true)], "created, announced with its payment, taken");
}

/// Whether an event was announced and taken, as a database and so much of its log say; none before the invoice was there.
fn phase_of(database: &[u8], log: &[u8], invoice: &str) -> Option<(bool, bool)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("invoices.db");
    std::fs::write(&path, database).unwrap();
    std::fs::write(folder.path().join("invoices.db-wal"), log).unwrap();
    let reader = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT count(event.id) > 0, coalesce(max(event.outcome = 'delivered'), 0) FROM invoice
        LEFT JOIN event ON event.invoice = invoice.number WHERE invoice.id = ? GROUP BY invoice.id";
    reader.query_row(sql, [invoice], |row| Ok((row.get(0)?, row.get(1)?))).ok()
}
