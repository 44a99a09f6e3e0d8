//! A full disk: one authority has small file systems of its own, in a mount namespace.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{
    AccountKey, Amount, Asset, Balance, Certificate, Epoch, GenesisBalance, Memo, SequenceNumber, TransferOrder, Vote,
};
use fastpay_e2e::{Authority, Cell, Namespace, Network, Own, PATIENCE, Payers, Place, wait_for, within};
use fastpay_rpc::Refusal;
use fastpay_wallet::Intent;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::crashes::assert_all_paid;
use crate::pruning::{agree, certified, held};
use crate::scene::{START, balance, build, key, layout, payment, skip};

const PAYERS: u8 = 6;
const EACH: usize = 20;

/// Collects votes for an order from all but the first authority, and sends the certificate to the first one.
async fn bring(clients: &[AuthorityClient], order: TransferOrder) -> Result<SequenceNumber, ClientError> {
    let sender = order.transfer.sender();
    let mut votes: Vec<Vote> = Vec::new();
    for client in &clients[1..] {
        votes.push(client.shard_of(&sender).order(&order).await?.1);
    }
    votes.sort_by_key(|vote| vote.authority);
    let certificate = Certificate { order, epoch: Epoch(0), votes };
    clients[0].shard_of(&sender).confirm(&certificate).await.map(|(_, next)| next)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_with_a_full_disk_answers_nothing_more_and_loses_no_answer() {
    let namespace = match Namespace::new(Own::Mounts) {
        Ok(namespace) => Arc::new(namespace),
        Err(error) => return skip("a full disk", &format!("users may not mount here: {error}")),
    };
    build();
    let place = Place::temporary("disk").unwrap();
    let data = place.path("authority-0/data");
    let data = data.display();
    namespace.shell(&format!("mkdir -p {data} && mount -t tmpfs -o size=96m tmpfs {data}")).unwrap();
    let accounts: Vec<_> = (0..PAYERS).map(|number| key(number).account()).collect();
    // Accounts that are not payers.
    let others = || (PAYERS..200).map(key);
    let funded = accounts.iter().copied().chain(others().map(|other| other.account()));
    let balances = funded.map(|account| GenesisBalance { account, asset: Asset::ETHER, amount: Amount(START) });
    let cell = Cell { host: "127.0.0.1".into(), namespace: namespace.clone() };
    let mut network = Network::prepare_apart(place, layout(), balances.collect(), vec![cell]).unwrap();
    network.authorities[0].set_limits("disk_reserve_bytes = 33554432").unwrap();
    network.start_authorities().await.unwrap();
    let payers = Payers::new(&network, PAYERS).unwrap();
    let paying = tokio::spawn({
        let payers = payers.clone();
        async move { payers.pay(EACH, &[Asset::ETHER]).await }
    });
    while payers.settled() < usize::from(PAYERS) * EACH / 4 {
        sleep(Duration::from_millis(2)).await;
    }
    // Fill it up to the reserve: the authority votes for no new order, and confirms what the others certify.
    let kibibytes = format!("$(($(df --output=avail -k {data} | tail -1) - 16384))");
    namespace.shell(&format!("dd if=/dev/zero of={data}/first bs=1k count={kibibytes} 2>/dev/null")).unwrap();
    let domain = *network.domain();
    let clients: Vec<_> = network.authorities.iter().map(|authority| authority.client().unwrap()).collect();
    // Each tries once: an order that was voted for before the node measured the disk gets its vote again.
    let mut trying = others();
    let order = wait_for(Duration::from_secs(60), || {
        let owner = trying.next().expect("the node looks at its disk each second");
        let order = owner.order(&domain, payment(&owner, key(200).account(), 1, 0));
        let shard = clients[0].shard_of(&owner.account()).clone();
        async move {
            match shard.order(&order).await {
                Err(ClientError::Refused(Refusal::DiskLow(wait))) if !wait.is_zero() => Ok(order),
                answer => Err(format!("{answer:?}")),
            }
        }
    });
    let order = order.await.unwrap();
    assert_eq!(bring(&clients, order).await.unwrap(), SequenceNumber(1));
    // Fill it to the last byte.
    namespace.shell(&format!("dd if=/dev/zero of={data}/filler bs=4k 2>/dev/null || dd if=/dev/zero of={data}/rest bs=1 2>/dev/null || true")).unwrap();
    let free = namespace.shell(&format!("df --output=avail {data} | tail -1")).unwrap();
    assert_eq!(free.trim(), "0", "the disk is full");
    // No record fits now. The authority stops rather than confirm what is not on disk; the others continue without it.
    for owner in trying.by_ref().take(20) {
        let _ = bring(&clients, owner.order(&domain, payment(&owner, key(200).account(), 1, 0))).await;
    }
    let authority = network.authority(0).unwrap();
    let ended = wait_for(Duration::from_secs(60), || {
        let ended = authority.program().unwrap().ended();
        async move { ended.ok_or_else(|| "it still runs".to_owned()) }
    });
    let status = ended.await.unwrap();
    assert!(!status.success(), "{status}");
    let log = authority.program().unwrap().log_text();
    assert!(log.contains("No space left on device"), "{log}");
    // It does not start while the disk is full.
    authority.start().unwrap();
    sleep(Duration::from_secs(1)).await;
    let paid = paying.await.unwrap().unwrap();
    assert_eq!(paid.payments, usize::from(PAYERS) * EACH);

    let authority = network.authority(0).unwrap();
    authority.kill();
    namespace.shell(&format!("rm -f {data}/first {data}/filler {data}/rest")).unwrap();
    authority.start().unwrap();
    authority.wait_ready().await.unwrap();
    payers.bring_all_up_to_date(&accounts).await.unwrap();
    assert_all_paid(&network, &payers, EACH).await;
    // Stop the processes before their file system is removed.
    network.authority(0).unwrap().kill();
}

/// The reserve. Twice as much is when a node looks for what it can free, and five quarters when it does so at any price.
const RESERVE: u64 = 32 << 20;
/// The journals are at least so long when the disk is full: so much can be freed.
const JOURNALS: u64 = 512 << 10;
const EVERY_SECONDS: u64 = 10;
const STORE: &str = "s3://archives/first";
const NEARLY_FULL: &str = "the disk is nearly full: no new order is voted for";

/// Pays one unit at a time to the next member, until it is stopped.
async fn keep_paying(payers: Payers, member: usize, stop: Arc<AtomicBool>) {
    let accounts = payers.accounts();
    let recipient = accounts[(member + 1) % accounts.len()];
    while !stop.load(Ordering::Relaxed) {
        let intent = Intent::Pay { recipient, asset: Asset::ETHER, amount: Amount(1), memo: Memo::ZERO };
        // Repeating the same call never pays twice.
        while payers.send(member, intent).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Leaves about so many bytes free in a folder with a file system of its own.
fn leave_free(namespace: &Namespace, folder: &Path, bytes: u64) {
    let (folder, kibibytes) = (folder.display(), bytes >> 10);
    let fill = format!(
        "rm -f {folder}/filler && free=$(df --output=avail -k {folder} | tail -1) && \
         dd if=/dev/zero of={folder}/filler bs=1k count=$((free - {kibibytes})) 2>/dev/null"
    );
    namespace.shell(&fill).unwrap();
}

async fn metric_is(authority: &Authority, name: &str, is_so: impl Fn(f64) -> bool) {
    wait_for(PATIENCE, async || match authority.metric(name).await.map_err(|error| error.to_string())? {
        value if is_so(value) => Ok(()),
        value => Err(format!("{name} is {value}")),
    })
    .await
    .unwrap();
}

/// Waits until an authority has ended its journals at a newer checkpoint than this. They are shorter than one file, so
/// the checkpoint looks newer than that, as it is where most files are older.
async fn until_pruned_above(authority: &Authority, (namespace, archive): (&Namespace, &Path), number: f64) {
    let newer = format!("touch -c -d '+1 hour' {}/*.state", archive.display());
    wait_for(PATIENCE, async || {
        // There may be none yet.
        let _ = namespace.shell(&newer);
        match authority.metric("fastpay_pruned_checkpoint_number").await.map_err(|error| error.to_string())? {
            pruned if pruned > number => Ok(()),
            pruned => Err(format!("its journals begin at {pruned}")),
        }
    })
    .await
    .unwrap();
}

/// Asks the first authority for votes, each time with the order of another owner, until an answer is as it should be.
async fn until_answered(
    network: &Network,
    owners: &mut impl Iterator<Item = AccountKey>,
    is_so: impl Fn(&Result<(), ClientError>) -> bool,
) {
    let (client, domain) = (network.authorities[0].client().unwrap(), *network.domain());
    let mut trying = None;
    let asking = async {
        loop {
            let owner = trying.get_or_insert_with(|| owners.next().expect("the node looks at its disk each second"));
            let order = owner.order(&domain, payment(owner, key(200).account(), 1, 0));
            let answer = client.shard_of(&owner.account()).order(&order).await.map(drop);
            if is_so(&answer) {
                return;
            }
            // A vote locks the account.
            if answer.is_ok() {
                trying = None;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    within(PATIENCE, "no answer is as it should be", asking).await.unwrap();
}

/// How often the first authority began to refuse orders because its disk was nearly full.
fn refusals(network: &mut Network) -> usize {
    network.authority(0).unwrap().program().unwrap().log_text().matches(NEARLY_FULL).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fills_up_frees_itself_and_where_it_cannot_it_goes_on_once_the_archive_has_room() {
    let namespace = match Namespace::new(Own::Mounts) {
        Ok(namespace) => Arc::new(namespace),
        Err(error) => return skip("a full disk with an archive", &format!("users may not mount here: {error}")),
    };
    build();
    let place = Place::temporary("disk-archive").unwrap();
    let [data, archive] = ["data", "archive"].map(|name| place.path("authority-0").join(name));
    for (folder, size) in [(&data, "96m"), (&archive, "16m")] {
        let folder = folder.display();
        namespace.shell(&format!("mkdir -p {folder} && mount -t tmpfs -o size={size} tmpfs {folder}")).unwrap();
    }
    let owners = || (PAYERS..200).map(key);
    let accounts: Vec<_> = (0..PAYERS).map(|number| key(number).account()).collect();
    let funded = accounts.iter().copied().chain(owners().map(|owner| owner.account()));
    let balances = funded.map(|account| GenesisBalance { account, asset: Asset::ETHER, amount: Amount(START) });
    let cell = Cell { host: "127.0.0.1".into(), namespace: namespace.clone() };
    let mut network = Network::prepare_apart(place, layout(), balances.collect(), vec![cell]).unwrap();
    let nowhere = network.ports().next(1).unwrap();
    for (number, authority) in network.authorities.iter().enumerate() {
        authority.set_endpoints(&network.endpoints_file()).unwrap();
        let store = if number == 0 { format!("store = \"{STORE}\"") } else { String::new() };
        authority.set_archive_with(EVERY_SECONDS, &format!("idle = false\n{store}")).unwrap();
    }
    let first = network.authority(0).unwrap();
    first.set_limits(&format!("disk_reserve_bytes = {RESERVE}")).unwrap();
    for (name, value) in [
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{nowhere}").as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "local"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ] {
        first.set_variable(name, value);
    }
    leave_free(&namespace, &archive, 0);
    network.start_authorities().await.unwrap();
    let payers = Payers::new(&network, PAYERS).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut paying = JoinSet::new();
    for member in 0..usize::from(PAYERS) {
        paying.spawn(keep_paying(payers.clone(), member, stop.clone()));
    }

    // The archive's disk is full: the others certify without this member, whose journals grow up to the reserve.
    let first = &network.authorities[0];
    wait_for(PATIENCE, async || match certified(&network.authorities[1]) {
        number if number >= 2 => Ok(()),
        number => Err(format!("{number} checkpoints are certified")),
    })
    .await
    .unwrap();
    metric_is(first, "fastpay_certified_checkpoint_failures_total", |count| count > 0.0).await;
    metric_is(first, "fastpay_journal_bytes", |bytes| bytes > JOURNALS as f64).await;
    leave_free(&namespace, &data, RESERVE - JOURNALS / 8);
    let mut trying = owners();
    let is_low = |answer: &Result<(), ClientError>| matches!(answer, Err(ClientError::Refused(Refusal::DiskLow(_))));
    until_answered(&network, &mut trying, is_low).await;
    assert_eq!(first.metric("fastpay_certified_checkpoint_number").await.unwrap(), 0.0);
    assert_eq!(first.metric("fastpay_pruned_checkpoint_number").await.unwrap(), 0.0);

    // Room for the archive is enough: the journals end in the reserve, and that frees what lacked.
    namespace.shell(&format!("rm {}/filler", archive.display())).unwrap();
    until_pruned_above(first, (&namespace, &archive), 0.0).await;
    until_answered(&network, &mut trying, Result::is_ok).await;

    // Before the reserve is reached again, it ends them by itself.
    let ended = first.metric("fastpay_pruned_checkpoint_number").await.unwrap();
    let refused = refusals(&mut network);
    let first = &network.authorities[0];
    leave_free(&namespace, &data, RESERVE / 2 * 3);
    until_pruned_above(first, (&namespace, &archive), ended).await;
    until_answered(&network, &mut trying, Result::is_ok).await;
    assert_eq!(refusals(&mut network), refused, "it began to refuse orders again");
    let first = &network.authorities[0];

    // Its store never answered. The folder has kept everything meanwhile.
    metric_is(first, "fastpay_archive_store_failures_total", |count| count > 0.0).await;
    let held_back = namespace.shell(&format!("ls {}", archive.display())).unwrap();
    let newest = first.metric("fastpay_certified_checkpoint_number").await.unwrap() as usize;
    assert!(held_back.matches(".certificate.json").count() >= newest && newest >= 2, "{held_back}");
    stop.store(true, Ordering::Relaxed);
    within(PATIENCE, "they are still paying", paying.join_all()).await.unwrap();
    let all: Vec<_> = network.authorities.iter().collect();
    wait_for(PATIENCE, async || agree(&all, &accounts).await).await.unwrap();
    let mut sum = Balance::ZERO;
    for account in &accounts {
        sum = sum.plus(held(first, *account).await.unwrap().0);
    }
    assert_eq!(sum, balance(START * u128::from(PAYERS)), "they pay one another");
    let log = network.authority(0).unwrap().program().unwrap().log_text();
    for said in [
        "No space left on device",
        NEARLY_FULL,
        "VotingEnds",
        "DiskLow",
        &format!("the archive's store did not serve {STORE}"),
        "Check that it can be reached and that the AWS_… credentials may",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
    // Stop the processes before their file systems are removed.
    network.authority(0).unwrap().kill();
}
