//! The demo's output: each step with its time while it runs, then a table, and the same as JSON.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use fastpay_e2e::{AssetLine, Failure};
use fastpay_wallet::format_units;
use serde::Serialize;

/// The file of the result.
const FILE: &str = "target/demo.json";

#[derive(Serialize)]
struct Step {
    name: String,
    ms: u64,
    ok: bool,
    #[serde(skip)]
    detail: String,
}

/// Amounts are whole numbers of the asset's smallest unit, as text: JSON's numbers lose precision above 2^53.
#[derive(Serialize)]
struct AuditLine {
    asset: String,
    contract_total: String,
    accounts_total: String,
    redeemable: String,
    ok: bool,
    #[serde(skip)]
    decimals: u8,
}

#[derive(Serialize)]
struct Outcome<'a> {
    ok: bool,
    steps: &'a [Step],
    audit: &'a [AuditLine],
}

/// The steps so far.
pub struct Report {
    started: Instant,
    steps: Vec<Step>,
    audit: Vec<AuditLine>,
    failed: bool,
}

impl Report {
    pub fn new() -> Self {
        println!("FastPay from start to audit. All processes are real, on loopback; logs are in target/demo/logs.\n");
        Self { started: Instant::now(), steps: Vec::new(), audit: Vec::new(), failed: false }
    }

    /// Runs one step. The text that it returns beside its value is shown as its outcome.
    pub async fn step<T>(
        &mut self,
        name: &str,
        work: impl Future<Output = Result<(T, String), Failure>>,
    ) -> Result<T, Failure> {
        let at = self.started.elapsed().as_secs_f64();
        print!("[{at:6.1} s] {name} … ");
        let _ = std::io::stdout().flush();
        // A step counts as failed until it has ended, because a signal may come in between.
        let start = Instant::now();
        self.steps.push(Step { name: name.to_owned(), ms: 0, ok: false, detail: String::new() });
        let outcome = work.await;
        let ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let detail = match &outcome {
            Ok((_, detail)) => detail.clone(),
            Err(failure) => format!("FAILED: {failure}"),
        };
        println!("{ms} ms\n             {detail}");
        if let Some(step) = self.steps.last_mut() {
            (step.ms, step.ok, step.detail) = (ms, outcome.is_ok(), detail);
        }
        outcome.map(|(value, _)| value)
    }

    /// Adds the audit.
    pub fn audit(&mut self, lines: &[AssetLine], name_of: impl Fn(&AssetLine) -> (String, u8)) {
        for line in lines {
            let (asset, decimals) = name_of(line);
            self.audit.push(AuditLine {
                asset,
                contract_total: line.contract_total.to_string(),
                accounts_total: line.accounts_total.to_string(),
                redeemable: line.redeemable.to_string(),
                ok: line.ok,
                decimals,
            });
        }
    }

    /// Marks the demo as failed.
    pub fn fail(&mut self, why: &dyn Display) {
        self.failed = true;
        println!("\nthe demo failed: {why}");
    }

    /// Shows the table and writes the file. Returns whether all steps succeeded.
    pub fn finish(self) -> std::io::Result<bool> {
        let ok = !self.failed
            && self.steps.iter().all(|step| step.ok)
            && !self.audit.is_empty()
            && self.audit.iter().all(|line| line.ok);
        println!("\n{:<58} {:>9}  result", "step", "ms");
        for step in &self.steps {
            println!("{:<58} {:>9}  {}", step.name, step.ms, if step.ok { "ok" } else { "FAILED" });
        }
        println!("\n{:<6} {:>22} = {:>22} + {:>16}", "audit", "contract", "all accounts", "redeemable");
        for line in &self.audit {
            let units = |text: &str| format_units(text, line.decimals);
            println!(
                "{:<6} {:>22}   {:>22}   {:>16}  {}",
                line.asset,
                units(&line.contract_total),
                units(&line.accounts_total),
                units(&line.redeemable),
                if line.ok { "ok" } else { "DOES NOT BALANCE" }
            );
        }
        let total = self.started.elapsed().as_secs_f64();
        println!("\n{} in {total:.1} s; the same in {FILE}", if ok { "all is well" } else { "THE DEMO FAILED" });
        let outcome = Outcome { ok, steps: &self.steps, audit: &self.audit };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE);
        std::fs::write(path, serde_json::to_string_pretty(&outcome)?)?;
        Ok(ok)
    }
}
