//! A cluster with all its keys, and decisions that it certifies.

use fastpay_core::{AccountId, Amount, Asset, Digest, Ed25519Signature};
use fastpay_ledger_statement::{
    ClusterId, CompactDecision, Credit, Cursor, Deployment, Group, Header, Height, MemberIndex, MemberKeys, Members,
    Message, OpenError, Outputs, Partition, QuorumCertificate, Receiver, StatementVerifier, Time, VerifiedGroup,
    VoteKind, VoteStatement, payload_digest,
};

pub const DEPLOYMENT: Deployment = Deployment(Digest::repeat_byte(0xd0));
/// Whoever opens decisions in these tests.
pub const US: Receiver = Receiver::Cluster(ClusterId(2));

pub struct Cluster {
    pub members: Members,
    /// In the order of the members.
    pub keys: Vec<MemberKeys>,
}

impl Cluster {
    pub fn new(deployment: Deployment, cluster: u32, size: u8, first_seed: u8) -> Self {
        let mut keys: Vec<_> = (0..size).map(|at| MemberKeys::from_seed([first_seed + at; 32])).collect();
        keys.sort_by_key(MemberKeys::public);
        let public = keys.iter().map(MemberKeys::public).collect();
        Self { members: Members::new(deployment, ClusterId(cluster), public).unwrap(), keys }
    }

    /// Cluster 1, of four members.
    pub fn first() -> Self {
        Self::new(DEPLOYMENT, 1, 4, 1)
    }

    pub fn header(&self, height: u64, state: Digest, outputs: Digest) -> Header {
        let header = Header {
            deployment: self.members.deployment(),
            cluster: self.members.cluster(),
            height: Height(height),
            time: Time(1_000_000 + height),
            parent: Digest::repeat_byte(7),
            inputs: payload_digest(b"payload"),
            state,
            outputs,
            maker: MemberIndex(0),
            signature: Ed25519Signature([0; 64]),
        };
        header.signed(&self.keys[0])
    }

    pub fn certify(&self, header: &Header, round: u32) -> QuorumCertificate {
        self.certify_as(header, round, VoteKind::Precommit, 0..self.members.quorum())
    }

    /// Votes of these members, of this kind.
    pub fn certify_as(
        &self,
        header: &Header,
        round: u32,
        kind: VoteKind,
        voters: impl IntoIterator<Item = usize>,
    ) -> QuorumCertificate {
        let Header { deployment, cluster, height, .. } = *header;
        let digest = VoteStatement { deployment, cluster, height, round, kind, value: Some(header.id()) }.digest();
        let vote = |at: usize| (MemberIndex(u8::try_from(at).unwrap()), self.keys[at].sign(digest));
        QuorumCertificate { round, votes: voters.into_iter().map(vote).collect() }
    }

    pub fn outputs(&self, groups: Vec<Group>) -> Outputs {
        Outputs::new(self.members.deployment(), self.members.cluster(), groups).unwrap()
    }

    /// What `US` gets of a decision with groups for seven receivers.
    pub fn decision(&self, height: u64, group: Group) -> CompactDecision {
        let to = group.to;
        let others = (10..16).map(|cluster| Group {
            to: Receiver::Cluster(ClusterId(cluster)),
            number: height,
            previous: Digest::repeat_byte(cluster.to_le_bytes()[0]),
            messages: credits(cluster.into(), 2),
        });
        let outputs = self.outputs(others.chain([group]).collect());
        let header = self.header(height, Digest::ZERO, outputs.root());
        CompactDecision::of(&header, &outputs, &self.certify(&header, 3), to).unwrap()
    }

    pub fn open(&self, decision: CompactDecision, cursor: Cursor) -> Result<VerifiedGroup, OpenError> {
        let decisions = vec![(decision, &self.members, cursor)];
        StatementVerifier::default().open(US, decisions, &mut rand::rng()).pop().unwrap()
    }
}

/// Cluster 1 keeps everything.
pub fn partition() -> Partition {
    Partition { settlement: ClusterId(1), first_shard: ClusterId(1), other_shards: vec![] }
}

pub fn credits(first: u64, count: u64) -> Vec<Message> {
    let credit = |at: u64| Credit { to: account(at), asset: Asset::ETHER, amount: Amount(u128::from(at) + 1) };
    (first..first + count).map(|at| Message::Credit(credit(at))).collect()
}

pub fn account(at: u64) -> AccountId {
    AccountId::from_ed25519(&fastpay_core::merkle_leaf(&at.to_be_bytes()).0)
}

/// The group to `US` with the first number.
pub fn first_group() -> Group {
    Group { to: US, number: 1, previous: Digest::ZERO, messages: credits(0, 5) }
}
