//! Runs the simulator over many seeds, or over one with its trace.
//!
//! `sim` runs the fixed seeds and writes `target/sim.json`. `sim --seeds 100..200` explores other seeds, `--hours`
//! until that much time was simulated; a failing seed is shrunk and printed. `sim --seeds 0..100 --first` ends at the
//! first failing seed, with which `script/mutants.py` searches for a mutant. `sim --seed 7 --trace` shows each event of
//! a run.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use fastpay_testkit::sim::{Found, Plan, Summary, run, shrink};
use serde_json::json;

/// Seeds that once found a defect, in the simulator or in the code it runs. They are always run.
const REGRESSIONS: &str = include_str!("../../seeds.txt");

#[derive(Clone, Parser)]
struct Arguments {
    /// The seeds to run, such as 0..300 [default: 0 to --count, and the seeds of seeds.txt].
    #[arg(long, value_parser = range)]
    seeds: Option<Range<u64>>,
    /// Run seeds from the first one on until this many hours were simulated.
    #[arg(long)]
    hours: Option<f64>,
    /// Run one seed.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Print every event of --seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// A plan to run instead of the seed's own, as JSON: what a failing seed prints.
    #[arg(long, requires = "seed")]
    plan: Option<String>,
    /// Run the seeds one after the other, and stop at the first that fails.
    #[arg(long, requires = "seeds", conflicts_with = "hours")]
    first: bool,
    /// The Primary is a ledger. Without --seeds and --seed, the fixed set has some of these runs, too.
    #[arg(long)]
    ledger: bool,
    /// The number of seeds in the fixed set.
    #[arg(long, default_value_t = 28)]
    count: u64,
    /// The file to write the result to.
    #[arg(long, default_value = "target/sim.json")]
    output: PathBuf,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("{text:?} is not a range of seeds such as 0..300");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    Ok(from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?)
}

/// The fixed set has so many seeds with a ledger as the Primary.
const ON_LEDGER: u64 = 8;

impl Arguments {
    /// The plan of a seed.
    fn plan(&self, seed: u64) -> Plan {
        if self.ledger { Plan::on_ledger(seed) } else { Plan::of(seed) }
    }
}

/// The summary of many runs.
#[derive(Default)]
struct Tally {
    seeds: u64,
    simulated_ms: u64,
    counts: BTreeMap<&'static str, u64>,
    failing: Vec<u64>,
}

impl Tally {
    fn add(&mut self, seed: u64, summary: &Summary) {
        self.seeds += 1;
        self.simulated_ms += summary.simulated_ms;
        summary.counts.iter().for_each(|(kind, count)| *self.counts.entry(kind).or_default() += count);
        if let Some(violation) = &summary.violation {
            println!("seed {seed}: {violation}");
            self.failing.push(seed);
        }
    }

    fn hours(&self) -> f64 {
        Duration::from_millis(self.simulated_ms).as_secs_f64() / 3_600.0
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(seed) = arguments.seed {
        return show(seed, &arguments);
    }
    if let (true, Some(seeds)) = (arguments.first, arguments.seeds.clone()) {
        return first(seeds, &arguments);
    }
    let began = Instant::now();
    let seeds = arguments.seeds.clone().unwrap_or(0..arguments.count);
    let mut tally = explore(seeds, &arguments);
    let explored = began.elapsed();
    let is_fixed = arguments.seeds.is_none() && arguments.hours.is_none();
    if is_fixed {
        for seed in REGRESSIONS.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()) {
            tally.add(seed, &run(Plan::of(seed), false));
        }
    }
    let mut on_ledger = Tally::default();
    if is_fixed && !arguments.ledger {
        on_ledger = explore(0..ON_LEDGER, &Arguments { ledger: true, ..arguments.clone() });
        on_ledger.counts.iter().for_each(|(kind, count)| *tally.counts.entry(kind).or_default() += count);
        tally.seeds += on_ledger.seeds;
        tally.simulated_ms += on_ledger.simulated_ms;
    }
    for (kind, count) in &tally.counts {
        println!("{count:>12}  {kind}");
    }
    println!(
        "{} seeds, {:.1} hours simulated in {:.1} s, {} violations",
        tally.seeds,
        tally.hours(),
        explored.as_secs_f64(),
        tally.failing.len() + on_ledger.failing.len()
    );
    let failing = tally.failing.iter().map(|seed| arguments.plan(*seed));
    let failing: Vec<_> = failing.chain(on_ledger.failing.iter().map(|seed| Plan::on_ledger(*seed))).collect();
    failing.iter().take(3).for_each(|plan| report(&shrink(plan.clone())));
    let result = json!({
        "seeds": tally.seeds,
        "simulated_hours": tally.hours(),
        "seconds": explored.as_secs_f64(),
        "violations": failing.len(),
        "events": tally.counts,
    });
    if let Err(error) = std::fs::write(&arguments.output, format!("{result:#}\n")) {
        println!("cannot write {}: {error}", arguments.output.display());
        return ExitCode::FAILURE;
    }
    if failing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds on all cores, each run in one thread.
fn explore(seeds: Range<u64>, arguments: &Arguments) -> Tally {
    let hours = arguments.hours;
    let (next, tally) = (AtomicU64::new(seeds.start), Mutex::new(Tally::default()));
    let enough = |tally: &Tally| hours.is_some_and(|hours| tally.hours() >= hours);
    on_all_cores(|| {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if (hours.is_none() && seed >= seeds.end) || enough(&locked(&tally)) {
                return;
            }
            let summary = run(arguments.plan(seed), false);
            locked(&tally).add(seed, &summary);
        }
    });
    let mut tally = tally.into_inner().expect("no run panicked");
    tally.failing.sort_unstable();
    tally
}

/// Runs the seeds in order until one fails, and says which and why in one line.
fn first(seeds: Range<u64>, arguments: &Arguments) -> ExitCode {
    let failing = seeds.into_iter().find_map(|seed| Some((seed, run(arguments.plan(seed), false).violation?)));
    match failing {
        Some((seed, violation)) => {
            println!("seed {seed}: {violation}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

fn on_all_cores(work: impl Fn() + Sync) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(&work))));
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no run panicked")
}

fn report(found: &Found) {
    let plan = serde_json::to_string(&found.plan).expect("a plan is plain data");
    println!(
        "seed {}: {} events instead of more, after {} runs: {}\n  replay: make sim SEED={} TRACE=1 PLAN='{plan}'",
        found.plan.seed,
        found.summary.events,
        found.runs,
        found.summary.violation.as_deref().unwrap_or("the shorter run is well"),
        found.plan.seed
    );
}

fn show(seed: u64, arguments: &Arguments) -> ExitCode {
    let plan = match &arguments.plan {
        None => arguments.plan(seed),
        Some(text) => match serde_json::from_str(text) {
            Ok(plan) => plan,
            Err(error) => {
                println!("the plan is malformed: {error}");
                return ExitCode::FAILURE;
            }
        },
    };
    println!("{}", serde_json::to_string(&plan).expect("a plan is plain data"));
    let summary = run(plan.clone(), arguments.trace);
    println!("{summary:#?}");
    if summary.violation.is_none() {
        return ExitCode::SUCCESS;
    }
    report(&shrink(plan));
    ExitCode::FAILURE
}
