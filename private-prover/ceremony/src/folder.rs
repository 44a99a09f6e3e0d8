//! A ceremony's folder: the powers, and for each size of committee the keys and what they end as.
//!
//! Contributors pass the folder on. Each command that changes it verifies it first, checks what it made, and replaces
//! one file at once: a command that is interrupted has changed nothing, and can be given again.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::PathBuf;

use fastpay_private_prover::{KeyError, ProvingKey, Shape, Statement};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::constraints::Constraints;
use crate::durable;
use crate::flaw::Flaw;
use crate::keys::Keys;
use crate::powers::Powers;
use crate::secret::Entropy;
use crate::transcript::{Hash, Transcript};

/// The powers are for 2^16 constraints: for committees of up to 27 members.
pub const POWERS_SIZE: u8 = 16;

/// No file of a ceremony has more bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// What a command is about.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// The first phase.
    Powers,
    /// The second phase, for one size of committee.
    Keys(Shape),
}

/// Why a command changed nothing.
#[derive(Debug, Error)]
pub enum CeremonyError {
    /// The file system.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Its error.
        error: io::Error,
    },
    /// Another command changes the folder.
    #[error("another command is at work in {0}")]
    Busy(PathBuf),
    /// The phase has not begun.
    #[error("{0} does not exist: `begin` makes it")]
    Missing(PathBuf),
    /// The phase has begun before.
    #[error("{0} exists already")]
    Exists(PathBuf),
    /// Nobody can contribute any more: what is there was made of what would change.
    #[error("nobody can contribute any more: {0} was made of it")]
    Closed(PathBuf),
    /// The file is wrong.
    #[error("{path}: {flaw}")]
    Flaw {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        flaw: Flaw,
    },
    /// What was asked for cannot be done: a bad or repeated name, a statement that is too large, or nobody contributed yet.
    #[error("{0}")]
    Refused(Flaw),
    /// A finished key is not the one that the ceremony ends with.
    #[error("{0} is not the key that this ceremony ends with: remove it")]
    OtherKey(PathBuf),
    /// The keys are of no use.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The operating system has no randomness.
    #[error("the operating system has no randomness: {0}")]
    Randomness(#[from] rand::Error),
}

/// A ceremony's folder.
pub struct Folder {
    path: PathBuf,
    size: u8,
}

/// What is known of a phase after it was verified.
pub struct Verified {
    /// Who contributed.
    pub transcript: Transcript,
    /// The size of the committee, and the hashes of the verifying and the proving key, if somebody contributed: those
    /// that `finish` writes, and that a committee certifies.
    pub keys: Option<(usize, Option<[Hash; 2]>)>,
}

impl Folder {
    /// A folder for powers of 2^size constraints; [`POWERS_SIZE`] outside of tests.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, size: u8) -> Self {
        Self { path: path.into(), size }
    }

    /// Begins a phase, and creates the folder if it is missing.
    ///
    /// # Errors
    /// [`CeremonyError::Exists`] if it has begun before; nothing is changed then.
    pub fn begin(&self, phase: Phase, progress: &dyn Fn(&str)) -> Result<(), CeremonyError> {
        durable::create_folder(&self.path).map_err(|error| self.io("", error))?;
        let _lock = self.lock()?;
        let name = name_of(phase);
        let path = self.path.join(&name);
        if path.exists() {
            return Err(CeremonyError::Exists(path));
        }
        let bytes = match phase {
            Phase::Powers => Powers::begin(self.size).to_bytes(),
            Phase::Keys(shape) => {
                let powers = self.powers(progress)?;
                let circuit = circuit(shape);
                let keys = Keys::begin(members_of(shape), &powers, &circuit, progress);
                let keys = keys.map_err(CeremonyError::Refused)?;
                progress("checking the keys");
                keys.verify(&powers, &circuit).map_err(|flaw| self.flaw(phase, flaw))?;
                keys.to_bytes()
            }
        };
        self.write(&name, &bytes)
    }

    /// Verifies a phase and contributes to it. Returns the hash by which the contributor recognizes its contribution.
    ///
    /// # Errors
    /// [`CeremonyError`]; nothing is changed then.
    pub fn contribute(
        &self,
        phase: Phase,
        name: &str,
        typed: &[u8],
        progress: &dyn Fn(&str),
    ) -> Result<Hash, CeremonyError> {
        let _lock = self.lock()?;
        let flaw = |flaw| self.flaw(phase, flaw);
        let (bytes, hash) = match phase {
            Phase::Powers => {
                if let Some(shape) = self.begun()?.first() {
                    return Err(CeremonyError::Closed(self.path.join(name_of(Phase::Keys(*shape)))));
                }
                let mut powers = self.powers(progress)?;
                progress("multiplying the powers");
                powers.contribute(name, Entropy::gather(typed)?).map_err(CeremonyError::Refused)?;
                progress("checking the new powers");
                powers.verify().map_err(flaw)?;
                (powers.to_bytes(), powers.transcript().hash())
            }
            Phase::Keys(shape) => {
                let finished = key_names(shape).map(|name| self.path.join(name));
                if let Some(path) = finished.into_iter().find(|path| path.exists()) {
                    return Err(CeremonyError::Closed(path));
                }
                let (powers, circuit) = (self.powers(progress)?, circuit(shape));
                let mut keys = self.keys(shape, &powers, &circuit, progress)?;
                progress("multiplying the keys");
                keys.contribute(name, Entropy::gather(typed)?).map_err(CeremonyError::Refused)?;
                progress("checking the new keys");
                keys.verify(&powers, &circuit).map_err(flaw)?;
                (keys.to_bytes(), keys.transcript().hash())
            }
        };
        self.write(&name_of(phase), &bytes)?;
        Ok(hash)
    }

    /// Verifies all that is there: the powers, and the keys of each size of committee.
    ///
    /// # Errors
    /// [`CeremonyError`], with the first thing that is wrong.
    pub fn verify(&self, progress: &dyn Fn(&str)) -> Result<Vec<Verified>, CeremonyError> {
        let powers = self.powers(progress)?;
        let mut verified = vec![Verified { transcript: powers.transcript().clone(), keys: None }];
        for shape in self.begun()? {
            let keys = self.keys(shape, &powers, &circuit(shape), progress)?;
            let transcript = keys.transcript().clone();
            let finished = match keys.parameters(&powers) {
                Err(_) => None,
                Ok(parameters) => Some(files_of(&ProvingKey::of_ceremony(shape, parameters)?)),
            };
            for (at, name) in key_names(shape).into_iter().enumerate() {
                let made = finished.as_ref().and_then(|files| files.get(at));
                if let Some(bytes) = self.read(&name)?
                    && made != Some(&bytes)
                {
                    return Err(CeremonyError::OtherKey(self.path.join(name)));
                }
            }
            let hashes = finished.map(|files| files.map(|bytes| Sha256::digest(bytes).into()));
            verified.push(Verified { transcript, keys: Some((shape.members(), hashes)) });
        }
        Ok(verified)
    }

    /// Verifies both phases, and writes the verifying and the proving key. Returns their paths and hashes.
    ///
    /// # Errors
    /// [`Flaw::Nobody`] if nobody contributed to the phase, [`CeremonyError::OtherKey`] if another key has its name.
    pub fn finish(&self, shape: Shape, progress: &dyn Fn(&str)) -> Result<[(PathBuf, Hash); 2], CeremonyError> {
        let _lock = self.lock()?;
        let powers = self.powers(progress)?;
        let keys = self.keys(shape, &powers, &circuit(shape), progress)?;
        let parameters = keys.parameters(&powers).map_err(CeremonyError::Refused)?;
        let files = files_of(&ProvingKey::of_ceremony(shape, parameters)?);
        let names = key_names(shape);
        for (name, bytes) in names.iter().zip(&files) {
            match self.read(name)? {
                None => self.write(name, bytes)?,
                // It was interrupted, or finished before.
                Some(existing) if existing == *bytes => {
                    durable::sync_folder(&self.path).map_err(|error| self.io(name, error))?;
                }
                Some(_) => return Err(CeremonyError::OtherKey(self.path.join(name))),
            }
        }
        let [verifying, proving] = files.map(|bytes| Sha256::digest(bytes).into());
        let [verifying_path, proving_path] = names.map(|name| self.path.join(name));
        Ok([(verifying_path, verifying), (proving_path, proving)])
    }

    /// The powers, verified.
    fn powers(&self, progress: &dyn Fn(&str)) -> Result<Powers, CeremonyError> {
        let name = name_of(Phase::Powers);
        let bytes = self.read(&name)?.ok_or_else(|| CeremonyError::Missing(self.path.join(&name)))?;
        progress("checking the powers");
        let powers = Powers::from_bytes(&bytes, self.size).and_then(|powers| powers.verify().map(|()| powers));
        powers.map_err(|flaw| self.flaw(Phase::Powers, flaw))
    }

    /// The keys, verified.
    fn keys(
        &self,
        shape: Shape,
        powers: &Powers,
        circuit: &Constraints,
        progress: &dyn Fn(&str),
    ) -> Result<Keys, CeremonyError> {
        let phase = Phase::Keys(shape);
        let name = name_of(phase);
        let bytes = self.read(&name)?.ok_or_else(|| CeremonyError::Missing(self.path.join(&name)))?;
        progress(&format!("checking the keys for {} members", shape.members()));
        let keys = Keys::from_bytes(&bytes, members_of(shape), circuit)
            .and_then(|keys| keys.verify(powers, circuit).map(|()| keys));
        keys.map_err(|flaw| self.flaw(phase, flaw))
    }

    /// The sizes of committee whose keys have begun. A finished key of another size is of no ceremony.
    fn begun(&self) -> Result<Vec<Shape>, CeremonyError> {
        let shapes = (4..=255).filter_map(|members| Shape::of_committee(members).ok());
        let mut begun = vec![];
        for shape in shapes {
            let exists = |name: &str| self.path.join(name).try_exists().map_err(|error| self.io(name, error));
            if exists(&name_of(Phase::Keys(shape)))? {
                begun.push(shape);
                continue;
            }
            for name in key_names(shape) {
                if exists(&name)? {
                    return Err(CeremonyError::OtherKey(self.path.join(name)));
                }
            }
        }
        Ok(begun)
    }

    fn lock(&self) -> Result<File, CeremonyError> {
        if !self.path.is_dir() {
            return Err(CeremonyError::Missing(self.path.clone()));
        }
        let file = File::open(&self.path).map_err(|error| self.io("", error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(CeremonyError::Busy(self.path.clone())),
            Err(TryLockError::Error(error)) => Err(self.io("", error)),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, CeremonyError> {
        let mut bytes = vec![];
        match File::open(self.path.join(name)).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)) {
            Ok(_) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.io(name, error)),
        }
    }

    /// Replaces a file at once, durably. Nobody else writes: the caller has the lock.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), CeremonyError> {
        durable::replace(&self.path, name, bytes).map_err(|error| self.io(name, error))
    }

    fn io(&self, name: &str, error: io::Error) -> CeremonyError {
        CeremonyError::Io { path: self.path.join(name), error }
    }

    fn flaw(&self, phase: Phase, flaw: Flaw) -> CeremonyError {
        CeremonyError::Flaw { path: self.path.join(name_of(phase)), flaw }
    }
}

fn name_of(phase: Phase) -> String {
    match phase {
        Phase::Powers => "powers".to_owned(),
        Phase::Keys(shape) => format!("keys-{}", shape.members()),
    }
}

/// The files that a ceremony ends with: the verifying key, and the proving key.
fn key_names(shape: Shape) -> [String; 2] {
    ["verifying", "proving"].map(|kind| format!("{kind}-{}.key", shape.members()))
}

fn files_of(key: &ProvingKey) -> [Vec<u8>; 2] {
    [key.verifying().to_bytes().to_vec(), key.to_bytes()]
}

fn members_of(shape: Shape) -> u8 {
    u8::try_from(shape.members()).expect("a committee has at most 255 members")
}

fn circuit(shape: Shape) -> Constraints {
    Constraints::of(Statement::blank(shape)).expect("a blank statement has constraints, and needs no values")
}
