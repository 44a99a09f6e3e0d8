//! A client's answer, proven alone.

use fastpay_core::{Digest, SequenceNumber};
use fastpay_ledger_statement::{
    Answer, AnswerError, AnswerProof, CertificateError, ClusterId, Get, Group, Height, Key, MemberIndex, Message,
    Namespace, Outcome, Partition, ProvenAnswer, Receiver, Rejection, Request, StatementVerifier, Version, VoteKind,
};

use crate::fixture::{Cluster, credits, partition};

fn request(nonce: u64) -> Request {
    Request::Get(Get { namespace: Namespace::new("n".into()).unwrap(), key: Key::new(vec![1]).unwrap(), nonce })
}

fn answers(count: u64) -> Vec<Message> {
    let answer = |at: u64| Answer {
        request: request(at).digest(),
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

fn verify(cluster: &Cluster, proof: AnswerProof, request: &Request) -> Result<ProvenAnswer, AnswerError> {
    verify_in(&partition(), cluster, proof, request)
}

fn verify_in(
    partition: &Partition,
    cluster: &Cluster,
    proof: AnswerProof,
    request: &Request,
) -> Result<ProvenAnswer, AnswerError> {
    proof.verify(request, partition, &cluster.members, &mut StatementVerifier::default(), &mut rand::rng())
}

/// In groups of one, of a whole run of the tree, and of several runs.
#[test]
fn every_answer_is_proven_without_the_others() {
    let cluster = Cluster::first();
    for (count, picked) in [(1, vec![0]), (1_024, vec![0, 1_023]), (4_100, vec![0, 1_023, 1_024, 2_500, 4_099])] {
        let messages = answers(count);
        for at in picked {
            let (proof, answer) = prove(&cluster, &messages, at);
            let (height, time, result) = (proof.header.height, proof.header.time, answer.result);
            let proven = ProvenAnswer { height, time, result };
            assert_eq!(verify(&cluster, proof, &request(at as u64)), Ok(proven), "answer {at} of {count}");
        }
    }
}

#[test]
fn an_altered_answer_is_refused() {
    let cluster = Cluster::first();
    let messages = answers(1_500);
    let (proof, _) = prove(&cluster, &messages, 7);
    let refused = |alter: &dyn Fn(&mut AnswerProof)| {
        let mut altered = proof.clone();
        alter(&mut altered);
        verify(&cluster, altered, &request(7)).unwrap_err()
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

/// Requests that arrive out of order are rejected first, and carried out in the same height.
#[test]
fn of_several_answers_the_outcome_is_proven() {
    let cluster = Cluster::first();
    let gap = |next| Err(Rejection::SequenceGap(SequenceNumber(next)));
    let answers = |results: &[Result<Outcome, Rejection>]| -> Vec<Message> {
        let answer =
            |result: &Result<Outcome, Rejection>| Answer { request: request(0).digest(), result: result.clone() };
        results.iter().map(|result| Message::Answer(answer(result))).collect()
    };
    for (results, expected) in
        [(vec![gap(0), Ok(Outcome::Opened), gap(0)], Ok(Outcome::Opened)), (vec![gap(0), gap(1)], gap(1))]
    {
        let (proof, _) = prove(&cluster, &answers(&results), 0);
        assert_eq!(verify(&cluster, proof, &request(0)).unwrap().result, expected);
    }
}

#[test]
fn a_shard_answers_for_itself_alone_and_a_coordinator_for_all() {
    let cluster = Cluster::first();
    let (proof, _) = prove(&cluster, &answers(1), 0);
    let of = |settlement, shard| Partition {
        settlement: ClusterId(settlement),
        first_shard: ClusterId(shard),
        other_shards: vec![],
    };
    let (expected, found) = (ClusterId(9), ClusterId(1));
    let refused = Err(AnswerError::OtherCluster { expected, found });
    assert_eq!(verify_in(&of(1, 9), &cluster, proof.clone(), &request(0)), refused);
    // Of two shards, the one that does not keep the value.
    let keeps = |first, other| Partition { other_shards: vec![ClusterId(other)], ..of(8, first) };
    let ours = keeps(1, 9).of_request(&request(0)) == found;
    let (right, wrong) = if ours { (keeps(1, 9), keeps(9, 1)) } else { (keeps(9, 1), keeps(1, 9)) };
    assert_eq!(verify_in(&wrong, &cluster, proof.clone(), &request(0)), refused);
    assert!(verify_in(&right, &cluster, proof.clone(), &request(0)).is_ok());
    // It keeps nothing, so it passes answers on.
    assert!(verify_in(&of(9, 9), &cluster, proof, &request(0)).is_ok());
}
