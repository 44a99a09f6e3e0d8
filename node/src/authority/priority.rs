//! The priority of threads that nothing waits for.

/// Gives the calling thread the lowest priority.
pub fn lowest_priority() {
    // On other systems than Linux, this would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::debug!(%error, thread = std::thread::current().name(), "a thread keeps its priority");
    }
}
