//! The entries of a state and their Merkle tree, which `fastpay_ledger_statement::StateProof` defines. Versions share
//! what they have in common, so a proposal is executed on a copy that costs nothing. Hashes are worked out when they are
//! asked for.

use std::sync::{Arc, OnceLock};

use fastpay_core::Digest;
use fastpay_ledger_statement::{Evidence, StateKey, StateProof, branch_digest, key_bit, leaf_digest, value_digest};

/// A set of entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree(Node);

#[derive(Clone, Debug, Default)]
enum Node {
    #[default]
    Empty,
    Leaf(Arc<Leaf>),
    Branch(Arc<Branch>),
}

#[derive(Debug)]
struct Leaf {
    digest: Digest,
    key: StateKey,
    value: Vec<u8>,
    hash: OnceLock<Digest>,
}

/// At least two entries, by the next bit of their keys.
#[derive(Clone, Debug)]
struct Branch {
    left: Node,
    right: Node,
    hash: OnceLock<Digest>,
}

impl Tree {
    pub(crate) fn root(&self) -> Digest {
        self.0.hash()
    }

    pub(crate) fn get(&self, key: &StateKey) -> Option<&[u8]> {
        let (node, _) = self.0.find(&key.digest(), |_| ());
        match node {
            Node::Leaf(leaf) if leaf.key == *key => Some(&leaf.value),
            _ => None,
        }
    }

    pub(crate) fn insert(&mut self, key: StateKey, value: Vec<u8>) {
        let digest = key.digest();
        self.0.insert(0, Arc::new(Leaf { digest, key, value, hash: OnceLock::new() }));
    }

    pub(crate) fn remove(&mut self, key: &StateKey) {
        let digest = key.digest();
        // Without the entry, nothing is copied.
        if matches!(self.0.find(&digest, |_| ()), (Node::Leaf(leaf), _) if leaf.digest == digest) {
            self.0.remove(0, &digest);
        }
    }

    pub(crate) fn prove(&self, key: &StateKey) -> StateProof {
        let digest = key.digest();
        let mut siblings = Vec::new();
        let (end, _) = self.0.find(&digest, |sibling| siblings.push(sibling.hash()));
        let evidence = match end {
            Node::Leaf(leaf) if leaf.digest == digest => Evidence::Present(leaf.value.clone()),
            Node::Leaf(leaf) => Evidence::Other { key: leaf.digest, value: value_digest(&leaf.value) },
            Node::Empty | Node::Branch(_) => Evidence::Nothing,
        };
        StateProof { evidence, siblings }
    }

    /// All entries, in the order of their keys' hashes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&StateKey, &[u8])> {
        let mut rest = vec![&self.0];
        std::iter::from_fn(move || {
            loop {
                match rest.pop()? {
                    Node::Empty => {}
                    Node::Leaf(leaf) => return Some((&leaf.key, leaf.value.as_slice())),
                    Node::Branch(branch) => rest.extend([&branch.right, &branch.left]),
                }
            }
        })
    }
}

impl Node {
    fn hash(&self) -> Digest {
        match self {
            Self::Empty => Digest::ZERO,
            Self::Leaf(leaf) => *leaf.hash.get_or_init(|| leaf_digest(leaf.digest, value_digest(&leaf.value))),
            Self::Branch(branch) => {
                *branch.hash.get_or_init(|| branch_digest(&branch.left.hash(), &branch.right.hash()))
            }
        }
    }

    /// Where the path of a key ends, and its depth. `beside` is called with each sibling on the way.
    fn find<'a>(&'a self, key: &Digest, mut beside: impl FnMut(&'a Self)) -> (&'a Self, usize) {
        let (mut node, mut depth) = (self, 0);
        while let Self::Branch(branch) = node {
            let (next, sibling) =
                if key_bit(key, depth) { (&branch.right, &branch.left) } else { (&branch.left, &branch.right) };
            beside(sibling);
            (node, depth) = (next, depth.saturating_add(1));
        }
        (node, depth)
    }

    fn insert(&mut self, depth: usize, leaf: Arc<Leaf>) {
        match self {
            Self::Empty => *self = Self::Leaf(leaf),
            Self::Leaf(found) if found.digest == leaf.digest => *found = leaf,
            Self::Leaf(found) => {
                let mut branch = Branch { left: Self::Empty, right: Self::Empty, hash: OnceLock::new() };
                *branch.child(&found.digest, depth) = Self::Leaf(found.clone());
                branch.child(&leaf.digest, depth).insert(depth.saturating_add(1), leaf);
                *self = Self::Branch(Arc::new(branch));
            }
            Self::Branch(branch) => {
                Branch::changed(branch).child(&leaf.digest, depth).insert(depth.saturating_add(1), leaf);
            }
        }
    }

    /// Removes an entry that is there. A single entry that is left is pulled up.
    fn remove(&mut self, depth: usize, key: &Digest) {
        let Self::Branch(branch) = self else {
            *self = Self::Empty;
            return;
        };
        let branch = Branch::changed(branch);
        branch.child(key, depth).remove(depth.saturating_add(1), key);
        let single = match (&branch.left, &branch.right) {
            (Self::Empty, Self::Leaf(leaf)) | (Self::Leaf(leaf), Self::Empty) => leaf.clone(),
            _ => return,
        };
        *self = Self::Leaf(single);
    }
}

impl Branch {
    /// The branch, no longer shared, and without its hash.
    fn changed(branch: &mut Arc<Self>) -> &mut Self {
        let branch = Arc::make_mut(branch);
        branch.hash = OnceLock::new();
        branch
    }

    fn child(&mut self, key: &Digest, depth: usize) -> &mut Node {
        if key_bit(key, depth) { &mut self.right } else { &mut self.left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{AccountId, merkle_leaf};
    use std::collections::BTreeMap;

    fn key(at: u32) -> StateKey {
        StateKey::Opened(AccountId(merkle_leaf(&at.to_be_bytes()).0))
    }

    /// The root by its definition, from the entries alone.
    fn root(entries: &BTreeMap<Digest, Vec<u8>>, depth: usize) -> Digest {
        match entries.first_key_value() {
            None => Digest::ZERO,
            Some((key, value)) if entries.len() == 1 => leaf_digest(*key, value_digest(value)),
            Some(_) => {
                let (right, left): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    entries.clone().into_iter().partition(|(key, _)| key_bit(key, depth));
                branch_digest(&root(&left, depth + 1), &root(&right, depth + 1))
            }
        }
    }

    /// Random writes and removals beside a plain map: the same entries, the root of the definition, a proof of presence
    /// or absence for every key, and older versions that stay as they were.
    #[test]
    fn the_tree_is_its_entries_whatever_led_there() {
        let seed = rand::random::<u64>();
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut tree, mut entries) = (Tree::default(), BTreeMap::new());
        let mut older = (tree.clone(), tree.root());
        for step in 0..600 {
            let key = key(random.u32(0..60));
            if random.bool() {
                let value = vec![random.u8(..); random.usize(0..4)];
                tree.insert(key.clone(), value.clone());
                entries.insert(key.digest(), value);
            } else {
                tree.remove(&key);
                entries.remove(&key.digest());
            }
            assert_eq!(tree.root(), root(&entries, 0), "step {step}, seed {seed}");
            assert_eq!(tree.get(&key), entries.get(&key.digest()).map(Vec::as_slice), "seed {seed}");
            if step % 50 == 0 {
                assert_eq!(older.0.root(), older.1, "seed {seed}");
                let recomputed = older.0.iter().map(|(key, value)| (key.digest(), value.to_vec())).collect();
                assert_eq!(root(&recomputed, 0), older.1, "seed {seed}");
                older = (tree.clone(), tree.root());
            }
        }
        let listed: BTreeMap<_, _> = tree.iter().map(|(key, value)| (key.digest(), value.to_vec())).collect();
        assert_eq!(listed, entries, "seed {seed}");
        for at in 0..120 {
            let proof = tree.prove(&key(at));
            assert_eq!(proof.root(key(at).digest()), Some(tree.root()), "seed {seed}");
            let present = entries.get(&key(at).digest()).map(|value| Evidence::Present(value.clone()));
            assert_eq!(present.is_none(), !matches!(proof.evidence, Evidence::Present(_)), "seed {seed}");
            assert!(present.is_none_or(|present| present == proof.evidence), "seed {seed}");
        }
    }
}
