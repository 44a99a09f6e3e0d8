//! The Merkle tree over the leaves of a cut, a state or a segment: hashed as the tree of a batch of payments (see
//! [`crate::MerkleTree`]), over leaves of any length and without a bound on their number.

use borsh::{BorshDeserialize, BorshSerialize};

use super::stream::encode;
use crate::Digest;
use crate::merkle::{merkle_leaf, node};

/// The longest path: a tree has at most 2^64 leaves.
pub const LEAF_PATH_LENGTH_MAX: usize = 64;

/// The way from a leaf to the root of its tree: with it, and a quorum's votes on the root, the leaf is proven.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LeafPath {
    /// One bit for each sibling, from the leaf up: set if the sibling is on the left. The others are zero.
    pub directions: u64,
    /// The siblings, from the leaf up.
    pub siblings: Vec<Digest>,
}

impl LeafPath {
    /// The root of the tree in which the encoded `leaf` has this path. `None` if the path is too long, or has bits that
    /// name no sibling.
    pub(super) fn root(&self, leaf: &[u8]) -> Option<Digest> {
        let length = u32::try_from(self.siblings.len()).ok()?;
        if self.siblings.len() > LEAF_PATH_LENGTH_MAX || self.directions.checked_shr(length).unwrap_or(0) != 0 {
            return None;
        }
        let up = |hash: Digest, (level, sibling): (u32, &Digest)| match self.directions >> level & 1 {
            1 => node(sibling, &hash),
            _ => node(&hash, sibling),
        };
        Some((0..).zip(&self.siblings).fold(merkle_leaf(leaf), up))
    }

    pub(super) fn push(&mut self, sibling: Digest, is_left: bool) {
        let level = u32::try_from(self.siblings.len()).unwrap_or(u32::MAX);
        self.directions |= u64::from(is_left).checked_shl(level).unwrap_or(0);
        self.siblings.push(sibling);
    }
}

/// Builds a root from leaves that come one by one, and the path of one of them. It keeps one hash for each level.
#[derive(Debug, Default)]
pub(crate) struct RootBuilder {
    /// Complete subtrees, the largest first.
    subtrees: Vec<Subtree>,
    path: LeafPath,
}

#[derive(Debug)]
struct Subtree {
    height: u32,
    hash: Digest,
    holds_wanted: bool,
}

impl RootBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.subtrees.is_empty()
    }

    pub(crate) fn push(&mut self, leaf: &[u8]) {
        self.push_leaf(leaf, false);
    }

    /// Adds a leaf; `is_wanted` for the one whose path is built, which is one at most.
    pub(super) fn push_leaf(&mut self, leaf: &[u8], is_wanted: bool) {
        self.push_hashed(merkle_leaf(leaf), is_wanted);
    }

    /// The same with the leaf's hash, which several trees can share.
    pub(super) fn push_hashed(&mut self, hash: Digest, is_wanted: bool) {
        let mut subtree = Subtree { height: 0, hash, holds_wanted: is_wanted };
        while let Some(left) = self.subtrees.pop_if(|left| left.height == subtree.height) {
            subtree = self.join(left, subtree);
        }
        self.subtrees.push(subtree);
    }

    fn join(&mut self, left: Subtree, right: Subtree) -> Subtree {
        if left.holds_wanted {
            self.path.push(right.hash, false);
        } else if right.holds_wanted {
            self.path.push(left.hash, true);
        }
        Subtree {
            height: left.height.saturating_add(1),
            hash: node(&left.hash, &right.hash),
            holds_wanted: left.holds_wanted || right.holds_wanted,
        }
    }

    /// The root, and the path of the wanted leaf if there was one. `None` if there is no leaf.
    pub(crate) fn finish(mut self) -> Option<(Digest, Option<LeafPath>)> {
        let mut root = self.subtrees.pop()?;
        while let Some(left) = self.subtrees.pop() {
            root = self.join(left, root);
        }
        Some((root.hash, root.holds_wanted.then_some(self.path)))
    }
}

/// The root over leaves; none if there is no leaf.
pub(crate) fn leaves_root<'a, T: BorshSerialize + 'a>(leaves: impl Iterator<Item = &'a T>) -> Option<Digest> {
    let mut builder = RootBuilder::default();
    leaves.for_each(|leaf| builder.push(&encode(leaf)));
    builder.finish().map(|(root, _)| root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MerkleTree;

    fn build(leaves: &[Digest], wanted: usize) -> (Digest, Option<LeafPath>) {
        let mut builder = RootBuilder::default();
        for (at, leaf) in leaves.iter().enumerate() {
            builder.push_leaf(leaf.as_slice(), at == wanted);
        }
        builder.finish().unwrap()
    }

    #[test]
    fn the_tree_is_that_of_a_batch_and_every_leaf_leads_to_its_root() {
        let all: Vec<Digest> = (0..1_024_u64).map(|at| alloy_primitives::keccak256(at.to_be_bytes())).collect();
        for count in (1..=70).chain([127, 128, 129, 1_000, 1_024]) {
            let leaves = &all[..count];
            let tree = MerkleTree::new(leaves).unwrap();
            for at in (0..count).step_by(1 + count / 40).chain([count - 1]) {
                let (root, path) = build(leaves, at);
                let (path, of_batch) = (path.unwrap(), tree.path(at));
                assert_eq!(root, tree.root());
                assert_eq!((path.directions, &path.siblings), (u64::from(of_batch.directions), &of_batch.siblings));
                assert_eq!(path.root(leaves[at].as_slice()), Some(root), "leaf {at} of {count}");
            }
        }
        assert!(RootBuilder::default().finish().is_none());
        assert_eq!(build(&all, usize::MAX).1, None);
    }

    #[test]
    fn a_path_has_one_encoding_and_leads_from_one_leaf() {
        let leaves: Vec<Digest> = (0..9).map(Digest::repeat_byte).collect();
        let (root, path) = build(&leaves, 4);
        let path = path.unwrap();
        assert_eq!(path.root(leaves[4].as_slice()), Some(root));
        assert_ne!(path.root(leaves[5].as_slice()), Some(root));
        for bit in 0..64 {
            let mut other = path.clone();
            other.directions ^= 1 << bit;
            assert_ne!(other.root(leaves[4].as_slice()), Some(root), "bit {bit}");
        }
        let longest = LeafPath { directions: u64::MAX, siblings: vec![root; 64] };
        assert!(longest.root(&[1]).is_some());
        assert_eq!(LeafPath { siblings: vec![root; 65], ..longest }.root(&[1]), None);
    }
}
