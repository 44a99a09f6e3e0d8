//! The command line, parsed once into meaning.

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

/// No symbol that anyone types is longer.
const SYMBOL_LENGTH_MAX: usize = 32;

/// Deposit, pay and redeem with FastPay: payments settle in a moment, the money is on Ethereum.
#[derive(Debug, Parser)]
#[command(name = "fastpay", version, max_term_width = 100)]
pub struct Cli {
    /// The wallet's folder.
    #[arg(long, global = true, env = "FASTPAY_HOME", value_name = "FOLDER")]
    pub home: Option<PathBuf>,
    /// Write one JSON document to standard output; errors too.
    #[arg(long, global = true)]
    pub json: bool,
    /// A file with the passphrase of the keys. Otherwise FASTPAY_PASSPHRASE or a prompt.
    #[arg(long, global = true, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// Give up waiting for the authorities after this many seconds.
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
    /// Make, import and list keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Give names to accounts of others.
    #[command(subcommand)]
    Contacts(ContactsCommand),
    /// Show the address at which a key is paid.
    Address(FromArgs),
    /// Write a link, or a QR code, that asks for a payment.
    Link(LinkArgs),
    /// Move money from Ethereum into a FastPay account.
    Deposit(DepositArgs),
    /// Pay a FastPay account: certified after one round trip, settled after two.
    Pay(PayArgs),
    /// Move money from a FastPay account to Ethereum.
    Redeem(RedeemArgs),
    /// Show what an account holds.
    Balance(AccountArgs),
    /// Show what an account sent, received and deposited, by date, as this wallet knows it.
    History(HistoryArgs),
    /// Show one transfer, its proof verified: a receipt.
    Show(ShowArgs),
    /// Verify a certificate that somebody gave you, without asking anybody.
    Verify {
        /// The file that `fastpay show --certificate` wrote; - is standard input.
        #[arg(value_name = "FILE")]
        certificate: PathBuf,
    },
    /// Take in and verify incoming payments.
    Receive(ReceiveArgs),
    /// Finish what an earlier command left unfinished.
    Resume(ResumeArgs),
    /// Have redemptions paid that the contract queued because they exceeded its outflow limit.
    Execute(ExecuteArgs),
    /// Unlock an account for which two orders of one number were signed, so that neither can be finished. Costs gas and
    /// leaves a bond of 0.005 ETH with the contract, which pays it back or to whoever upholds an order.
    Unlock(UnlockArgs),
    /// Collect a payout that could not be paid earlier.
    Claim(ClaimArgs),
    /// Show the authorities: which ones answer, and which lag.
    Status,
    /// Check that the contract holds what the accounts hold.
    Audit(AuditArgs),
    /// Write the script that makes a shell complete this command.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

/// The locations of files and nodes.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// An Ethereum node's HTTP URL; give several for safety, the preferred one first.
    #[arg(long, value_name = "URL", conflicts_with = "genesis", value_parser = NodeUrl)]
    pub rpc_url: Vec<Url>,
    /// The FastPay contract.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "genesis", value_parser = parse_address)]
    pub contract: Option<Address>,
    /// The chain's id [default: the node's].
    #[arg(long, value_name = "ID")]
    pub chain_id: Option<u64>,
    /// From which block on the chain is believed: finalized, safe, or a number of blocks on top.
    #[arg(long, default_value = "finalized", value_parser = parse_finality)]
    pub finality: Finality,
    /// How often to ask the chain while waiting, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub poll_interval_ms: Option<u64>,
    /// The genesis file of a committee without Ethereum.
    #[arg(long, value_name = "FILE")]
    pub genesis: Option<PathBuf>,
    /// The JSON file that says where the authorities are reached.
    #[arg(long, value_name = "FILE")]
    pub endpoints: PathBuf,
    /// Replace an existing configuration of the same deployment, or of another before anything was sent or received.
    /// Keys and orders stay.
    #[arg(long)]
    pub force: bool,
}

/// Keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a new key.
    New(NewKeyArgs),
    /// Import a key: from a prompt, a file of hexadecimal digits, or a key file of another program.
    Import(ImportKeyArgs),
    /// List the keys and their accounts.
    List,
    /// Make a key the default: it is used where --from is not given.
    Use {
        /// The key's name.
        name: String,
    },
    /// Print a key's file, still encrypted.
    Export {
        /// The key's name.
        name: String,
    },
}

/// A new key.
#[derive(Debug, Args)]
pub struct NewKeyArgs {
    /// The name.
    pub name: String,
    #[command(flatten)]
    pub kind: KindArgs,
}

/// An imported key.
#[derive(Debug, Args)]
pub struct ImportKeyArgs {
    /// The name.
    pub name: String,
    #[command(flatten)]
    pub kind: KindArgs,
    /// A file with the secret as 64 hexadecimal digits; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "keystore")]
    pub secret_file: Option<PathBuf>,
    /// A key file of Web3 secret storage, such as another wallet's.
    #[arg(long, value_name = "FILE")]
    pub keystore: Option<PathBuf>,
    /// The passphrase of that file, if it is another one than this wallet's.
    #[arg(long, value_name = "FILE", requires = "keystore")]
    pub keystore_passphrase_file: Option<PathBuf>,
}

/// The kind of a key.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct KindArgs {
    /// For a FastPay account only (fp1…).
    #[arg(long)]
    pub ed25519: bool,
    /// For a FastPay account and the Ethereum account of the same address (0x…).
    #[arg(long)]
    pub ethereum: bool,
}

/// Which key.
#[derive(Debug, Args)]
pub struct FromArgs {
    /// The key's name; not needed where there is only one.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
}

/// Which account.
#[derive(Debug, Args)]
pub struct AccountArgs {
    /// A key of this wallet; not needed where there is only one.
    #[arg(long, value_name = "KEY", conflicts_with = "account")]
    pub from: Option<String>,
    /// Any account, also of others, or the name of a contact.
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
}

/// The entries to list.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    #[command(flatten)]
    pub account: AccountArgs,
    /// Only what went out, came in, or happened on Ethereum.
    #[arg(long, value_enum, value_name = "WAY")]
    pub only: Option<Direction>,
    /// Only of this asset: ETH, a token's symbol or its address.
    #[arg(long, value_parser = parse_asset)]
    pub asset: Option<AssetName>,
    /// Only from this day on, such as 2026-01-31 (UTC).
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    pub since: Option<u64>,
    /// Only before this day (UTC).
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    pub until: Option<u64>,
    /// Write a table for a spreadsheet.
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

/// Which transfer.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Its digest (0x…), if this wallet has it; or its sender and number, such as alice/7.
    #[arg(value_name = "DIGEST|SENDER/NUMBER")]
    pub transfer: String,
    /// Write the certificate alone, for `fastpay verify`.
    #[arg(long)]
    pub certificate: bool,
}

/// An asset as people name it.
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
    /// How much, such as 1.5.
    #[arg(allow_negative_numbers = true)]
    pub amount: String,
    /// The asset: ETH, a token's symbol or its address.
    #[arg(long, default_value = "ETH", value_parser = parse_asset)]
    pub asset: AssetName,
    /// The account to fund, or the name of a contact or key; by default the account of the paying key.
    #[arg(long, value_name = "ACCOUNT")]
    pub to: Option<String>,
    /// The Ethereum key that pays.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// Wait at most this many seconds for the authorities to credit it; 0 returns when it is final.
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub wait: u64,
}

/// A payment.
#[derive(Debug, Args)]
pub struct PayArgs {
    /// The account to pay (fp1… or 0x…), the name of a contact or of a key of this wallet, or a payment link.
    #[arg(value_name = "ACCOUNT|LINK", required_unless_present = "csv")]
    pub recipient: Option<String>,
    /// How much, such as 1.5, or max for all there is; not where the link says it.
    #[arg(allow_negative_numbers = true)]
    pub amount: Option<String>,
    /// The asset: ETH, a token's symbol or its address [default: the link's asset, or ETH].
    #[arg(long, value_parser = parse_asset)]
    pub asset: Option<AssetName>,
    /// For the recipient: up to 32 bytes of text, or 0x and 64 hexadecimal digits.
    #[arg(long, value_parser = read_memo)]
    pub memo: Option<Memo>,
    /// Pay everybody on a list: lines of recipient,amount,memo, or columns that the first line names (recipient, amount,
    /// asset, memo). The same file is paid once, however often this is repeated.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recipient", "amount", "memo"])]
    pub csv: Option<PathBuf>,
    /// The maximum number of payments in one order.
    #[arg(long, value_name = "COUNT", requires = "csv", default_value_t = PAYOUT_OUTPUTS_MAX, value_parser = outputs_max)]
    pub max_outputs: usize,
    /// Check the list and show what would be paid; sign nothing.
    #[arg(long, requires = "csv")]
    pub dry_run: bool,
    /// Pay what the link or the list asks for without asking again.
    #[arg(long)]
    pub yes: bool,
    /// The paying key.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
}

/// A redemption.
#[derive(Debug, Args)]
pub struct RedeemArgs {
    /// How much is taken off the account, such as 1.5, or max for all there is.
    #[arg(required_unless_present = "sequence", allow_negative_numbers = true)]
    pub amount: Option<String>,
    /// The asset: ETH, a token's symbol or its address.
    #[arg(long, default_value = "ETH", value_parser = parse_asset)]
    pub asset: AssetName,
    /// The Ethereum address that is paid; by default that of the account, if it has one.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub to: Option<Address>,
    /// The part of the amount that goes to whoever brings it to the contract; by default what the cheapest of the listed
    /// relayers takes, and 0 with --self.
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub fee: Option<String>,
    /// For the records: up to 32 bytes of text, or 0x and 64 hexadecimal digits.
    #[arg(long, default_value = "", value_parser = read_memo)]
    pub memo: Memo,
    /// The key of the account.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// Bring it to the contract oneself, without a relayer.
    #[arg(long = "self")]
    pub by_self: bool,
    /// The Ethereum key that pays for the gas of --self.
    #[arg(long, value_name = "KEY", requires = "by_self")]
    pub gas_key: Option<String>,
    /// Wait at most this many seconds for a relayer; 0 returns when the redemption is settled in FastPay.
    #[arg(long, default_value_t = 0, default_missing_value = "1800", num_args = 0..=1, value_name = "SECONDS")]
    pub wait: u64,
    /// Go on with the redemption of this number, ordered before.
    #[arg(long, conflicts_with = "amount", value_name = "NUMBER")]
    pub sequence: Option<u64>,
}

/// Incoming payments.
#[derive(Debug, Args)]
pub struct ReceiveArgs {
    #[command(flatten)]
    pub account: AccountArgs,
    /// Wait at most this many seconds for a new payment.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub wait: u64,
    /// Continue until interrupted. With --json, print one document for each payment, on its own line.
    #[arg(long)]
    pub follow: bool,
}

/// The orders to finish.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The key [default: all keys].
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// Wait at most this many seconds for the authorities to credit a deposit; 0 returns when it is final.
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub wait: u64,
}

/// Queued redemptions.
#[derive(Debug, Args)]
pub struct ExecuteArgs {
    /// The key of the account.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// The Ethereum key that pays for the gas; by default the account's own, if it is one.
    #[arg(long, value_name = "KEY")]
    pub gas_key: Option<String>,
    /// Only the redemption of this number; by default the newest hundred are looked at.
    #[arg(long, value_name = "NUMBER")]
    pub sequence: Option<u64>,
}

/// A stuck account.
#[derive(Debug, Args)]
pub struct UnlockArgs {
    /// The key of the account.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// The Ethereum key that pays for gas and bond; by default the account's own, if it is one.
    #[arg(long, value_name = "KEY")]
    pub gas_key: Option<String>,
    /// Have a relayer of the endpoints file pay for gas and bond, within its budget of the day.
    #[arg(long, conflicts_with = "gas_key")]
    pub relayer: bool,
    /// The number; by default that of the first unfinished order, or the next one.
    #[arg(long, value_name = "NUMBER")]
    pub sequence: Option<u64>,
    /// How long to wait for a decision; the command can be run again at any time.
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub wait: u64,
}

/// A claim.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// The amount, such as 1.5 [default: all of it]. A token may pay out only a part at once.
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub amount: Option<String>,
    /// The asset: ETH, a token's symbol or its address.
    #[arg(long, default_value = "ETH", value_parser = parse_asset)]
    pub asset: AssetName,
    /// The address to pay [default: the address that has the claim].
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, conflicts_with = "owner")]
    pub to: Option<Address>,
    /// The address that has the claim and is paid; by default that of the key.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub owner: Option<Address>,
    /// The Ethereum key that has the claim, or that pays for the gas of --owner.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
}

/// An audit.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Wait at most this many seconds until the authorities have read all deposits and no payment is under way.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub wait: u64,
    /// Only check a proof that an audit wrote, against the committees that this wallet knows; asks nobody.
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

/// The seconds since 1970 at which a day began.
fn parse_day(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a day: write it as 2026-01-31");
    let day: jiff::civil::Date = text.parse().map_err(|_| wrong())?;
    let zoned = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| wrong())?;
    u64::try_from(zoned.timestamp().as_second()).map_err(|_| wrong())
}

fn parse_finality(text: &str) -> Result<Finality, String> {
    match text {
        "finalized" => Ok(Finality::Finalized),
        "safe" => Ok(Finality::Safe),
        text => text.parse().map(Finality::Confirmations).map_err(|_| "give finalized, safe or a number".into()),
    }
}

fn outputs_max(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=PAYOUT_OUTPUTS_MAX).contains(count));
    count.ok_or_else(|| format!("give a number from 1 to {PAYOUT_OUTPUTS_MAX}"))
}

pub fn read_memo(text: &str) -> Result<Memo, String> {
    parse_memo(text).map_err(|error| error.to_string())
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
