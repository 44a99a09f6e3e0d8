//! A client's answer, proven alone.

use fastpay_core::Digest;
use fastpay_ledger_statement::{
    Answer, AnswerError, AnswerProof, CertificateError, Group, Height, MemberIndex, Message, Outcome, Receiver,
    Rejection, StatementVerifier, Version, VoteKind,
};

use crate::fixture::{Cluster, credits};

fn answers(count: u64) -> Vec<Message> {
    let answer = |at: u64| Answer {
        request: fastpay_core::merkle_leaf(&at.to_be_bytes()),
        result: match at % 2 {
            0 => Ok(Outcome::Written(Version { height: Height(at), position: 3 })),
            _ => Err(Rejection::UnknownNamespace),
        },
    };
    (0..count).map(|at| Message::Answer(answer(at))).collect()
}

fn prove(cluster: &Cluster, messages: &[Message], at: usize) -> (AnswerProof, Answer) {
    let messages = messages.to_vec();
    let Message::Answer(answer) = messages[at].clone() else { panic!("an answer") };
    let number = |to, messages| Group { to, number: 4, previous: Digest::repeat_byte(4), messages };
    let to_cluster = number(Receiver::Cluster(Default::default()), credits(0, 3));
    let outputs = cluster.outputs(vec![to_cluster, number(Receiver::Clients, messages)]);
    let header = cluster.header(9, Digest::ZERO, outputs.root());
    (AnswerProof::of(&header, &outputs, &cluster.certify(&header, 0), answer.request).unwrap(), answer)
}

fn verify(cluster: &Cluster, proof: AnswerProof, request: Digest) -> Result<Answer, AnswerError> {
    proof.verify(request, &cluster.members, &mut StatementVerifier::default(), &mut rand::rng())
}

/// In groups of one, of a whole run of the tree, and of several runs.
#[test]
fn every_answer_is_proven_without_the_others() {
    let cluster = Cluster::first();
    for (count, picked) in [(1, vec![0]), (1_024, vec![0, 1_023]), (4_100, vec![0, 1_023, 1_024, 2_500, 4_099])] {
        let messages = answers(count);
        for at in picked {
            let (proof, answer) = prove(&cluster, &messages, at);
            assert_eq!(verify(&cluster, proof, answer.request), Ok(answer), "answer {at} of {count}");
        }
    }
}

#[test]
fn an_altered_answer_is_refused() {
    let cluster = Cluster::first();
    let messages = answers(1_500);
    let (proof, answer) = prove(&cluster, &messages, 7);
    let refused = |alter: &dyn Fn(&mut AnswerProof)| {
        let mut altered = proof.clone();
        alter(&mut altered);
        verify(&cluster, altered, answer.request).unwrap_err()
    };
    assert_eq!(refused(&|p| p.answer.result = Ok(Outcome::Missing)), AnswerError::Path);
    assert_eq!(refused(&|p| p.message_path.in_run.directions ^= 1), AnswerError::Path);
    assert_eq!(refused(&|p| p.message_path.of_runs.directions ^= 1), AnswerError::Path);
    assert_eq!(refused(&|p| p.path.directions ^= 1), AnswerError::Path);
    assert_eq!(refused(&|p| p.head.number += 1), AnswerError::Path);
    assert_eq!(refused(&|p| p.head.count -= 1), AnswerError::Path);
    assert_eq!(refused(&|p| p.head.root = Digest::ZERO), AnswerError::Path);
    let cluster_group = Receiver::Cluster(Default::default());
    assert_eq!(refused(&|p| p.head.to = cluster_group), AnswerError::OtherReceiver(cluster_group));
    let (other, _) = prove(&cluster, &messages, 8);
    assert_eq!(refused(&|p| *p = other.clone()), AnswerError::OtherRequest(other.answer.request));
    let bad = |member| AnswerError::Certificate(CertificateError::Signature(MemberIndex(member)));
    let prevotes = cluster.certify_as(&proof.header, 0, VoteKind::Prevote, 0..3);
    assert_eq!(refused(&|p| p.certificate = prevotes.clone()), bad(0));
    assert_eq!(refused(&|p| p.header.outputs = Digest::ZERO), bad(0));
}
