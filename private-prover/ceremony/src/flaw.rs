//! What can be wrong with a ceremony's files.

use std::fmt;

use fastpay_private_prover::MalformedPoint;
use thiserror::Error;

/// One of the secrets that contributors multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names in Groth16")]
pub enum SecretName {
    Tau,
    Alpha,
    Beta,
    Delta,
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tau => "tau",
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::Delta => "delta",
        })
    }
}

/// A list of points in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// τ^i in G1.
    TauG1,
    /// τ^i in G2.
    TauG2,
    /// α·τ^i in G1.
    AlphaG1,
    /// β·τ^i in G1.
    BetaG1,
    /// β in G2.
    BetaG2,
    /// δ in G1.
    DeltaG1,
    /// δ in G2.
    DeltaG2,
    /// Each variable's polynomial in the first factors, in G1.
    A,
    /// Each variable's polynomial in the second factors, in G1.
    BG1,
    /// The same in G2.
    BG2,
    /// The public inputs' points of the verifying key.
    Inputs,
    /// The auxiliary variables' points, divided by δ.
    L,
    /// The multiples of the vanishing polynomial, divided by δ.
    H,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TauG1 => "tau in G1",
            Self::TauG2 => "tau in G2",
            Self::AlphaG1 => "alpha in G1",
            Self::BetaG1 => "beta in G1",
            Self::BetaG2 => "beta in G2",
            Self::DeltaG1 => "delta in G1",
            Self::DeltaG2 => "delta in G2",
            Self::A => "A",
            Self::BG1 => "B in G1",
            Self::BG2 => "B in G2",
            Self::Inputs => "the public inputs",
            Self::L => "L",
            Self::H => "H",
        })
    }
}

/// A contribution's number, from 1, and its contributor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub number: usize,
    /// The contributor's name.
    pub name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "contribution {} ({})", self.number, self.name)
    }
}

/// What is wrong with a file of a ceremony, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Flaw {
    /// The file is another one, or of another version.
    #[error("this is not a file of this kind of ceremony")]
    Format,
    /// The file ends before its last point.
    #[error("the file is cut off")]
    CutOff,
    /// Bytes follow the last point.
    #[error("{0} bytes follow the last point")]
    TrailingBytes(usize),
    /// The powers are for more or fewer constraints than this program's.
    #[error("the powers are for 2^{found} constraints instead of 2^{expected}")]
    Size {
        /// The file's.
        found: u8,
        /// What the program expects.
        expected: u8,
    },
    /// The keys are for another committee.
    #[error("the keys are for {found} members instead of {expected}")]
    Members {
        /// The file's.
        found: u8,
        /// The expected number.
        expected: u8,
    },
    /// The keys are for another circuit, for example that of another release.
    #[error("the keys are for another circuit")]
    Circuit,
    /// The keys were begun with other powers.
    #[error("the keys were begun with other powers")]
    Powers,
    /// A name is empty, too long, or has other characters than letters, digits and `-`, `_`, `.`, `@`.
    #[error("the name of contribution {0} is not 1 to 64 letters, digits and characters of -_.@")]
    Name(usize),
    /// A person contributes twice.
    #[error("{place}: {} contributed before, as contribution {first}", place.name)]
    Repeated {
        /// The second contribution.
        place: Place,
        /// The number of the first.
        first: usize,
    },
    /// A point of a contribution is malformed.
    #[error("{place}: a point for {secret}: {error}")]
    StepPoint {
        /// The contribution.
        place: Place,
        /// The point's secret.
        secret: SecretName,
        /// Why.
        error: MalformedPoint,
    },
    /// The contributor's factor differs between G1 and G2.
    #[error("{place}: the factor of {secret} differs between G1 and G2")]
    Factor {
        /// The contribution.
        place: Place,
        /// The secret.
        secret: SecretName,
    },
    /// The contribution does not continue the one before: one is missing, altered or out of order.
    #[error("{place}: its {secret} does not continue the contribution before")]
    Order {
        /// The contribution.
        place: Place,
        /// The secret.
        secret: SecretName,
    },
    /// The proof that the contributor knows its factor is false, or is for another name or another place.
    #[error("{place}: the proof of knowledge of {secret} is false")]
    Proof {
        /// The contribution.
        place: Place,
        /// The secret.
        secret: SecretName,
    },
    /// A point is malformed.
    #[error("point {index} of {part}: {error}")]
    Point {
        /// The list.
        part: Part,
        /// Its place, from 0.
        index: usize,
        /// Why.
        error: MalformedPoint,
    },
    /// A point is not what contributions and circuit make of it.
    #[error("point {index} of {part} does not follow from the circuit and the contributions")]
    Value {
        /// The list.
        part: Part,
        /// The first false point, from 0.
        index: usize,
    },
    /// Nobody has contributed, so everybody knows the secrets.
    #[error("nobody has contributed")]
    Nobody,
    /// There are as many contributions as a file can have.
    #[error("there are {0} contributions, and more are not possible")]
    Full(usize),
    /// The circuit needs more powers.
    #[error("the circuit has {constraints} constraints, and the powers are for {powers}")]
    TooLarge {
        /// The circuit's, with one for each public input.
        constraints: usize,
        /// The most that are possible.
        powers: usize,
    },
}
