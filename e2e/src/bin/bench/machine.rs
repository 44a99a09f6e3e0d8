//! The machine, on which the figures depend besides the program.

use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::statistics::{Percentiles, Times};

const SYNCS: usize = 200;
const SYNC_BYTES: usize = 4096;

/// The machine and the revision of the measurements.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub kernel: String,
    pub memory_gib: f64,
    /// The load average before the bench began, because other work affects the figures.
    pub load_average_at_start: f64,
    /// Set at the end.
    pub load_average_at_end: f64,
    /// The time to append 4 KiB to a file and sync it, on the journal's disk.
    pub sync_ms: Percentiles,
    /// The measured revision.
    pub git_commit: String,
    pub date_unix: u64,
}

pub fn describe() -> Machine {
    let information = read("/proc/cpuinfo");
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let memory = read("/proc/meminfo");
    let kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    #[expect(clippy::disallowed_methods, reason = "it dates the record")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Machine {
        processor: model.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.to_owned()),
        cores: cores(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        memory_gib: kib.map_or(0.0, |kib: f64| (kib / f64::from(1 << 20)).round()),
        load_average_at_start: load_average(),
        load_average_at_end: 0.0,
        sync_ms: sync_time().unwrap_or_default(),
        git_commit: git_commit(),
        date_unix: now.map_or(0, |now| now.as_secs()),
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The load average over the last minute.
pub fn load_average() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|average| average.parse().ok()).unwrap_or_default()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The commit, with a plus if files differ from it; empty outside of a repository.
fn git_commit() -> String {
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]);
    let output = git.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}

fn sync_time() -> std::io::Result<Percentiles> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench-sync");
    let mut file = File::create(path)?;
    let mut times = Times::default();
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.write_all(&[7; SYNC_BYTES])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    std::fs::remove_file(path)?;
    Ok(times.percentiles())
}

/// The cores of node and generator. `None` if there are too few cores to separate them.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    pub server: Option<usize>,
    pub generator: Option<usize>,
}

impl Cores {
    pub fn split() -> Self {
        if cores() < 2 { Self { server: None, generator: None } } else { Self { server: Some(0), generator: Some(1) } }
    }
}
