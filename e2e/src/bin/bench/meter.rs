//! Measures what processes use: processor time, memory, disk. Reads `/proc`, so it needs Linux.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The ticks in which Linux counts processor time, per second, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process has used so far.
#[derive(Clone, Debug)]
pub struct Usage {
    pub at: Instant,
    /// Processor time in seconds.
    pub user: f64,
    pub system: f64,
    /// Processor time in seconds by thread name, for threads that are alive.
    pub threads: BTreeMap<String, f64>,
    /// The bytes written to the disk, including what the file system adds.
    pub written_bytes: u64,
}

impl Usage {
    /// The usage of a process; zeros if the system does not report it.
    pub fn of(process: u32) -> Self {
        let at = Instant::now();
        let stat = read(&format!("/proc/{process}/stat"));
        // The name, in parentheses, may contain any character.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        let mut ticks = fields.skip(11).map(|field| field.parse::<f64>().unwrap_or_default() / TICKS_PER_SECOND);
        let (user, system) = (ticks.next().unwrap_or_default(), ticks.next().unwrap_or_default());
        let io = read(&format!("/proc/{process}/io"));
        let written_bytes = number_after(&io, "write_bytes:").unwrap_or_default();
        Self { at, user, system, threads: threads(process), written_bytes }
    }

    pub fn processor(&self) -> f64 {
        self.user + self.system
    }
}

fn threads(process: u32) -> BTreeMap<String, f64> {
    let mut threads = BTreeMap::new();
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let text = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let name = text("comm").trim_end().to_owned();
        let nanos = text("schedstat").split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
        *threads.entry(name).or_default() += nanos.unwrap_or_default() / 1e9;
    }
    threads
}

/// The memory that a process holds now, in bytes.
pub fn resident_bytes(process: u32) -> u64 {
    number_after(&read(&format!("/proc/{process}/status")), "VmRSS:").unwrap_or_default() * 1024
}

/// The most memory that this process has held since [`forget_peak`], in bytes.
pub fn peak_bytes() -> u64 {
    number_after(&read("/proc/self/status"), "VmHWM:").unwrap_or_default() * 1024
}

/// Begins anew with the memory that this process holds now.
pub fn forget_peak() {
    // A kernel that refuses it reports the peak since the process began.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// How long a core has been at work for anybody, and withheld by the machine below, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreTime {
    pub busy: f64,
    pub stolen: f64,
}

impl CoreTime {
    pub fn of(core: usize) -> Self {
        let (text, name) = (read("/proc/stat"), format!("cpu{core} "));
        let line = text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_default();
        let fields: Vec<f64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let seconds = |index: usize| fields.get(index).copied().unwrap_or_default() / TICKS_PER_SECOND;
        // user, nice, system, idle, iowait, irq, softirq, steal
        Self { busy: [0, 1, 2, 5, 6].into_iter().map(seconds).sum(), stolen: seconds(7) }
    }
}

/// The processor time of the calling thread.
pub fn thread_time() -> Duration {
    since_zero(ClockId::ThreadCPUTime)
}

/// The processor time of this process.
pub fn process_time() -> Duration {
    since_zero(ClockId::ProcessCPUTime)
}

fn since_zero(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Runs `work` on a new thread, which is bound to a core if one is given.
pub fn on_core<T: Send>(core: Option<usize>, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let bound = scope.spawn(move || {
            if let Some(core) = core {
                let mut cores = CpuSet::new();
                cores.set(core);
                // If that is not allowed, the figures show how much of the core was available.
                let _ = sched_setaffinity(None, &cores);
            }
            work()
        });
        bound.join().expect("a part of the bench does not panic")
    })
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_is_seen_at_work() {
        let own = |usage: &Usage| {
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            usage.threads.get(name.trim_end()).copied().unwrap()
        };
        let before = Usage::of(std::process::id());
        let start = thread_time();
        // Several of the kernel's ticks, which is what a process's time is counted in.
        while thread_time() - start < Duration::from_millis(60) {
            std::hint::black_box((0..1000).sum::<u64>());
        }
        let after = Usage::of(std::process::id());
        assert!(own(&after) - own(&before) >= 0.055, "{before:?} {after:?}");
        assert!(after.processor() - before.processor() >= 0.03, "{before:?} {after:?}");
        assert!(resident_bytes(std::process::id()) > 1 << 20);
    }
}
