//! Whether a folder may vote alone: what it records about being one of three.

use borsh::{BorshDeserialize, BorshSerialize};
use thiserror::Error;

use crate::identity::{MachineId, Start, Tag};
use crate::replica::Sealed;

/// What a folder records, durably, about its shard's journal. Each change is on disk before the next step: before the
/// first frame is published, and before the first vote after leaving.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Mode {
    /// One machine. The default: nothing else writes to this journal.
    #[default]
    Local,
    /// One of three machines.
    Replicated {
        /// Which of them this folder is.
        machine: MachineId,
        /// Their start.
        start: Box<Start>,
    },
    /// One machine again, after the three were sealed.
    Left {
        /// The seal's tag: the next start's tail.
        seal: Tag,
    },
}

/// Why a folder may not do that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FolderError {
    /// It is one of three machines, and another one may own the journal.
    #[error("this folder is one of three machines: start it as one of them, or let its owner leave first")]
    Replicated,
    /// It is not one of three machines.
    #[error("this folder is on one machine: join it to a stream first")]
    Local,
    /// The machine is none of the start's three.
    #[error("machine {0:?} is none of this start's")]
    NotNamed(MachineId),
    /// The seal is that of another start, or another machine goes on.
    #[error("this folder does not hold the seal by which it would go on alone")]
    NotSealed,
}

impl Mode {
    /// Whether the folder may be started as on one machine.
    ///
    /// # Errors
    /// `Replicated`.
    pub fn may_run_alone(&self) -> Result<(), FolderError> {
        match self {
            Self::Local | Self::Left { .. } => Ok(()),
            Self::Replicated { .. } => Err(FolderError::Replicated),
        }
    }

    /// The folder as one of three machines. Write it before the first frame is published or followed.
    ///
    /// # Errors
    /// `Replicated`, `NotNamed`.
    pub fn join(&self, machine: MachineId, start: Start) -> Result<Self, FolderError> {
        self.may_run_alone()?;
        if !start.machines.contains(machine) {
            return Err(FolderError::NotNamed(machine));
        }
        Ok(Self::Replicated { machine, start: Box::new(start) })
    }

    /// The folder on one machine again. Only the owner that sealed the stream gets there: all three machines hold the
    /// seal, and only one of them may go on.
    ///
    /// # Errors
    /// `Local`, `NotSealed`.
    pub fn leave(&self, sealed: &Sealed) -> Result<Self, FolderError> {
        match self {
            Self::Replicated { machine, start } if sealed.by() == *machine && sealed.start() == start.id() => {
                Ok(Self::Left { seal: sealed.tag() })
            }
            Self::Replicated { .. } => Err(FolderError::NotSealed),
            Self::Local | Self::Left { .. } => Err(FolderError::Local),
        }
    }
}
