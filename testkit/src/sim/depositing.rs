//! Depositors: the wallet's code, each with a folder of its own, killed at any moment and restarted.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::anvil::rich_key;
use fastpay_core::{AccountId, AccountKey, Amount, Asset};
use fastpay_ledger_client::ReserveError;
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{ChainAccount, WalletError};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::errands::sender_config;
use super::ledger;
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
pub async fn deposit_all(world: Arc<World>, number: u32, mut wanted: mpsc::UnboundedReceiver<Wanted>) {
    let home = memory_folder();
    let key = AccountKey::ethereum(rich_key(number).to_bytes().0).expect("it is a key");
    while let Some(Wanted { recipient, asset, amount }) = wanted.recv().await {
        if world.plan.on_ledger {
            fund(&world, number, (recipient, asset, amount), home.path()).await;
            continue;
        }
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

/// Funds an account from a reserve on the ledger. A deposit that is not reported is continued by the next process.
async fn fund(world: &Arc<World>, owner: u32, (recipient, asset, amount): (AccountId, Asset, Amount), home: &Path) {
    let folder = Folder::new(home);
    let deposited = loop {
        let reserve = ledger::reserve(world, &folder, owner);
        let is_killed = !world.is_calm() && world.dice.chance(300);
        let patience = if is_killed { world.dice.mostly_short(Duration::from_secs(20)) } else { Duration::MAX };
        match timeout(patience, reserve.deposit(recipient, asset, amount)).await {
            Ok(Ok(deposited)) => break deposited,
            Ok(Err(error)) if matches!(error, ReserveError::Ledger(_)) => {
                world.trace.note("deposit tried", format_args!("{amount}: {error}"));
            }
            Ok(Err(error)) => {
                return world.trace.violation(format_args!("a deposit of {amount} fails for good: {error}"));
            }
            Err(_) => world.trace.note("depositor killed", amount),
        }
        sleep(world.dice.between(Duration::from_millis(10), Duration::from_secs(2))).await;
    };
    if let Err(error) = ledger::reserve(world, &folder, owner).note_reported(&deposited).await {
        return world.trace.violation(format_args!("a deposit of {amount} cannot be reported: {error}"));
    }
    world.trace.note("deposit made", amount);
}

fn is_passing(error: &WalletError) -> bool {
    match error {
        WalletError::Send(error) => error.is_retryable(),
        WalletError::Primary(error) => error.is_retryable(),
        _ => false,
    }
}
