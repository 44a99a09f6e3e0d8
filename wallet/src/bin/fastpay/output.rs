//! Output for people and programs: results on standard output, progress with its time on standard error.

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloy::primitives::U256;
use fastpay_client::{PeerFailure, Progress, QuorumError, short};
use fastpay_core::{Asset, AuthorityName, Digest, Output, Payout, Transfer};
use fastpay_ethereum::{Inclusion, Progress as ChainProgress, Queued, utc};
use fastpay_ledger_statement::SpentOn;
use fastpay_wallet::folder::{Errand, ReceivedPayment};
use fastpay_wallet::{Money, RedemptionState, WalletError, format_memo, format_units};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

/// A command that takes longer says that it is at work; then again after twice as long, and so on.
const SECONDS_AT_WORK: u64 = 5;

const ETHER_DECIMALS: u8 = 18;

/// What is noted once the user has been told.
pub type Told = Pin<Box<dyn Future<Output = Result<(), WalletError>>>>;

/// The outcome of a command.
pub struct Report {
    /// For programs.
    pub json: Value,
    /// For people.
    pub text: String,
    /// 0 where all is well.
    pub exit_code: u8,
    /// Runs after the answer was written.
    pub told: Option<Told>,
}

impl Report {
    /// A good outcome.
    pub fn new(json: Value, text: impl Into<String>) -> Self {
        Self { json, text: text.into(), exit_code: 0, told: None }
    }
}

/// The destination of progress.
#[derive(Clone, Debug)]
pub struct Screen {
    started: Instant,
    /// The last failure told of each authority: the same again is no news.
    told: Arc<Mutex<BTreeMap<AuthorityName, PeerFailure>>>,
}

impl Screen {
    pub fn new() -> Self {
        Self { started: Instant::now(), told: Arc::default() }
    }

    /// One line of progress.
    pub fn line(&self, text: impl AsRef<str>) {
        self.show(format!("[{:8.3} s] {}\n", self.started.elapsed().as_secs_f64(), text.as_ref()));
    }

    /// Shows text that a person reads before answering.
    pub fn show(&self, text: impl AsRef<str>) {
        // The work continues if nobody reads the output: `2>&1 | head -1` must not leave a payment half done.
        let _ = std::io::stderr().write_all(text.as_ref().as_bytes());
    }

    /// Runs the work of a command and reports less and less often that it is still running.
    pub async fn stay_with<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        // A person who is asked something meanwhile stops this clock.
        let mut clock = interval(Duration::from_secs(1));
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut seconds, mut next) = (0_u64, SECONDS_AT_WORK);
        clock.tick().await;
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                _ = clock.tick() => seconds = seconds.saturating_add(1),
            }
            if seconds >= next {
                self.line("still waiting; `fastpay status` shows which authorities answer");
                next = next.saturating_mul(2);
            }
        }
    }

    /// Progress of an order.
    pub fn progress(&self, progress: &Progress) {
        match progress {
            Progress::Vote { authority, votes, quorum } => {
                self.line(format!("vote {votes} of {quorum} from authority {}", short(authority)));
            }
            Progress::Certified => self.line("certificate complete: the transfer is certified"),
            Progress::Confirmed { authority, confirmations, quorum } => {
                self.line(format!("confirmation {confirmations} of {quorum} from authority {}", short(authority)));
            }
            Progress::CatchingUp { authority, account, sequence } => {
                self.line(format!("bringing certificate {sequence} of {account} to authority {}", short(authority)));
            }
            Progress::Waiting { authority, failure } => {
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                if told.insert(*authority, failure.clone()).as_ref() != Some(failure) {
                    self.line(format!("authority {}: {failure}", short(authority)));
                }
            }
            Progress::Adopted(transfer) => self.line(format!(
                "another copy of this wallet ordered #{} and did not finish it; finishing it first",
                transfer.sequence()
            )),
            Progress::Renewed(transfer) => self.line(format!(
                "a recovery has replaced the committee that certified #{}; having the same order certified again",
                transfer.sequence()
            )),
        }
    }

    /// Progress of a transaction.
    pub fn chain_progress(&self, errand: &Errand, progress: &ChainProgress) {
        let what = errand_name(errand);
        self.line(match progress {
            ChainProgress::Simulated { gas } => format!("{what}: would succeed with about {gas} gas"),
            ChainProgress::Submitted { hash } => format!("{what}: submitted as {hash}"),
            ChainProgress::Included { block_number, blocks_left } => {
                format!("{what}: in block {block_number}, final in {blocks_left} {}", plural(*blocks_left, "block"))
            }
            ChainProgress::Waiting { reason } => format!("{what}: waiting: {reason}"),
            ChainProgress::Final { block_number } => format!("{what}: final in block {block_number}"),
        });
    }
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// A transaction's purpose, in a word.
pub fn errand_name(errand: &Errand) -> &'static str {
    match errand {
        Errand::Approve { .. } => "approval",
        Errand::Deposit { .. } => "deposit",
        Errand::Redeem { .. } => "redemption",
        Errand::Execute { .. } => "queued redemption",
        Errand::RequestUnlock { .. } => "unlock request",
        Errand::DecideUnlock { .. } => "unlock decision",
        Errand::Claim { .. } => "claim",
    }
}

/// The cost of a transaction's gas, for programs; null if the Ethereum node did not report it.
pub fn gas_cost_json(inclusion: &Inclusion) -> Value {
    let value = |wei: U256| {
        let (asset, amount) = (Asset::ETHER, format_units(wei, ETHER_DECIMALS));
        json!({ "asset": asset, "symbol": "ETH", "amount": amount, "units": wei.to_string() })
    };
    inclusion.cost_wei().map_or(Value::Null, value)
}

/// A transfer for programs.
pub fn transfer_json(transfer: &Transfer, money: &Money) -> Value {
    let (kind, recipient, fee) = match transfer {
        Transfer::Payment(payment) => ("payment", payment.recipient.to_string(), None),
        Transfer::Redemption(redemption) => {
            ("redemption", redemption.recipient.to_string(), Some(money.json(redemption.fee)))
        }
        Transfer::Payout(payout) => return payout_json(payout, money),
    };
    json!({
        "kind": kind,
        "sender": transfer.sender(),
        "recipient": recipient,
        "value": money.json(transfer.amount()),
        "fee": fee,
        "sequence": transfer.sequence(),
        "memo": format_memo(&transfer.memo()),
    })
}

fn payout_json(payout: &Payout, money: &Money) -> Value {
    let output = |output: &Output| {
        let Output { recipient, amount, memo } = output;
        json!({ "recipient": recipient, "value": money.json(*amount), "memo": format_memo(memo) })
    };
    json!({
        "kind": "payout",
        "sender": payout.sender,
        "outputs": payout.outputs.iter().map(output).collect::<Vec<_>>(),
        "value": money.json(payout.outputs.total()),
        "sequence": payout.sequence,
        "memo": format_memo(&payout.memo),
    })
}

/// A transfer in one line.
pub fn transfer_text(transfer: &Transfer, money: &Money) -> String {
    let memo = format_memo(&transfer.memo());
    let memo = if memo.is_empty() { memo } else { format!(" ({memo})") };
    let (verb, recipient) = match transfer {
        Transfer::Payment(payment) => ("pays", payment.recipient.to_string()),
        Transfer::Redemption(redemption) => ("redeems", format!("{} on Ethereum", redemption.recipient)),
        Transfer::Payout(payout) => ("pays", format!("{} recipients", payout.outputs.len())),
    };
    format!("#{} {verb} {} to {recipient}{memo}", transfer.sequence(), money.text(transfer.amount()))
}

/// The error for programs.
pub fn error_json(error: &WalletError) -> Value {
    let mut document = error.kind().document(error);
    if let (WalletError::Quorum(QuorumError::Conflict(conflict)), Some(json)) = (error, document.get_mut("error")) {
        add(json, [("orders", json!(conflict.contenders()))]);
    }
    document
}

/// A payment that came in, for programs.
pub fn received_json(received: &ReceivedPayment, digest: Digest, money: &Money) -> Value {
    let ReceivedPayment { payment, output, .. } = received;
    let mut document = json!({
        "sender": payment.sender,
        "value": money.json(payment.amount),
        "sequence": payment.sequence,
        "output": output,
        "memo": format_memo(&payment.memo),
        "digest": digest,
    });
    if let Some(checkpoint) = received.checkpoint() {
        add(&mut document, [("checkpoint", checkpoint.into())]);
    }
    document
}

/// Adds fields to an object.
pub fn add<const N: usize>(json: &mut Value, fields: [(&str, Value); N]) {
    if let Some(object) = json.as_object_mut() {
        object.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }
}

/// How far a redemption is on Ethereum, for programs and for people.
pub fn state_words(state: &RedemptionState) -> (&'static str, String) {
    match state {
        RedemptionState::Open => ("open", "not paid yet".into()),
        RedemptionState::Queued(queued) => {
            ("queued", format!("queued until {}, then `fastpay execute` pays it", utc(queued.executable_at)))
        }
        RedemptionState::Paid { .. } => ("paid", "paid on Ethereum".into()),
        RedemptionState::PaidOnLedger(redeemed) => ("paid", format!("paid on the ledger, as event {}", redeemed.index)),
        RedemptionState::DisplacedOnLedger(SpentOn::Redeemed(redeemed)) => (
            "displaced",
            format!(
                "NOT PAID: event {} spent its number on another order, and the amount is back in the account. Redemption \
                 keys of the committee are stolen: tell its operators",
                redeemed.index
            ),
        ),
        RedemptionState::DisplacedOnLedger(SpentOn::Void) => ("displaced", "NOT PAID: its number is void".into()),
        RedemptionState::Displaced(transaction) => (
            "displaced",
            format!(
                "NOT PAID: transaction {transaction} spent its number on another order, and the amount is back in the \
                 account. Redemption keys of the committee are stolen: tell its operators"
            ),
        ),
        RedemptionState::Released(transaction) => (
            "released",
            format!(
                "NOT PAID: transaction {transaction} took it out of the contract's queue, and the amount is back in the \
                 account; ask the committee's operators"
            ),
        ),
        RedemptionState::Spent => {
            ("spent", "its number is spent on Ethereum; the newest blocks do not show on which order".into())
        }
    }
}

/// When a queued redemption can be executed, for programs.
pub fn queued_json(queued: &Queued) -> Value {
    let Queued { executable_at, relayer, epoch, needs_votes } = *queued;
    json!({
        "executableAt": executable_at,
        "executableAtUtc": utc(executable_at),
        "relayer": relayer,
        "epoch": epoch,
        "needsVotes": needs_votes,
    })
}
