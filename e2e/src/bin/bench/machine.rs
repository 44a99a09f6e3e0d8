//! What the numbers depend on besides the program.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::percentile;

const SYNCS: usize = 100;

#[derive(Serialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    /// Before the bench began: others' work shows in the numbers.
    pub load_average: String,
    pub sync_p50_ms: f64,
}

pub fn describe() -> Machine {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let information = read("/proc/cpuinfo");
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let average = read("/proc/loadavg");
    Machine {
        processor: model.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.to_owned()),
        cores: cores(),
        load_average: average.split(' ').next().unwrap_or("unknown").to_owned(),
        sync_p50_ms: sync_time().unwrap_or_default(),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// On the disk where the node's journal will be.
fn sync_time() -> std::io::Result<f64> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench-sync");
    let mut file = File::create(path)?;
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    std::fs::remove_file(path)?;
    times.sort_unstable();
    Ok(percentile(&times, 50))
}

/// A core for the node and another one for this process, which from now on stays on it. None where there are too few,
/// or no `taskset`.
pub fn split_cores() -> Option<(usize, usize)> {
    let (server, generator) = (0, 1);
    if cores() < 2 {
        return None;
    }
    let mut command = Command::new("taskset");
    command.args(["-cp", &generator.to_string(), &std::process::id().to_string()]);
    let bound = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    bound.is_ok_and(|status| status.success()).then_some((server, generator))
}
