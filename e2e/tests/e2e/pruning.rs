//! A month of history by the chain's clock, in which nodes certify checkpoints and end their own journals in turn, under
//! load. One of them is away for all of it. Each step is killed once: what is made of a checkpoint, the switch to new
//! journals, the removal of the old ones, an observer's beginning from nothing, the late one's catching up, and a rebase
//! to another number of shards. One loses its disk. In the end all agree to the unit, and what is pruned is read from the
//! archives.

use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastpay_core::{AccountId, Asset, Balance, SequenceNumber};
use fastpay_e2e::{
    Authority, Layout, Network, PATIENCE, Payers, Place, Primary, User, audit, program, run, wait_for, within,
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::archive_reads::{read_through_archives, shows_the_same};
use crate::scene::{build, layout};
use crate::storm::{give, keep_paying, wait_until_relayed};

const PAYERS: u8 = 3;
/// As often as nodes may be configured to make them. No core is idle here.
const EVERY_SECONDS: u64 = 10;
const AT_ONCE: &str = "idle = false";
/// Of six members, four are a quorum: with one away, the others can still be away in turn.
const MEMBERS: usize = 6;
/// The member that is away for the month.
const LATE: usize = MEMBERS - 1;
const PRESENT: Range<usize> = 0..LATE;
/// The place of an observer, behind the members.
const OBSERVER: usize = MEMBERS;
/// One that loses its disk.
const LOST: usize = 1;
/// One that is rebased to another number of shards.
const RESHARDED: usize = 0;
const WEEK_S: u64 = 7 * 86_400;
/// So many checkpoints behind, an authority skips to the newest state that has a successor.
const SKIPPED: u64 = 5;
/// How often a victim is looked at. It is killed within what it does in this time.
const GLANCE: Duration = Duration::from_millis(1);

/// The step after which a kill amid it is made up, because it takes no time.
const REMOVAL: &str = "old journals are to be removed";

/// What the files of an authority show.
type IsSo = fn(&Authority) -> bool;

fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).into_iter().flatten();
    names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

pub fn certified(authority: &Authority) -> u64 {
    let names = names(&authority.archive());
    names.iter().filter_map(|name| name.strip_suffix(".certificate.json")?.parse().ok()).max().unwrap_or(0)
}

fn folders(data: &Path) -> Vec<String> {
    let mut names = names(data);
    names.retain(|name| name.starts_with("shard-") || name.starts_with("generation-"));
    names
}

fn generation_folder(authority: &Authority, generation: u64) -> PathBuf {
    authority.data().join(format!("generation-{generation:04}"))
}

/// Waits until an authority runs on journals that begin at a checkpoint, and no others are left.
pub async fn pruned(network: &Network, authority: usize) {
    is_pruned(&network.authorities[authority]).await;
}

async fn is_pruned(authority: &Authority) {
    wait_for(PATIENCE, async || {
        let (generation, left) =
            (authority.generation().map_err(|error| error.to_string())?, folders(&authority.data()));
        let is_done = generation > 0 && left == [format!("generation-{generation:04}")];
        if is_done { Ok(()) } else { Err(format!("{} is in generation {generation}: {left:?}", authority.name())) }
    })
    .await
    .unwrap();
}

/// Whether the number after the newest certified one has a file of this kind in the archive, and none of the other one.
fn makes(authority: &Authority, has: &str, lacks: &str) -> bool {
    let next = certified(authority) + 1;
    let exists = |kind: &str| authority.archive().join(format!("{next:010}.{kind}")).exists();
    exists(has) && !exists(lacks)
}

/// Whether new journals are written that do not count yet.
fn rebases(authority: &Authority) -> bool {
    let next = authority.generation().map(|generation| generation_folder(authority, generation + 1));
    next.is_ok_and(|next| next.join("shard-000").exists())
}

/// The journals that are left of before the ones that count.
fn replaced(authority: &Authority) -> Vec<PathBuf> {
    let Ok(generation) = authority.generation() else { return Vec::new() };
    let of = |name: &String| match name.strip_prefix("generation-") {
        Some(number) => number.parse::<u64>().is_ok_and(|number| number < generation),
        None => generation > 0,
    };
    folders(&authority.data()).into_iter().filter(of).map(|name| authority.data().join(name)).collect()
}

/// Kills the first of these authorities of which this is so.
async fn kill_at(network: &mut Network, among: Range<usize>, what: &str, is_so: IsSo) -> usize {
    let victim = within(PATIENCE, what, async {
        loop {
            if let Some(victim) = among.clone().find(|number| is_so(&network.authorities[*number])) {
                break victim;
            }
            tokio::time::sleep(GLANCE).await;
        }
    });
    let victim = victim.await.unwrap();
    network.authority(victim).unwrap().kill();
    println!("killed {}: {what}", network.authorities[victim].name());
    victim
}

async fn revive(network: &mut Network, authority: usize) {
    network.authority(authority).unwrap().start().unwrap();
    network.authority(authority).unwrap().wait_ready().await.unwrap();
}

/// What an account holds, and its next number, at an authority.
pub async fn held(authority: &Authority, account: AccountId) -> Result<(Balance, SequenceNumber), String> {
    let client = authority.client().map_err(|error| error.to_string())?;
    let state = client.shard_of(&account).account(account).await.map_err(|error| error.to_string())?;
    Ok((state.balance(Asset::ETHER), state.next_sequence))
}

/// Whether all hold the same, to the unit.
pub async fn agree(all: &[&Authority], accounts: &[AccountId]) -> Result<(), String> {
    for account in accounts {
        let mut found = Vec::new();
        for authority in all {
            found.push(held(authority, *account).await?);
        }
        if found.iter().any(|there| *there != found[0]) {
            return Err(format!("{account} has {found:?}"));
        }
    }
    Ok(())
}

/// Sets up an observer with an empty folder, as the last authority, and starts it.
fn observe(network: &mut Network) {
    network.add(2).unwrap();
    let observer = network.authorities.last().unwrap();
    observer.set_observer().unwrap();
    observer.set_endpoints(&network.endpoints_file()).unwrap();
    observer.set_archive_with(EVERY_SECONDS, AT_ONCE).unwrap();
    network.authority(OBSERVER).unwrap().start().unwrap();
}

/// Lets a member whose disk is lost begin from an empty folder: it takes from the committee what all have pruned.
fn begin_anew(network: &mut Network, member: usize) {
    network.authority(member).unwrap().kill();
    let (place, authority) = (network.place(), &network.authorities[member]);
    std::fs::remove_dir_all(authority.data()).unwrap();
    std::fs::remove_dir_all(authority.archive()).unwrap();
    std::fs::remove_file(authority.data().with_file_name("data.witness")).unwrap();
    let Primary::Contract { rpc_url, chain_id, contract } = network.primary() else { panic!("there is a chain") };
    let mut init = Command::new(program("fastpay-node").unwrap());
    init.args(["init", "--listen", "127.0.0.1:1", "--http", "127.0.0.1:9", "--shards", "2", "--config"]);
    init.arg(place.path("again.toml")).arg("--keys").arg(authority.keys_folder()).arg("--data").arg(authority.data());
    init.args(["--rpc-url", rpc_url, "--chain-id", &chain_id.to_string(), "--contract", &contract.to_string()]);
    run(&mut init).unwrap().success().unwrap();
    network.authority(member).unwrap().start().unwrap();
}

/// The late member comes back, an observer begins, and a member without its disk: all at once, and two of them are killed
/// meanwhile. Those that are there are a quorum.
async fn begin_at_a_checkpoint(network: &mut Network) {
    network.authority(LATE).unwrap().start().unwrap();
    observe(network);
    begin_anew(network, LOST);
    let skips: IsSo = |late| names(&late.archive()).iter().any(|name| name.ends_with(".skipped.json"));
    let mut to_come = vec![
        (LATE, "the late member skips", skips),
        (LATE, "the late member begins at a checkpoint", rebases),
        (OBSERVER, "an observer begins", rebases),
    ];
    let killed = within(PATIENCE, "they do not begin", async {
        while !to_come.is_empty() {
            // Of each authority one after the other.
            let is_first = |at: usize| to_come[..at].iter().all(|(other, ..)| *other != to_come[at].0);
            let is_so = |at: &usize| is_first(*at) && to_come[*at].2(&network.authorities[to_come[*at].0]);
            match (0..to_come.len()).find(is_so) {
                None => tokio::time::sleep(GLANCE).await,
                Some(at) => {
                    let (victim, what, _) = to_come.remove(at);
                    network.authority(victim).unwrap().kill();
                    println!("killed {}: {what}", network.authorities[victim].name());
                    network.authority(victim).unwrap().start().unwrap();
                }
            }
        }
    });
    killed.await.unwrap();
    for number in [LATE, OBSERVER, LOST] {
        network.authority(number).unwrap().wait_ready().await.unwrap();
        pruned(network, number).await;
    }
}

/// Rebases a member to one shard, and kills that once.
async fn rebase_to_one_shard(network: &mut Network, member: usize) {
    network.authority(member).unwrap().stop().unwrap();
    let authority = &network.authorities[member];
    let (before, archive) = (authority.generation().unwrap(), authority.archive());
    let rebase = ["rebase", "--shards", "1", "--archive", archive.to_str().unwrap()];
    let mut rebasing = authority.start_operating(rebase).unwrap();
    let begun = within(PATIENCE, "nothing is rebased", async {
        while !rebases(authority) {
            tokio::time::sleep(GLANCE).await;
        }
    });
    begun.await.unwrap();
    rebasing.kill();
    assert_eq!(authority.generation().unwrap(), before, "the old journals count: {}", rebasing.log_tail());
    let rebased = authority.operate_with(rebase).unwrap().success().unwrap();
    assert!(rebased.out.contains("\"shards\":1"), "{rebased:?}");
    network.set_shards(member, 1).unwrap();
    revive(network, member).await;
    pruned(network, member).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_of_history_is_pruned_under_load() {
    build();
    let place = Place::temporary("pruning").unwrap();
    let mut network = Network::prepare(place, Layout { authorities: MEMBERS, ..layout() }).await.unwrap();
    for authority in &network.authorities {
        authority.set_endpoints(&network.endpoints_file()).unwrap();
        authority.set_archive_with(EVERY_SECONDS, AT_ONCE).unwrap();
    }
    network.start_authorities().await.unwrap();
    network.start_relayer().unwrap();
    let (alice, bob) = (User::new(&network, "alice").await.unwrap(), User::new(&network, "bob").await.unwrap());
    let own = alice.import_rich_key("own", 0).await.unwrap();
    let his = bob.new_ed25519_key("his").await.unwrap();
    alice.fastpay(["deposit", "5", "--wait", "240"]).await.unwrap();
    assert_eq!(alice.fastpay(["pay", &his.to_string(), "1"]).await.unwrap()["state"], "settled");
    let payers = Payers::new(&network, PAYERS).unwrap();
    let accounts = [payers.accounts(), vec![own, his]].concat();
    for account in payers.accounts() {
        give(&network, account).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut paying = JoinSet::new();
    for member in 0..usize::from(PAYERS) {
        paying.spawn(keep_paying(payers.clone(), member, member as u64, stop.clone()));
    }
    network.authority(LATE).unwrap().kill();
    let (absent_since, begun_s) =
        (certified(&network.authorities[LATE]), network.chain().unwrap().time_s().await.unwrap());

    // Four weeks. In each a member is killed at something else, and in each there is a checkpoint.
    let steps: [(&str, IsSo); 4] = [
        ("a checkpoint is made", |member| makes(member, "cut.json", "vote.json")),
        ("a signed checkpoint waits for a quorum", |member| makes(member, "vote.json", "certificate.json")),
        ("new journals are written", rebases),
        (REMOVAL, |member| !replaced(member).is_empty()),
    ];
    for (what, is_so) in steps {
        network.chain().unwrap().pass(WEEK_S).await.unwrap();
        let before = certified(&network.authorities[0]);
        let victim = kill_at(&mut network, PRESENT, what, is_so).await;
        if what == REMOVAL {
            // As a kill amid the removal leaves them.
            replaced(&network.authorities[victim]).iter().take(1).for_each(|old| std::fs::remove_dir_all(old).unwrap());
        }
        revive(&mut network, victim).await;
        wait_for(PATIENCE, async || match certified(&network.authorities[0]) {
            number if number > before => Ok(()),
            number => Err(format!("{number} checkpoints are certified")),
        })
        .await
        .unwrap();
    }
    for member in PRESENT {
        pruned(&network, member).await;
    }
    wait_for(PATIENCE, async || match certified(&network.authorities[0]) {
        number if number >= absent_since + SKIPPED => Ok(()),
        number => Err(format!("{number} checkpoints are certified")),
    })
    .await
    .unwrap();
    let passed_s = network.chain().unwrap().time_s().await.unwrap() - begun_s;
    assert!(passed_s >= 4 * WEEK_S, "{passed_s} s by the chain's clock");

    begin_at_a_checkpoint(&mut network).await;
    // The endpoints file lists the observer now. A wallet asks members alone.
    let balance = alice.fastpay(["balance"]).await.unwrap();
    assert_eq!((&balance["balances"][0]["amount"], &balance["nextSequence"]), (&json!("4"), &json!(1)), "{balance}");
    let observer = network.authorities.pop().unwrap();
    let settled = payers.settled();
    wait_for(PATIENCE, async || if payers.settled() > settled { Ok(()) } else { Err("nobody pays".to_owned()) })
        .await
        .unwrap();
    stop.store(true, Ordering::Relaxed);
    let redeemed: u64 = within(PATIENCE, "they are still paying", paying.join_all()).await.unwrap().iter().sum();
    wait_until_relayed(&network, redeemed).await;
    rebase_to_one_shard(&mut network, RESHARDED).await;

    // An observer shows what the newest checkpoint with a successor includes, and later deposits. One makes a successor.
    let seen = Cell::new(0);
    wait_for(PATIENCE, async || {
        let all: Vec<_> = network.authorities.iter().chain([&observer]).collect();
        let Err(differs) = agree(&all, &accounts).await else { return Ok(()) };
        let newest = certified(&network.authorities[0]);
        if newest > seen.get() {
            give(&network, accounts[0]).await;
            seen.set(newest);
        }
        Err(differs)
    })
    .await
    .unwrap();
    shows_the_same(&observer, &network.authorities[RESHARDED], &accounts).await;
    let lines = audit(&network, &accounts, &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    let all: Vec<_> = network.authorities.iter().chain([&observer]).collect();
    read_through_archives(&network, &all, [&alice, &bob], [own, his]).await;
    for number in PRESENT.filter(|number| *number != LOST) {
        let log = network.authority(number).unwrap().program().unwrap().log_text();
        assert!(!log.contains("this data folder may be older"), "{log}");
    }
    println!("{settled} payments and redemptions settled, {} checkpoints", certified(&network.authorities[0]));
}
