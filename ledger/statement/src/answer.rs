//! The proof of one client's answer, without the other messages of its group.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{Digest, MerklePath};
use rand_core::CryptoRng;

use crate::certificate::{CertificateError, QuorumCertificate};
use crate::encoding::Wire;
use crate::group::{GroupHead, MessagePath, Outputs};
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
        let Some((group, path)) = outputs.group(Receiver::Clients) else { return Vec::new() };
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
            return Vec::new();
        }
        let (head, paths) = (group.head(), group.message_paths(answers.values().map(|(index, _)| *index)));
        let proof = |((_, answer), message_path): (&(usize, &Answer), MessagePath)| Self {
            answer: (*answer).clone(),
            message_path,
            head,
            path: path.clone(),
            header: *header,
            certificate: certificate.clone(),
        };
        answers.values().zip(paths).map(proof).collect()
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
        if self.head.to != Receiver::Clients {
            return Err(AnswerError::OtherReceiver(self.head.to));
        }
        if !partition.may_answer(self.header.cluster, request) {
            let (expected, found) = (partition.of_request(request), self.header.cluster);
            return Err(AnswerError::OtherCluster { expected, found });
        }
        verifier.check(&self.header, &self.certificate, members, rng)?;
        let result = self.answer.result.clone();
        let message = Message::Answer(self.answer);
        let digest = self.head.digest(self.header.deployment, self.header.cluster);
        let is_in_group = self.message_path.root(&message) == Some(self.head.root);
        if !is_in_group || self.path.root(digest) != Some(self.header.outputs) {
            return Err(AnswerError::Path);
        }
        Ok(ProvenAnswer { height: self.header.height, time: self.header.time, result })
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
