//! The proof of one client's answer, without the other messages of its group.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{Digest, MerklePath};
use rand_core::CryptoRng;

use crate::certificate::{CertificateError, QuorumCertificate};
use crate::encoding::Wire;
use crate::group::{GROUP_BYTES_MAX, GroupHead, MessagePath, Outputs};
use crate::header::Header;
use crate::identity::{ClusterId, Height, Receiver, Time};
use crate::members::Members;
use crate::message::{Answer, Message, Outcome};
use crate::partition::Partition;
use crate::rejection::Rejection;
use crate::request::Request;
use crate::verifier::StatementVerifier;

/// One client's answer, not yet checked. Its group is to [`Receiver::Clients`], where every message can be proven
/// alone.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AnswerProof {
    /// The answer.
    pub answer: Answer,
    /// From the answer to the root over the group's messages.
    pub message_path: MessagePath,
    /// The group, without its messages.
    pub head: GroupHead,
    /// From the group to the header's root.
    pub path: MerklePath,
    /// The header.
    pub header: Header,
    /// Of the header.
    pub certificate: QuorumCertificate,
}

impl Wire for AnswerProof {
    /// One message, and as much as a compact decision needs beside its group.
    const BYTES_MAX: usize = 96 << 10;
}

/// What a cluster answered to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenAnswer {
    /// At this height.
    pub height: Height,
    /// The time of that height.
    pub time: Time,
    /// What came of the request. An outcome is final. A rejection is final only once another instruction has used its
    /// sequence number: until then anyone can send the request again, and it may be carried out.
    pub result: Result<Outcome, Rejection>,
}

impl AnswerProof {
    /// The proof of the answer to the request with this digest; `None` if the decision has none. Of several answers to
    /// it, that is the newest outcome, or the newest rejection if all are rejections.
    #[must_use]
    pub fn of(header: &Header, outputs: &Outputs, certificate: &QuorumCertificate, request: Digest) -> Option<Self> {
        Self::all(header, outputs, certificate, |found| found == request).pop()
    }

    /// As [`AnswerProof::of`], for each request that `is_wanted`. The messages are hashed once for all of them.
    #[must_use]
    pub fn all(
        header: &Header,
        outputs: &Outputs,
        certificate: &QuorumCertificate,
        is_wanted: impl Fn(Digest) -> bool,
    ) -> Vec<Self> {
        Answers::of(header, outputs, certificate, is_wanted).map(Answers::split).unwrap_or_default()
    }

    /// Checks that the members' cluster may answer `request`, and gave this answer.
    ///
    /// # Errors
    /// See [`AnswerError`].
    pub fn verify(
        self,
        request: &Request,
        partition: &Partition,
        members: &Members,
        verifier: &mut StatementVerifier,
        rng: &mut impl CryptoRng,
    ) -> Result<ProvenAnswer, AnswerError> {
        if self.answer.request != request.digest() {
            return Err(AnswerError::OtherRequest(self.answer.request));
        }
        if !partition.may_answer(self.header.cluster, request) {
            return Err(AnswerError::OtherCluster {
                expected: partition.of_request(request),
                found: self.header.cluster,
            });
        }
        let Self { answer, message_path, head, path, header, certificate } = self;
        let answers = Answers { head, path, header, certificate, answers: vec![(answer, message_path)] };
        let certified = answers.verify(members, verifier, rng)?;
        certified.into_iter().next().ok_or(AnswerError::Path)?.answers(request, partition)
    }
}

/// Answers of one height to several requests, under one certificate: what a client with many requests gets. Not yet
/// checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Answers {
    /// The group, without its messages.
    pub head: GroupHead,
    /// From the group to the header's root.
    pub path: MerklePath,
    /// The header.
    pub header: Header,
    /// Of the header.
    pub certificate: QuorumCertificate,
    /// Each answer, with its path to the root over the group's messages.
    pub answers: Vec<(Answer, MessagePath)>,
}

impl Wire for Answers {
    /// As many answers with their paths as a group has bytes, one more, and a certificate.
    const BYTES_MAX: usize = GROUP_BYTES_MAX + (96 << 10);
}

impl Answers {
    /// The answers to each request that `is_wanted`; `None` without any. Of several answers to one, that is the newest
    /// outcome, or the newest rejection if all are rejections.
    #[must_use]
    pub fn of(
        header: &Header,
        outputs: &Outputs,
        certificate: &QuorumCertificate,
        is_wanted: impl Fn(Digest) -> bool,
    ) -> Option<Self> {
        let (group, path) = outputs.group(Receiver::Clients)?;
        let mut answers: BTreeMap<Digest, (usize, &Answer)> = BTreeMap::new();
        for (index, message) in group.messages.iter().enumerate() {
            if let Message::Answer(answer) = message
                && is_wanted(answer.request)
            {
                let newest = answers.entry(answer.request).or_insert((index, answer));
                if answer.result.is_ok() || newest.1.result.is_err() {
                    *newest = (index, answer);
                }
            }
        }
        if answers.is_empty() {
            return None;
        }
        let indexes = answers.values().map(|(index, _)| *index);
        let (head, paths) = outputs.message_paths(Receiver::Clients, indexes)?;
        let answers = answers.values().map(|(_, answer)| (*answer).clone()).zip(paths).collect();
        Some(Self { head, path, header: *header, certificate: certificate.clone(), answers })
    }

    /// The same without answers.
    #[must_use]
    pub fn without_answers(&self) -> Self {
        let Self { head, path, header, certificate, .. } = self;
        let (path, certificate) = (path.clone(), certificate.clone());
        Self { head: *head, path, header: *header, certificate, answers: Vec::new() }
    }

    /// Each answer with a proof of its own.
    #[must_use]
    pub fn split(self) -> Vec<AnswerProof> {
        let Self { head, path, header, certificate, answers } = self;
        let proof = |(answer, message_path)| {
            let (path, certificate) = (path.clone(), certificate.clone());
            AnswerProof { answer, message_path, head, path, header, certificate }
        };
        answers.into_iter().map(proof).collect()
    }

    /// Checks that the members' cluster gave these answers: their certificate once, and the path of each.
    ///
    /// # Errors
    /// See [`AnswerError`]. One answer that is not under the root spoils all: the member altered it.
    pub fn verify(
        self,
        members: &Members,
        verifier: &mut StatementVerifier,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<CertifiedAnswer>, AnswerError> {
        if self.head.to != Receiver::Clients {
            return Err(AnswerError::OtherReceiver(self.head.to));
        }
        verifier.check(&self.header, &self.certificate, members, rng)?;
        let Header { cluster, height, time, .. } = self.header;
        let digest = self.head.digest(self.header.deployment, cluster);
        if self.path.root(digest) != Some(self.header.outputs) {
            return Err(AnswerError::Path);
        }
        let root = self.head.root;
        let certified = |(answer, path): (Answer, MessagePath)| {
            let message = Message::Answer(answer);
            let is_in_group = path.root(&message) == Some(root);
            match message {
                Message::Answer(answer) if is_in_group => Ok(CertifiedAnswer { cluster, height, time, answer }),
                _ => Err(AnswerError::Path),
            }
        };
        self.answers.into_iter().map(certified).collect()
    }
}

/// What a cluster has certified as an answer. Cannot be deserialised: only checking makes one. Whether the cluster may
/// give it depends on the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedAnswer {
    cluster: ClusterId,
    height: Height,
    time: Time,
    answer: Answer,
}

impl CertifiedAnswer {
    /// The digest of the request that it answers.
    #[must_use]
    pub fn request(&self) -> Digest {
        self.answer.request
    }

    /// The answer to `request`, if the cluster may give it.
    ///
    /// # Errors
    /// See [`AnswerError`].
    pub fn answers(self, request: &Request, partition: &Partition) -> Result<ProvenAnswer, AnswerError> {
        let Self { cluster, height, time, answer } = self;
        if answer.request != request.digest() {
            return Err(AnswerError::OtherRequest(answer.request));
        }
        if !partition.may_answer(cluster, request) {
            return Err(AnswerError::OtherCluster { expected: partition.of_request(request), found: cluster });
        }
        Ok(ProvenAnswer { height, time, result: answer.result })
    }
}

/// Why an answer is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// To another request.
    #[error("the answer is to the request {0}; ask another member")]
    OtherRequest(Digest),
    /// By a shard that does not execute the request.
    #[error("the answer is of cluster {found}; ask cluster {expected}, which executes the request, or a coordinator")]
    OtherCluster {
        /// The cluster that executes the request.
        expected: ClusterId,
        /// The header's.
        found: ClusterId,
    },
    /// A message between others.
    #[error("the message is for {0}, and no answer to a client")]
    OtherReceiver(Receiver),
    /// The answer was altered, or is of another decision.
    #[error("the answer is not under the header's root; ask another member")]
    Path,
    /// The header is not certified.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}
