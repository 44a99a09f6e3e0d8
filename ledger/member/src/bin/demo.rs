//! `fastpay-ledger-demo`: a coordinator and two shard clusters of four processes each, and a FastPay committee of four
//! on them, from nothing to an audit, with members that are killed and one that lies. It writes
//! `target/demo-ledger.json`.
#![allow(clippy::print_stdout)]

use std::fmt::Display;
use std::future::Future;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fastpay_core::{AccountId, AccountKey, Amount, Asset, Balance, Epoch};
use fastpay_ledger_client::{Client, CommitteeClient};
use fastpay_ledger_member::audit::{Audit, audit};
use fastpay_ledger_member::authorities::{Authorities, Wallet};
use fastpay_ledger_member::localnet::{Localnet, MEMBERS, Shape, guardian};
use fastpay_ledger_member::rotation::renew;
use fastpay_ledger_statement::{
    Action, ClusterId, CommitteeNumber, Condition, Key, Namespace, Outcome, StateKey, Value,
};
use serde::Serialize;

const COORDINATOR: u32 = 1;
const SHARDS: [u32; 2] = [2, 3];
const BANKS: u8 = 8;
const ISSUED: u128 = 1_000_000;
const FUNDED: u128 = 250_000;
const PAID: u128 = 1_000;
const REDEEMED: u128 = 10_000;
const FEE: u128 = 5;
/// Three rounds of each bank, and one.
const TRANSFERS: usize = 200;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Serialize)]
struct Step {
    name: String,
    ms: u64,
    ok: bool,
}

/// Amounts are whole numbers as text: JSON's numbers lose precision above 2^53.
#[derive(Serialize)]
struct AuditLine {
    asset: Asset,
    issued: Amount,
    reserves: Balance,
    omnibus: Balance,
    bonds: Balance,
    between_clusters: Balance,
    ok: bool,
}

#[derive(Default, Serialize)]
struct Report {
    ok: bool,
    steps: Vec<Step>,
    audit: Vec<AuditLine>,
}

impl Report {
    async fn step<T>(
        &mut self,
        name: &str,
        work: impl Future<Output = Result<(T, String), Failure>>,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        let outcome = work.await;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let detail: &dyn Display = match &outcome {
            Ok((_, detail)) => detail,
            Err(failure) => failure,
        };
        println!("{name:<62} {ms:>6} ms  {detail}");
        self.steps.push(Step { name: name.to_owned(), ms, ok: outcome.is_ok() });
        outcome.map(|(value, _)| value)
    }
}

fn bank(number: u8) -> AccountKey {
    AccountKey::ed25519([number; 32])
}

fn banks() -> impl Iterator<Item = AccountKey> {
    (1..=BANKS).map(bank)
}

/// The bank that another one pays: the next.
fn payee(number: u8) -> AccountId {
    bank(number % BANKS + 1).account()
}

async fn instruct(client: &Client, key: &AccountKey, via: Option<u32>, action: &Action) -> Result<Outcome, Failure> {
    let shard = client.partition().of_reserve(&key.account());
    Ok(client.instruct(key, shard, via.map(ClusterId), action).await?)
}

fn transfer(number: u8) -> Action {
    Action::Transfer { to: payee(number), asset: Asset::ETHER, amount: Amount(PAID) }
}

/// Each bank pays its turns, one after the other; all banks at once.
async fn pay(client: &Client, turns: usize, via: Option<u32>) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let bank_pays = async |number: u8| -> Result<(), Failure> {
        for _ in 0..turns {
            instruct(client, &bank(number), via, &transfer(number)).await?;
        }
        Ok(())
    };
    let paid = futures(BANKS, bank_pays).await;
    paid.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(begun.elapsed())
}

/// Runs one future for each bank, on this task.
async fn futures<'a, F, T>(count: u8, mut of: impl FnMut(u8) -> F) -> Vec<T>
where
    F: Future<Output = T> + 'a,
{
    let mut running: Vec<_> = (1..=count).map(|number| Box::pin(of(number))).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        running.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => {
                done.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

fn check(holds: bool, what: &'static str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what.into()) }
}

async fn settled(client: &Client, funded: u128) -> Result<Audit, Failure> {
    for _ in 0..300 {
        let audit = audit(client).await?;
        let omnibus = StateKey::Omnibus(CommitteeNumber(0), Asset::ETHER);
        let held = client.entry::<Balance>(&omnibus).await?.unwrap_or_default();
        let between = audit
            .states
            .values()
            .flat_map(|state| state.holdings())
            .fold(Balance::ZERO, |sum, (_, held)| sum.plus(held.sent).plus(held.taken.negated()));
        if held == Balance::ZERO.credit(Amount(funded)) && between == Balance::ZERO {
            return Ok(audit);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("money is still between clusters after half a minute".into())
}

fn recipient() -> Result<AccountId, Failure> {
    Ok(AccountKey::ethereum([9; 32])?.account())
}

/// Redeems to the recipient's reserve, and waits until so many redemptions have been paid there in all.
async fn redeem(client: &Client, wallet: &Wallet, count: u128) -> Result<(), Failure> {
    let address = recipient()?.ethereum_address().ok_or("no address")?.to_string();
    let redeemed = wallet.run(&["redeem", &ether(REDEEMED), "--to", &address, "--self"])?;
    check(redeemed.pointer("/redeemed/by").is_some_and(|by| by == "self"), "nothing was redeemed")?;
    let paid = Balance::ZERO.credit(Amount(count * REDEEMED));
    for _ in 0..100 {
        if client.reserve(recipient()?, Asset::ETHER).await? == paid {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("the recipient has less".into())
}

async fn scenario(report: &mut Report, net: &mut Localnet, authorities: &mut Authorities) -> Result<(), Failure> {
    let all: Vec<u8> = (0..MEMBERS).collect();
    let client = net.client();

    report
        .step("start a coordinator and two shard clusters of four", async {
            net.start(SHARDS[0], 0, Some("groups"))?;
            net.start(SHARDS[1], 0, Some("outputs"))?;
            net.start_and_wait().await?;
            Ok(((), "12 members vote; one of each shard cluster lies".to_owned()))
        })
        .await?;

    report
        .step("banks open reserves, through the coordinator", async {
            let open = async |number: u8| instruct(&client, &bank(number), Some(COORDINATOR), &Action::Open).await;
            for opened in futures(BANKS, open).await {
                check(opened? == Outcome::Opened, "a reserve was not opened")?;
            }
            let partition = client.partition();
            let of = |shard| banks().filter(move |key| partition.of_reserve(&key.account()) == ClusterId(shard));
            Ok(((), format!("{} at shard 2, {} at shard 3", of(SHARDS[0]).count(), of(SHARDS[1]).count())))
        })
        .await?;

    let ledger = net.ledger();
    report
        .step("start four authorities of a FastPay committee", async {
            authorities.start(&ledger).await?;
            Ok(((), "all have read the ledger".to_owned()))
        })
        .await?;

    let wallets = report
        .step("fund two accounts from the reserves of banks", async {
            let mut wallets = Vec::new();
            for number in [1, 2] {
                let wallet = authorities.wallet(&format!("bank{number}"), [number; 32], &ledger)?;
                let deposit = wallet.run(&["deposit", &ether(FUNDED), "--wait", "60"])?;
                check(
                    deposit.pointer("/state").is_some_and(|state| state == "credited"),
                    "an account was not credited",
                )?;
                wallets.push(wallet);
            }
            settled(&client, 2 * FUNDED).await?;
            Ok((wallets, format!("the omnibus holds {}, and a quorum has credited it", 2 * FUNDED)))
        })
        .await?;
    let wallet = wallets.first().ok_or("no wallet")?;

    report
        .step("pay on FastPay", async {
            let line = |number: u8| format!("{},{}\n", bank(number).account(), ether(PAID / 10));
            let list: String = (0..TRANSFERS).map(|at| line(u8::try_from(at).unwrap_or(0) + 20)).collect();
            let file = wallet.file("list.csv");
            std::fs::write(&file, format!("recipient,amount\n{list}"))?;
            let begun = Instant::now();
            wallet.run(&["pay", "--csv", &file.display().to_string(), "--max-outputs", "1", "--yes"])?;
            Ok(((), format!("{TRANSFERS} payments in {} ms", begun.elapsed().as_millis())))
        })
        .await?;

    report
        .step("redeem to a reserve on the ledger", async {
            redeem(&client, wallet, 1).await?;
            Ok(((), format!("{REDEEMED} are in the recipient's reserve")))
        })
        .await?;

    report
        .step("rotate: announce, endorse, wait, accept, install", async {
            let committee = CommitteeClient::open(&ledger, CommitteeNumber(0))?;
            let current = renew(&committee, &bank(1), &guardian(), &authorities.keys()?).await?;
            check(current.epoch == Epoch(1), "no epoch has begun")?;
            authorities.wait_for_epoch(1).await?;
            redeem(&client, wallet, 2).await?;
            Ok(((), "epoch 1 has begun, and the new committee's votes pay a redemption".to_owned()))
        })
        .await?;
    report
        .step("redeem through a relayer, for its fee", async {
            let relayer = authorities.relay(&ledger, FEE).await?;
            let begun = Instant::now();
            let address = recipient()?.ethereum_address().ok_or("no address")?.to_string();
            let redeemed = wallet.run(&["redeem", &ether(REDEEMED), "--to", &address, "--wait", "60"])?;
            check(redeemed.pointer("/redeemed/by").is_some_and(|by| by == "relayer"), "no relayer redeemed it")?;
            let took = begun.elapsed().as_millis();
            let fee = Balance::ZERO.credit(Amount(FEE));
            for _ in 0..100 {
                if client.reserve(relayer, Asset::ETHER).await? == fee {
                    return Ok(((), format!("paid after {took} ms; {FEE} are in the relayer's reserve")));
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err("the relayer has no fee".into())
        })
        .await?;

    let turns = TRANSFERS / usize::from(BANKS) / 2;
    report
        .step("pay between banks in one round, the client finds the shard", async {
            let took = pay(&client, turns, None).await?;
            Ok(((), transfers(took, turns)))
        })
        .await?;
    report
        .step("pay between banks in three rounds, through the coordinator", async {
            let took = pay(&client, turns, Some(COORDINATOR)).await?;
            Ok(((), transfers(took, turns)))
        })
        .await?;

    report
        .step("store, and refuse what is stale", async {
            let namespace = Namespace::new("rates".to_owned()).ok_or("no namespace")?;
            let key = Key::new(b"eur".to_vec()).ok_or("no key")?;
            let shard = client.partition().of_value(&namespace, &key);
            let put = |condition, text: &str| Action::Write {
                namespace: namespace.clone(),
                key: key.clone(),
                condition,
                value: Value::new(text.as_bytes().to_vec()),
            };
            let written = client.instruct(&bank(1), shard, None, &put(Condition::Absent, "1.09")).await?;
            let Outcome::Written(version) = written else { return Err("nothing was written".into()) };
            client.instruct(&bank(1), shard, None, &put(Condition::Version(version), "1.10")).await?;
            let stale = client.instruct(&bank(1), shard, None, &put(Condition::Version(version), "1.11")).await?;
            check(matches!(stale, Outcome::ConditionFailed(Some(_))), "a stale write was carried out")?;
            Ok(((), "written twice, a stale version is refused".to_owned()))
        })
        .await?;

    report
        .step("kill a leader", async {
            let leader = client.status(ClusterId(COORDINATOR)).await?;
            let leader = leader.iter().find_map(|(_, status)| status.as_ref()).ok_or("no member answers")?.leader;
            let leader = u8::try_from(leader)?;
            net.kill(COORDINATOR, leader);
            let begun = Instant::now();
            instruct(&client, &bank(1), Some(COORDINATOR), &transfer(1)).await?;
            let took = begun.elapsed();
            net.start(COORDINATOR, leader, None)?;
            net.wait_for(COORDINATOR, &all, 1).await?;
            Ok(((), format!("the next payment took {} ms; member {leader} is back", took.as_millis())))
        })
        .await?;

    report
        .step("kill a whole shard cluster", async {
            net.kill_cluster(SHARDS[0]);
            let begun = Instant::now();
            net.start_cluster(SHARDS[0])?;
            net.wait_for(SHARDS[0], &all, 1).await?;
            let at_shard = |key: &AccountKey| client.partition().of_reserve(&key.account()) == ClusterId(SHARDS[0]);
            let number = (1..=BANKS).find(|number| at_shard(&bank(*number))).ok_or("no bank is at shard 2")?;
            instruct(&client, &bank(number), Some(COORDINATOR), &transfer(number)).await?;
            Ok(((), format!("it pays again {} ms after its start", begun.elapsed().as_millis())))
        })
        .await?;

    report
        .step("audit: reserves + omnibus + sent − taken = issued", async {
            let lied = ["the group is not under the header's root", "other messages than the header names"];
            let logs = net.logs();
            check(lied.iter().all(|lie| logs.contains(lie)), "a lie was not noticed")?;
            let audit = settled(&client, 2 * FUNDED - 3 * REDEEMED).await?;
            Ok((audit, "both lies were noticed and refused".to_owned()))
        })
        .await
        .map(|audit| report.audit = lines(&client, &audit))?;

    report
        .step("audit: omnibus = accounts + redeemable", async {
            let audit = wallet.run(&["audit", "--wait", "30"])?;
            check(audit.pointer("/ok").is_some_and(|ok| ok == true), "the committee's audit fails")?;
            let certificates = audit.pointer("/certificates").cloned().unwrap_or_default();
            Ok(((), format!("{certificates} certificates were checked")))
        })
        .await
}

/// An amount as a wallet reads it: the native asset has 18 decimals.
fn ether(amount: u128) -> String {
    format!("0.{amount:018}")
}

fn transfers(took: Duration, turns: usize) -> String {
    let each = took.as_secs_f64() * 1e3 / f64::from(u32::try_from(turns).unwrap_or(1));
    format!("{} transfers, {each:.0} ms each of {BANKS} at once", turns * usize::from(BANKS))
}

fn lines(client: &Client, audit: &Audit) -> Vec<AuditLine> {
    let line = |(asset, difference): (&Asset, &Balance)| {
        let held = audit.states.values().filter_map(|state| state.holdings().remove(asset));
        let mut line = AuditLine {
            asset: *asset,
            issued: client.layout().issued(*asset),
            reserves: Balance::ZERO,
            omnibus: Balance::ZERO,
            bonds: Balance::ZERO,
            between_clusters: Balance::ZERO,
            ok: *difference == Balance::ZERO && audit.overdrafts.is_empty(),
        };
        for held in held {
            line.reserves = line.reserves.plus(held.reserves);
            line.omnibus = line.omnibus.plus(held.omnibus);
            line.bonds = line.bonds.plus(held.bonds);
            line.between_clusters = line.between_clusters.plus(held.sent).plus(held.taken.negated());
        }
        line
    };
    audit.differences.iter().map(line).collect()
}

async fn run(report: &mut Report) -> Result<(), Failure> {
    let program = std::env::current_exe()?.with_file_name("fastpay-ledger");
    let folder = tempfile::tempdir()?;
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug");
    let mut authorities = Authorities::new(&programs, folder.path())?;
    let shape = Shape {
        coordinators: vec![COORDINATOR],
        shards: SHARDS.to_vec(),
        namespaces: vec![("rates".to_owned(), bank(1).account())],
        issued: banks().map(|key| (key.account(), ISSUED)).collect(),
        authorities: authorities.public().to_vec(),
    };
    let mut net = Localnet::new(&program, folder.path(), &shape)?;
    scenario(report, &mut net, &mut authorities).await
}

#[tokio::main]
async fn main() -> ExitCode {
    let begun = Instant::now();
    let mut report = Report::default();
    let outcome = run(&mut report).await;
    report.ok = outcome.is_ok() && !report.audit.is_empty() && report.audit.iter().all(|line| line.ok);
    for line in &report.audit {
        println!(
            "{}: {} issued = {} in reserves + {} in the omnibus + {} in bonds + {} between clusters: {}",
            line.asset,
            line.issued,
            line.reserves,
            line.omnibus,
            line.bonds,
            line.between_clusters,
            if line.ok { "ok" } else { "WRONG" }
        );
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/demo-ledger.json");
    let written = serde_json::to_string_pretty(&report).map_err(Failure::from).and_then(|text| {
        file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        Ok(std::fs::write(&file, text)?)
    });
    if let Err(error) = outcome.and(written) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    println!("all is well in {:.1} s; the same in target/demo-ledger.json", begun.elapsed().as_secs_f64());
    if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
