//! Runs the parts of the bench one after the other.

use std::time::Duration;

use fastpay_e2e::Failure;

use crate::arguments::{Arguments, PAYOUT_OUTPUTS, Topic};
use crate::generator::{Plan, Until};
use crate::load::{self, Report, Scenario};
use crate::machine::{self, Cores};
use crate::outcome::Outcome;
use crate::overload::Peak;
use crate::pace::Pace;
use crate::{
    absence, checkpoint, checkpointing, flood, handover, idle, inside, lists, model, overload, progress, recovery,
    runtime, state, traced,
};

/// The exponent of the skew, as in common store benchmarks: some accounts are in a tenth of all payments.
const ZIPF_EXPONENT: f64 = 0.99;
/// More in flight would be refused as busy, because each costs as much as many payments.
const PAYOUTS_IN_FLIGHT: usize = 96;

pub fn measure(arguments: &Arguments) -> Result<Outcome, Failure> {
    let machine = machine::describe();
    progress(&format!(
        "{}, {} cores, load average {}",
        machine.processor, machine.cores, machine.load_average_at_start
    ));
    let cores = Cores::split();
    let mut outcome = Outcome::new(arguments.clone(), machine);
    if arguments.wants(Topic::Idle) {
        progress("idle: four authorities, one payment at a time");
        outcome.idle = Some(runtime()?.block_on(idle::measure(arguments.idle_rounds()))?);
    }
    if arguments.wants(Topic::Stages) {
        for authorities in arguments.stages_authorities() {
            outcome.stages.push(inside::measure(*authorities, arguments.extent(), cores)?);
        }
    }
    if arguments.wants(Topic::Payouts) {
        outcome.payout_stages = Some(inside::measure(4, arguments.payout_extent(), cores)?);
        outcome.payouts = Some(load::measure(&payouts(arguments), cores)?);
        progress("lists: ten accounts pay ten thousand people through the wallet");
        outcome.lists = Some(runtime()?.block_on(lists::measure())?);
    }
    if arguments.wants(Topic::Load) {
        for authorities in &arguments.authorities {
            outcome.load.push(load::measure(&closed(arguments, *authorities), cores)?);
        }
    }
    let floods = flood::is_wanted(arguments);
    let checkpointing = arguments.wants(Topic::Checkpointing);
    if arguments.wants(Topic::Load) || arguments.wants(Topic::Overload) || floods || checkpointing {
        let base = closed(arguments, 4);
        let peak = peak(&mut outcome, &base, cores)?;
        if arguments.wants(Topic::Load) {
            let per_second = peak.payments_per_second.median;
            outcome.open = Some(load::measure(&open(arguments, &base, per_second), cores)?);
        }
        if arguments.wants(Topic::Overload) {
            outcome.overload = Some(overload::measure(arguments, &base, &peak, cores)?);
        }
        if floods {
            outcome.flood = Some(flood::measure(&base, cores)?);
        }
        if checkpointing {
            outcome.checkpointing = Some(checkpointing::measure(&base, cores)?);
        }
        if outcome.overload.is_some() || outcome.flood.is_some() || checkpointing {
            let name = format!("{}, again", base.name);
            let again = load::measure(&Scenario { name, ..base }, cores)?;
            let both = Peak::of(&peak, &again);
            outcome.overload = outcome.overload.map(|overload| overload.against(both));
            outcome.flood = outcome.flood.map(|flood| flood.against(both));
            outcome.checkpointing = outcome.checkpointing.map(|checkpointing| checkpointing.against(both));
            outcome.load_again = Some(again);
        }
    }
    if arguments.wants(Topic::Traces) {
        outcome.traced = traced::measure(&closed(arguments, 4), cores)?;
    }
    if arguments.wants(Topic::Skew) {
        let name = format!("skewed accounts (Zipf {ZIPF_EXPONENT})");
        let scenario = Scenario { name, zipf_exponent: ZIPF_EXPONENT, ..closed(arguments, 4) };
        outcome.skew = Some(load::measure(&scenario, cores)?);
    }
    if arguments.wants(Topic::Shards) {
        outcome.shards = shards(arguments, cores)?;
    }
    if arguments.wants(Topic::Recovery) {
        outcome.recovery = Some(recovery::measure(arguments.recovery_accounts(), 3, cores)?);
    }
    if arguments.wants(Topic::State) {
        outcome.state = Some(state::measure(arguments, cores)?);
    }
    if arguments.wants(Topic::Checkpoint) {
        outcome.checkpoints =
            Some(checkpoint::measure(arguments.checkpoint_accounts(), arguments.checkpoint_orders())?);
    }
    if arguments.wants(Topic::Absence) {
        outcome.absence = Some(absence::measure(arguments.absence())?);
    }
    if arguments.wants(Topic::Handover) {
        outcome.hand_over = Some(handover::measure(arguments.handover_accounts())?);
    }
    outcome.model = model::rows(&outcome.stages, &outcome.load, &outcome.shards);
    outcome.machine.load_average_at_end = machine::load_average();
    Ok(outcome)
}

/// The closed-loop throughput of a committee of four, measured earlier or now.
fn peak(outcome: &mut Outcome, base: &Scenario, cores: Cores) -> Result<Report, Failure> {
    let measured = outcome.load.iter().find(|report| report.authorities == base.authorities);
    if let Some(report) = measured {
        return Ok(report.clone());
    }
    let report = load::measure(base, cores)?;
    outcome.load.push(report.clone());
    Ok(report)
}

fn closed(arguments: &Arguments, authorities: usize) -> Scenario {
    let (plan, prepared) = load::closed(arguments.in_flight, arguments.payments(), arguments.parts());
    Scenario {
        name: format!("one shard on one core, n = {authorities}"),
        authorities,
        shards: 1,
        on_all_cores: false,
        zipf_exponent: 0.0,
        cross_shard: None,
        accounts: arguments.accounts,
        connections: arguments.connections,
        vote_batch: arguments.vote_batch,
        outputs: 1,
        flood: false,
        checkpoints: false,
        traces: None,
        plan,
        prepared,
    }
}

fn payouts(arguments: &Arguments) -> Scenario {
    let (plan, prepared) = load::closed(PAYOUTS_IN_FLIGHT, arguments.payouts(), arguments.parts());
    let name = format!("orders of {PAYOUT_OUTPUTS} payments, each counted as one");
    Scenario { name, plan, prepared, outputs: PAYOUT_OUTPUTS, ..closed(arguments, 4) }
}

fn open(arguments: &Arguments, base: &Scenario, peak_per_second: f64) -> Scenario {
    let per_second = peak_per_second * arguments.open_share;
    let seconds = arguments.open_seconds();
    let part = Until::Elapsed(Duration::from_secs_f64(seconds));
    let parts = arguments.parts();
    let plan = Plan { pace: Pace::Open { per_second }, warm_up: part, part, parts };
    let prepared = (per_second * seconds * (parts + 2) as f64) as usize;
    let name = format!("open loop at {:.0} % of the capacity", arguments.open_share * 1e2);
    Scenario { name, plan, prepared, ..base.clone() }
}

fn shards(arguments: &Arguments, cores: Cores) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for (share, on_all_cores) in [(0.0, false), (1.0, false), (0.5, true)] {
        let place = if on_all_cores { "all cores (the generator's too)" } else { "one core" };
        let name = format!("two shards on {place}, {:.0} % of payments across", share * 1e2);
        let scenario = Scenario { name, shards: 2, on_all_cores, cross_shard: Some(share), ..closed(arguments, 4) };
        reports.push(load::measure(&scenario, cores)?);
    }
    Ok(reports)
}
