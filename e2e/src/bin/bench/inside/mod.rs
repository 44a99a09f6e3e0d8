//! The cost of the authority's own code without a network, in this process, with a real journal on the real disk.
//!
//! `stages` does one step of the work after the other, each for a whole batch. `whole` has a shard's own threads do all
//! of it durably, from a request's bytes to the bytes of its answer. The difference between the two is the cost of the
//! threads; the difference between the whole and a node under load is the cost of the transport.

mod scene;
mod stages;
mod whole;

use fastpay_e2e::Failure;
use serde::{Deserialize, Serialize};

use crate::machine::Cores;
use crate::meter::on_core;
use crate::progress;
use crate::statistics::Spread;
use scene::Scene;

/// The extent of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The number of requests handled together in each stage.
    pub batch: usize,
    /// The number of accounts that pay once in each round.
    pub accounts: usize,
    /// The number of accounts that exist.
    pub people: usize,
    /// The number of measured rounds, in addition to one warm-up round.
    pub rounds: usize,
    pub vote_batch: usize,
    /// The number of payments in one order.
    pub outputs: usize,
}

/// One committee's costs, in microseconds of processor time for each request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Costs {
    /// The number of payments in one order, by which the reported costs are divided.
    pub outputs: usize,
    pub authorities: usize,
    pub quorum: usize,
    /// The size of the batches in which stages are measured.
    pub batch: usize,
    pub order: Path,
    pub certificate: Path,
    pub order_bytes: usize,
    pub certificate_bytes: usize,
}

/// The costs of one kind of request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Path {
    pub stages: Vec<Stage>,
    pub sum_us: f64,
    /// The cost of all of it on the shard's own threads.
    pub whole_us: Spread,
    /// The part of it that the stages do not explain.
    pub threads_us: f64,
}

/// The cost of one step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    pub us: Spread,
}

/// Measures one committee size.
pub fn measure(authorities: usize, extent: Extent, cores: Cores) -> Result<Costs, Failure> {
    let outputs = if extent.outputs > 1 { format!(", orders of {} outputs", extent.outputs) } else { String::new() };
    progress(&format!("stages: n = {authorities}{outputs}"));
    let scene = Scene::new(authorities, extent)?;
    on_core(cores.server, || {
        let stages = stages::measure(&scene, extent)?;
        let whole = whole::measure(&scene, extent)?;
        Ok(Costs {
            outputs: extent.outputs,
            authorities,
            quorum: scene.committee.quorum(),
            batch: extent.batch,
            order: Path::new(stages.order, whole.order),
            certificate: Path::new(stages.certificate, whole.certificate),
            order_bytes: scene.mean_bytes(|payment| &payment.order),
            certificate_bytes: scene.mean_bytes(|payment| &payment.certificate),
        })
    })
}

impl Path {
    fn new(stages: Vec<Stage>, whole_us: Spread) -> Self {
        let sum: f64 = stages.iter().map(|stage| stage.us.median).sum();
        let round = |value| crate::statistics::rounded(value, 2);
        Self { stages, sum_us: round(sum), whole_us, threads_us: round(whole_us.median - sum) }
    }
}
