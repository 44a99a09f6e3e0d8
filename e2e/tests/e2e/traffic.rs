//! Wallets that pay one another all the time while a committee changes, and the account of each payment at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastpay_core::{AccountId, Amount, Asset, Memo};
use fastpay_e2e::{Network, PATIENCE, Payers, User, audit, wait_for, within};
use fastpay_wallet::Intent;
use tokio::task::JoinSet;

use crate::scene::balance;
use crate::storm::{FUNDS, give};

/// The number of wallets' accounts.
const PAYERS: u8 = 3;

/// Payments under way.
pub struct Traffic {
    payers: Payers,
    stop: Arc<AtomicBool>,
    /// Each ends with its account's number, and the payments that it has made: recipient and amount.
    paying: JoinSet<(usize, Vec<(usize, u128)>)>,
}

impl Traffic {
    /// Funds the accounts and starts to pay.
    pub async fn start(network: &Network) -> Self {
        // With its configuration, the payers' wallet follows the contract to new committees.
        User::new(network, "payers").await.unwrap();
        let payers = Payers::new(network, PAYERS).unwrap();
        for account in payers.accounts() {
            give(network, account).await;
        }
        let (stop, mut paying) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for member in 0..usize::from(PAYERS) {
            paying.spawn(keep_paying(payers.clone(), member, stop.clone()));
        }
        let traffic = Self { payers, stop, paying };
        traffic.more("before anything").await;
        traffic
    }

    /// Waits until some more payments are settled.
    pub async fn more(&self, what: &str) {
        let from = self.payers.settled();
        let grown = wait_for(PATIENCE, async || match self.payers.settled() {
            now if now >= from + 2 * usize::from(PAYERS) => Ok(()),
            now => Err(format!("{} more payments are settled {what}", now - from)),
        });
        grown.await.unwrap();
    }

    /// Ends the payments, and checks that each authority of the network has executed each of them once, and that the
    /// books balance with the contract. `others` are the other accounts that hold anything.
    pub async fn account_for_all(mut self, network: &Network, others: &[AccountId]) {
        self.stop.store(true, Ordering::Relaxed);
        let accounts = self.payers.accounts();
        let (mut held, mut count) = (vec![u128::from(FUNDS); accounts.len()], vec![0; accounts.len()]);
        while let Some(ended) = within(PATIENCE, "they are still paying", self.paying.join_next()).await.unwrap() {
            let (payer, paid) = ended.unwrap();
            for (recipient, amount) in paid {
                (held[payer], held[recipient], count[payer]) =
                    (held[payer] - amount, held[recipient] + amount, count[payer] + 1);
            }
        }
        let lines = audit(network, &[&accounts, others].concat(), &[Asset::ETHER]).await.unwrap();
        assert!(lines.iter().all(|line| line.ok), "{lines:?}");
        for client in network.clients().unwrap() {
            for ((account, held), count) in accounts.iter().zip(&held).zip(&count) {
                let state = client.shard_of(account).account(*account).await.unwrap();
                let found = (state.balance(Asset::ETHER), state.next_sequence.0, state.pending.is_some());
                assert_eq!(found, (balance(*held), *count, false), "{account} at {}", client.name());
            }
        }
        println!("{} payments were settled, each once", count.iter().sum::<u64>());
    }
}

/// Pays 1, 2, 3 … wei to the other accounts in turn, so that a lost or doubled payment shows in the balances.
async fn keep_paying(payers: Payers, member: usize, stop: Arc<AtomicBool>) -> (usize, Vec<(usize, u128)>) {
    let (accounts, mut paid) = (payers.accounts(), Vec::new());
    for amount in 1.. {
        let turn = usize::try_from(amount).unwrap() % (accounts.len() - 1);
        let to = (member + 1 + turn) % accounts.len();
        let (recipient, asset) = (accounts[to], Asset::ETHER);
        let intent = Intent::Pay { recipient, asset, amount: Amount(amount), memo: Memo::ZERO };
        // Repeating the same call never pays twice.
        while payers.send(member, intent).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        paid.push((to, amount));
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    (member, paid)
}
