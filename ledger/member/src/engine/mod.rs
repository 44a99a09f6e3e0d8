//! The consensus engine, Malachite, behind the ledger's own types: its messages, their encoding and signatures, its log,
//! and how it is started. Nothing else of this crate names the engine's types, apart from the host that answers it.

mod codec;
mod context;
mod launch;
mod log;
mod polkas;
mod signer;

pub(crate) use codec::{commit_of, votes_of};
pub use context::{Cluster, EngineHeight, MemberAddress, Part, ProposedHeader, Validators};
pub use launch::{Launch, launch};
pub use log::own_casts;
pub use polkas::Polkas;
pub use signer::EngineVerifier;

/// Votes and entries of the engine's log, for tests.
#[cfg(test)]
pub(crate) mod testing {
    use fastpay_core::Digest;
    use fastpay_ledger_statement::{ClusterId, Deployment, MemberKeys};
    use malachite::app::types::SignedConsensusMsg;
    use malachite::app::types::codec::Codec;
    use malachite::app::types::core::{Context, NilOrVal, Round, SignedMessage};
    use malachite_signing_ed25519::Signature;

    use super::codec::LedgerCodec;
    use super::context::{Cluster, EngineHeight, HeaderId, MemberAddress, Vote};

    const CLUSTER: Cluster = Cluster { deployment: Deployment(Digest::ZERO), cluster: ClusterId(1) };

    fn value(id: Option<Digest>) -> NilOrVal<HeaderId> {
        id.map_or(NilOrVal::Nil, |id| NilOrVal::Val(HeaderId(id)))
    }

    pub(crate) fn prevote(height: u64, round: u32, id: Option<Digest>, voter: MemberAddress) -> Vote {
        CLUSTER.new_prevote(EngineHeight(height), Round::new(round), value(id), voter)
    }

    pub(crate) fn precommit(height: u64, round: u32, id: Option<Digest>, voter: MemberAddress) -> Vote {
        CLUSTER.new_precommit(EngineHeight(height), Round::new(round), value(id), voter)
    }

    /// A vote as the engine's log has it.
    pub(crate) fn entry_of_vote(vote: &Vote, keys: &MemberKeys) -> Vec<u8> {
        let signature = Signature::from_bytes(keys.sign(vote.digest(&CLUSTER)).0);
        let signed = SignedConsensusMsg::Vote(SignedMessage::new(vote.clone(), signature));
        let encoded = LedgerCodec::default().encode(&signed).unwrap();
        [&[1][..], &(encoded.len() as u64).to_be_bytes(), &encoded].concat()
    }
}
