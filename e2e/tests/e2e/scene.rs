//! Common parts of the tests: fresh programs, small networks, funded accounts.

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Balance, GenesisBalance, Memo, Payment, SequenceNumber, Transfer,
};
use fastpay_e2e::{Layout, Network, Place};

/// The initial balance of each account of a genesis.
pub const START: u128 = 1_000_000;

/// Builds the programs that the tests start, once, so that no test runs an outdated node.
pub fn build() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        if std::env::var_os("PROGRAMS_ARE_BUILT").is_some() {
            return;
        }
        // Without cargo, the existing programs are used.
        let Some(cargo) = std::env::var_os("CARGO") else { return };
        let mut command = Command::new(cargo);
        let packages = ["fastpay-node", "fastpay-relayer", "fastpay-wallet", "fastpay-merchant"];
        command.arg("build").args(packages.iter().flat_map(|package| ["-p", package])).arg("--bins");
        if cfg!(not(debug_assertions)) {
            command.arg("--release");
        }
        let built = command.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    });
}

pub fn layout() -> Layout {
    Layout { block_time: Duration::from_millis(250), ..Layout::default() }
}

/// A committee with a chain and a relayer. Only the chain runs yet.
pub async fn on_chain(name: &str) -> Network {
    build();
    Network::prepare(Place::temporary(name).unwrap(), layout()).await.unwrap()
}

/// A committee without a Primary, on which these accounts have [`START`] each.
pub fn standalone(name: &str, accounts: &[AccountId]) -> Network {
    standalone_of(name, accounts, layout())
}

/// The same of the previous release: of the `fastpay-node` that `FASTPAY_PREVIOUS_NODE` names. Without that variable
/// this release's program stands for both, and a test shows only that a folder passes from one process to the next.
pub fn standalone_of_previous_release(name: &str, accounts: &[AccountId]) -> Network {
    let node = std::env::var_os("FASTPAY_PREVIOUS_NODE");
    let node = node.map(|path| Box::leak(std::path::PathBuf::from(path).into_boxed_path()) as &std::path::Path);
    standalone_of(name, accounts, Layout { node, ..layout() })
}

fn standalone_of(name: &str, accounts: &[AccountId], layout: Layout) -> Network {
    build();
    let balance =
        |account: &AccountId| GenesisBalance { account: *account, asset: Asset::ETHER, amount: Amount(START) };
    let balances = accounts.iter().map(balance).collect();
    Network::prepare_standalone(Place::temporary(name).unwrap(), layout, balances).unwrap()
}

/// Prints that a test cannot run here, in a form that can be found in a long log.
pub fn skip(test: &str, why: &str) {
    println!("SKIPPED, NOT TESTED HERE: {test}: {why}");
    eprintln!("SKIPPED, NOT TESTED HERE: {test}: {why}");
}

/// An account whose kind depends on its number.
pub fn key(number: u8) -> AccountKey {
    if number.is_multiple_of(2) {
        AccountKey::ed25519([number + 1; 32])
    } else {
        AccountKey::ethereum([number + 1; 32]).unwrap()
    }
}

pub fn payment(sender: &AccountKey, recipient: AccountId, amount: u128, sequence: u64) -> Transfer {
    Transfer::Payment(Payment {
        sender: sender.account(),
        recipient,
        asset: Asset::ETHER,
        amount: Amount(amount),
        sequence: SequenceNumber(sequence),
        memo: Memo::ZERO,
    })
}

pub fn balance(amount: u128) -> Balance {
    Balance::from(Amount(amount))
}
