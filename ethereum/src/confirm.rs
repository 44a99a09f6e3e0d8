//! Follows one submission until it is final.

use std::io;
use std::time::Duration;

use alloy::primitives::B256;
use tokio::time::Instant;

use crate::error::PrimaryError;
use crate::sender::{SendError, Sender};
use crate::submission::{Call, Inclusion, Status, Submission};

/// Progress of a transaction, to be shown to a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The call would succeed, and use about this much gas.
    Simulated {
        /// The node's estimate.
        gas: u64,
    },
    /// The transaction was sent: for the first time, again, or with a higher offer.
    Submitted {
        /// The transaction's hash.
        hash: B256,
    },
    /// The transaction is in a block that may still change.
    Included {
        /// The block's number.
        block_number: u64,
        /// The number of further blocks that make it final.
        blocks_left: u64,
    },
    /// There is no progress now.
    Waiting {
        /// The reason.
        reason: String,
    },
    /// The transaction is in a final block.
    Final {
        /// The block's number.
        block_number: u64,
    },
}

impl Sender {
    /// Executes a call: simulates it, sends it, raises the offer, sends it again, and returns when it is final.
    ///
    /// # Errors
    /// See [`SendError::is_retryable`]. After an error the call may still happen; a caller that must not
    /// repeat it uses [`Sender::prepare`] and [`Sender::confirm`], and stores the submission.
    pub async fn send_and_wait(
        &self,
        call: Call,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Inclusion, SendError> {
        let tried = self.try_out(&call).await?;
        progress(Progress::Simulated { gas: tried.estimate });
        let submission = self.prepare_tried(call, tried).await?;
        self.confirm(submission, &mut |_| Ok(()), progress).await
    }

    /// Follows a submission, new or stored, until it is final. It calls `store` before every broadcast of a new
    /// attempt; `store` must return only when the submission is on disk.
    ///
    /// It waits without limit while no node answers or the offer is too low. The caller may drop the future at any time
    /// and confirm the stored submission again.
    ///
    /// # Errors
    /// If it is not signed with this key for this chain, reverted or was superseded, could not be stored, or needs an
    /// operator.
    pub async fn confirm(
        &self,
        mut submission: Submission,
        store: &mut (dyn FnMut(&Submission) -> io::Result<()> + Send),
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Inclusion, SendError> {
        self.check_own(&submission)?;
        store(&submission)?;
        self.report(&submission, self.broadcast(&submission).await, progress)?;
        let mut offered_at = Instant::now();
        let mut shown_in = None;
        loop {
            match self.status(&submission).await {
                Ok(Status::Final(inclusion)) => return finish(inclusion, progress),
                Ok(Status::Superseded) => {
                    return Err(SendError::Superseded { from: submission.from, nonce: submission.nonce });
                }
                Ok(Status::Included { inclusion, blocks_left }) => {
                    let shown = Some((inclusion.block_hash, blocks_left));
                    if std::mem::replace(&mut shown_in, shown) != shown {
                        progress(Progress::Included { block_number: inclusion.block_number, blocks_left });
                    }
                    offered_at = Instant::now();
                }
                Ok(Status::Pending { known }) => {
                    let stuck = offered_at.elapsed() >= Duration::from_millis(self.config().stuck_after_ms);
                    let raised = if stuck { self.raised_or_wait(&submission, progress).await? } else { None };
                    if raised.is_some() || stuck {
                        offered_at = Instant::now();
                    }
                    let changed = raised.is_some();
                    if let Some(raised) = raised {
                        store(&raised)?;
                        submission = raised;
                    }
                    if changed || !known {
                        self.report(&submission, self.broadcast(&submission).await, progress)?;
                    }
                }
                Err(error) => wait_or_stop(error.into(), progress)?,
            }
            tokio::time::sleep(Duration::from_millis(self.config().poll_interval_ms.max(1))).await;
        }
    }

    async fn raised_or_wait(
        &self,
        submission: &Submission,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Option<Submission>, SendError> {
        match self.raised(submission).await {
            Ok(None) => {
                progress(Progress::Waiting {
                    reason: "the fee is at its cap; waiting for the base fee to fall".into(),
                });
                Ok(None)
            }
            Ok(raised) => Ok(raised),
            Err(error) => wait_or_stop(error, progress).map(|()| None),
        }
    }

    fn report(
        &self,
        submission: &Submission,
        sent: Result<(), SendError>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), SendError> {
        match (sent, submission.attempts.last()) {
            (Ok(()), newest) => {
                newest.into_iter().for_each(|newest| progress(Progress::Submitted { hash: newest.hash }));
            }
            // An earlier offer may be pending already, so a lack of funds for a higher one is not the end.
            (Err(SendError::Primary(error @ PrimaryError::InsufficientFunds)), _) if submission.attempts.len() > 1 => {
                progress(Progress::Waiting { reason: error.to_string() });
            }
            (Err(error), _) => wait_or_stop(error, progress)?,
        }
        Ok(())
    }
}

fn finish(inclusion: Inclusion, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Inclusion, SendError> {
    let Inclusion { hash, block_number, success, .. } = inclusion;
    if !success {
        return Err(SendError::RevertedOnChain { hash, block_number });
    }
    progress(Progress::Final { block_number });
    Ok(inclusion)
}

fn wait_or_stop(error: SendError, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<(), SendError> {
    if !error.is_retryable() {
        return Err(error);
    }
    progress(Progress::Waiting { reason: error.to_string() });
    Ok(())
}
