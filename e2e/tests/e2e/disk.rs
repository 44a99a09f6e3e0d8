//! A disk that is full: a small file system of one authority's own, in a mount namespace.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{Amount, Asset, GenesisBalance};
use fastpay_e2e::{Cell, Crowd, Namespace, Network, Own, Place, wait_for};

use crate::crashes::assert_all_paid;
use crate::scene::{START, build, key, layout, skip};

const CROWD: u8 = 6;
const EACH: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_whose_disk_is_full_says_nothing_more_and_loses_nothing_that_it_said() {
    let namespace = match Namespace::new(Own::Mounts) {
        Ok(namespace) => Arc::new(namespace),
        Err(error) => return skip("a full disk", &format!("users may not mount here: {error}")),
    };
    build();
    let place = Place::temporary("disk").unwrap();
    let data = place.path("authority-0/data");
    let data = data.display();
    namespace.shell(&format!("mkdir -p {data} && mount -t tmpfs -o size=96m tmpfs {data}")).unwrap();
    let accounts: Vec<_> = (0..CROWD).map(|number| key(number).account()).collect();
    let balances =
        accounts.iter().map(|account| GenesisBalance { account: *account, asset: Asset::ETHER, amount: Amount(START) });
    let cell = Cell { host: "127.0.0.1".into(), namespace: namespace.clone() };
    let mut network = Network::prepare_apart(place, layout(), balances.collect(), vec![cell]).unwrap();
    network.start_authorities().await.unwrap();
    let crowd = Crowd::new(&network, CROWD).unwrap();
    let paying = tokio::spawn({
        let crowd = crowd.clone();
        async move { crowd.pay(EACH, &[Asset::ETHER]).await }
    });
    while crowd.settled() < usize::from(CROWD) * EACH / 4 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // To the last byte.
    namespace.shell(&format!("dd if=/dev/zero of={data}/filler bs=4k 2>/dev/null || dd if=/dev/zero of={data}/rest bs=1 2>/dev/null || true")).unwrap();
    let free = namespace.shell(&format!("df --output=avail {data} | tail -1")).unwrap();
    assert_eq!(free.trim(), "0", "the disk is full");
    // It ends rather than say what is not on disk; the others go on without it.
    let authority = network.authority(0).unwrap();
    let ended = wait_for(Duration::from_secs(60), || {
        let ended = authority.program().unwrap().ended();
        async move { ended.ok_or_else(|| "it still runs".to_owned()) }
    });
    let status = ended.await.unwrap();
    assert!(!status.success(), "{status}");
    let log = authority.program().unwrap().log_text();
    assert!(log.contains("No space left on device"), "{log}");
    // While there is no room it does not come back.
    authority.start().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let paid = paying.await.unwrap().unwrap();
    assert_eq!(paid.payments, usize::from(CROWD) * EACH);

    let authority = network.authority(0).unwrap();
    authority.kill();
    namespace.shell(&format!("rm -f {data}/filler {data}/rest")).unwrap();
    authority.start().unwrap();
    authority.wait_ready().await.unwrap();
    crowd.bring_all_up_to_date(&accounts).await.unwrap();
    assert_all_paid(&network, &crowd, EACH).await;
    // The processes go before their file system.
    network.authority(0).unwrap().kill();
}
