//! What the services ask of the one task that owns a member's state, and the bounded channel on which they do.

use fastpay_ledger_statement::{
    Answers, ClusterId, Cursor, Header, MemberIndex, QuorumCertificate, ReadProof, Receiver, StateKey, VerifiedGroup,
    VerifiedRequest,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::pool::Added;
use crate::store::Checkpoint;

/// So many commands wait at most. The next one is told that the member is busy.
pub const COMMANDS_WAITING_MAX: usize = 1_024;

/// A command.
#[derive(Debug)]
pub enum Command {
    /// Proposes requests, or has the leader do it.
    Submit {
        /// The requests.
        requests: Vec<VerifiedRequest>,
        /// Whether another member of the cluster passed them on.
        is_relayed: bool,
        /// Who waits for the answers.
        waiter: Option<Waiter>,
        /// Whether each is taken.
        reply: oneshot::Sender<Vec<Added>>,
    },
    /// Reads from the newest state. `None` before the first height.
    Read(StateKey, oneshot::Sender<Option<ReadProof>>),
    /// Encoded groups for a receiver from this number.
    Groups(Receiver, u64, oneshot::Sender<Vec<Vec<u8>>>),
    /// Which group to ask a cluster for; `None` if enough wait.
    Due(ClusterId, oneshot::Sender<Option<Cursor>>),
    /// A group of another cluster.
    Group(Box<VerifiedGroup>),
    /// The newest height.
    Status(oneshot::Sender<Status>),
    /// The newest state, whole. `None` before the first height.
    Checkpoint(oneshot::Sender<Option<Checkpoint>>),
}

/// Somebody who waits for answers: of each height that has some, they come at once.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// Tells waiters apart.
    pub id: u64,
    /// Where the answers go. They are dropped where there is no room.
    pub answers: mpsc::Sender<Answers>,
}

/// Where a member is.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its place in the order of keys.
    pub member: MemberIndex,
    /// Its newest header with the certificate; `None` before the first height.
    pub head: Option<(Header, QuorumCertificate)>,
    /// The member that leads the next height's first round.
    pub leader: MemberIndex,
    /// Whether it votes.
    pub votes: bool,
}

/// The member does not answer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Too much waits.
    #[error("this member is busy; try again later, or ask another member")]
    Busy,
    /// It is being stopped.
    #[error("this member is stopping; ask another member")]
    Stopping,
}

/// The way to the task that owns the state.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    heights: watch::Receiver<u64>,
}

impl Handle {
    /// A handle, and its other ends.
    #[must_use]
    pub fn new(height: u64) -> (Self, mpsc::Receiver<Command>, watch::Sender<u64>) {
        let (commands, received) = mpsc::channel(COMMANDS_WAITING_MAX);
        let (height, heights) = watch::channel(height);
        (Self { commands, heights }, received, height)
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// See [`Unavailable`].
    pub async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Unavailable> {
        let (reply, replied) = oneshot::channel();
        self.tell(command(reply))?;
        replied.await.map_err(|_| Unavailable::Stopping)
    }

    /// Sends a command.
    ///
    /// # Errors
    /// See [`Unavailable`].
    pub fn tell(&self, command: Command) -> Result<(), Unavailable> {
        self.commands.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unavailable::Busy,
            mpsc::error::TrySendError::Closed(_) => Unavailable::Stopping,
        })
    }

    /// The newest height, as it changes.
    #[must_use]
    pub fn heights(&self) -> watch::Receiver<u64> {
        self.heights.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_is_told_busy_and_an_ended_one_stopping() {
        let (handle, commands, _height) = Handle::new(0);
        for _ in 0..COMMANDS_WAITING_MAX {
            let (reply, _) = oneshot::channel();
            handle.tell(Command::Status(reply)).unwrap();
        }
        assert_eq!(handle.ask(Command::Status).await.unwrap_err(), Unavailable::Busy);
        drop(commands);
        assert_eq!(handle.ask(Command::Status).await.unwrap_err(), Unavailable::Stopping);
    }
}
