//! Network partitions and packet loss: each authority has a network of its own, with one cable to the hub of the
//! wallets.
//!
//! This needs root's rights over a network, which users have in a user namespace if the system permits it. The test
//! starts itself again in such a namespace, and the second process does the work.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{Amount, Asset, Balance, GenesisBalance, Memo};
use fastpay_e2e::{Cell, Failure, Namespace, Network, Own, PATIENCE, Payers, Place, run, wait_for, within};
use fastpay_wallet::Intent;

use crate::crashes::assert_all_paid;
use crate::scene::{START, balance, build, key, layout, skip};

const PAYERS: u8 = 8;
const INSIDE: &str = "IN_NETWORK_NAMESPACE";

#[test]
fn payments_survive_cut_cables_and_lost_packets() {
    build();
    let possible = run(Command::new("unshare").args(["-r", "-n", "ip", "link", "set", "lo", "up"]));
    match possible.and_then(fastpay_e2e::Finished::success) {
        Ok(_) => {}
        Err(error) => return skip("partitions and lost packets", &format!("users have no networks here: {error}")),
    }
    let own = std::env::current_exe().unwrap();
    let mut again = Command::new("unshare");
    again.args(["-r", "-n", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(own);
    again.args(["--exact", "partition::inside", "--ignored", "--nocapture"]);
    let done = run(again.env(INSIDE, "1").env("PROGRAMS_ARE_BUILT", "1")).unwrap();
    println!("{}", done.out);
    assert!(done.status.success() && done.out.contains("1 passed"), "{}{}", done.out, done.err);
}

/// One end of each cable, at the hub; the other one is called `hub` and is in the authority's own network.
struct Cables {
    cells: Vec<Cell>,
}

fn shell(line: &str) -> Result<String, Failure> {
    Ok(run(Command::new("sh").args(["-c", line]))?.success()?.out)
}

impl Cables {
    fn lay(count: usize) -> Self {
        let lay = |number: usize| {
            let namespace = Namespace::new(Own::Network).unwrap();
            let (hub, host, id) = (format!("10.77.{number}.1"), format!("10.77.{number}.2"), namespace.id());
            shell(&format!(
                "ip link add cable{number} type veth peer name hub netns {id} && \
                 ip addr add {hub}/24 dev cable{number} && ip link set cable{number} up"
            ))
            .unwrap();
            namespace
                .shell(&format!("ip link set lo up; ip addr add {host}/24 dev hub && ip link set hub up"))
                .unwrap();
            Cell { host, namespace: Arc::new(namespace) }
        };
        Self { cells: (0..count).map(lay).collect() }
    }

    fn set(&self, number: usize, state: &str) {
        shell(&format!("ip link set cable{number} {state}")).unwrap();
    }

    /// Makes every cable lose packets in both directions. Returns the method: not every kernel can lose them at random.
    fn lose(&self) -> &'static str {
        let ways = [
            ("5 of 100 packets at random", "netem loss 5% delay 3ms 2ms"),
            ("what exceeds a buffer of one packet in front of 512 kbit/s", "tbf rate 512kbit burst 1600 limit 1600"),
        ];
        for (what, how) in ways {
            let all = self.cells.iter().enumerate().all(|(number, cell)| {
                let set = |dev: &str| format!("tc qdisc replace dev {dev} root {how}");
                shell(&set(&format!("cable{number}"))).is_ok() && cell.namespace.shell(&set("hub")).is_ok()
            });
            if all {
                return what;
            }
        }
        panic!("this kernel can lose no packets");
    }

    fn lost(&self) -> usize {
        let of = |said: String| {
            let after = said.split("dropped ").nth(1).unwrap_or_default().to_owned();
            after.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse().unwrap_or(0)
        };
        let count = |(number, cell): (usize, &Cell)| {
            of(shell(&format!("tc -s qdisc show dev cable{number}")).unwrap())
                + of(cell.namespace.shell("tc -s qdisc show dev hub").unwrap())
        };
        self.cells.iter().enumerate().map(count).sum::<usize>()
    }

    fn heal(&self) {
        for (number, cell) in self.cells.iter().enumerate() {
            shell(&format!("tc qdisc del dev cable{number} root")).unwrap();
            cell.namespace.shell("tc qdisc del dev hub root").unwrap();
        }
    }
}

/// Makes the payments of the payers' plan, each until it is settled.
async fn pay_all(payers: &Payers, each: usize) {
    let mut paying = tokio::task::JoinSet::new();
    for (member, payments) in payers.plan(each, &[Asset::ETHER]).into_iter().enumerate() {
        let payers = payers.clone();
        paying.spawn(async move {
            for (recipient, asset, amount) in payments {
                let intent = Intent::Pay { recipient, asset, amount, memo: Memo::ZERO };
                while payers.send(member, intent).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        });
    }
    within(PATIENCE, "they are still paying", paying.join_all()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a network namespace: run by payments_survive_cut_cables_and_lost_packets"]
async fn inside() {
    assert!(std::env::var_os(INSIDE).is_some(), "not in a namespace of its own");
    let cables = Cables::lay(4);
    let accounts: Vec<_> = (0..PAYERS).map(|number| key(number).account()).collect();
    let balances =
        accounts.iter().map(|account| GenesisBalance { account: *account, asset: Asset::ETHER, amount: Amount(START) });
    let place = Place::temporary("partition").unwrap();
    let mut network = Network::prepare_apart(place, layout(), balances.collect(), cables.cells.clone()).unwrap();
    network.start_authorities().await.unwrap();
    let payers = Payers::new(&network, PAYERS).unwrap();

    // Each authority is cut off once and reconnected. Once two are cut off together: nothing is final until they are
    // back.
    let each = 12;
    let total = usize::from(PAYERS) * each;
    let paying = tokio::spawn({
        let payers = payers.clone();
        async move { pay_all(&payers, each).await }
    });
    for (part, cut) in [vec![0], vec![2], vec![1, 3], vec![3]].into_iter().enumerate() {
        while payers.settled() < total * part / 6 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        cut.iter().for_each(|number| cables.set(*number, "down"));
        if cut.len() > 1 {
            // Orders sent before may still be settled; then none is.
            let stands = wait_for(PATIENCE, async || {
                let before = payers.settled();
                tokio::time::sleep(Duration::from_secs(2)).await;
                if payers.settled() == before { Ok(before) } else { Err("they go on".to_owned()) }
            });
            assert!(stands.await.unwrap() < total, "two authorities of four are no quorum");
        } else {
            let before = payers.settled();
            let goes_on = async {
                while payers.settled() < (before + 5).min(total) {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            within(PATIENCE, "nobody is paid without one authority", goes_on).await.unwrap();
        }
        cut.iter().for_each(|number| cables.set(*number, "up"));
    }
    paying.await.unwrap();
    payers.bring_all_up_to_date(&accounts).await.unwrap();
    assert_all_paid(&network, &payers, each).await;

    // All cables lose packets. The payers run their plan again, so each has paid twice as often.
    let how = cables.lose();
    pay_all(&payers, each).await;
    let lost = cables.lost();
    println!("packets lost: {lost} ({how})");
    assert!(lost > 0, "no packet was lost");
    cables.heal();
    payers.bring_all_up_to_date(&accounts).await.unwrap();
    for client in network.clients().unwrap() {
        // Credits between shards may still be on their way.
        let balanced = wait_for(PATIENCE, async || {
            let mut sum = Balance::ZERO;
            for account in &accounts {
                let state = client.shard_of(account).account(*account).await.map_err(|error| error.to_string())?;
                if state.next_sequence.0 != 2 * each as u64 || state.pending.is_some() {
                    return Err(format!("{}: {account} is at {state:?}", client.name()));
                }
                sum = sum.plus(state.balance(Asset::ETHER));
            }
            if sum == balance(START * u128::from(PAYERS)) { Ok(()) } else { Err(format!("{}: {sum}", client.name())) }
        });
        balanced.await.unwrap();
    }
}
