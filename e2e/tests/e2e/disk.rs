//! A full disk: one authority has a small file system of its own, in a mount namespace.

use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{Amount, Asset, Certificate, Epoch, GenesisBalance, SequenceNumber, TransferOrder, Vote};
use fastpay_e2e::{Cell, Namespace, Network, Own, Payers, Place, wait_for};
use fastpay_rpc::Refusal;

use crate::crashes::assert_all_paid;
use crate::scene::{START, build, key, layout, payment, skip};

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
        tokio::time::sleep(Duration::from_millis(2)).await;
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
    tokio::time::sleep(Duration::from_secs(1)).await;
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
