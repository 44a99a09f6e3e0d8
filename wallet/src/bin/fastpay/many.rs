//! `pay --csv`: pays everybody on a list. The columns are recipient, amount, and, where the first line names them, asset
//! and memo. Every line is checked before anything is signed; the outcome of each stands in `FILE.result.csv`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alloy::primitives::keccak256;
use fastpay_core::{AccountId, Amount, Asset, Digest, Output, Outputs};
use fastpay_wallet::folder::{OrderState, write_result};
use fastpay_wallet::{Money, PageStates, PayoutPage, Wallet, WalletError, format_memo, parse_memo};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{PayArgs, parse_asset};
use crate::context::Context;
use crate::output::Report;

/// No list that a person reviews is longer.
const LINES_MAX: usize = 1_000_000;
/// The number of bad lines that are reported.
const ERRORS_MAX: usize = 100;

/// A line that can be paid.
struct Line {
    number: u64,
    asset: Asset,
    output: Output,
}

/// A list, and how it is split into orders.
struct Plan {
    /// The hash of the file.
    name: Digest,
    lines: Vec<Line>,
    pages: Vec<PayoutPage>,
    /// For each line, its page and its output there.
    places: Vec<(usize, usize)>,
}

pub async fn pay(context: &Context, args: &PayArgs, file: &Path) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let entry = context.choose(args.from.as_deref(), None)?;
    let content = std::fs::read(file)
        .map_err(|error| WalletError::Argument(format!("{} cannot be read: {error}", file.display())))?;
    let name = keccak256(&content);
    let begun = context.folder.jobs().find(name)?;
    if let Some(job) = begun.filter(|job| job.account != entry.account) {
        let account = job.account;
        return Err(WalletError::Argument(format!(
            "account {account} began to pay this list: go on with its key (--from). To pay it from another account, \
             change the file, such as by a line that begins with #. Nothing was signed"
        )));
    }
    let outputs_max = begun.map_or(args.max_outputs, |job| job.outputs_max);
    let asset = args.asset.as_ref().map_or(Ok(Asset::ETHER), |asset| context.asset(asset))?;
    let lines = read(context, &wallet, entry.account, asset, &content).await?;
    let plan = Plan::new(name, lines, outputs_max)?;
    let states = wallet.page_states(name, entry.account, &plan.pages)?;
    let summary = summary(&wallet, &plan, &states).await;
    if args.dry_run {
        return Ok(Report::new(plan.json(entry.account, &states, &summary, None), summary.text));
    }
    let result = result_path(file);
    if states.iter().flatten().filter(|page| page.state == OrderState::Settled).count() < plan.pages.len() {
        context.screen.show(format!("{}\n", summary.text));
        // Once, for the whole list.
        context.agree(args.yes, "list", "payments", "them")?;
        let key = context.unlock(&entry)?;
        wallet.begin_job(name, entry.account, outputs_max)?;
        let screen = context.screen.clone();
        let show_progress = |states: &PageStates| {
            let (paid, settled) = (count(&plan, states, |_| true), count(&plan, states, is_settled));
            screen.line(format!("{paid} of {} payments ordered, {settled} settled", plan.lines.len()));
        };
        let outcome = wallet.pay_many(&key, name, &plan.pages, show_progress).await;
        if let Err(error) = outcome {
            // Report what is paid, also if some payments failed; but do not call lines open that may be paid.
            if !matches!(error, WalletError::Unread { .. }) {
                let states = wallet.page_states(name, entry.account, &plan.pages)?;
                write_result(&result, &plan.table(&states)?)?;
                context.screen.line(format!("{} has the result of each line", result.display()));
            }
            return Err(error);
        }
    }
    let states = wallet.page_states(name, entry.account, &plan.pages)?;
    write_result(&result, &plan.table(&states)?)?;
    let (lines, orders) = (plan.lines.len(), plan.pages.len());
    let text = format!("{lines} payments are settled, in {orders} orders; {} has their digests", result.display());
    Ok(Report::new(plan.json(entry.account, &states, &summary, Some(&result)), text))
}

fn is_settled(state: OrderState) -> bool {
    state == OrderState::Settled
}

fn count(plan: &Plan, states: &PageStates, which: impl Fn(OrderState) -> bool) -> usize {
    let pages = plan.pages.iter().zip(states);
    pages.filter(|(_, state)| state.is_some_and(|state| which(state.state))).map(|(page, _)| page.outputs.len()).sum()
}

/// Beside the list.
fn result_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".result.csv");
    name.into()
}

/// All lines, or all that is wrong with them.
async fn read(
    context: &Context,
    wallet: &Wallet,
    sender: AccountId,
    asset: Asset,
    content: &[u8],
) -> Result<Vec<Line>, WalletError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(content);
    let (mut columns, mut lines, mut errors) = (None::<Columns>, Vec::new(), Vec::new());
    let mut known = Known { context, wallet, sender, recipients: BTreeMap::new() };
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                errors.push(format!("line {}: {error}", error.position().map_or(0, csv::Position::line)));
                continue;
            }
        };
        let number = record.position().map_or(0, |position| line_of(content, position));
        let columns = match &columns {
            Some(columns) => columns,
            None => {
                let (found, is_header) = Columns::of(&record);
                let found = columns.insert(found);
                if is_header {
                    continue;
                }
                found
            }
        };
        match known.line(columns, asset, number, &record).await {
            Ok(line) => lines.push(line),
            Err(error) => errors.push(format!("line {number}: {error}")),
        }
        if lines.len() > LINES_MAX {
            return Err(WalletError::Argument(format!("the list has more than {LINES_MAX} lines; split it")));
        }
    }
    if !errors.is_empty() {
        let count = errors.len();
        errors.truncate(ERRORS_MAX);
        if count > errors.len() {
            errors.push(format!("and {} more", count.saturating_sub(errors.len())));
        }
        let errors = errors.join("\n");
        return Err(WalletError::Argument(format!("{count} lines are invalid; nothing was signed\n{errors}")));
    }
    if lines.is_empty() {
        return Err(WalletError::Argument("the list is empty: give lines of recipient,amount".into()));
    }
    Ok(lines)
}

/// The line on which a record begins. The reader reports the line where it began to search, before empty lines and
/// comments.
fn line_of(content: &[u8], position: &csv::Position) -> u64 {
    let rest = usize::try_from(position.byte()).ok().and_then(|byte| content.get(byte..)).unwrap_or_default();
    let lines = rest.split(|byte| *byte == b'\n');
    let passed_over = lines.take_while(|line| line.is_empty() || *line == b"\r" || line.starts_with(b"#")).count();
    position.line().saturating_add(passed_over as u64)
}

/// The column of each field.
struct Columns {
    recipient: usize,
    amount: usize,
    asset: Option<usize>,
    memo: Option<usize>,
}

impl Columns {
    /// By the names in the first line; where it names none, recipient, amount and memo.
    fn of(first: &csv::StringRecord) -> (Self, bool) {
        let find = |name: &str| first.iter().position(|field| field.eq_ignore_ascii_case(name));
        match (find("recipient"), find("amount")) {
            (Some(recipient), Some(amount)) => {
                (Self { recipient, amount, asset: find("asset"), memo: find("memo") }, true)
            }
            _ => (Self { recipient: 0, amount: 1, asset: None, memo: Some(2) }, false),
        }
    }
}

/// The data that all lines share.
struct Known<'a> {
    context: &'a Context,
    wallet: &'a Wallet,
    sender: AccountId,
    recipients: BTreeMap<String, AccountId>,
}

impl Known<'_> {
    async fn line(
        &mut self,
        columns: &Columns,
        asset: Asset,
        number: u64,
        record: &csv::StringRecord,
    ) -> Result<Line, WalletError> {
        let wrong = |why: &str| WalletError::Argument(why.into());
        let field = |at: usize| record.get(at).filter(|field| !field.is_empty());
        let recipient = field(columns.recipient).ok_or_else(|| wrong("there is no recipient"))?;
        let recipient = match self.recipients.get(recipient) {
            Some(known) => *known,
            None => {
                let account = self.context.account(recipient)?;
                self.recipients.insert(recipient.to_owned(), account);
                account
            }
        };
        let contract = AccountId::from_ethereum(self.wallet.network().domain().contract());
        if [AccountId::ZERO, AccountId::PRIVATE_POOL, contract].contains(&recipient) {
            return Err(wrong("the recipient cannot spend; give the recipient's account"));
        }
        if recipient == self.sender {
            return Err(wrong("the recipient is the paying account itself"));
        }
        let asset = match columns.asset.and_then(field) {
            Some(text) => self.context.asset(&parse_asset(text).map_err(WalletError::Argument)?)?,
            None => asset,
        };
        let amount = field(columns.amount).ok_or_else(|| wrong("there is no amount"))?;
        let amount = self.wallet.read_amount(asset, amount).await?;
        if amount == Amount::ZERO {
            return Err(wrong("the amount is zero"));
        }
        let memo = columns.memo.and_then(field).unwrap_or_default();
        let memo = parse_memo(memo).map_err(|error| WalletError::Argument(error.to_string()))?;
        if record.len() > 4 {
            return Err(wrong("there are more than four fields"));
        }
        Ok(Line { number, asset, output: Output { recipient, amount, memo } })
    }
}

impl Plan {
    /// As few orders as can be, asset by asset, in the order of the lines.
    fn new(name: Digest, lines: Vec<Line>, outputs_max: usize) -> Result<Self, WalletError> {
        let mut by_asset = BTreeMap::<Asset, Vec<usize>>::new();
        for (at, line) in lines.iter().enumerate() {
            by_asset.entry(line.asset).or_default().push(at);
        }
        let (mut pages, mut places) = (Vec::new(), vec![(0, 0); lines.len()]);
        for (asset, of_asset) in by_asset {
            for chunk in of_asset.chunks(outputs_max.max(1)) {
                let mut outputs = Vec::with_capacity(chunk.len());
                for at in chunk {
                    let (Some(line), Some(place)) = (lines.get(*at), places.get_mut(*at)) else { continue };
                    *place = (pages.len(), outputs.len());
                    outputs.push(line.output.clone());
                }
                let outputs = Outputs::new(outputs).map_err(fastpay_core::OrderError::from)?;
                pages.push(PayoutPage { asset, outputs });
            }
        }
        Ok(Self { name, lines, pages, places })
    }

    /// The outcome of each line.
    fn rows(&self, states: &PageStates) -> Vec<Row> {
        let row = |(line, (page, output)): (&Line, &(usize, usize))| {
            let state = states.get(*page).copied().flatten();
            Row {
                line: line.number,
                recipient: line.output.recipient,
                asset: line.asset,
                units: line.output.amount,
                memo: format_memo(&line.output.memo),
                status: state.map_or("open", |state| match state.state {
                    OrderState::Created => "ordered",
                    OrderState::Certified | OrderState::Superseded => "certified",
                    OrderState::Settled => "settled",
                    OrderState::Voided => "void",
                }),
                sequence: state.map(|state| state.sequence.0),
                output: *output,
                digest: state.map(|state| state.digest),
            }
        };
        self.lines.iter().zip(&self.places).map(row).collect()
    }

    fn table(&self, states: &PageStates) -> Result<Vec<u8>, WalletError> {
        let failed =
            |error: &dyn std::fmt::Display| WalletError::Argument(format!("the result cannot be written: {error}"));
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in self.rows(states) {
            writer.serialize(row).map_err(|error| failed(&error))?;
        }
        writer.into_inner().map_err(|error| failed(&error))
    }

    fn json(&self, sender: AccountId, states: &PageStates, summary: &Summary, result: Option<&Path>) -> Value {
        json!({
            "list": self.name,
            "sender": sender,
            "payments": self.lines.len(),
            "orders": self.pages.len(),
            "values": summary.values,
            "lines": self.rows(states),
            "result": result.map(|path| path.display().to_string()),
        })
    }
}

/// One line of the result.
#[derive(Serialize)]
struct Row {
    line: u64,
    recipient: AccountId,
    asset: Asset,
    units: Amount,
    memo: String,
    status: &'static str,
    sequence: Option<u64>,
    output: usize,
    digest: Option<Digest>,
}

/// The summary that a person confirms.
struct Summary {
    text: String,
    values: Vec<Value>,
}

async fn summary(wallet: &Wallet, plan: &Plan, states: &PageStates) -> Summary {
    let mut by_asset = BTreeMap::<Asset, (usize, fastpay_core::Balance)>::new();
    for line in &plan.lines {
        let (count, sum) = by_asset.entry(line.asset).or_default();
        (*count, *sum) = (count.saturating_add(1), sum.credit(line.output.amount));
    }
    let (mut lines, mut values) = (Vec::new(), Vec::new());
    for (asset, (count, sum)) in by_asset {
        let money = Money::of(wallet, asset).await;
        lines.push(format!("{count} payments, {} in all", money.text(sum)));
        values.push(json!({ "payments": count, "value": money.json(sum) }));
    }
    let ordered = count(plan, states, |_| true);
    let orders = plan.pages.len();
    lines.push(format!(
        "{orders} orders of up to {} outputs",
        plan.pages.iter().map(|page| page.outputs.len()).max().unwrap_or(0)
    ));
    if ordered > 0 {
        lines.push(format!("{ordered} of the payments were ordered before and are not repeated"));
    }
    Summary { text: lines.join("\n"), values }
}
