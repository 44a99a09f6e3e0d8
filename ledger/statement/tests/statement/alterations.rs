//! Each alteration of a compact decision, and the error that names it.

use fastpay_core::Digest;
use fastpay_ledger_statement::{
    CertificateError, ClusterId, CompactDecision, Cursor, Deployment, GROUP_MESSAGES_MAX, Group, HeaderError, Height,
    MemberIndex, OpenError, QuorumCertificate, Receiver, StatementVerifier, VoteKind,
};

use crate::fixture::{Cluster, DEPLOYMENT, US, credits, first_group};

/// The error with which the altered decision is refused.
fn refused(alter: impl FnOnce(&Cluster, &mut CompactDecision)) -> OpenError {
    let cluster = Cluster::first();
    let mut decision = cluster.decision(5, first_group());
    cluster.open(decision.clone(), Cursor::default()).expect("it is valid before it is altered");
    alter(&cluster, &mut decision);
    cluster.open(decision, Cursor::default()).expect_err("it is altered")
}

fn certificate(error: CertificateError) -> OpenError {
    OpenError::Certificate(error)
}

fn bad_signature(member: u8) -> OpenError {
    certificate(CertificateError::Signature(MemberIndex(member)))
}

#[test]
fn a_valid_decision_gives_its_messages_and_the_cursor_after_it() {
    let cluster = Cluster::first();
    let group = cluster.open(cluster.decision(5, first_group()), Cursor::default()).unwrap();
    assert_eq!((group.group(), group.from()), (&first_group(), ClusterId(1)));
    let digest = first_group().head().digest(DEPLOYMENT, ClusterId(1));
    assert_eq!(group.cursor(), Cursor { next: 2, previous: digest });
    // The next one continues it, also when it is empty.
    let second = Group { to: US, number: 2, previous: digest, messages: vec![] };
    let opened = cluster.open(cluster.decision(6, second), group.cursor()).unwrap();
    assert_eq!(opened.cursor().next, 3);
}

#[test]
fn a_message_left_out_repeated_altered_added_or_moved_is_found() {
    let path = |alter: fn(&mut Group)| refused(|_, decision| alter(&mut decision.group));
    assert_eq!(path(|group| drop(group.messages.remove(2))), OpenError::Path);
    assert_eq!(path(|group| group.messages.insert(2, group.messages[2].clone())), OpenError::Path);
    assert_eq!(path(|group| group.messages[2] = credits(77, 1).remove(0)), OpenError::Path);
    assert_eq!(path(|group| group.messages.extend(credits(5, 1))), OpenError::Path);
    assert_eq!(path(|group| group.messages.swap(0, 1)), OpenError::Path);
    assert_eq!(path(|group| group.messages.clear()), OpenError::Path);
    assert_eq!(path(|group| group.previous = Digest::repeat_byte(1)), OpenError::Path);
    // Renumbered, so that it seems to be due, or to be another one.
    assert_eq!(path(|group| group.number = 2), OpenError::Path);
    let too_many = |group: &mut Group| group.messages = credits(0, GROUP_MESSAGES_MAX as u64 + 1);
    assert_eq!(path(too_many), OpenError::TooManyMessages(GROUP_MESSAGES_MAX + 1));
}

#[test]
fn another_path_tree_or_height_is_found() {
    assert_eq!(refused(|_, decision| decision.path.directions ^= 1), OpenError::Path);
    assert_eq!(refused(|_, decision| decision.path.siblings.truncate(2)), OpenError::Path);
    assert_eq!(refused(|_, decision| decision.path.siblings.push(Digest::ZERO)), OpenError::Path);
    // The group of another height under this header, and the other way round.
    let other = Group { messages: credits(9, 1), ..first_group() };
    assert_eq!(
        refused(|cluster, decision| decision.header = cluster.decision(6, other.clone()).header),
        OpenError::Path
    );
    assert_eq!(refused(|cluster, decision| decision.group = cluster.decision(6, other.clone()).group), OpenError::Path);
    // A root that fits, which nobody voted for.
    let forged = |cluster: &Cluster, decision: &mut CompactDecision| {
        let genuine = decision.certificate.clone();
        *decision = CompactDecision { certificate: genuine, ..cluster.decision(5, other.clone()) };
    };
    assert_eq!(refused(forged), bad_signature(0));
    assert_eq!(refused(|_, decision| decision.header.height = Height(6)), bad_signature(0));
    assert_eq!(refused(|_, decision| decision.header.time.0 += 1), bad_signature(0));
    assert_eq!(refused(|_, decision| decision.header.signature.0[0] ^= 1), bad_signature(0));
}

#[test]
fn votes_of_another_round_height_kind_or_value_do_not_count() {
    assert_eq!(refused(|_, decision| decision.certificate.round = 4), bad_signature(0));
    let prevotes = |cluster: &Cluster, decision: &mut CompactDecision| {
        decision.certificate = cluster.certify_as(&decision.header, 3, VoteKind::Prevote, 0..3);
    };
    assert_eq!(refused(prevotes), bad_signature(0));
    let one_prevote = |cluster: &Cluster, decision: &mut CompactDecision| {
        decision.certificate.votes[1] = cluster.certify_as(&decision.header, 3, VoteKind::Prevote, [1]).votes[0];
    };
    assert_eq!(refused(one_prevote), bad_signature(1));
    let of_other_height = |cluster: &Cluster, decision: &mut CompactDecision| {
        let header = fastpay_ledger_statement::Header { height: Height(6), ..decision.header };
        decision.certificate = cluster.certify(&header, 3);
    };
    assert_eq!(refused(of_other_height), bad_signature(0));
}

#[test]
fn too_few_repeated_unknown_and_foreign_voters_do_not_count() {
    let count = |found| certificate(CertificateError::VoteCount { expected: 3, found });
    let unsorted = |member| certificate(CertificateError::VotesUnsorted(MemberIndex(member)));
    let alter = |alter: fn(&mut QuorumCertificate)| refused(|_, decision| alter(&mut decision.certificate));
    assert_eq!(alter(|votes| votes.votes.truncate(2)), count(2));
    assert_eq!(alter(|votes| votes.votes.clear()), count(0));
    let all = |cluster: &Cluster, decision: &mut CompactDecision| {
        decision.certificate = cluster.certify_as(&decision.header, 3, VoteKind::Precommit, 0..4);
    };
    assert_eq!(refused(all), count(4));
    assert_eq!(alter(|votes| votes.votes[2] = votes.votes[1]), unsorted(1));
    assert_eq!(alter(|votes| votes.votes.swap(0, 1)), unsorted(0));
    let unknown = certificate(CertificateError::UnknownMember(MemberIndex(4)));
    assert_eq!(alter(|votes| votes.votes[2].0 = MemberIndex(4)), unknown);
    // One member's signature under another's name.
    assert_eq!(alter(|votes| votes.votes[2].0 = MemberIndex(3)), bad_signature(3));
    assert_eq!(alter(|votes| votes.votes[1].1.0[40] ^= 1), bad_signature(1));
    assert_eq!(alter(|votes| votes.votes[1].1.0 = [0xff; 64]), bad_signature(1));
    // Keys of the attacker's own.
    let stranger = Cluster::new(DEPLOYMENT, 1, 4, 100);
    assert_eq!(refused(|_, decision| decision.certificate = stranger.certify(&decision.header, 3)), bad_signature(0));
}

#[test]
fn decisions_of_another_deployment_or_cluster_are_found() {
    let foreign = Deployment(Digest::repeat_byte(0xee));
    // The same keys in another deployment: replaying its decision names it.
    let elsewhere = Cluster::new(foreign, 1, 4, 1).decision(5, first_group());
    let other_deployment = certificate(CertificateError::Header(HeaderError::OtherDeployment(foreign)));
    assert_eq!(refused(|_, decision| *decision = elsewhere.clone()), other_deployment);
    // Relabelled, its votes are not for what it says.
    let relabelled = |_: &Cluster, decision: &mut CompactDecision| {
        decision.certificate = elsewhere.certificate.clone();
    };
    assert_eq!(refused(relabelled), bad_signature(0));

    let other_cluster = Cluster::new(DEPLOYMENT, 3, 4, 1).decision(5, first_group());
    let (expected, found) = (ClusterId(1), ClusterId(3));
    assert_eq!(
        refused(|_, decision| *decision = other_cluster),
        certificate(CertificateError::Header(HeaderError::OtherCluster { expected, found }))
    );
}

#[test]
fn a_group_for_another_receiver_is_found() {
    for found in [Receiver::Cluster(ClusterId(3)), Receiver::Clients, Receiver::Committee(Default::default())] {
        // A genuine group of the same decision, and ours under another name.
        let theirs = Group { to: found, ..first_group() };
        let expected = OpenError::OtherReceiver { receiver: US, found };
        assert_eq!(refused(|cluster, decision| *decision = cluster.decision(5, theirs)), expected);
        assert_eq!(refused(|_, decision| decision.group.to = found), expected);
    }
}

#[test]
fn a_replay_a_gap_and_a_second_history_are_told_apart() {
    let cluster = Cluster::first();
    let decision = cluster.decision(5, first_group());
    let cursor = cluster.open(decision.clone(), Cursor::default()).unwrap().cursor();
    assert_eq!(cluster.open(decision, cursor), Err(OpenError::AlreadyTaken { next: 2, found: 1 }));

    let third = Group { to: US, number: 3, previous: Digest::ZERO, messages: vec![] };
    assert_eq!(cluster.open(cluster.decision(7, third), cursor), Err(OpenError::Missing { next: 2, found: 3 }));
    let forked = Group { to: US, number: 2, previous: Digest::repeat_byte(9), messages: vec![] };
    assert_eq!(cluster.open(cluster.decision(6, forked), cursor), Err(OpenError::OtherHistory { number: 2 }));
}

/// Nobody but a quorum raises the alarm of a fork, or makes a receiver ask for groups that do not exist.
#[test]
fn a_forged_group_is_named_by_its_signature_whatever_it_claims_to_continue() {
    let cluster = Cluster::first();
    let cursor = cluster.open(cluster.decision(5, first_group()), Cursor::default()).unwrap().cursor();
    for (number, previous) in [(2, Digest::repeat_byte(9)), (1, Digest::ZERO), (3, Digest::ZERO)] {
        let mut forged = cluster.decision(6, Group { to: US, number, previous, messages: vec![] });
        forged.certificate.votes[0].1.0[0] ^= 1;
        assert_eq!(cluster.open(forged, cursor), Err(bad_signature(0)));
    }
}

/// A verdict in a batch is the one that the decision gets alone.
#[test]
fn one_bad_decision_spoils_no_other_of_its_batch() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let clusters: Vec<_> =
        (0..3).map(|at| Cluster::new(DEPLOYMENT, 20 + at, 4 + at as u8, 40 * at as u8 + 1)).collect();
    let mut verifier = StatementVerifier::default();
    for _ in 0..20 {
        let batch: Vec<_> = (0..random.usize(1..12))
            .map(|_| {
                let cluster = &clusters[random.usize(0..3)];
                let mut decision = cluster.decision(random.u64(1..100), first_group());
                match random.u8(0..8) {
                    0 => drop(decision.group.messages.pop()),
                    1 => drop(decision.certificate.votes.pop()),
                    2 => decision.certificate.votes[1].1.0[random.usize(0..64)] ^= 1 << random.u8(0..8),
                    3 => decision.certificate.round += 1,
                    4 => decision.header.state.0[random.usize(0..32)] ^= 1,
                    _ => {}
                }
                (decision, cluster)
            })
            .collect();
        let together =
            batch.iter().map(|(decision, cluster)| (decision.clone(), &cluster.members, Cursor::default())).collect();
        let together = verifier.open(US, together, &mut rand::rng());
        let alone: Vec<_> = batch.iter().map(|(decision, c)| c.open(decision.clone(), Cursor::default())).collect();
        assert_eq!(together, alone, "seed {seed}");
    }
}
