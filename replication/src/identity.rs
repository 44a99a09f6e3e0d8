//! Names and numbers of a replicated journal.

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{AuthorityName, JournalPosition, ShardId};
use thiserror::Error;

/// A frame's number, which is also its place in the stream. The first frame is 1; 0 is before it. Numbers rise along a
/// chain and may skip places that frames outside of the chain occupy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Number(pub u64);

impl Number {
    /// The number after this one. The last number has none after it and stays, so that nothing follows it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts owners: each takeover has a later term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Term(pub u64);

impl Term {
    /// The term of the next owner.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Milliseconds of a clock that only rises, given by the caller. Rules use differences alone, and none is needed for
/// safety.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl Millis {
    /// The time from `earlier` to this moment; zero if it is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! bytes {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
        pub struct $name(pub [u8; $bytes]);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }
    };
}

bytes! {
    /// A frame's message authentication code, by which the next frame names it. It is a keyed BLAKE3, which resists
    /// collisions also for those who know the key.
    Tag, 32
}
bytes! {
    /// One machine with its folder. It is drawn at random with the folder and stored in it, so a machine that lost its
    /// folder comes back as another one.
    MachineId, 16
}
bytes! {
    /// The hash of a [`Start`].
    StartId, 32
}
bytes! {
    /// A random number that is drawn by the command that creates a stream.
    Nonce, 16
}

/// The three machines of a shard, all different. The first one owns the journal when it is joined to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Machines([MachineId; 3]);

/// Two of three machines are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a shard needs three different machines: one of the three folders is a copy of another")]
pub struct MachinesError;

impl Machines {
    /// # Errors
    /// If two are the same.
    pub fn new([founder, second, third]: [MachineId; 3]) -> Result<Self, MachinesError> {
        if founder == second || founder == third || second == third {
            return Err(MachinesError);
        }
        Ok(Self([founder, second, third]))
    }

    /// The machine whose journal is joined to the stream.
    #[must_use]
    pub fn founder(&self) -> MachineId {
        let [founder, ..] = self.0;
        founder
    }

    /// Whether a machine is one of the three.
    #[must_use]
    pub fn contains(&self, machine: MachineId) -> bool {
        self.0.contains(&machine)
    }

    /// The machines other than `me`.
    pub fn others(&self, me: MachineId) -> impl Iterator<Item = MachineId> {
        self.0.into_iter().filter(move |machine| *machine != me)
    }
}

impl BorshDeserialize for Machines {
    fn deserialize_reader<R: std::io::Read>(reader: &mut R) -> std::io::Result<Self> {
        let machines = BorshDeserialize::deserialize_reader(reader)?;
        Self::new(machines).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
    }
}

/// What a replicated journal begins with: the content of its first frame. All frames name it by its hash.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Start {
    /// Whose journal it is.
    pub authority: AuthorityName,
    /// The shard of that authority.
    pub shard: ShardId,
    /// Where the first frame stands in the journal: the end of what was written on one machine.
    pub position: JournalPosition,
    /// The hash of the journal's last frame before that position; zeros in an empty journal.
    pub tail: Tag,
    /// The salt of the journal's checksums, without which a standby could not write equal segments.
    pub salt: u64,
    /// The machines. Replacing one needs another start.
    pub machines: Machines,
    /// Part of the stream's name. No second stream has it, so one that was made anew is not found.
    pub nonce: Nonce,
}

impl Start {
    /// The hash of this start.
    #[must_use]
    pub fn id(&self) -> StartId {
        let bytes = borsh::to_vec(self).expect("writing to memory cannot fail");
        StartId(blake3::derive_key("FastPay 2026-11 start of a replicated journal", &bytes))
    }

    /// The name of the stream. Its subject is `fastpay.` and the same hexadecimal digits.
    #[must_use]
    pub fn stream(&self) -> String {
        format!("FASTPAY_{}", hex::encode(self.nonce.0))
    }
}
