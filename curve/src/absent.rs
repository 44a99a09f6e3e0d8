//! Stand-ins for processors without the instructions: no [`Wide`] can exist there, so nothing here can be called.

/// A type without values, since this machine does not have the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Never {}

/// A decoded point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine(Never);

/// A sum of multiples of points.
#[derive(Clone, Copy, Debug)]
pub struct Point(Never);

/// R + k·A − s·B, which vanishes (times the cofactor) if a signature is valid.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    /// R.
    pub r: Affine,
    /// A.
    pub a: Affine,
    /// k.
    pub k: [u8; 32],
    /// s.
    pub s: [u8; 32],
}

/// Proof that this processor has AVX-512 IFMA: there is none on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Wide(Never);

impl Wide {
    /// Always `None`.
    #[must_use]
    pub fn detect() -> Option<Self> {
        None
    }

    /// Cannot be called.
    #[must_use]
    pub fn decode(self, _: &[[u8; 32]]) -> Vec<Option<Affine>> {
        match self.0 {}
    }

    /// Cannot be called.
    #[must_use]
    pub fn sum(self, _: &[(Affine, [u8; 32])], _: &[(Affine, [i8; 16])]) -> Point {
        match self.0 {}
    }

    /// Cannot be called.
    #[must_use]
    pub fn difference(self, _: &Point, _: &Point) -> Point {
        match self.0 {}
    }

    /// Cannot be called.
    #[must_use]
    pub fn vanishes_times_8(self, _: &Point) -> bool {
        match self.0 {}
    }

    /// Cannot be called.
    #[must_use]
    pub fn each_vanishes_times_8(self, _: &Affine, _: &[Relation]) -> Vec<bool> {
        match self.0 {}
    }
}
