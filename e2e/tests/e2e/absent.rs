//! An authority that was away: its peers send it what it missed, without any wallet.

use std::time::Duration;

use fastpay_client::QuorumOptions;
use fastpay_core::Asset;
use fastpay_e2e::Payers;

use crate::crashes::assert_all_paid;
use crate::scene::{key, standalone};

const PAYERS: u8 = 6;
const EACH: usize = 30;
/// A part of the time that catching up takes.
const A_MOMENT: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_bring_an_authority_up_to_date_also_when_it_is_killed_meanwhile() {
    let accounts: Vec<_> = (0..PAYERS).map(|number| key(number).account()).collect();
    let mut network = standalone("absent", &accounts);
    for authority in &network.authorities {
        authority.set_endpoints(&network.endpoints_file()).unwrap();
    }
    network.start_authorities().await.unwrap();
    network.authority(3).unwrap().kill();
    let payers = Payers::new(&network, PAYERS).unwrap();
    payers.pay(EACH, &[Asset::ETHER]).await.unwrap();
    // From then on no task of the wallet sends anything.
    tokio::time::sleep(QuorumOptions::default().background).await;
    for _ in 0..2 {
        let absent = network.authority(3).unwrap();
        absent.start().unwrap();
        absent.wait_ready().await.unwrap();
        tokio::time::sleep(A_MOMENT).await;
        absent.kill();
    }
    let absent = network.authority(3).unwrap();
    absent.start().unwrap();
    absent.wait_ready().await.unwrap();
    assert_all_paid(&network, &payers, EACH).await;
}
