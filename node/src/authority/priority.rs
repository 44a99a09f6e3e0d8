//! Threads that nothing waits for.

use std::io;

#[cfg(target_os = "linux")]
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};
use tokio::sync::oneshot;

/// Gives the calling thread the lowest priority: it runs while no other thread needs its core, and a little otherwise.
///
/// A low nice value alone costs payments more: a thread of the node that wakes waits until the running one has used up
/// its time slice.
pub fn lowest_priority() {
    // On other systems than Linux, this would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Min,
        ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle),
    ) {
        tracing::debug!(%error, thread = std::thread::current().name(), "a thread keeps its priority");
    }
}

/// Runs a task on a thread of its own, with the lowest priority if it is `idle`. The receiver hears when the thread has
/// ended.
///
/// # Errors
/// If the system gives no thread.
pub fn run_apart<F: Future<Output = ()>>(
    name: &str,
    idle: bool,
    task: impl FnOnce() -> F + Send + 'static,
) -> io::Result<oneshot::Receiver<()>> {
    let (ended, end) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        if idle {
            lowest_priority();
        }
        runtime.block_on(task());
        let _ = ended.send(());
    };
    std::thread::Builder::new().name(name.into()).spawn(run)?;
    Ok(end)
}
