//! Runs an authority as long as its operator wants: between two generations of its journals it stops, and is rebased
//! (`crate::authority::pruning`).
//!
//! ```text
//!  the authority serves ─► it stops for a rebase ─► rebased ─► it serves on the new journals, and removes the old ones
//!                                              └► failed: noted ─► it serves on the old journals
//! ```
//! Each time, the authority has a runtime of its own. What it has started ends with it, and keeps no file open.

use std::time::Duration;

use fastpay_core::AuthorityKeys;
use fastpay_program::Clock;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};

use super::rebase::{RebaseError, Rebased, rebase};
use super::stop;
use crate::authority::config::Config;
use crate::authority::pruning::PruningReport;
use crate::authority::{self, AuthorityError, Ended};

pub use super::stop::has_left;

/// How long what an authority has started may take to end.
const END_GRACE: Duration = Duration::from_secs(5);

/// Runs an authority until `stop` turns true, or its operator has it end for good (`stop`).
///
/// # Errors
/// See [`AuthorityError`].
pub async fn run(config: Config, keys: Vec<AuthorityKeys>, stop: watch::Receiver<bool>) -> Result<(), AuthorityError> {
    if has_left(&config.data) {
        return Ok(());
    }
    let mut stop = stop::or_left(config.data.clone(), stop);
    loop {
        let (serving, keys, stopped) = (config.clone(), keys.clone(), stop.clone());
        let ended = tokio::task::spawn_blocking(move || {
            let runtime = runtime()?;
            let ended = runtime.block_on(authority::run(serving, keys, stopped));
            runtime.shutdown_timeout(END_GRACE);
            ended
        });
        match ended.await {
            Ok(Ok(Ended::ToBeRebased)) => {}
            Ok(ended) => return ended.map(drop),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => return Err(AuthorityError::Server(error.to_string())),
            },
        }
        if !pause(&config, &mut stop).await {
            return Ok(());
        }
    }
}

fn runtime() -> Result<Runtime, AuthorityError> {
    Builder::new_multi_thread().enable_all().build().map_err(AuthorityError::Runtime)
}

/// Rebases the stopped authority onto the checkpoint of its archive that it has noted. Says whether it goes on, on
/// whichever generation.
async fn pause(config: &Config, stop: &mut watch::Receiver<bool>) -> bool {
    let Some(settings) = &config.archive else { return true };
    let onto = PruningReport::read(&config.data).underway.map(|attempt| attempt.checkpoint);
    let (tell, told) = oneshot::channel();
    let (rebased, archive) = (config.clone(), settings.folder.clone());
    let work = move || {
        let log = &mut |what: String| tracing::info!("ending the journals: {what}");
        let work = runtime().map(|runtime| runtime.block_on(rebase(&rebased, &archive, onto, None, log)));
        // Nobody listens if the operator has stopped the node meanwhile.
        let _ = tell.send(work.unwrap_or_else(|error| Err(RebaseError::from(error))));
    };
    let outcome = match std::thread::Builder::new().name("rebase".into()).spawn(work) {
        Err(error) => Err(error.to_string()),
        Ok(_) => tokio::select! {
            // The process ends in the middle of the work, as by a kill: the old generation counts, or the new one.
            _ = stop.wait_for(|stop| *stop) => {
                note(config, |report| report.underway = None);
                return false;
            }
            outcome = told => match outcome {
                Ok(outcome) => outcome.map_err(|error| error.to_string()),
                Err(_) => Err("it ended by a defect; see the log above".into()),
            },
        },
    };
    match outcome {
        Ok(Rebased { checkpoint, generation, journal_bytes, .. }) => {
            tracing::info!(checkpoint, generation, journal_bytes, "the journals end at the checkpoint; starting again");
        }
        Err(error) => {
            tracing::error!(%error, "the journals could not be ended; starting again with them");
            note(config, |report| {
                let checkpoint = report.underway.as_ref().map_or(0, |attempt| attempt.checkpoint);
                report.failed(checkpoint, error, Clock::system().now_ms(), &settings.pruning);
            });
        }
    }
    true
}

fn note(config: &Config, change: impl FnOnce(&mut PruningReport)) {
    let mut report = PruningReport::read(&config.data);
    change(&mut report);
    if let Err(error) = report.write(&config.data) {
        tracing::warn!(%error, "how the journals were ended cannot be noted");
    }
}
