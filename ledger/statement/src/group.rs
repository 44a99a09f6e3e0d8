//! Groups: all messages of one height to one receiver, numbered from 1 without gap and chained, so that a receiver takes
//! each exactly once, knows what it misses, and notices a second history. The root over a height's groups is in its
//! header.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{Digest, MERKLE_LEAVES_MAX, MerklePath, MerkleTree};

use crate::encoding::digest;
use crate::identity::{ClusterId, Deployment, Receiver};
use crate::message::Message;

/// At most so many receivers in one height: the leaves of one of core's trees.
pub const RECEIVERS_MAX: usize = MERKLE_LEAVES_MAX;
/// At most so many messages in a group: about as many as its bytes allow of the smallest.
pub const GROUP_MESSAGES_MAX: usize = 16_384;
/// At most so many bytes of messages in a group: a quarter of a proposal of 4 MiB, so that a group always fits into one
/// [LEDGER 9]. The others wait for a later group.
pub const GROUP_BYTES_MAX: usize = 1 << 20;

/// The messages of one height to one receiver.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Group {
    /// The receiver.
    pub to: Receiver,
    /// Counts the cluster's groups to this receiver, from 1.
    pub number: u64,
    /// The digest of the group before; zero for number 1.
    pub previous: Digest,
    /// In the order in which the receiver executes them. Empty where the group only tells the time.
    pub messages: Vec<Message>,
}

/// A group without its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct GroupHead {
    /// The receiver.
    pub to: Receiver,
    /// The group's number.
    pub number: u64,
    /// The digest of the group before.
    pub previous: Digest,
    /// The number of messages.
    pub count: u32,
    /// The root over the messages, in their order; zero if there are none.
    pub root: Digest,
}

impl GroupHead {
    /// The group's digest: its leaf in the tree of outputs.
    #[must_use]
    pub fn digest(&self, deployment: Deployment, from: ClusterId) -> Digest {
        digest!("fastpay ledger group v1", &(deployment, from, self))
    }
}

impl Group {
    /// The group without its messages.
    #[must_use]
    pub fn head(&self) -> GroupHead {
        self.head_of(MessageTree::new(&self.messages).as_ref())
    }

    fn head_of(&self, tree: Option<&MessageTree>) -> GroupHead {
        let root = tree.map_or(Digest::ZERO, MessageTree::root);
        let count = u32::try_from(self.messages.len()).unwrap_or(u32::MAX);
        GroupHead { to: self.to, number: self.number, previous: self.previous, count, root }
    }
}

/// The way from a message to the root over its group's messages. They are hashed in runs of [`MERKLE_LEAVES_MAX`], the
/// last one shorter, and then the runs' roots.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MessagePath {
    /// From the message to the root of its run.
    pub in_run: MerklePath,
    /// From there to the root.
    pub of_runs: MerklePath,
}

impl MessagePath {
    /// The root of the group in which `message` has this path. `None` where a path is malformed.
    #[must_use]
    pub fn root(&self, message: &Message) -> Option<Digest> {
        self.of_runs.root(self.in_run.root(message_digest(message))?)
    }
}

/// The tree over a group's messages.
#[derive(Debug)]
struct MessageTree {
    runs: Vec<MerkleTree>,
    top: MerkleTree,
}

impl MessageTree {
    /// `None` for no messages, and for more than fit.
    fn new(messages: &[Message]) -> Option<Self> {
        let run = |run: &[Message]| MerkleTree::new(&run.iter().map(message_digest).collect::<Vec<_>>());
        let runs: Vec<MerkleTree> = messages.chunks(MERKLE_LEAVES_MAX).map(run).collect::<Option<_>>()?;
        let top = MerkleTree::new(&runs.iter().map(MerkleTree::root).collect::<Vec<_>>())?;
        Some(Self { runs, top })
    }

    fn root(&self) -> Digest {
        self.top.root()
    }

    fn path(&self, index: usize) -> Option<MessagePath> {
        let run = index / MERKLE_LEAVES_MAX;
        let in_run = self.runs.get(run)?.path(index % MERKLE_LEAVES_MAX);
        Some(MessagePath { in_run, of_runs: self.top.path(run) })
    }
}

fn message_digest(message: &Message) -> Digest {
    digest!("fastpay ledger message v1", message)
}

/// All groups of one height, in the order of their receivers.
#[derive(Debug)]
pub struct Outputs {
    groups: Vec<Group>,
    /// Of each group.
    hashed: Vec<(GroupHead, Option<MessageTree>)>,
    tree: Option<MerkleTree>,
}

impl Outputs {
    /// The outputs of a cluster's height. `None` if two groups are for one receiver, or there are too many groups.
    #[must_use]
    pub fn new(deployment: Deployment, from: ClusterId, mut groups: Vec<Group>) -> Option<Self> {
        groups.sort_by_key(|group| group.to);
        if groups.len() > RECEIVERS_MAX || groups.array_windows().any(|[a, b]| a.to == b.to) {
            return None;
        }
        let hashed = groups.iter().map(|group| {
            let tree = MessageTree::new(&group.messages);
            (group.head_of(tree.as_ref()), tree)
        });
        let hashed: Vec<_> = hashed.collect();
        let digests: Vec<Digest> = hashed.iter().map(|(head, _)| head.digest(deployment, from)).collect();
        Some(Self { groups, hashed, tree: MerkleTree::new(&digests) })
    }

    /// The head of the group to `receiver`, and the paths of its messages at `indexes` to the root in the head, each the
    /// proof of one client's answer. There is none for an index beyond the last, and nothing without a group.
    pub(crate) fn message_paths(
        &self,
        receiver: Receiver,
        indexes: impl IntoIterator<Item = usize>,
    ) -> Option<(GroupHead, Vec<MessagePath>)> {
        let (head, tree) = self.hashed.iter().find(|(head, _)| head.to == receiver)?;
        let path = |index| tree.as_ref().and_then(|tree| tree.path(index));
        Some((*head, indexes.into_iter().filter_map(path).collect()))
    }

    /// The groups, in the order of their receivers.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The root over the groups, which the header has; zero if there are none.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.tree.as_ref().map_or(Digest::ZERO, MerkleTree::root)
    }

    /// The path of the group to `receiver`, and the group. `None` if it gets nothing at this height.
    #[must_use]
    pub fn group(&self, receiver: Receiver) -> Option<(&Group, MerklePath)> {
        let at = self.groups.binary_search_by_key(&receiver, |group| group.to).ok()?;
        Some((self.groups.get(at)?, self.tree.as_ref()?.path(at)))
    }
}
