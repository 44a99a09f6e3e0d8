//! How the engine's messages are encoded, on the wire and in its log: borsh, which has one encoding for each value.
//!
//! The codec of the network records what this member signed before it encodes it [`VoteFile::record`]: what is not
//! recorded is not sent.

use std::io;
use std::sync::{Arc, Mutex};

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use fastpay_core::Digest;
use malachite::app::consensus::LivenessMsg;
use malachite::app::streaming::StreamContent;
use malachite::app::types::codec::{Codec, HasEncodedLen};
use malachite::app::types::core::{
    CommitCertificate, ExtendedCommitCertificate, ExtendedCommitSignature, NilOrVal, PolkaCertificate, PolkaSignature,
    Round, RoundCertificate, RoundCertificateType, RoundSignature, SignedMessage, ValidatorProof, Validity, VoteType,
};
use malachite::app::types::streaming::{StreamId, StreamMessage};
use malachite::app::types::sync::{RawDecidedValue, Request, Response, Status};
use malachite::app::types::{PeerId, ProposedValue, SignedConsensusMsg};
use malachite_signing_ed25519::Signature;

use super::context::{
    Cluster, EngineHeight, HeaderId, MemberAddress, Part, Proposal, ProposedHeader, Vote, checked_round, id_of,
    read_round,
};
use crate::votes::{Cast, Slot, Step, VoteFile};

/// The codec of the log and of sync; with a file of votes, of the network.
#[derive(Clone, Debug, Default)]
pub struct LedgerCodec(Option<Recorder>);

/// The file in which a member's votes are recorded before they are sent.
#[derive(Clone, Debug)]
struct Recorder {
    me: MemberAddress,
    votes: Arc<Mutex<VoteFile>>,
}

impl LedgerCodec {
    /// The codec of the network of the member `me`.
    #[must_use]
    pub fn recording(me: MemberAddress, votes: Arc<Mutex<VoteFile>>) -> Self {
        Self(Some(Recorder { me, votes }))
    }

    /// Records what this member is about to send, if it signed it, with all that it signed before.
    fn record(&self, signer: MemberAddress, sent: impl FnOnce() -> Cast) -> io::Result<()> {
        let Some(Recorder { votes, .. }) = self.0.as_ref().filter(|recorder| recorder.me == signer) else {
            return Ok(());
        };
        let sent = sent();
        let recorded = votes.lock().map_err(|_| io::Error::other("the file of votes is poisoned"))?.record(sent);
        recorded.map_err(|refused| {
            tracing::error!("nothing is sent: {refused}");
            io::Error::other(refused)
        })
    }
}

fn encode(value: &impl BorshSerialize) -> io::Result<Bytes> {
    Ok(borsh::to_vec(value)?.into())
}

fn decode<T: BorshDeserialize>(bytes: &Bytes) -> io::Result<T> {
    borsh::from_slice(bytes)
}

type RawSignature = [u8; 64];

fn value(id: Option<Digest>) -> NilOrVal<HeaderId> {
    id.map_or(NilOrVal::Nil, |id| NilOrVal::Val(HeaderId(id)))
}

fn is_precommit(kind: VoteType) -> bool {
    kind == VoteType::Precommit
}

fn kind(is_precommit: bool) -> VoteType {
    if is_precommit { VoteType::Precommit } else { VoteType::Prevote }
}

#[derive(BorshSerialize, BorshDeserialize)]
struct RawVote {
    is_precommit: bool,
    height: EngineHeight,
    #[borsh(deserialize_with = "read_round")]
    round: i64,
    id: Option<Digest>,
    voter: MemberAddress,
    signature: RawSignature,
}

impl From<&SignedMessage<Cluster, Vote>> for RawVote {
    fn from(signed: &SignedMessage<Cluster, Vote>) -> Self {
        let Vote { kind, height, round, value, voter } = &signed.message;
        let (is_precommit, id) = (is_precommit(*kind), id_of(value));
        let signature = signed.signature.to_bytes();
        Self { is_precommit, height: *height, round: round.as_i64(), id, voter: *voter, signature }
    }
}

impl From<RawVote> for SignedMessage<Cluster, Vote> {
    fn from(raw: RawVote) -> Self {
        let RawVote { is_precommit, height, round, id, voter, signature } = raw;
        let vote = Vote { kind: kind(is_precommit), height, round: round.into(), value: value(id), voter };
        Self::new(vote, Signature::from_bytes(signature))
    }
}

#[derive(BorshSerialize, BorshDeserialize)]
enum RawSigned {
    Vote(RawVote),
    Proposal(Box<Proposal>, RawSignature),
}

impl Codec<SignedConsensusMsg<Cluster>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<SignedConsensusMsg<Cluster>> {
        Ok(match decode(&bytes)? {
            RawSigned::Vote(vote) => SignedConsensusMsg::Vote(vote.into()),
            RawSigned::Proposal(proposal, signature) => {
                SignedConsensusMsg::Proposal(SignedMessage::new(*proposal, Signature::from_bytes(signature)))
            }
        })
    }

    fn encode(&self, message: &SignedConsensusMsg<Cluster>) -> io::Result<Bytes> {
        match message {
            SignedConsensusMsg::Vote(vote) => {
                self.record(vote.message.voter, || vote.message.cast())?;
                encode(&RawSigned::Vote(vote.into()))
            }
            SignedConsensusMsg::Proposal(proposal) => {
                use malachite::app::types::core::Proposal as _;
                let message = &proposal.message;
                self.record(*message.validator_address(), || message.cast())?;
                encode(&RawSigned::Proposal(Box::new(message.clone()), proposal.signature.to_bytes()))
            }
        }
    }
}

#[derive(BorshSerialize, BorshDeserialize)]
struct RawPolka {
    height: EngineHeight,
    #[borsh(deserialize_with = "read_round")]
    round: i64,
    id: Digest,
    votes: Vec<(MemberAddress, RawSignature)>,
}

impl From<&PolkaCertificate<Cluster>> for RawPolka {
    fn from(polka: &PolkaCertificate<Cluster>) -> Self {
        let votes = polka.polka_signatures.iter().map(|vote| (vote.address, vote.signature.to_bytes())).collect();
        Self { height: polka.height, round: polka.round.as_i64(), id: polka.value_id.0, votes }
    }
}

impl From<RawPolka> for PolkaCertificate<Cluster> {
    fn from(raw: RawPolka) -> Self {
        let signature = |(voter, bytes)| PolkaSignature::new(voter, Signature::from_bytes(bytes));
        Self {
            height: raw.height,
            round: raw.round.into(),
            value_id: HeaderId(raw.id),
            polka_signatures: raw.votes.into_iter().map(signature).collect(),
        }
    }
}

impl Codec<PolkaCertificate<Cluster>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<PolkaCertificate<Cluster>> {
        decode::<RawPolka>(&bytes).map(Into::into)
    }

    fn encode(&self, polka: &PolkaCertificate<Cluster>) -> io::Result<Bytes> {
        encode(&RawPolka::from(polka))
    }
}

#[derive(BorshSerialize, BorshDeserialize)]
struct RawRoundVote {
    is_precommit: bool,
    id: Option<Digest>,
    voter: MemberAddress,
    signature: RawSignature,
}

impl From<&RoundSignature<Cluster>> for RawRoundVote {
    fn from(vote: &RoundSignature<Cluster>) -> Self {
        let (is_precommit, id) = (is_precommit(vote.vote_type), id_of(&vote.value_id));
        Self { is_precommit, id, voter: vote.address, signature: vote.signature.to_bytes() }
    }
}

impl From<RawRoundVote> for RoundSignature<Cluster> {
    fn from(raw: RawRoundVote) -> Self {
        Self::new(kind(raw.is_precommit), value(raw.id), raw.voter, Signature::from_bytes(raw.signature))
    }
}

#[derive(BorshSerialize, BorshDeserialize)]
enum RawLiveness {
    Vote(RawVote),
    Polka(RawPolka),
    Round {
        height: EngineHeight,
        #[borsh(deserialize_with = "read_round")]
        round: i64,
        is_skip: bool,
        votes: Vec<RawRoundVote>,
    },
}

impl Codec<LivenessMsg<Cluster>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<LivenessMsg<Cluster>> {
        Ok(match decode(&bytes)? {
            RawLiveness::Vote(vote) => LivenessMsg::Vote(vote.into()),
            RawLiveness::Polka(polka) => LivenessMsg::PolkaCertificate(polka.into()),
            RawLiveness::Round { height, round, is_skip, votes } => {
                let cert_type = if is_skip { RoundCertificateType::Skip } else { RoundCertificateType::Precommit };
                let round_signatures = votes.into_iter().map(Into::into).collect();
                let round = round.into();
                LivenessMsg::SkipRoundCertificate(RoundCertificate { height, round, cert_type, round_signatures })
            }
        })
    }

    fn encode(&self, message: &LivenessMsg<Cluster>) -> io::Result<Bytes> {
        // A certificate can have a vote of this member's that it has not sent yet.
        match message {
            LivenessMsg::Vote(vote) => {
                self.record(vote.message.voter, || vote.message.cast())?;
                encode(&RawLiveness::Vote(vote.into()))
            }
            LivenessMsg::PolkaCertificate(polka) => {
                let (height, round) = (polka.height.0, polka.round.as_u32().unwrap_or(u32::MAX));
                for vote in &polka.polka_signatures {
                    let slot = Slot { height, round, step: Step::Prevote };
                    self.record(vote.address, || Cast { slot, id: Some(polka.value_id.0) })?;
                }
                encode(&RawLiveness::Polka(polka.into()))
            }
            LivenessMsg::SkipRoundCertificate(certificate) => {
                let (height, round) = (certificate.height.0, certificate.round.as_u32().unwrap_or(u32::MAX));
                for vote in &certificate.round_signatures {
                    let step = if is_precommit(vote.vote_type) { Step::Precommit } else { Step::Prevote };
                    let slot = Slot { height, round, step };
                    self.record(vote.address, || Cast { slot, id: id_of(&vote.value_id) })?;
                }
                encode(&RawLiveness::Round {
                    height: certificate.height,
                    round: certificate.round.as_i64(),
                    is_skip: matches!(certificate.cert_type, RoundCertificateType::Skip),
                    votes: certificate.round_signatures.iter().map(Into::into).collect(),
                })
            }
        }
    }
}

impl Codec<Part> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<Part> {
        decode(&bytes)
    }

    fn encode(&self, part: &Part) -> io::Result<Bytes> {
        encode(part)
    }
}

impl Codec<StreamMessage<Part>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<StreamMessage<Part>> {
        let (id, sequence, part): (Vec<u8>, u64, Option<Part>) = decode(&bytes)?;
        let content = part.map_or(StreamContent::Fin, StreamContent::Data);
        Ok(StreamMessage::new(StreamId::new(id.into()), sequence, content))
    }

    fn encode(&self, message: &StreamMessage<Part>) -> io::Result<Bytes> {
        let part = match &message.content {
            StreamContent::Data(part) => Some(part),
            StreamContent::Fin => None,
        };
        encode(&(message.stream_id.to_bytes().to_vec(), message.sequence, part))
    }
}

impl Codec<ValidatorProof<Cluster>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<ValidatorProof<Cluster>> {
        let (key, peer, signature): (Vec<u8>, Vec<u8>, RawSignature) = decode(&bytes)?;
        Ok(ValidatorProof::new(key, peer, Signature::from_bytes(signature)))
    }

    fn encode(&self, proof: &ValidatorProof<Cluster>) -> io::Result<Bytes> {
        encode(&(&proof.public_key, &proof.peer_id, proof.signature.to_bytes()))
    }
}

type RawProposed = (EngineHeight, i64, i64, MemberAddress, ProposedHeader, bool);

impl Codec<ProposedValue<Cluster>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<ProposedValue<Cluster>> {
        let (height, round, valid_round, proposer, value, is_valid): RawProposed = decode(&bytes)?;
        let (round, valid_round) = (Round::from(checked_round(round)?), Round::from(checked_round(valid_round)?));
        let validity = Validity::from_bool(is_valid);
        Ok(ProposedValue { height, round, valid_round, proposer, value, validity })
    }

    fn encode(&self, proposed: &ProposedValue<Cluster>) -> io::Result<Bytes> {
        let ProposedValue { height, round, valid_round, proposer, value, validity } = proposed;
        let (round, valid_round) = (round.as_i64(), valid_round.as_i64());
        encode(&(height, round, valid_round, proposer, value, validity.is_valid()))
    }
}

/// The engine's certificate, as sync sends it.
#[derive(BorshSerialize, BorshDeserialize)]
struct RawCommit {
    height: EngineHeight,
    #[borsh(deserialize_with = "read_round")]
    round: i64,
    id: Digest,
    votes: Vec<(MemberAddress, RawSignature)>,
}

impl From<&ExtendedCommitCertificate<Cluster>> for RawCommit {
    fn from(commit: &ExtendedCommitCertificate<Cluster>) -> Self {
        let votes = commit.commit_signatures.iter().map(|vote| (vote.address, vote.signature.to_bytes())).collect();
        Self { height: commit.height, round: commit.round.as_i64(), id: commit.value_id.0, votes }
    }
}

impl From<RawCommit> for ExtendedCommitCertificate<Cluster> {
    fn from(raw: RawCommit) -> Self {
        let signature = |(voter, bytes)| ExtendedCommitSignature::new(voter, Signature::from_bytes(bytes), None);
        Self {
            height: raw.height,
            round: raw.round.into(),
            value_id: HeaderId(raw.id),
            commit_signatures: raw.votes.into_iter().map(signature).collect(),
        }
    }
}

/// The votes of a certificate that the engine decided with, by the members' keys.
pub(crate) fn votes_of(
    commit: &CommitCertificate<Cluster>,
) -> Vec<(fastpay_ledger_statement::MemberKey, fastpay_core::Ed25519Signature)> {
    let vote = |vote: &malachite::app::types::core::CommitSignature<Cluster>| {
        (vote.address.0, fastpay_core::Ed25519Signature(vote.signature.to_bytes()))
    };
    commit.commit_signatures.iter().map(vote).collect()
}

/// A certificate as the engine has it.
pub(crate) fn commit_of(
    height: u64,
    round: u32,
    id: Digest,
    votes: Vec<(MemberAddress, RawSignature)>,
) -> ExtendedCommitCertificate<Cluster> {
    RawCommit { height: EngineHeight(height), round: round.into(), id, votes }.into()
}

impl Codec<Status<Cluster>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<Status<Cluster>> {
        let (peer, tip_height, history_min_height): (Vec<u8>, EngineHeight, EngineHeight) = decode(&bytes)?;
        let peer_id = PeerId::from_bytes(&peer).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Status { peer_id, tip_height, history_min_height })
    }

    fn encode(&self, status: &Status<Cluster>) -> io::Result<Bytes> {
        encode(&(status.peer_id.to_bytes(), status.tip_height, status.history_min_height))
    }
}

impl Codec<Request<Cluster>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<Request<Cluster>> {
        let (first, last): (EngineHeight, EngineHeight) = decode(&bytes)?;
        Ok(Request::ValueRequest(malachite_sync::ValueRequest::new(first..=last)))
    }

    fn encode(&self, request: &Request<Cluster>) -> io::Result<Bytes> {
        let Request::ValueRequest(request) = request;
        encode(&(request.range.start(), request.range.end()))
    }
}

impl Codec<Response<Cluster>> for LedgerCodec {
    type Error = io::Error;

    fn decode(&self, bytes: Bytes) -> io::Result<Response<Cluster>> {
        let (start, values): (EngineHeight, Vec<(Vec<u8>, RawCommit)>) = decode(&bytes)?;
        let value = |(value, commit): (Vec<u8>, RawCommit)| RawDecidedValue::new(value.into(), commit.into());
        let values = values.into_iter().map(value).collect();
        Ok(Response::ValueResponse(malachite_sync::ValueResponse::new(start, values)))
    }

    fn encode(&self, response: &Response<Cluster>) -> io::Result<Bytes> {
        let Response::ValueResponse(response) = response;
        let value =
            |value: &RawDecidedValue<Cluster>| (value.value_bytes.to_vec(), RawCommit::from(&value.certificate));
        let values: Vec<_> = response.values.iter().map(value).collect();
        encode(&(response.start_height, values))
    }
}

impl HasEncodedLen<Response<Cluster>> for LedgerCodec {
    fn encoded_len(&self, response: &Response<Cluster>) -> io::Result<usize> {
        Codec::<Response<Cluster>>::encode(self, response).map(|bytes| bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{precommit, prevote};
    use crate::votes::recorded;
    use fastpay_ledger_statement::MemberKeys;

    #[test]
    fn of_a_certificate_this_members_vote_alone_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("votes");
        VoteFile::create(&path).unwrap();
        let votes = Arc::new(Mutex::new(VoteFile::open(&path).unwrap().unwrap()));
        let [me, other] = [1, 2].map(|seed| MemberAddress(MemberKeys::from_seed([seed; 32]).public()));
        let codec = LedgerCodec::recording(me, votes.clone());
        let (height, id) = (EngineHeight(7), Digest::repeat_byte(9));
        let casts = [prevote(7, 3, Some(id), me).cast(), precommit(7, 3, Some(id), me).cast()];
        casts.iter().for_each(|cast| votes.lock().unwrap().sign(*cast).unwrap());
        let polka = |voter| RawLiveness::Polka(RawPolka { height, round: 3, id, votes: vec![(voter, [0; 64])] });
        let precommits = |voter| {
            let vote = RawRoundVote { is_precommit: true, id: Some(id), voter, signature: [0; 64] };
            RawLiveness::Round { height, round: 3, is_skip: false, votes: vec![vote] }
        };
        for (certificate, expected) in
            [(polka(other), 0), (precommits(other), 0), (polka(me), 1), (precommits(me), 2), (polka(me), 2)]
        {
            let encoded = encode(&certificate).unwrap();
            let message: LivenessMsg<Cluster> = codec.decode(encoded.clone()).unwrap();
            assert_eq!(codec.encode(&message).unwrap(), encoded);
            assert_eq!(recorded(&path), casts[..expected]);
        }
    }

    /// The engine panics at such a round, and anyone who reaches its port can send one.
    #[test]
    fn a_round_that_the_engine_cannot_count_is_not_decoded() {
        let codec = LedgerCodec::default();
        let vote = prevote(7, 3, None, MemberAddress(MemberKeys::from_seed([1; 32]).public()));
        let signed = SignedMessage::new(vote, Signature::from_bytes([0; 64]));
        let message: Bytes = codec.encode(&SignedConsensusMsg::Vote(signed.clone())).unwrap();
        let liveness: Bytes = codec.encode(&LivenessMsg::Vote(signed)).unwrap();
        let polka = RawPolka { height: EngineHeight(7), round: 3, id: Digest::ZERO, votes: Vec::new() };
        let polka: LivenessMsg<Cluster> = LivenessMsg::PolkaCertificate(polka.into());
        let polka: Bytes = codec.encode(&polka).unwrap();
        let round = 3_i64.to_le_bytes();
        for (encoded, is_signed) in [(message, true), (liveness, false), (polka, false)] {
            let at = encoded.windows(8).rposition(|bytes| bytes == round).unwrap();
            for (round, is_one) in [(3, true), (i64::from(i32::MAX), true), (-1, true), (1 << 31, false), (-2, false)] {
                let mut altered = encoded.to_vec();
                altered[at..at + 8].copy_from_slice(&i64::to_le_bytes(round));
                let is_decoded = if is_signed {
                    Codec::<SignedConsensusMsg<Cluster>>::decode(&codec, altered.into()).is_ok()
                } else {
                    Codec::<LivenessMsg<Cluster>>::decode(&codec, altered.into()).is_ok()
                };
                assert_eq!(is_decoded, is_one, "{round}");
            }
        }
    }
}
