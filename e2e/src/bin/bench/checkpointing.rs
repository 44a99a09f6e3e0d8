//! The cost of checkpoints for the node: the closed loop while a checkpoint is computed, again and again.
//!
//! The computation is the node's own: it reads the running node's journals, on a thread of the lowest priority on the
//! node's core, and writes to the same disk. A node does it once a week.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fastpay_e2e::Failure;
use fastpay_node::authority::certification::{CheckpointError, Inputs, Memory, ORDERS_MAX, propose};
use fastpay_node::authority::config::Config;
use fastpay_node::authority::priority::lowest_priority;
use fastpay_program::Clock;
use serde::{Deserialize, Serialize};

use crate::load::{self, Report, Scenario};
use crate::machine::Cores;
use crate::overload::Peak;
use crate::{meter, runtime};

/// The effect of checkpoints.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Checkpointing {
    /// The result of the closed loop without checkpoints.
    pub peak: Peak,
    /// The throughput meanwhile, as a share of the peak.
    pub ratio: f64,
    /// The same share per second of the node's processor time.
    pub ratio_by_processor_time: f64,
    pub report: Report,
}

/// Runs the closed loop `base` once more, while checkpoints are computed.
pub fn measure(base: &Scenario, cores: Cores) -> Result<Checkpointing, Failure> {
    let name = "the same while checkpoints are computed".into();
    let report = load::measure(&Scenario { name, checkpoints: true, ..base.clone() }, cores)?;
    if report.checkpoints == 0 {
        return Err(Failure::Wrong("no checkpoint was computed during the load; give it more --payments".into()));
    }
    Ok(Checkpointing { report, ..Checkpointing::default() })
}

impl Checkpointing {
    /// Compares it with a peak.
    pub fn against(self, peak: Peak) -> Self {
        let (ratio, ratio_by_processor_time) = peak.shares(&self.report);
        Self { peak, ratio, ratio_by_processor_time, ..self }
    }
}

/// Checkpoints that are computed until they are stopped.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, Failure>>,
}

impl Running {
    /// Computes a node's first checkpoint again and again, on a core. Its archive is `folder`.
    pub fn start(config: Config, folder: PathBuf, core: Option<usize>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let work = move || {
            lowest_priority();
            let (runtime, mut count) = (runtime()?, 0);
            while !stopped.load(Ordering::Relaxed) {
                let _ = std::fs::remove_dir_all(&folder);
                let inputs =
                    Inputs { config: &config, archive: &folder, orders_max: ORDERS_MAX, clock: Clock::system() };
                match runtime.block_on(propose(inputs, &mut Memory::default(), &mut |_| ())) {
                    Ok(_) => count += 1,
                    // Nothing is executed yet.
                    Err(CheckpointError::Nothing(_)) => {}
                    Err(error) => return Err(Failure::wrong(error)),
                }
            }
            Ok(count)
        };
        Self { stop, thread: std::thread::spawn(move || meter::on_core(core, work)) }
    }

    /// Returns how many were computed. The last one, which lasted beyond the load, counts as well.
    pub fn stop(self) -> Result<u64, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Failure::Wrong("the thread that computes checkpoints panicked".into()))?
    }
}
