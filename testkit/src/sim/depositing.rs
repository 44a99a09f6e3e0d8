//! Depositors: the wallet's code, each with a folder of its own, killed at any moment and restarted.

use std::sync::Arc;
use std::time::Duration;

use crate::anvil::rich_key;
use fastpay_core::{AccountId, AccountKey, Amount, Asset};
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{ChainAccount, WalletError};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::chain::sender_config;
use super::process::memory_folder;
use super::world::World;

/// A requested deposit.
pub struct Wanted {
    /// The account to credit.
    pub recipient: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
}

/// Makes the deposits of one key, one after the other. Each is repeated until it is final.
pub async fn deposit_all(world: Arc<World>, key: u32, mut wanted: mpsc::UnboundedReceiver<Wanted>) {
    let home = memory_folder();
    let key = AccountKey::ethereum(rich_key(key).to_bytes().0).expect("it is a key");
    while let Some(Wanted { recipient, asset, amount }) = wanted.recv().await {
        loop {
            let (folder, primary) = (Folder::new(home.path()), world.chain.connect(&world));
            let account = ChainAccount::new(&folder, primary, "owner", &key, sender_config());
            let account = account.expect("it is an Ethereum key");
            let is_killed = !world.is_calm() && world.dice.chance(300);
            let patience = if is_killed { world.dice.mostly_short(Duration::from_secs(20)) } else { Duration::MAX };
            match timeout(patience, account.deposit(recipient, asset, amount)).await {
                Ok(Ok(_)) => break,
                Ok(Err(error)) if is_passing(&error) => {
                    world.trace.note("deposit tried", format_args!("{amount}: {error}"));
                }
                Ok(Err(error)) => {
                    return world.trace.violation(format_args!("a deposit of {amount} fails for good: {error}"));
                }
                Err(_) => world.trace.note("depositor killed", amount),
            }
            sleep(world.dice.between(Duration::from_millis(10), Duration::from_secs(2))).await;
        }
        world.trace.note("deposit made", amount);
    }
}

fn is_passing(error: &WalletError) -> bool {
    match error {
        WalletError::Send(error) => error.is_retryable(),
        WalletError::Primary(error) => error.is_retryable(),
        _ => false,
    }
}
