//! Threads that nothing waits for.

use std::io;

use tokio::sync::oneshot;

/// Gives the calling thread the lowest priority.
pub fn lowest_priority() {
    // On other systems than Linux, this would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::debug!(%error, thread = std::thread::current().name(), "a thread keeps its priority");
    }
}

/// Runs a task on a thread of its own with the lowest priority. The receiver hears when the thread has ended.
///
/// # Errors
/// If the system gives no thread.
pub fn run_apart<F: Future<Output = ()>>(
    name: &str,
    task: impl FnOnce() -> F + Send + 'static,
) -> io::Result<oneshot::Receiver<()>> {
    let (ended, end) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        lowest_priority();
        runtime.block_on(task());
        let _ = ended.send(());
    };
    std::thread::Builder::new().name(name.into()).spawn(run)?;
    Ok(end)
}
