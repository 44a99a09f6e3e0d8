//! One point, its coordinates Y − X, Y + X, Z and T side by side in four lanes: what can only be done one after the other, such as
//! doubling a sum again and again, takes half the time so. Both halves of the lanes do the same.

use crate::field::{Product, Tight, Times};
use crate::lanes::load;
use crate::point::{D2, IDENTITY, PointCell, Points};

/// A point.
#[derive(Clone, Copy)]
pub(crate) struct Single(Tight);

/// A point to be added, with 2·Z and 2·d·T in the places of Z and T.
#[derive(Clone, Copy)]
pub(crate) struct Addend(Tight);

/// Names lanes for `rearranged`.
const fn lanes(names: [i32; 4]) -> i32 {
    names[0] | names[1] << 2 | names[2] << 4 | names[3] << 6
}

impl Single {
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn identity() -> Self {
        Self(side_by_side(&IDENTITY))
    }

    /// Doubles as `Points::double` does: with its M and P, from M², P², Z² and P·M the four inputs of `complete`.
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn double(&self) -> Self {
        use Times::{Four, One, Two};
        let (left, right) =
            (self.0.rearranged::<{ lanes([0, 1, 2, 1]) }>(), self.0.rearranged::<{ lanes([0, 1, 2, 0]) }>());
        let products = left.times(&right);
        let first = products.rearranged::<{ lanes([1, 1, 2, 3]) }>([One, One, Four, One]);
        let second = products.rearranged::<{ lanes([0, 0, 3, 3]) }>([One, One, Two, One]);
        Self::complete(&first.minus_where(0b0101_0101, &second))
    }

    /// Computes from A, B, D and C the four inputs of `complete`: B ∓ A, D ∓ C.
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn add(&self, other: &Addend) -> Self {
        let products = self.0.times(&other.0);
        let first = products.rearranged::<{ lanes([1, 1, 2, 2]) }>([Times::One; 4]);
        let second = products.rearranged::<{ lanes([0, 0, 3, 3]) }>([Times::One; 4]);
        Self::complete(&first.minus_where(0b0101_0101, &second))
    }

    /// From E, H, F and G: X = E·F, Y = G·H, Z = F·G, T = E·H.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    fn complete(ehfg: &Tight) -> Self {
        let (left, right) =
            (ehfg.rearranged::<{ lanes([0, 3, 2, 0]) }>(), ehfg.rearranged::<{ lanes([2, 1, 3, 1]) }>());
        let xyzt: Product = left.times(&right);
        let first = xyzt.rearranged::<{ lanes([1, 1, 2, 3]) }>([Times::One; 4]);
        let second = xyzt.rearranged::<{ lanes([0, 0, 0, 0]) }>([Times::One; 4]).only_where(0b0011_0011);
        Self(first.minus_where(0b0001_0001, &second))
    }

    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn to_cell(self) -> PointCell {
        let mut cell = IDENTITY;
        let coordinates = self.0.to_limbs();
        for (number, limb) in cell.as_flattened_mut().iter_mut().zip(coordinates[..4].as_flattened()) {
            *number = *limb;
        }
        cell
    }
}

/// The eight points, to be added one by one.
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn addends(points: &Points) -> [Addend; 8] {
    let z = points.z.loose().plus(&points.z.loose());
    let t = points.t.times(&Tight::splat(&D2)).tight();
    let mut cells = [IDENTITY; 8];
    Points { z, t, ..*points }.write(&mut cells, &[0, 1, 2, 3, 4, 5, 6, 7]);
    cells.map(|cell| Addend(side_by_side(&cell)))
}

#[target_feature(enable = "avx512dq,avx512ifma")]
fn side_by_side(cell: &PointCell) -> Tight {
    let numbers = cell.as_flattened();
    let limb = |limb: usize| {
        let [m, p, z, t] = [numbers[limb], numbers[5 + limb], numbers[10 + limb], numbers[15 + limb]];
        load(&[m, p, z, t, m, p, z, t])
    };
    Tight([limb(0), limb(1), limb(2), limb(3), limb(4)])
}
