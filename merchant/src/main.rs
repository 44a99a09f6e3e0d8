//! `fastpay-merchant`: invoices that are paid with FastPay. See docs/MERCHANT.md.

mod commands;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use fastpay_core::{AccountId, PrimaryAddress};
use url::Url;

/// No program has planted faults in it.
const _: () =
    assert!(!fastpay_core::fault::CAN_BE_PLANTED, "built with the feature `planted`, which is for the simulator");

/// Invoices that are paid with FastPay.
#[derive(Debug, Parser)]
#[command(name = "fastpay-merchant", version, max_term_width = 100)]
struct Cli {
    /// The service's folder.
    #[arg(long, global = true, env = "FASTPAY_MERCHANT_HOME", value_name = "FOLDER", default_value = "merchant")]
    home: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the service's folder, with the committee and the Primary of a wallet.
    Init(InitArgs),
    /// Serve the shop until interrupted.
    Run,
    /// Make and show invoices of the running service.
    #[command(subcommand)]
    Invoice(InvoiceCommand),
}

/// Who is paid, and who is told.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  fastpay-merchant init --wallet ~/.fastpay --account fp1… --webhook-url http://127.0.0.1:3000/webhook"
)]
struct InitArgs {
    /// The folder of a wallet that is set up; its keys are not used.
    #[arg(long, value_name = "FOLDER")]
    wallet: PathBuf,
    /// The account that is paid (fp1… or 0x…). Its key need not be on this machine.
    #[arg(long)]
    account: AccountId,
    /// Where the shop reaches this service.
    #[arg(long, default_value = "127.0.0.1:7080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where the shop takes webhooks.
    #[arg(long, value_name = "URL")]
    webhook_url: Option<Url>,
    /// What the shop is called in payment links.
    #[arg(long)]
    label: Option<String>,
    /// The page of a web wallet that opens payment links.
    #[arg(long, value_name = "URL")]
    web_wallet: Option<Url>,
}

#[derive(Debug, Subcommand)]
enum InvoiceCommand {
    /// Make an invoice; the same again shows the one there is.
    Create(CreateArgs),
    /// Show invoices, a hundred at a time.
    List {
        /// Those after the one of this id.
        #[arg(long, value_name = "ID")]
        after: Option<String>,
        /// Only those of this state, such as paid.
        #[arg(long)]
        state: Option<String>,
    },
    /// Show an invoice, its payments and its webhooks.
    Show {
        /// Its id.
        id: String,
    },
    /// Write all invoices and payments as CSV.
    Export,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  fastpay-merchant invoice create --reference order-7 --amount 1500000000000000000 --expires-in 900"
)]
struct CreateArgs {
    /// What the shop calls it.
    #[arg(long)]
    reference: String,
    /// How much, in the asset's smallest unit.
    #[arg(long, value_name = "UNITS")]
    amount: u128,
    /// The address of a token; ETH where it is not given.
    #[arg(long, value_name = "ADDRESS")]
    asset: Option<PrimaryAddress>,
    /// A memo of your own choice: up to 32 bytes of text, or 0x and 64 hexadecimal digits.
    #[arg(long)]
    memo: Option<String>,
    /// How long the payment is expected, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    expires_in: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match commands::run(cli).await {
        Ok(text) => {
            if !text.is_empty() {
                println!("{}", text.trim_end());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
