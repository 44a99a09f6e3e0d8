//! A Merkle tree over the payments that an authority votes for in one go, so that one signature serves
//! them all (docs/PROTOCOL.md, formats): leaf = H(0x00 ‖ digest), node = H(0x01 ‖ left ‖ right), H = BLAKE3; a node
//! without right sibling is carried up.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;

/// At most this many payments under one signature: bounds the path in every vote.
pub const MERKLE_LEAVES_MAX: usize = 1024;
/// The longest path in a tree of [`MERKLE_LEAVES_MAX`] leaves.
pub const MERKLE_PATH_LENGTH_MAX: usize = 10;

/// The way from a leaf to the root.
///
/// `directions` has one bit for each sibling, from the leaf up: set where the sibling is on the left.
/// That is the leaf's index in the tree, less the levels at which its node was carried up, where
/// there is no sibling and no bit.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MerklePath {
    /// One bit for each sibling; the others are zero.
    pub directions: u16,
    /// The siblings, from the leaf up.
    pub siblings: Vec<Digest>,
}

impl MerklePath {
    /// The root of the tree in which `digest` has this path. None where the path is too long or has
    /// bits that name no sibling: a path has one encoding.
    #[must_use]
    pub fn root(&self, digest: Digest) -> Option<Digest> {
        self.root_above(leaf(digest), &mut Nodes::unremembered())
    }

    /// As [`MerklePath::root`], from the leaf itself, which is the same in all votes for a payment.
    pub(crate) fn root_above(&self, leaf: Digest, nodes: &mut Nodes) -> Option<Digest> {
        if self.siblings.len() > MERKLE_PATH_LENGTH_MAX || self.directions >> self.siblings.len() != 0 {
            return None;
        }
        let mut hash = leaf;
        for (level, sibling) in self.siblings.iter().enumerate() {
            let sibling_is_left = self.directions >> level & 1 == 1;
            hash = if sibling_is_left { nodes.above(sibling, &hash) } else { nodes.above(&hash, sibling) };
        }
        Some(hash)
    }
}

/// The number of nodes remembered, of 96 bytes each: those of about 250 batches of 32 payments, and few enough to stay
/// in a core's own cache.
const NODES_REMEMBERED: usize = 8_192;

/// The nodes of trees, and which ones were worked out lately: votes of one batch share most of their paths. A
/// memory of one place for each remainder of a key, which the next node of the same remainder takes over.
#[derive(Debug)]
pub(crate) struct Nodes {
    places: Vec<Family>,
}

/// A node, and those below it.
#[derive(Clone, Copy, Debug, Default)]
struct Family {
    left: Digest,
    right: Digest,
    parent: Digest,
}

impl Nodes {
    /// Remembers none.
    pub(crate) fn unremembered() -> Self {
        Self { places: Vec::new() }
    }

    /// Remembers the newest.
    pub(crate) fn remembered() -> Self {
        // Two zero digests do not hash to zero, so the empty entry gets its true parent.
        let none = Family { parent: node(&Digest::ZERO, &Digest::ZERO), ..Family::default() };
        Self { places: vec![none; NODES_REMEMBERED] }
    }

    fn above(&mut self, left: &Digest, right: &Digest) -> Digest {
        let key = prefix(left).rotate_left(32) ^ prefix(right);
        let number = key as usize % self.places.len().max(1);
        let Some(place) = self.places.get_mut(number) else { return node(left, right) };
        if place.left != *left || place.right != *right {
            *place = Family { left: *left, right: *right, parent: node(left, right) };
        }
        place.parent
    }
}

fn prefix(digest: &Digest) -> u64 {
    digest.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A tree, its levels from the leaves up.
#[derive(Debug)]
pub struct MerkleTree {
    levels: Vec<Vec<Digest>>,
    root: Digest,
}

impl MerkleTree {
    /// The tree over `digests`. None where there are none, or more than [`MERKLE_LEAVES_MAX`].
    #[must_use]
    pub fn new(digests: &[Digest]) -> Option<Self> {
        if digests.is_empty() || digests.len() > MERKLE_LEAVES_MAX {
            return None;
        }
        let mut levels = Vec::new();
        let mut level: Vec<Digest> = digests.iter().map(|digest| leaf(*digest)).collect();
        loop {
            if let [root] = level.as_slice() {
                return Some(Self { root: *root, levels });
            }
            let above = level
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => node(left, right),
                    carried => carried.first().copied().unwrap_or_default(),
                })
                .collect();
            levels.push(std::mem::replace(&mut level, above));
        }
    }

    /// The root that the authority signs.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.root
    }

    /// The path of the leaf at `index`, counted from 0.
    #[must_use]
    pub fn path(&self, index: usize) -> MerklePath {
        let mut path = MerklePath::default();
        for (level, nodes) in self.levels.iter().enumerate() {
            let position = index >> level;
            if let Some(sibling) = nodes.get(position ^ 1) {
                let bit = u16::from(position & 1 == 1);
                path.directions |= bit << path.siblings.len();
                path.siblings.push(*sibling);
            }
        }
        path
    }
}

/// The node of one payment. In a tree of one it is the root.
pub(crate) fn leaf(digest: Digest) -> Digest {
    let mut input = [0; 33];
    let [_, bytes @ ..] = &mut input;
    bytes.copy_from_slice(digest.as_slice());
    Digest::new(*blake3::hash(&input).as_bytes())
}

/// Room for 0x00 and the leaf of a balance, a number, a payment or a redemption.
const LEAF_BYTES_OF_MOST: usize = 256;

/// The leaf of these bytes, for other trees of this project: H(0x00 ‖ bytes).
#[must_use]
pub fn merkle_leaf(bytes: &[u8]) -> Digest {
    // In one piece it is hashed in half the time, and nearly all leaves fit.
    let mut input = [0; LEAF_BYTES_OF_MOST];
    if let Some(place) = input.get_mut(1..=bytes.len()) {
        place.copy_from_slice(bytes);
        return Digest::new(*blake3::hash(input.get(..=bytes.len()).unwrap_or_default()).as_bytes());
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[0x00]).update(bytes);
    Digest::new(*hasher.finalize().as_bytes())
}

/// The node above two others, for other trees of this project: H(0x01 ‖ left ‖ right).
#[must_use]
pub fn merkle_node(left: &Digest, right: &Digest) -> Digest {
    node(left, right)
}

pub(crate) fn node(left: &Digest, right: &Digest) -> Digest {
    let mut input = [0x01; 65];
    let [_, children @ ..] = &mut input;
    let (first, second) = children.split_at_mut(32);
    first.copy_from_slice(left.as_slice());
    second.copy_from_slice(right.as_slice());
    Digest::new(*blake3::hash(&input).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digests(count: usize) -> Vec<Digest> {
        (0..count).map(|i| alloy_primitives::keccak256(i.to_be_bytes())).collect()
    }

    #[test]
    fn every_leaf_of_every_small_tree_leads_to_the_root() {
        for count in (1..=70).chain([1023, 1024]) {
            let leaves = digests(count);
            let tree = MerkleTree::new(&leaves).unwrap();
            for (index, digest) in leaves.iter().enumerate() {
                let path = tree.path(index);
                assert!(path.siblings.len() <= MERKLE_PATH_LENGTH_MAX);
                assert_eq!(path.root(*digest), Some(tree.root()), "leaf {index} of {count}");
            }
        }
    }

    #[test]
    fn the_number_of_leaves_is_bounded() {
        assert!(MerkleTree::new(&[]).is_none());
        assert!(MerkleTree::new(&digests(1025)).is_none());
        assert_eq!(MerkleTree::new(&digests(1)).unwrap().root(), leaf(digests(1)[0]));
    }

    #[test]
    fn a_node_that_is_remembered_is_the_one_that_is_worked_out() {
        let (mut remembered, mut unremembered) = (Nodes::remembered(), Nodes::unremembered());
        assert_eq!(remembered.above(&Digest::ZERO, &Digest::ZERO), node(&Digest::ZERO, &Digest::ZERO));
        // Many more than there are places, so that they take each other's; and again, where some are still there.
        let leaves = digests(300);
        for (left, right) in leaves.iter().flat_map(|left| leaves.iter().map(move |right| (left, right))) {
            for _ in 0..2 {
                assert_eq!(remembered.above(left, right), unremembered.above(left, right));
            }
            // The same prefixes, and so the same place.
            let mut other = *right;
            other.0[31] ^= 1;
            assert_eq!(remembered.above(left, &other), unremembered.above(left, &other));
        }
    }

    proptest! {
        #[test]
        fn a_changed_path_or_digest_leads_elsewhere(count in 2_usize..40, leaf in 0_usize..40, at in 0_usize..6, bit in 0_u8..16) {
            let leaves = digests(count);
            let index = leaf % count;
            let tree = MerkleTree::new(&leaves).unwrap();
            let path = tree.path(index);

            let mut other = path.clone();
            other.directions ^= 1 << bit;
            prop_assert_ne!(other.root(leaves[index]), Some(tree.root()));

            let mut other = path.clone();
            let at = at % other.siblings.len();
            other.siblings[at].0[3] ^= 1;
            prop_assert_ne!(other.root(leaves[index]), Some(tree.root()));

            let mut other = path.clone();
            other.siblings.pop();
            prop_assert_ne!(other.root(leaves[index]), Some(tree.root()));
            prop_assert_ne!(path.root(Digest::repeat_byte(1)), Some(tree.root()));
        }
    }

    #[test]
    fn overlong_paths_are_refused() {
        let path = MerklePath { directions: 0, siblings: vec![Digest::ZERO; MERKLE_PATH_LENGTH_MAX + 1] };
        assert_eq!(path.root(Digest::ZERO), None);
    }
}
