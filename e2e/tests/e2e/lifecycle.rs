//! Deposit, payment, redemption and audit, through the commands that users run.

use std::process::Command;

use alloy::primitives::{Address, U256};
use fastpay_core::Asset;
use fastpay_e2e::{User, audit};
use serde_json::{Value, json};

use crate::scene::{build, on_chain, standalone};
use crate::traces::{Collector, Hanging, expect_dropped, trace_to};

const OUT: Address = Address::repeat_byte(0xab);

fn milli_ether(thousandths: u64) -> U256 {
    U256::from(thousandths) * U256::from(10).pow(U256::from(15))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_goes_in_around_and_out_again() {
    let mut network = on_chain("lifecycle").await;
    let collector = Collector::start(&mut network).await;
    collector.watch(&network);
    network.start_authorities().await.unwrap();
    network.start_relayer().unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    let own = alice.import_rich_key("own", 0).await.unwrap();
    let bob = User::new(&network, "bob").await.unwrap();
    trace_to(&bob.home().join("config.toml"), collector.address());
    trace_to(&alice.home().join("config.toml"), collector.address());
    let his = bob.new_ed25519_key("his").await.unwrap();

    let deposit = alice.fastpay(["deposit", "5", "--wait", "240"]).await.unwrap();
    assert_eq!(deposit["state"], "credited");
    let paid = alice.fastpay(["pay", &his.to_string(), "2.5", "--memo", "lodging"]).await.unwrap();
    assert_eq!(paid["state"], "settled");
    collector.expect_payment(&network, &paid, [own, his]).await;
    let received = bob.fastpay(["receive", "--wait", "240"]).await.unwrap();
    assert!(received.to_string().contains("lodging"), "{received}");

    // An amount above the balance is refused before it gets a number, with its own exit code.
    let too_much = bob.try_fastpay(["pay", &own.to_string(), "2.6"]).await.unwrap();
    assert_eq!(too_much.status.code(), Some(6), "{}{}", too_much.out, too_much.err);

    // A missing gas key and a fee above the amount are refused before anything is signed.
    let out = OUT.to_string();
    let no_gas = bob.try_fastpay(["redeem", "1", "--to", &out, "--self"]).await.unwrap();
    assert_eq!(no_gas.status.code(), Some(4), "{}{}", no_gas.out, no_gas.err);
    let above = bob.try_fastpay(["redeem", "1", "--to", &out, "--fee", "1.5"]).await.unwrap();
    assert!(above.err.contains("the fee of 1.5 ETH exceeds the amount of 1 ETH"), "{}", above.err);

    // Redeem through the relayer, which keeps its fee …
    let redeemed = bob.fastpay(["redeem", "1", "--to", &out, "--fee", "0.25", "--wait", "240"]).await.unwrap();
    assert_eq!((&redeemed["redeemed"]["by"], &redeemed["sequence"]), (&"relayer".into(), &0.into()));
    collector.expect_redemption(&network, &redeemed).await;
    assert_eq!(network.chain().unwrap().ether_of(OUT).await.unwrap(), milli_ether(750));

    // … and without it.
    network.relayer().unwrap().stop().unwrap();
    let alone = alice.fastpay(["redeem", "2", "--to", &out, "--self"]).await.unwrap();
    assert_eq!(alone["redeemed"]["by"], "self");
    assert_eq!(network.chain().unwrap().ether_of(OUT).await.unwrap(), milli_ether(2_750));
    // Repeating it pays nothing.
    let again = alice.fastpay(["redeem", "--sequence", "1", "--self"]).await.unwrap();
    assert_eq!(network.chain().unwrap().ether_of(OUT).await.unwrap(), milli_ether(2_750), "{again}");
    // The contract's log shows who submitted which.
    let [mine, once_more] = [&alone, &again].map(|answer| &answer["redeemed"]);
    assert_eq!((&once_more["by"], &once_more["relayer"]), (&"self".into(), &json!(own.ethereum_address())), "{again}");
    assert_eq!([&mine["transaction"], &mine["block"]], [&once_more["transaction"], &once_more["block"]]);
    let other = ["redeem", "--from", "his", "--sequence", "0", "--self", "--gas-key", "gas"];
    bob.import_rich_key("gas", 2).await.unwrap();
    let other = bob.fastpay(other).await.unwrap();
    let relayer = network.relayer().unwrap().address();
    assert_eq!((&other["redeemed"]["by"], &other["redeemed"]["relayer"]), (&"relayer".into(), &json!(relayer)));

    let lines = audit(&network, &[own, his], &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    assert_eq!(alice.fastpay(["audit"]).await.unwrap()["ok"], true);
    collector.expect_nothing_private(&[own, his]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_committee_without_a_primary_pays_and_says_that_it_cannot_redeem() {
    let key = crate::scene::key(0);
    let mut network = standalone("alone", &[key.account()]);
    let hanging = Hanging::start(&mut network).await;
    hanging.watch(&mut network);
    network.start_authorities().await.unwrap();
    let person = User::new(&network, "person").await.unwrap();
    trace_to(&person.home().join("config.toml"), hanging.address());
    person.import_key("own", "--ed25519", &"01".repeat(32)).await.unwrap();
    let other = person.new_ed25519_key("other").await.unwrap();
    let paid = person.fastpay(["pay", "other", "0.000000000000000007", "--from", "own"]).await.unwrap();
    assert_eq!(paid["value"]["units"], "7");
    let balance = person.fastpay(["balance", "--account", &other.to_string()]).await.unwrap();
    assert!(balance.to_string().contains("\"7\""), "{balance}");
    let out = OUT.to_string();
    let redeem = ["redeem", "0.000000000000000001", "--from", "own", "--to", &out];
    let redeem = person.try_fastpay(redeem).await.unwrap();
    assert_eq!(redeem.status.code(), Some(3), "{}{}", redeem.out, redeem.err);
    assert!(redeem.out.contains("without a Primary"), "{}", redeem.out);
    // The balance can be audited against the genesis.
    assert_eq!(person.fastpay(["audit"]).await.unwrap()["ok"], true);
    // No collector accepted the traces, which is counted and harmless.
    expect_dropped(&network).await;
    for authority in &mut network.authorities {
        authority.stop().unwrap();
    }
}

const WALKTHROUGH: &str = include_str!("../../../docs/WALKTHROUGH.md");

/// Lines without their numbers and names.
fn shape(text: &str) -> Vec<String> {
    let plain = |word: &str| if word.contains(|c: char| c.is_ascii_digit()) { "0".into() } else { word.to_owned() };
    text.lines().map(|line| line.split_whitespace().map(plain).collect::<Vec<_>>().join(" ")).collect()
}

/// docs/WALKTHROUGH.md shows the whole output except the table of steps.
fn assert_shown_in_walkthrough(said: &str) {
    let block = WALKTHROUGH.split_once("<!-- recorded by make walkthrough: demo -->\n```text\n").unwrap().1;
    let shown = block.split("\n```").next().unwrap();
    let paragraphs: Vec<_> = said.trim().split("\n\n").filter(|paragraph| !paragraph.starts_with("step ")).collect();
    assert_eq!(shape(shown), shape(&paragraphs.join("\n\n")), "run `make walkthrough`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_runs_to_its_end_and_writes_a_report() {
    build();
    let demo = tokio::task::spawn_blocking(|| Command::new(env!("CARGO_BIN_EXE_fastpay-demo")).output());
    let demo = demo.await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&demo.stdout);
    assert!(demo.status.success(), "{said}{}", String::from_utf8_lossy(&demo.stderr));
    assert_shown_in_walkthrough(&said);
    let written = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/demo.json")).unwrap();
    let outcome: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(outcome["ok"], true);
    for step in outcome["steps"].as_array().unwrap() {
        assert!(step["name"].is_string() && step["ms"].is_u64() && step["ok"] == true, "{step}");
    }
    let audit = outcome["audit"].as_array().unwrap();
    assert_eq!(audit.len(), 2);
    for line in audit {
        let number = |key: &str| line[key].as_str().unwrap().parse::<u128>().unwrap();
        assert_eq!(number("contract_total"), number("accounts_total") + number("redeemable"), "{line}");
        assert!(line["ok"] == true && line["asset"].is_string(), "{line}");
    }
}
