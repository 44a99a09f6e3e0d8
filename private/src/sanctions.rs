//! The sanctions list: the gaps between listed tags, in a tree. A key that lies in a gap is not listed.

use std::collections::BTreeSet;

use ff::PrimeField;
use thiserror::Error;

use crate::field::{Fr, field_from_u128};
use crate::poseidon::{h2, h8};

/// Children of a node.
pub const WIDTH: usize = 8;
/// Levels above the leaves.
pub const DEPTH: usize = 5;
/// Keys that can be listed: the tree has one leaf more.
pub const LISTED_MAX: usize = WIDTH.pow(DEPTH as u32) - 1;
/// Bits of a tag.
pub const TAG_BITS: usize = 120;

/// The low 120 bits of an owner, by which the list names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u128);

impl Tag {
    /// The largest tag. It and 0 bound the list, so their owners, whom nobody can find, count as listed.
    const LAST: Self = Self((1 << TAG_BITS) - 1);

    pub(crate) fn of(owner: Fr) -> Self {
        Self(u128::from_le_bytes(*owner.to_repr().first_chunk().expect("an element has 32 bytes")) & Self::LAST.0)
    }

    /// The tag as a number below 2^120.
    #[must_use]
    pub const fn number(self) -> u128 {
        self.0
    }
}

/// More tags than the tree has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a sanctions list has at most {LISTED_MAX} entries, and this one has {0}")]
pub struct TooManyListed(pub usize);

/// A gap, and the way from it to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapPath {
    /// The listed tag below the gap.
    pub low: Fr,
    /// The listed tag above the gap.
    pub high: Fr,
    /// For each level, from the leaves up, the children of the node on the way.
    pub children: [[Fr; WIDTH]; DEPTH],
}

/// A sanctions list. Everybody computes the whole of it, so that nobody asks for the path of a single key.
pub struct Sanctions {
    /// 0, the listed tags in order, and the last tag.
    bounds: Vec<Tag>,
    /// The nodes of each level that are not empty, from the leaves up.
    levels: Vec<Vec<Fr>>,
    /// The empty node of each level.
    empty: [Fr; DEPTH + 1],
}

impl Sanctions {
    /// The list of these tags.
    ///
    /// # Errors
    /// [`TooManyListed`]
    pub fn new(listed: impl IntoIterator<Item = Tag>) -> Result<Self, TooManyListed> {
        let mut bounds: BTreeSet<Tag> = listed.into_iter().collect();
        bounds.extend([Tag(0), Tag::LAST]);
        let bounds: Vec<Tag> = bounds.into_iter().collect();
        if bounds.len() - 2 > LISTED_MAX {
            return Err(TooManyListed(bounds.len() - 2));
        }
        // No tag lies in the gap from 0 to 0.
        let mut empty = [leaf(Tag(0), Tag(0)); DEPTH + 1];
        let mut levels = vec![bounds.iter().zip(bounds.iter().skip(1)).map(|(low, high)| leaf(*low, *high)).collect()];
        let mut nothing = leaf(Tag(0), Tag(0));
        for above in empty.iter_mut().skip(1) {
            let below: &Vec<Fr> = levels.last().expect("there is a level of leaves");
            let level = below.chunks(WIDTH).map(|present| h8(padded(present, nothing))).collect();
            levels.push(level);
            nothing = h8([nothing; WIDTH]);
            *above = nothing;
        }
        Ok(Self { bounds, levels, empty })
    }

    /// The root, which proofs have as a public input.
    #[must_use]
    pub fn root(&self) -> Fr {
        self.levels.last().and_then(|level| level.first()).copied().expect("the last level is the root")
    }

    /// Whether a key with this tag is listed.
    #[must_use]
    pub fn lists(&self, tag: Tag) -> bool {
        self.bounds.binary_search(&tag).is_ok()
    }

    /// The gap that holds this tag. For a listed one it is a neighbouring gap, by which nothing can be proved.
    #[must_use]
    pub fn path(&self, tag: Tag) -> GapPath {
        let gap = self.bounds.partition_point(|bound| *bound < tag).clamp(1, self.bounds.len() - 1) - 1;
        let bound = |at: usize| self.bounds.get(at).map_or(Fr::from(0), |tag| field_from_u128(tag.0));
        let mut at = gap;
        let mut children = [[Fr::from(0); WIDTH]; DEPTH];
        for ((level, nothing), children) in self.levels.iter().zip(self.empty).zip(&mut children) {
            at /= WIDTH;
            *children = padded(level.chunks(WIDTH).nth(at).unwrap_or(&[]), nothing);
        }
        GapPath { low: bound(gap), high: bound(gap + 1), children }
    }
}

fn leaf(low: Tag, high: Tag) -> Fr {
    h2([field_from_u128(low.0), field_from_u128(high.0)])
}

fn padded(present: &[Fr], nothing: Fr) -> [Fr; WIDTH] {
    let mut children = [nothing; WIDTH];
    for (child, node) in children.iter_mut().zip(present) {
        *child = *node;
    }
    children
}
