//! `fastpay-merchant`: invoices to be paid with FastPay. See docs/MERCHANT.md.
//!
//! Results go to standard output (with `--json` as one document), the log to standard error. The exit codes are those
//! of the wallet (docs/CLI.md).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod client;
mod commands;
mod error;
mod text;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use fastpay_core::{AccountId, PrimaryAddress};
use fastpay_program::console::{LogFormat, Shell, answer, end_at_arguments, fail, start_log};
use fastpay_wallet::parse_address;
use url::Url;

/// Create invoices, receive their payments with FastPay, and notify the shop.
#[derive(Debug, Parser)]
#[command(name = "fastpay-merchant", version, max_term_width = 100)]
struct Cli {
    /// The service's folder.
    #[arg(long, global = true, env = "FASTPAY_MERCHANT_HOME", value_name = "FOLDER", default_value = "merchant")]
    home: PathBuf,
    /// Write results and errors to standard output as one JSON document.
    #[arg(long, global = true)]
    json: bool,
    /// The format of the log on standard error. RUST_LOG sets its level.
    #[arg(
        long,
        global = true,
        value_enum,
        env = "FASTPAY_MERCHANT_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text"
    )]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create the service's folder, with the committee and Primary of an existing wallet.
    Init(Box<InitArgs>),
    /// Serve the shop until interrupted.
    #[command(after_help = "Example:\n  fastpay-merchant --home ~/merchant run")]
    Run,
    /// Create, show and export invoices of the running service.
    #[command(subcommand)]
    Invoice(InvoiceCommand),
    /// Prepare refunds for the owner's wallet to pay.
    #[command(subcommand)]
    Refunds(RefundsCommand),
    /// Prepare payouts to Ethereum for the owner's wallet to sign.
    #[command(subcommand)]
    Payouts(PayoutsCommand),
    /// Print a shell completion script.
    #[command(
        after_help = "Example:\n  fastpay-merchant completions bash > ~/.local/share/bash-completion/completions/fastpay-merchant"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// The account to be paid, and the shop to be notified.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  fastpay-merchant init --wallet ~/.fastpay --account fp1… --webhook-url http://127.0.0.1:3000/webhook"
)]
struct InitArgs {
    /// The folder of an initialized wallet. The service does not use its keys.
    #[arg(long, value_name = "FOLDER")]
    wallet: PathBuf,
    /// The account to be paid (fp1… or 0x…). Its key need not be on this machine.
    #[arg(long)]
    account: AccountId,
    /// The address and port at which this service listens.
    #[arg(long, default_value = "127.0.0.1:7080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Allow a --listen address that other machines can reach. Put a reverse proxy with TLS in front of it.
    #[arg(long)]
    behind_proxy: bool,
    /// The shop's URL for webhooks [default: none are sent].
    #[arg(long, value_name = "URL")]
    webhook_url: Option<Url>,
    /// The shop's name in payment links.
    #[arg(long)]
    label: Option<String>,
    /// The page of a web wallet that opens payment links.
    #[arg(long, value_name = "URL")]
    web_wallet: Option<Url>,
    /// The public URL of the checkout pages, if they are served through a reverse proxy.
    #[arg(long, value_name = "URL")]
    checkout_url: Option<Url>,
}

#[derive(Debug, Subcommand)]
enum InvoiceCommand {
    /// Create an invoice. Repeating the command shows the existing one.
    Create(CreateArgs),
    /// Show invoices, a hundred at a time.
    #[command(
        after_help = "Examples:\n  fastpay-merchant invoice list --state underpaid\n  fastpay-merchant --json invoice list --after inv_5d1c…"
    )]
    List {
        /// Start after the invoice with this ID.
        #[arg(long, value_name = "ID")]
        after: Option<String>,
        /// Only invoices in this state, such as paid.
        #[arg(long)]
        state: Option<String>,
    },
    /// Show an invoice, its payments and its webhooks.
    #[command(after_help = "Example:\n  fastpay-merchant invoice show inv_5d1c…")]
    Show {
        /// The invoice's ID.
        id: String,
    },
    /// Write all invoices and payments as CSV.
    #[command(after_help = "Example:\n  fastpay-merchant invoice export > invoices.csv")]
    Export,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fastpay-merchant invoice create --reference order-7 --amount 0.012 --expires-in 900\n  fastpay-merchant invoice create --reference order-8 --amount 0.012 --description 'For Saturday' \\\n    --item 'Sourdough loaf,2,0.01' --item 'Butter croissant,1,0.002' --return-url https://shop.example/thanks"
)]
struct CreateArgs {
    /// The shop's own reference.
    #[arg(long)]
    reference: String,
    /// The amount, such as 0.012.
    #[arg(long, allow_negative_numbers = true)]
    amount: String,
    /// The asset, as the address of a token [default: ETH].
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    asset: Option<PrimaryAddress>,
    /// A memo of your own choice: up to 32 bytes of text, or 0x and 64 hexadecimal digits.
    #[arg(long)]
    memo: Option<String>,
    /// The time until the invoice expires, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    expires_in: u64,
    /// A description of the purchase, shown to the customer.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A line shown to the customer; PRICE is the total for QUANTITY. Can be repeated; prices must add up to the
    /// amount.
    #[arg(long, value_name = "NAME,QUANTITY,PRICE")]
    item: Vec<ItemArg>,
    /// The page to which the customer returns afterwards.
    #[arg(long, value_name = "URL")]
    return_url: Option<Url>,
}

/// A line of an invoice on the command line. Its name may contain commas.
#[derive(Clone, Debug)]
struct ItemArg {
    name: String,
    quantity: u32,
    /// The price of all pieces, in whole units of the asset.
    price: String,
}

impl FromStr for ItemArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut fields = text.rsplitn(3, ',').map(str::trim);
        let (price, quantity, name) = (fields.next(), fields.next(), fields.next());
        let (Some(price), Some(quantity), Some(name)) = (price, quantity, name) else {
            return Err("give NAME,QUANTITY,PRICE, such as 'Sourdough loaf,2,0.01'");
        };
        let quantity = quantity.parse().map_err(|_| "the quantity must be a whole number")?;
        Ok(Self { name: name.into(), quantity, price: price.into() })
    }
}

#[derive(Debug, Subcommand)]
enum RefundsCommand {
    /// Prepare a list of refunds without paying them. Repeating the command shows the existing list.
    #[command(
        after_help = "Examples:\n  fastpay-merchant refunds prepare monday --due\n  fastpay-merchant refunds prepare order-7 --invoice inv_5d1c… --amount 0.002"
    )]
    Prepare(PrepareArgs),
    /// Show lists, a hundred at a time.
    List {
        /// Start after the list with this reference.
        #[arg(long, value_name = "REFERENCE")]
        after: Option<String>,
    },
    /// Show a list and which of its lines are paid.
    Show {
        /// The list's reference.
        reference: String,
    },
    /// Write a list as CSV for `fastpay pay --csv` or the web wallet. Repeating the command writes the same file, which
    /// a wallet pays once.
    #[command(
        after_help = "Example:\n  fastpay-merchant refunds csv monday > monday.csv\n  fastpay pay --csv monday.csv --from till"
    )]
    Csv {
        /// The list's reference.
        reference: String,
    },
}

#[derive(Debug, Args)]
struct PrepareArgs {
    /// The list's reference.
    reference: String,
    /// Refund what is due to this invoice's payers. Can be repeated.
    #[arg(long, value_name = "ID", required_unless_present_any = ["due", "unmatched"])]
    invoice: Vec<String>,
    /// Refund this amount of a single --invoice, such as 0.002, instead of what is due.
    #[arg(long, allow_negative_numbers = true, requires = "invoice")]
    amount: Option<String>,
    /// Refund what is due of all invoices: overpayments, late payments, and payments of invoices that expired
    /// underpaid.
    #[arg(long)]
    due: bool,
    /// Refund the payments that belong to no invoice.
    #[arg(long)]
    unmatched: bool,
}

#[derive(Debug, Subcommand)]
enum PayoutsCommand {
    /// Prepare a payout without signing it. Repeating the command shows the existing payout.
    #[command(
        after_help = "Example:\n  fastpay-merchant payouts prepare november --amount 2.5 --to 0x…\n\nThe answer contains the command and the link with which the owner signs it."
    )]
    Prepare(PayoutArgs),
    /// Show payouts, a hundred at a time, the newest first.
    List {
        /// Start after the payout with this reference.
        #[arg(long, value_name = "REFERENCE")]
        after: Option<String>,
    },
    /// Show a payout and its progress.
    Show {
        /// The payout's reference.
        reference: String,
    },
}

#[derive(Debug, Args)]
struct PayoutArgs {
    /// The payout's reference.
    reference: String,
    /// The amount to debit, including the fee, such as 2.5.
    #[arg(long, allow_negative_numbers = true)]
    amount: String,
    /// The Ethereum address to pay.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    to: PrimaryAddress,
    /// The asset, as the address of a token [default: ETH].
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    asset: Option<PrimaryAddress>,
    /// The relayer's fee, such as 0.001 [default: the cheapest relayer's, at most a tenth of the amount].
    #[arg(long, allow_negative_numbers = true)]
    fee: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return end_at_arguments(&error),
    };
    start_log(cli.log_format, "RUST_LOG", "info");
    let json = cli.json;
    let result = commands::run(cli).await.and_then(|report| {
        let text = report.json.filter(|_| json).map_or(report.text, |document| document.to_string());
        if !text.is_empty() {
            answer(text.trim_end())?;
        }
        Ok(ExitCode::SUCCESS)
    });
    result.unwrap_or_else(|error| fail(error.kind(), &error, json.then(|| error.kind().document(&error))))
}
