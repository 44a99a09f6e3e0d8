//! Shrinks a failing run.

use super::plan::Plan;
use super::scenario::run;
use super::trace::Summary;

/// A failing run.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its plan.
    pub plan: Plan,
    /// Its summary.
    pub summary: Summary,
    /// The number of runs tried.
    pub runs: u64,
}

/// Reduces the plan step by step, and returns the shortest run that still fails.
#[must_use]
pub fn shrink(plan: Plan) -> Found {
    let summary = run(plan.clone(), false);
    let mut shortest = Found { plan, summary, runs: 1 };
    loop {
        let mut runs = shortest.runs;
        let smaller = shortest.plan.smaller().into_iter().find_map(|plan| {
            runs += 1;
            let summary = run(plan.clone(), false);
            let fails = summary.violation.is_some() && summary.events < shortest.summary.events;
            fails.then_some((plan, summary))
        });
        shortest.runs = runs;
        match smaller {
            Some((plan, summary)) => (shortest.plan, shortest.summary) = (plan, summary),
            None => return shortest,
        }
    }
}
