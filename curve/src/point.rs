//! Points of −x² + y² = 1 + d·x²·y², eight at a time, in extended coordinates x = X/Z, y = Y/Z, xy = T/Z (Hisil, Wong,
//! Carter, Dawson, "Twisted Edwards Curves Revisited", §3.1 and §3.3). −1 is a square and d is none, so the formulas hold for
//! all points, those of small order too.

use core::arch::x86_64::__mmask8;

use crate::field::{Limbs, Loose, Tight};
use crate::lanes::{self, Cell, Lanes};

/// 2·d.
pub(crate) const D2: Limbs = [0x69b9426b2f159, 0x9a8283b156ebd, 0xef3d13000e014, 0xfce7198e80f2e, 0x2406d9dc56df];

/// The number of pairs that a point takes in memory: the limbs of Y − X, Y + X, Z and T.
const PAIRS: usize = 10;

/// A point in memory.
pub(crate) type PointCell = Cell<PAIRS>;
/// The neutral point in memory.
pub(crate) const IDENTITY: PointCell = [[1, 0], [0, 0], [0, 1], [0, 0], [0, 0], [1, 0], [0, 0], [0, 0], [0, 0], [0, 0]];

/// Eight points. X and Y are stored as their difference and sum, the form that an addition needs.
#[derive(Clone, Copy)]
pub(crate) struct Points {
    pub(crate) minus: Tight,
    pub(crate) plus: Tight,
    pub(crate) z: Tight,
    pub(crate) t: Tight,
}

/// A decoded point in memory, with Z = 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// y − x.
    pub(crate) minus: Limbs,
    /// y + x.
    pub(crate) plus: Limbs,
    /// 2·d·x·y.
    pub(crate) t2d: Limbs,
}

impl Affine {
    /// The neutral point.
    pub(crate) const IDENTITY: Self = Self { minus: [1, 0, 0, 0, 0], plus: [1, 0, 0, 0, 0], t2d: [0; 5] };
}

impl Points {
    /// Decoded points, with Z = 4: then T = 4·xy is the difference of the squares of y + x and y − x.
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn of_affine(points: &[Affine; 8]) -> Self {
        let (minus, plus) = (Tight::of(&points.map(|point| point.minus)), Tight::of(&points.map(|point| point.plus)));
        let t = plus.squared().loose().minus(&minus.squared().loose());
        let (minus, plus) = (minus.twice().plus(&minus.twice()), plus.twice().plus(&plus.twice()));
        Self { minus, plus, z: Tight::splat(&[4, 0, 0, 0, 0]), t }
    }

    /// Reads the points in these cells.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn read(cells: [&PointCell; 8]) -> Self {
        Self::from_words(lanes::read(cells))
    }

    /// Writes each point into its cell.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn write(self, cells: &mut [PointCell], places: &[usize; 8]) {
        lanes::write(cells, places, &self.to_words());
    }

    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn from_words([a, b, c, d, e, f, g, h, i, j]: [[Lanes; 2]; PAIRS]) -> Self {
        Self {
            minus: Tight([a[0], a[1], b[0], b[1], c[0]]),
            plus: Tight([c[1], d[0], d[1], e[0], e[1]]),
            z: Tight([f[0], f[1], g[0], g[1], h[0]]),
            t: Tight([h[1], i[0], i[1], j[0], j[1]]),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn to_words(self) -> [[Lanes; 2]; PAIRS] {
        let Self { minus: Tight(m), plus: Tight(p), z: Tight(z), t: Tight(t) } = self;
        [
            [m[0], m[1]],
            [m[2], m[3]],
            [m[4], p[0]],
            [p[1], p[2]],
            [p[3], p[4]],
            [z[0], z[1]],
            [z[2], z[3]],
            [z[4], t[0]],
            [t[1], t[2]],
            [t[3], t[4]],
        ]
    }

    /// Adds one point to each lane, and subtracts it where `negative` has a one. −P has y − x and y + x swapped and xy
    /// negated, which amounts to swapping F and G below.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn add_affine(&self, point: &Affine, negative: __mmask8) -> Self {
        let (minus, plus) = (Tight::splat(&point.minus), Tight::splat(&point.plus));
        let a = self.minus.times(&minus.or(&plus, negative)).loose();
        let b = self.plus.times(&plus.or(&minus, negative)).loose();
        let c = self.t.times(&Tight::splat(&point.t2d)).loose();
        let d = self.z.twice();
        let (f, g) = (d.minus(&c), d.plus(&c));
        let (f, g) = (f.or(&g, negative), g.or(&f, negative));
        Self::complete(&a, &b, &f, &g)
    }

    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn add(&self, other: &Self) -> Self {
        let a = self.minus.times(&other.minus).loose();
        let b = self.plus.times(&other.plus).loose();
        let c = self.t.times(&other.t).tight().times(&Tight::splat(&D2)).loose();
        let d = self.z.times(&other.z).twice();
        Self::complete(&a, &b, &d.minus(&c), &d.plus(&c))
    }

    /// From A and B of the paper, and its F and G: E = B − A, H = B + A; X = E·F, Y = G·H, Z = F·G, T = E·H.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    fn complete(a: &Loose, b: &Loose, f: &Tight, g: &Tight) -> Self {
        let (e, h) = (b.minus(a), b.plus(a));
        let (x, y) = (e.times(f).loose(), g.times(&h).loose());
        Self { minus: y.minus(&x), plus: y.plus(&x), z: f.times(g).tight(), t: e.times(&h).tight() }
    }

    /// Doubles all. With M = Y − X and P = Y + X: P² + M² = 2·(X² + Y²), P² − M² = 4·XY and P·M = Y² − X² are twice, twice and once the
    /// H, E and G of a doubling; all four are taken twice, which leaves the point as it is.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn double(&self) -> Self {
        let (mm, pp) = (self.minus.squared().loose(), self.plus.squared().loose());
        let (e, h) = (pp.minus(&mm), pp.plus(&mm));
        let pm = self.plus.times(&self.minus).loose();
        let g = pm.plus(&pm);
        let f = self.z.squared().twice().twice_minus(&g.loose());
        let (x, y) = (e.times(&f).loose(), g.times(&h).loose());
        Self { minus: y.minus(&x), plus: y.plus(&x), z: f.times(&g).tight(), t: e.times(&h).tight() }
    }

    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn negated_where(&self, mask: __mmask8) -> Self {
        let (minus, plus) = (self.minus.or(&self.plus, mask), self.plus.or(&self.minus, mask));
        Self { minus, plus, z: self.z, t: self.t.negated_where(mask) }
    }

    /// The lanes in which the point is the neutral one: X = 0 and Y = Z.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn is_identity(&self) -> __mmask8 {
        let x2 = self.plus.loose().minus(&self.minus.loose());
        let y2 = self.plus.loose().plus(&self.minus.loose());
        let z2 = self.z.loose().plus(&self.z.loose());
        x2.is_zero() & y2.loose().minus(&z2.loose()).is_zero()
    }
}
