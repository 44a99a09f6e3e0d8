//! The command line's arguments. Their doc comments are what `--help` prints.

use std::path::PathBuf;

use alloy::primitives::Address;
use clap::{Args, Parser, Subcommand, ValueEnum};
use fastpay_core::{Asset, Memo, PAYOUT_OUTPUTS_MAX};
use fastpay_ethereum::Finality;
use fastpay_program::configuration::NodeUrl;
use fastpay_program::console::Shell;
use fastpay_wallet::{parse_address, parse_memo};
use url::Url;

use crate::contacts::ContactsCommand;
use crate::link::LinkArgs;

/// Longer than any token symbol in use.
const SYMBOL_LENGTH_MAX: usize = 32;

/// Deposit, pay and redeem with FastPay: payments settle in under a second, funds stay on Ethereum.
#[derive(Debug, Parser)]
#[command(name = "fastpay", version, max_term_width = 100)]
pub struct Cli {
    /// The wallet's folder [default: ~/.fastpay].
    #[arg(long, global = true, env = "FASTPAY_HOME", value_name = "FOLDER")]
    pub home: Option<PathBuf>,
    /// Write results and errors to standard output as one JSON document.
    #[arg(long, global = true)]
    pub json: bool,
    /// A file with the keys' passphrase [default: FASTPAY_PASSPHRASE, then a prompt].
    #[arg(long, global = true, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// Maximum time to wait for the authorities' answers, in seconds.
    #[arg(long, global = true, default_value_t = 30, value_name = "SECONDS")]
    pub timeout: u64,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set the wallet up for one FastPay contract.
    Init(InitArgs),
    /// Create, import, list and export keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Manage the address book.
    #[command(subcommand)]
    Contacts(ContactsCommand),
    /// Show the account address of a key.
    Address(FromArgs),
    /// Create a payment link or QR code.
    Link(LinkArgs),
    /// Deposit from Ethereum into a FastPay account.
    Deposit(DepositArgs),
    /// Pay a FastPay account, or everybody on a list.
    Pay(PayArgs),
    /// Redeem from a FastPay account to Ethereum.
    Redeem(RedeemArgs),
    /// Show the balances of an account.
    Balance(AccountArgs),
    /// Show the payments, redemptions and deposits of an account that this wallet knows of, by date.
    History(HistoryArgs),
    /// Verify one transfer's certificate and show its receipt.
    Show(ShowArgs),
    /// Verify a certificate offline.
    Verify {
        /// A file written by `fastpay show --certificate`; - reads standard input.
        #[arg(value_name = "FILE")]
        certificate: PathBuf,
    },
    /// Fetch and verify incoming payments.
    Receive(ReceiveArgs),
    /// Finish the orders and deposits that earlier commands left unfinished.
    Resume(ResumeArgs),
    /// Execute redemptions that the contract queued because they exceeded its outflow limit.
    Execute(ExecuteArgs),
    /// Unlock an account that signed two conflicting orders with the same number. Costs gas and a bond of 0.005 ETH,
    /// which is lost if one of the orders turns out to be certified.
    Unlock(UnlockArgs),
    /// Claim a payout that the contract could not deliver.
    Claim(ClaimArgs),
    /// Show which authorities answer and which lag behind.
    Status,
    /// Check that the contract's balances cover the sum of all accounts.
    Audit(AuditArgs),
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// The deployment, and how to reach it.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The HTTP URL of an Ethereum node. Repeat it to compare several nodes; the first is preferred.
    #[arg(long, value_name = "URL", conflicts_with = "genesis", value_parser = NodeUrl)]
    pub rpc_url: Vec<Url>,
    /// The address of the FastPay contract.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "genesis", value_parser = parse_address)]
    pub contract: Option<Address>,
    /// The chain ID (EIP-155) [default: asked of the node].
    #[arg(long, value_name = "ID")]
    pub chain_id: Option<u64>,
    /// The block that counts as final: finalized, safe, or a number of confirmations.
    #[arg(long, default_value = "finalized")]
    pub finality: Finality,
    /// How often to poll the Ethereum node while waiting, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub poll_interval_ms: Option<u64>,
    /// The file of a ledger that is the Primary, in place of a contract on Ethereum.
    #[arg(long, value_name = "FILE", requires = "committee", conflicts_with_all = ["genesis", "contract", "rpc_url", "chain_id", "poll_interval_ms"])]
    pub ledger: Option<PathBuf>,
    /// The committee's number on the ledger.
    #[arg(long, value_name = "NUMBER", requires = "ledger")]
    pub committee: Option<u32>,
    /// The genesis file of a committee that runs without Ethereum.
    #[arg(long, value_name = "FILE")]
    pub genesis: Option<PathBuf>,
    /// The JSON file of the authorities' endpoints.
    #[arg(long, value_name = "FILE")]
    pub endpoints: PathBuf,
    /// Replace the existing configuration; keys and orders are kept. Another deployment is accepted only while nothing
    /// was sent or received.
    #[arg(long)]
    pub force: bool,
}

/// Keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key.
    New(NewKeyArgs),
    /// Import a key from a prompt, a file of hexadecimal digits, or a Web3 keystore.
    Import(ImportKeyArgs),
    /// List the keys and their accounts.
    List,
    /// Make a key the default for --from.
    Use {
        /// The key's name.
        name: String,
    },
    /// Print a key's encrypted file.
    Export {
        /// The key's name.
        name: String,
    },
}

/// The key to create.
#[derive(Debug, Args)]
pub struct NewKeyArgs {
    /// The key's name.
    pub name: String,
    #[command(flatten)]
    pub kind: KindArgs,
}

/// The key to import.
#[derive(Debug, Args)]
pub struct ImportKeyArgs {
    /// The key's name.
    pub name: String,
    #[command(flatten)]
    pub kind: KindArgs,
    /// A file with the secret key as 64 hexadecimal digits; - reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "keystore")]
    pub secret_file: Option<PathBuf>,
    /// A Web3 keystore, such as another wallet's.
    #[arg(long, value_name = "FILE")]
    pub keystore: Option<PathBuf>,
    /// A file with the keystore's passphrase [default: this wallet's passphrase].
    #[arg(long, value_name = "FILE", requires = "keystore")]
    pub keystore_passphrase_file: Option<PathBuf>,
}

/// The kind of a key.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct KindArgs {
    /// An Ed25519 key: a FastPay account only (fp1…).
    #[arg(long)]
    pub ed25519: bool,
    /// An Ethereum key: a FastPay account and the Ethereum account of the same address (0x…).
    #[arg(long)]
    pub ethereum: bool,
}

/// The key to use.
#[derive(Debug, Args)]
pub struct FromArgs {
    /// The key's name [default: the default key, or the only one].
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
}

/// The account to show.
#[derive(Debug, Args)]
pub struct AccountArgs {
    /// A key of this wallet [default: the default key, or the only one].
    #[arg(long, value_name = "KEY", conflicts_with = "account")]
    pub from: Option<String>,
    /// Any account (fp1… or 0x…), or the name of a contact.
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
}

/// The entries to list.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    #[command(flatten)]
    pub account: AccountArgs,
    /// Only entries of this kind.
    #[arg(long, value_enum, value_name = "WAY")]
    pub only: Option<Direction>,
    /// Only this asset: ETH, a token's symbol or its address.
    #[arg(long, value_parser = parse_asset)]
    pub asset: Option<AssetName>,
    /// Only entries on or after this day, such as 2026-01-31 (UTC).
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    pub since: Option<u64>,
    /// Only entries before this day (UTC).
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    pub until: Option<u64>,
    /// Write CSV.
    #[arg(long)]
    pub csv: bool,
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Sent.
    Out,
    /// Received.
    In,
    /// A transaction on Ethereum.
    Ethereum,
}

/// The transfer to show.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The sender and number, such as alice/7, or the digest (0x…) of a transfer in this wallet.
    #[arg(value_name = "DIGEST|SENDER/NUMBER")]
    pub transfer: String,
    /// Print only the certificate, for `fastpay verify`.
    #[arg(long)]
    pub certificate: bool,
}

/// An asset as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssetName {
    /// ETH, or the address of a token.
    Known(Asset),
    /// A token's symbol.
    Symbol(String),
}

/// A deposit.
#[derive(Debug, Args)]
pub struct DepositArgs {
    /// The amount, such as 1.5.
    #[arg(allow_negative_numbers = true)]
    pub amount: String,
    /// The asset: ETH, a token's symbol or its address.
    #[arg(long, default_value = "ETH", value_parser = parse_asset)]
    pub asset: AssetName,
    /// The account to credit, or the name of a contact or key [default: the paying key's account].
    #[arg(long, value_name = "ACCOUNT")]
    pub to: Option<String>,
    /// The Ethereum key that pays; on a ledger, the key of the reserve.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// Maximum time to wait until the authorities credit the deposit, in seconds; 0 returns once it is final.
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub wait: u64,
}

/// A payment.
#[derive(Debug, Args)]
pub struct PayArgs {
    /// The account to pay (fp1… or 0x…), the name of a contact or key, or a payment link.
    #[arg(value_name = "ACCOUNT|LINK", required_unless_present = "csv")]
    pub recipient: Option<String>,
    /// The amount, such as 1.5, or max for the whole balance. Omit it if the link states one.
    #[arg(allow_negative_numbers = true)]
    pub amount: Option<String>,
    /// The asset: ETH, a token's symbol or its address [default: the link's asset, or ETH].
    #[arg(long, value_parser = parse_asset)]
    pub asset: Option<AssetName>,
    /// A memo for the recipient: up to 32 bytes of text, or 0x and 64 hexadecimal digits.
    #[arg(long, value_parser = parse_memo)]
    pub memo: Option<Memo>,
    /// Pay everybody on a list: lines of recipient,amount,memo, or a header line that names the columns (recipient,
    /// amount, asset, memo). Repeating the command does not pay the same file twice.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recipient", "amount", "memo"])]
    pub csv: Option<PathBuf>,
    /// The maximum number of payments in one order.
    #[arg(long, value_name = "COUNT", requires = "csv", default_value_t = PAYOUT_OUTPUTS_MAX, value_parser = outputs_max)]
    pub max_outputs: usize,
    /// Check the list and show what it would pay, without signing anything.
    #[arg(long, requires = "csv")]
    pub dry_run: bool,
    /// Pay the link or list without asking for confirmation.
    #[arg(long)]
    pub yes: bool,
    /// The paying key.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
}

/// A redemption.
#[derive(Debug, Args)]
pub struct RedeemArgs {
    /// The amount to debit, including the fee, such as 1.5, or max for the whole balance.
    #[arg(required_unless_present = "sequence", allow_negative_numbers = true)]
    pub amount: Option<String>,
    /// The asset: ETH, a token's symbol or its address.
    #[arg(long, default_value = "ETH", value_parser = parse_asset)]
    pub asset: AssetName,
    /// The Ethereum address to pay [default: the account's own address, if it is an Ethereum account].
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub to: Option<Address>,
    /// The part of the amount paid to the relayer [default: the cheapest listed relayer's fee; 0 with --self].
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub fee: Option<String>,
    /// A memo: up to 32 bytes of text, or 0x and 64 hexadecimal digits.
    #[arg(long, default_value = "", value_parser = parse_memo)]
    pub memo: Memo,
    /// The key of the account.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// Submit the redemption to the contract or the ledger from this wallet, without a relayer.
    #[arg(long = "self")]
    pub by_self: bool,
    /// The Ethereum key that pays the gas of --self; on a ledger, the key that hands the redemption over.
    #[arg(long, value_name = "KEY", requires = "by_self")]
    pub gas_key: Option<String>,
    /// Maximum time to wait for a relayer to submit the redemption, in seconds; 0 returns once it is settled in
    /// FastPay.
    #[arg(long, default_value_t = 0, default_missing_value = "1800", num_args = 0..=1, value_name = "SECONDS")]
    pub wait: u64,
    /// Continue the redemption that was ordered with this number.
    #[arg(long, conflicts_with = "amount", value_name = "NUMBER")]
    pub sequence: Option<u64>,
}

/// Whose payments to fetch, and for how long.
#[derive(Debug, Args)]
pub struct ReceiveArgs {
    #[command(flatten)]
    pub account: AccountArgs,
    /// Maximum time to wait for a new payment, in seconds.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub wait: u64,
    /// Keep receiving until interrupted. With --json, print one JSON document per payment and line.
    #[arg(long)]
    pub follow: bool,
}

/// What to finish.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The key whose orders and deposits to finish [default: all keys].
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// Maximum time to wait until the authorities credit a deposit, in seconds; 0 returns once it is final.
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub wait: u64,
}

/// The queued redemptions to execute.
#[derive(Debug, Args)]
pub struct ExecuteArgs {
    /// The key of the account.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// The Ethereum key that pays the gas [default: the account's own key, if it is an Ethereum key].
    #[arg(long, value_name = "KEY")]
    pub gas_key: Option<String>,
    /// Only the redemption with this number [default: the newest 100].
    #[arg(long, value_name = "NUMBER")]
    pub sequence: Option<u64>,
}

/// The account to unlock.
#[derive(Debug, Args)]
pub struct UnlockArgs {
    /// The key of the account.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// The Ethereum key that pays gas and bond [default: the account's own key, if it is an Ethereum key].
    #[arg(long, value_name = "KEY")]
    pub gas_key: Option<String>,
    /// Ask a relayer of the endpoints file to pay gas and bond, within its daily budget.
    #[arg(long, conflicts_with = "gas_key")]
    pub relayer: bool,
    /// The number to unlock [default: that of the first unfinished order, or the next number].
    #[arg(long, value_name = "NUMBER")]
    pub sequence: Option<u64>,
    /// Maximum time to wait for a decision, in seconds. Run the command again to keep waiting.
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub wait: u64,
}

/// The payout to claim.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// The amount, such as 1.5 [default: all]. Claim part of it if a token refuses the whole amount.
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub amount: Option<String>,
    /// The asset: ETH, a token's symbol or its address.
    #[arg(long, default_value = "ETH", value_parser = parse_asset)]
    pub asset: AssetName,
    /// The address to pay [default: the claim's owner].
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, conflicts_with = "owner")]
    pub to: Option<Address>,
    /// The claim's owner, who is paid [default: the key's address].
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub owner: Option<Address>,
    /// The Ethereum key that owns the claim, or that pays the gas of --owner.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
}

/// How to audit.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Maximum time to wait until the authorities have read all deposits and no payment is in flight, in seconds.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub wait: u64,
    /// Verify a proof from an earlier audit offline, against the committees that this wallet knows.
    #[arg(long, value_name = "FILE", conflicts_with = "wait")]
    pub verify_proof: Option<PathBuf>,
}

pub fn parse_asset(text: &str) -> Result<AssetName, String> {
    if text.eq_ignore_ascii_case("eth") {
        return Ok(AssetName::Known(Asset::ETHER));
    }
    if text.starts_with("0x") {
        return parse_address(text).map(|address| AssetName::Known(Asset(address)));
    }
    let is_symbol = !text.is_empty() && text.len() <= SYMBOL_LENGTH_MAX && !text.chars().any(char::is_whitespace);
    let wrong = || format!("{text:?} is not an asset: give ETH, or a token's symbol or its address (0x…)");
    is_symbol.then(|| AssetName::Symbol(text.into())).ok_or_else(wrong)
}

/// The Unix time, in seconds, at which the day begins (UTC).
fn parse_day(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a day: write it as 2026-01-31");
    let day: jiff::civil::Date = text.parse().map_err(|_| wrong())?;
    let zoned = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| wrong())?;
    u64::try_from(zoned.timestamp().as_second()).map_err(|_| wrong())
}

fn outputs_max(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=PAYOUT_OUTPUTS_MAX).contains(count));
    count.ok_or_else(|| format!("give a number from 1 to {PAYOUT_OUTPUTS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn assets_are_eth_or_a_token() {
        assert_eq!(parse_asset("eth"), Ok(AssetName::Known(Asset::ETHER)));
        assert_eq!(parse_asset("USDC"), Ok(AssetName::Symbol("USDC".into())));
        assert!(parse_asset("0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045").is_ok());
        for wrong in ["", "two words", "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045", "0x12"] {
            assert!(parse_asset(wrong).is_err(), "{wrong}");
        }
    }
}
