//! The demo's steps: two users and many payers pay, an authority dies and comes back, and an audit ends it.

use std::time::{Duration, Instant};

use alloy::primitives::{Address, U256};
use fastpay_core::{AccountId, Amount, Asset, Memo};
use fastpay_e2e::{
    Authority, Chain, Failure, Layout, Network, PATIENCE, Payers, PaymentReport, Place, Token, User, audit, http_get,
    wait_for,
};
use fastpay_wallet::Intent;
use serde_json::Value;

use crate::report::Report;

const LAYOUT: Layout = Layout { authorities: 4, shards: 2, block_time: Duration::from_secs(1), node: None };
/// The authority that dies.
const VICTIM: usize = 3;
const PAYERS: u8 = 16;
/// The authority that is away once the dead one is replaced.
const AWAY: usize = 0;
/// Payments by each of the payers: while an authority dies, while it is away, and after it came back.
const PAYMENTS_EACH: [usize; 3] = [16, 6, 4];
const ETHER: u128 = 1_000_000_000_000_000_000;
/// The recipient of the payers' redemptions: an address that nobody has used.
const OUT: Address = Address::repeat_byte(0x0d);
const START_PATIENCE: Duration = Duration::from_secs(60);
const RELAY_PATIENCE: Duration = Duration::from_secs(120);
const CATCH_UP_PATIENCE: Duration = Duration::from_secs(60);
const PRUNE_PATIENCE: Duration = Duration::from_secs(900);
/// As often as nodes may be configured to make checkpoints.
const CHECKPOINT_SECONDS: u64 = 10;

struct Scene {
    network: Network,
    token: Token,
    alice: User,
    bob: User,
    payers: Payers,
    /// Everyone who ever holds anything.
    accounts: Vec<AccountId>,
}

impl Scene {
    fn assets(&self) -> [Asset; 2] {
        [Asset::ETHER, Asset(self.token.address)]
    }

    fn token_text(&self) -> String {
        self.token.address.to_string()
    }
}

/// Runs all steps.
pub async fn run(report: &mut Report) -> Result<(), Failure> {
    let (network, token) = set_the_scene(report).await?;
    let mut scene = people(report, network, token).await?;
    deposits(report, &scene).await?;
    first_payments(report, &scene).await?;
    fund_the_payers(report, &scene).await?;
    hundreds_of_payments(report, &mut scene).await?;
    redemptions(report, &mut scene).await?;
    unlock(report, &scene).await?;
    final_audit(report, &scene).await?;
    prune(report, &mut scene).await?;
    replace(report, &mut scene).await
}

async fn set_the_scene(report: &mut Report) -> Result<(Network, Token), Failure> {
    let setting_up = async {
        let network = Network::prepare(Place::fixed("demo")?, LAYOUT).await?;
        let detail = format!("chain at {}, contract {}", network.chain()?.url(), network.contract()?);
        Ok((network, detail))
    };
    let mut network = report.step("start anvil, deploy for four new authorities", setting_up).await?;
    let token = async {
        let token = network.chain()?.deploy_token(network.place())?;
        network.relayer()?.serve(token.address)?;
        let detail = format!("{} at {}", token.symbol, token.address);
        Ok((token, detail))
    };
    let token = report.step("deploy an ERC-20", token).await?;
    let starting = async {
        network.start_authorities().await?;
        let size = LAYOUT.authorities;
        Ok(((), format!("{size} × {} shards, quorum {}", LAYOUT.shards, network.committee().quorum())))
    };
    report.step("start the authorities", starting).await?;
    let relayer = async {
        network.start_relayer()?;
        let relayer = network.relayer()?;
        wait_for(START_PATIENCE, async || relayer.status().map_err(|error| error.to_string())).await?;
        relayer.program()?.check()?;
        Ok(((), "its gas key is its only secret".to_owned()))
    };
    report.step("start the relayer", relayer).await?;
    Ok((network, token))
}

async fn people(report: &mut Report, network: Network, token: Token) -> Result<Scene, Failure> {
    let meeting = async {
        let payers = Payers::new(&network, PAYERS)?;
        let mut accounts = payers.accounts();
        let mut people = Vec::new();
        for (number, name) in ["alice", "bob"].into_iter().enumerate() {
            let person = User::new(&network, name).await?;
            let own = person.import_rich_key("ethereum", number).await?;
            accounts.extend([own, person.new_ed25519_key("fastpay").await?]);
            let address = own.ethereum_address().unwrap_or_default();
            network.chain()?.give_token(&token, address, U256::from(20_000_u64 * 1_000_000)).await?;
            people.push(person);
        }
        let [alice, bob] = <[User; 2]>::try_from(people).map_err(|_| Failure::wrong("two people"))?;
        let detail = format!("each with an Ethereum and an Ed25519 account; {PAYERS} more accounts");
        Ok(((alice, bob, payers, accounts), detail))
    };
    let (alice, bob, payers, accounts) = report.step("Alice and Bob set up their wallets", meeting).await?;
    Ok(Scene { network, token, alice, bob, payers, accounts })
}

async fn deposits(report: &mut Report, scene: &Scene) -> Result<(), Failure> {
    let token = scene.token_text();
    let deposits = async {
        let alice = async {
            scene.alice.fastpay(["deposit", "100", "--from", "ethereum"]).await?;
            scene.alice.fastpay(["deposit", "5000", "--asset", &token, "--from", "ethereum"]).await
        };
        let bob = async {
            scene.bob.fastpay(["deposit", "60", "--from", "ethereum", "--to", "fastpay"]).await?;
            scene.bob.fastpay(["deposit", "8000", "--asset", &token, "--from", "ethereum", "--to", "fastpay"]).await
        };
        let (alice, bob) = tokio::join!(alice, bob);
        expect(&alice?, "state", "credited")?;
        expect(&bob?, "state", "credited")?;
        let detail = "Alice 100 ETH and 5,000 DEMO, Bob 60 ETH and 8,000 DEMO; final, and credited by a quorum";
        Ok(((), detail.to_owned()))
    };
    report.step("Alice and Bob deposit ETH and the ERC-20", deposits).await
}

async fn first_payments(report: &mut Report, scene: &Scene) -> Result<(), Failure> {
    let token = scene.token_text();
    let paying = async {
        let to_bob = scene.bob.account("fastpay").await?.to_string();
        let to_alice = scene.alice.account("ethereum").await?.to_string();
        let paid = scene.alice.fastpay(["pay", &to_bob, "1.5", "--from", "ethereum", "--memo", "lunch"]).await?;
        scene.bob.fastpay(["pay", &to_alice, "25", "--asset", &token, "--from", "fastpay"]).await?;
        let received = scene.bob.fastpay(["receive", "--from", "fastpay", "--wait", "240"]).await?;
        if !received.to_string().contains("lunch") {
            return Err(Failure::Wrong(format!("Bob did not receive lunch: {received}")));
        }
        let ms = paid.get("certifiedAfterMs").and_then(Value::as_f64).unwrap_or_default();
        Ok(((), format!("1.5 ETH and 25 DEMO; the first was certified {ms:.1} ms after it was sent")))
    };
    report.step("Alice pays Bob, Bob pays Alice (`fastpay pay`)", paying).await
}

/// Alice gives ETH and Bob the token to each of the payers.
async fn fund_the_payers(report: &mut Report, scene: &Scene) -> Result<(), Failure> {
    let funding = async {
        let gifts = [
            (&scene.alice, "ethereum", Asset::ETHER, Amount(ETHER)),
            (&scene.bob, "fastpay", Asset(scene.token.address), Amount(100_000_000)),
        ];
        let [ether, token] = gifts.map(async |(person, key, asset, amount)| {
            let (wallet, key) = person.open(key)?;
            for recipient in scene.payers.accounts() {
                let intent = Intent::Pay { recipient, asset, amount, memo: Memo::ZERO };
                wallet.send(&key, &intent).await.map_err(Failure::wrong)?;
            }
            Ok::<_, Failure>(())
        });
        let (ether, token) = tokio::join!(ether, token);
        ether.and(token)?;
        Ok(((), format!("1 ETH and 100 DEMO to each of {PAYERS} accounts, {} payments", 2 * PAYERS)))
    };
    report.step("Alice and Bob pay sixteen others", funding).await
}

async fn hundreds_of_payments(report: &mut Report, scene: &mut Scene) -> Result<(), Failure> {
    let assets = scene.assets();
    let [dying, away, back] = PAYMENTS_EACH;
    let kill = async {
        let (payers, before) = (scene.payers.clone(), scene.payers.settled());
        let paying = tokio::spawn(async move { payers.pay(dying, &assets).await });
        let a_third = before + usize::from(PAYERS) * dying / 3;
        while scene.payers.settled() < a_third && !paying.is_finished() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let before_the_kill = scene.payers.settled() - before;
        scene.network.authority(VICTIM)?.kill();
        let paid = paying.await.map_err(Failure::wrong)??;
        Ok(((), format!("killed after {before_the_kill} payments; {}", describe(&paid))))
    };
    report.step("everyone pays everyone; kill -9 one authority meanwhile", kill).await?;

    let without = async {
        let deposit = scene.bob.fastpay(["deposit", "2", "--from", "ethereum", "--to", "fastpay"]);
        let (paid, deposit) = tokio::join!(scene.payers.pay(away, &assets), deposit);
        expect(&deposit?, "state", "credited")?;
        Ok(((), format!("{}; and Bob deposits 2 ETH more", describe(&paid?))))
    };
    report.step("payments go on without it", without).await?;

    let restart = async {
        let victim = scene.network.authority(VICTIM)?;
        victim.start()?;
        victim.wait_ready().await?;
        let paid = scene.payers.pay(back, &assets).await?;
        scene.payers.bring_all_up_to_date(&scene.accounts).await?;
        let rows = same_everywhere(scene).await?;
        Ok(((), format!("{}; {rows} balances are the same at all four again", describe(&paid))))
    };
    report.step("it is started again and catches up", restart).await
}

fn describe(paid: &PaymentReport) -> String {
    let rate = paid.payments as f64 / paid.elapsed.as_secs_f64().max(0.001);
    let median = paid.certified_percentile(50).as_secs_f64() * 1_000.0;
    format!("{} payments, {rate:.0} a second, certified after {median:.1} ms (median)", paid.payments)
}

/// Waits until all authorities agree on every account. Returns how many balances were compared.
async fn same_everywhere(scene: &Scene) -> Result<usize, Failure> {
    let clients = scene.network.clients()?;
    wait_for(CATCH_UP_PATIENCE, async || {
        let mut compared = 0;
        for account in &scene.accounts {
            let mut states = Vec::new();
            for client in &clients {
                let state = client.shard_of(account).account(*account).await.map_err(|error| error.to_string())?;
                compared += state.holdings.len();
                states.push((state.next_sequence, state.pending, state.holdings));
            }
            if states.iter().any(|state| Some(state) != states.first()) {
                return Err(format!("the authorities differ on {account}"));
            }
        }
        Ok(compared)
    })
    .await
}

async fn redemptions(report: &mut Report, scene: &mut Scene) -> Result<(), Failure> {
    let token = scene.token_text();
    let assets = scene.assets();
    let relayed = async {
        let chain = scene.network.chain()?;
        let (half, fee) = (Amount(ETHER / 2), Amount(ETHER / 1_000));
        let payers = async {
            for member in 0..8 {
                scene.payers.redeem(member, OUT, Asset::ETHER, half, fee).await?;
                scene.payers.redeem(member, OUT, assets[1], Amount(10_000_000), Amount(10_000)).await?;
            }
            Ok::<_, Failure>(())
        };
        let to = OUT.to_string();
        let bob = ["redeem", "500", "--asset", &token, "--from", "fastpay", "--to", &to, "--fee", "1", "--wait", "240"];
        let (payers, bob) = tokio::join!(payers, scene.bob.fastpay(bob));
        payers.and(bob.map(drop))?;
        let expected = U256::from(8 * (half.0 - fee.0));
        wait_for_ether(chain, expected).await?;
        Ok(((), "17 redemptions, paid on the chain less the relayer's fee".to_owned()))
    };
    report.step("redemptions through the relayer", relayed).await?;

    scene.network.relayer()?.stop()?;
    let alone = async {
        let done = scene.alice.fastpay(["redeem", "3", "--from", "ethereum", "--self"]).await?;
        let redeemed = done.get("redeemed").cloned().unwrap_or_default();
        expect(&redeemed, "by", "self")?;
        let gas = redeemed.get("gas").cloned().unwrap_or_default();
        Ok(((), format!("3 ETH, by her own transaction with {gas} gas")))
    };
    report.step("the relayer is stopped; Alice redeems alone", alone).await?;

    let left = async {
        let to = OUT.to_string();
        scene.bob.fastpay(["redeem", "1", "--from", "fastpay", "--to", &to]).await?;
        scene.payers.bring_all_up_to_date(&scene.accounts).await?;
        Ok(((), "1 ETH has left his account and is still in the contract".to_owned()))
    };
    report.step("Bob certifies a redemption that nobody submits", left).await
}

/// Two copies of Alice's wallet sign two payments with one number, and reach two authorities each.
async fn unlock(report: &mut Report, scene: &Scene) -> Result<(), Failure> {
    let unlocking = async {
        let (wallet, key) = scene.alice.open("ethereum")?;
        let (sender, recipient) = (key.account(), scene.bob.account("fastpay").await?);
        let sequence = wallet.first_open_number(sender).await.map_err(Failure::wrong)?;
        for (number, authority) in (0_u128..).zip(scene.network.clients()?) {
            let (asset, amount, memo) = (Asset::ETHER, Amount(1 + number / 2), Memo::ZERO);
            let transfer = Intent::Pay { recipient, asset, amount, memo }.transfer(sender, sequence);
            let order = key.order(scene.network.domain(), transfer);
            authority.shard_of(&sender).order(&order).await.map_err(Failure::wrong)?;
        }
        let unlocked = scene.alice.fastpay(["unlock", "--from", "ethereum", "--wait", "120"]).await?;
        expect(&unlocked, "outcome", "voided")?;
        let paid = scene.alice.fastpay(["pay", &recipient.to_string(), "0.5", "--from", "ethereum"]).await?;
        expect(&paid, "state", "settled")?;
        scene.payers.bring_all_up_to_date(&scene.accounts).await?;
        Ok(((), format!("the contract voids #{sequence}, which all authorities vote for; she pays again")))
    };
    report.step("Alice is stuck with two orders of one number: `fastpay unlock`", unlocking).await
}

async fn wait_for_ether(chain: &Chain, expected: U256) -> Result<(), Failure> {
    wait_for(RELAY_PATIENCE, async || {
        let found = chain.ether_of(OUT).await.map_err(|error| error.to_string())?;
        if found == expected { Ok(()) } else { Err(format!("{OUT} has {found} wei of {expected}")) }
    })
    .await
}

async fn final_audit(report: &mut Report, scene: &Scene) -> Result<(), Failure> {
    let mut lines = Vec::new();
    let auditing = async {
        lines = audit(&scene.network, &scene.accounts, &scene.assets()).await?;
        let findings: Vec<_> = lines.iter().flat_map(|line| line.findings.clone()).collect();
        if findings.is_empty() {
            return Ok(((), format!("{} accounts, one by one, at each of the four authorities", scene.accounts.len())));
        }
        Err(Failure::Wrong(findings.join("; ")))
    };
    let audited = report.step("audit: contract = accounts + redeemable", auditing).await;
    // The audit is shown even if it fails.
    report.audit(&lines, |line| match line.asset {
        Asset::ETHER => ("ETH".into(), 18),
        _ => (scene.token.symbol.clone(), scene.token.decimals),
    });
    audited?;
    let by_command = async {
        let found = scene.alice.fastpay(["audit"]).await?;
        match found.get("ok") {
            Some(Value::Bool(true)) => Ok(((), "as anyone can".to_owned())),
            _ => Err(Failure::Wrong(format!("`fastpay audit`: {found}"))),
        }
    };
    report.step("`fastpay audit` agrees", by_command).await
}

/// Each authority certifies checkpoints with the others, and ends its own journals when it is its turn.
async fn prune(report: &mut Report, scene: &mut Scene) -> Result<(), Failure> {
    let assets = scene.assets();
    let pruning = async {
        let endpoints = scene.network.endpoints_file();
        for authority in &mut scene.network.authorities {
            authority.set_endpoints(&endpoints)?;
            authority.set_archive(CHECKPOINT_SECONDS)?;
            authority.stop()?;
            authority.start()?;
            authority.wait_ready().await?;
        }
        let before = scene.payers.settled();
        let deadline = Instant::now() + PRUNE_PATIENCE;
        while !all_pruned(scene)? {
            if Instant::now() > deadline {
                return Err(Failure::wrong("not all authorities have pruned their history"));
            }
            scene.payers.pay(1, &assets).await?;
        }
        for authority in &mut scene.network.authorities {
            authority.wait_ready().await?;
        }
        let paid = scene.payers.settled() - before;
        let scene = &*scene;
        // The newest payments may be due for the next checkpoint, and an authority that prunes again restarts.
        let rows = wait_for(PATIENCE, async || {
            let lines = audit(&scene.network, &scene.accounts, &assets).await.map_err(|error| error.to_string())?;
            let findings: Vec<_> = lines.into_iter().flat_map(|line| line.findings).collect();
            if !findings.is_empty() {
                return Err(findings.join("; "));
            }
            same_everywhere(scene).await.map_err(|error| error.to_string())
        })
        .await?;
        Ok(((), format!("one at a time, during {paid} payments; {rows} balances are the same, and add up")))
    };
    report.step("all authorities certify a checkpoint and prune their history below it", pruning).await
}

/// A member is lost for good. An authority of a new operator takes its place: it observes with an empty folder, begins at
/// a checkpoint, and joins. Then Alice pays while another member is away, so the new one votes.
async fn replace(report: &mut Report, scene: &mut Scene) -> Result<(), Failure> {
    let replacing = async {
        let network = &mut scene.network;
        network.authority(VICTIM)?.kill();
        network.replace(VICTIM, LAYOUT.shards)?;
        let endpoints = network.endpoints_file();
        let new = network.authority(VICTIM)?;
        new.set_endpoints(&endpoints)?;
        new.set_archive(CHECKPOINT_SECONDS)?;
        new.set_observer()?;
        new.start()?;
        let members: Vec<_> = network.authorities.iter().map(Authority::member).collect();
        let others: Vec<_> = (0..members.len()).filter(|number| *number != VICTIM).collect();
        network.rotate("none", &members, &others, 1).await?;
        let http = network.authority(VICTIM)?.endpoints()?.http.clone().unwrap_or_default();
        wait_for(PATIENCE, async || {
            let (_, ready) = http_get(&http, "/ready").await?;
            if ready.contains("\"votes\":true") { Ok(()) } else { Err(ready) }
        })
        .await?;
        scene.alice.set_up_again(network).await?;
        // The new epoch makes a checkpoint due, after which members restart.
        for authority in &mut network.authorities {
            authority.wait_ready().await?;
        }
        let away = network.authority(AWAY)?;
        away.stop()?;
        let to = scene.bob.account("fastpay").await?.to_string();
        let paid = scene.alice.fastpay(["--timeout", "300", "pay", &to, "0.5", "--from", "ethereum"]).await?;
        expect(&paid, "state", "settled")?;
        let away = network.authority(AWAY)?;
        away.start()?;
        away.wait_ready().await?;
        Ok(((), "with an empty folder; Alice pays with its vote, while another member is away".to_owned()))
    };
    report.step("an authority is lost: the others replace it by a new one, which joins", replacing).await
}

fn all_pruned(scene: &Scene) -> Result<bool, Failure> {
    for authority in &scene.network.authorities {
        if authority.generation()? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn expect(answer: &Value, key: &str, value: &str) -> Result<(), Failure> {
    if answer.get(key).and_then(Value::as_str) == Some(value) {
        return Ok(());
    }
    Err(Failure::Wrong(format!("{key} should be {value} in {answer}")))
}
