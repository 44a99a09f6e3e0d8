//! What the authority's own code costs without a network, in this process, with a real journal on the real disk.
//!
//! `stages` does one step of the work after the other, each for a whole batch; `whole` has a shard's own threads do
//! all of it, from a request's bytes to the bytes of its answer, durable. The difference between the two is what the
//! threads cost; the difference between the whole and a node under load is what the transport costs.

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

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// So many requests are done together in each stage.
    pub batch: usize,
    /// So many accounts pay once in each round.
    pub accounts: usize,
    /// So many accounts there are.
    pub people: usize,
    /// Measured; one more is for warming up.
    pub rounds: usize,
    pub vote_batch: usize,
    /// So many payments are in one order.
    pub outputs: usize,
}

/// One committee's costs, in microseconds of processor time for each request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Costs {
    /// In one order; what is told is divided by it.
    pub outputs: usize,
    pub authorities: usize,
    pub quorum: usize,
    /// Stages are measured with batches of this many.
    pub batch: usize,
    pub order: Path,
    pub certificate: Path,
    pub order_bytes: usize,
    pub certificate_bytes: usize,
}

/// One kind of request's way through the authority.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Path {
    pub stages: Vec<Stage>,
    pub sum_us: f64,
    /// By the shard's own threads, in one go.
    pub whole_us: Spread,
    /// What the stages do not explain.
    pub threads_us: f64,
}

/// One step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    pub us: Spread,
}

/// Of one size of the committee.
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
