//! What a voter checks of a header, and what the engine's certificate becomes.

use fastpay_core::{Digest, DigestVerifier};
use fastpay_ledger_statement::{
    CLOCK_AHEAD_MS_MAX, CLOCK_BEHIND_MS_MAX, CommitteeNumber, Deployment, Header, HeaderError, Height, MemberIndex,
    QuorumCertificate, StatementVerifier, Time, VoteKind, VoteStatement, payload_digest,
};

use crate::fixture::{Cluster, DEPLOYMENT};

#[test]
fn only_a_member_makes_a_header() {
    let cluster = Cluster::first();
    let header = cluster.header(1, Digest::ZERO, Digest::ZERO);
    let check = |header: Header| header.check_made(&cluster.members, &mut DigestVerifier::new(4), &mut rand::rng());
    assert_eq!(check(header), Ok(()));
    assert_eq!(check(Header { time: Time(9), ..header }), Err(HeaderError::NotByMaker(MemberIndex(0))));
    // The round's proposer is not the maker.
    assert_eq!(check(Header { maker: MemberIndex(1), ..header }), Err(HeaderError::NotByMaker(MemberIndex(1))));
    assert_eq!(check(Header { maker: MemberIndex(4), ..header }), Err(HeaderError::UnknownMaker(MemberIndex(4))));
    let other = Cluster::new(Deployment(Digest::ZERO), 1, 4, 1).header(1, Digest::ZERO, Digest::ZERO);
    assert_eq!(check(other), Err(HeaderError::OtherDeployment(Deployment(Digest::ZERO))));
}

#[test]
fn headers_follow_each_other_without_gap_and_time_only_goes_on() {
    let cluster = Cluster::first();
    let first = Header { parent: Digest::ZERO, ..cluster.header(1, Digest::ZERO, Digest::ZERO) };
    assert_eq!(first.check_follows(None), Ok(()));
    let second = Header { parent: first.id(), ..cluster.header(2, Digest::ZERO, Digest::ZERO) };
    assert_eq!(second.check_follows(Some(&first)), Ok(()));
    let refused = |header: Header| header.check_follows(Some(&first)).unwrap_err();
    assert_eq!(refused(Header { parent: Digest::ZERO, ..second }), HeaderError::Parent);
    let found = Height(3);
    assert_eq!(refused(Header { height: found, ..second }), HeaderError::Height { after: Height(1), found });
    assert_eq!(refused(first), HeaderError::Height { after: Height(1), found: Height(1) });
    let standing = HeaderError::TimeNotAfterParent { parent: first.time, found: first.time };
    assert_eq!(refused(Header { time: first.time, ..second }), standing);
}

#[test]
fn a_new_proposal_is_near_the_voters_clock() {
    let header = Cluster::first().header(1, Digest::ZERO, Digest::ZERO);
    let time = header.time.0;
    for now in [time - CLOCK_AHEAD_MS_MAX, time, time + CLOCK_BEHIND_MS_MAX] {
        assert_eq!(header.check_clock(Time(now)), Ok(()));
    }
    for now in [time - CLOCK_AHEAD_MS_MAX - 1, time + CLOCK_BEHIND_MS_MAX + 1] {
        let now = Time(now);
        assert_eq!(header.check_clock(now), Err(HeaderError::Clock { now, found: header.time }));
    }
}

/// The engine names voters by key, in its own order, and may have more than a quorum.
#[test]
fn the_votes_of_the_engine_become_a_certificate() {
    let cluster = Cluster::first();
    let header = cluster.header(1, Digest::ZERO, Digest::ZERO);
    let statement = VoteStatement {
        deployment: DEPLOYMENT,
        cluster: header.cluster,
        height: header.height,
        round: 2,
        kind: VoteKind::Precommit,
        value: Some(header.id()),
    };
    let votes: Vec<_> =
        [3, 1, 0, 1, 2].map(|at: usize| (cluster.keys[at].public(), cluster.keys[at].sign(statement.digest()))).into();
    let certificate = QuorumCertificate::of_votes(&cluster.members, 2, &votes).unwrap();
    assert_eq!(certificate, cluster.certify(&header, 2));
    let mut verifier = StatementVerifier::default();
    assert_eq!(verifier.check(&header, &certificate, &cluster.members, &mut rand::rng()), Ok(()));

    assert_eq!(QuorumCertificate::of_votes(&cluster.members, 2, &votes[..2]), None);
    assert_eq!(QuorumCertificate::of_votes(&cluster.members, 2, &votes[1..4]), None, "one of them twice");
    let stranger = Cluster::new(DEPLOYMENT, 1, 4, 100).keys[0].public();
    let foreign = [votes.as_slice(), &[(stranger, votes[0].1)]].concat();
    assert_eq!(QuorumCertificate::of_votes(&cluster.members, 2, &foreign), None);
}

#[test]
fn every_field_of_a_vote_and_of_a_header_is_in_its_digest() {
    let header = Cluster::first().header(1, Digest::ZERO, Digest::ZERO);
    let vote = VoteStatement {
        deployment: DEPLOYMENT,
        cluster: header.cluster,
        height: header.height,
        round: 2,
        kind: VoteKind::Precommit,
        value: Some(header.id()),
    };
    let others = [
        VoteStatement { deployment: Deployment(Digest::ZERO), ..vote },
        VoteStatement { cluster: Default::default(), ..vote },
        VoteStatement { height: Height(2), ..vote },
        VoteStatement { round: 3, ..vote },
        VoteStatement { kind: VoteKind::Prevote, ..vote },
        VoteStatement { value: Some(Digest::ZERO), ..vote },
        VoteStatement { value: None, ..vote },
    ];
    let mut digests: Vec<_> = others.iter().chain([&vote]).map(VoteStatement::digest).collect();
    let mut signature = header.signature;
    signature.0[5] ^= 1;
    let (one, two) = (Digest::repeat_byte(1), Digest::repeat_byte(2));
    let headers = [
        header,
        Header { deployment: Deployment(one), ..header },
        Header { cluster: Default::default(), ..header },
        Header { height: Height(2), ..header },
        Header { time: Time(1), ..header },
        Header { parent: one, ..header },
        Header { inputs: one, ..header },
        Header { state: one, ..header },
        Header { state: two, ..header },
        Header { outputs: one, ..header },
        Header { maker: MemberIndex(1), ..header },
        Header { signature, ..header },
    ];
    digests.extend(headers.iter().map(Header::id));
    // All but the signature are under the maker's signature; the statements are apart from each other.
    let [unsigned @ .., _] = &headers;
    digests.extend(unsigned.iter().map(Header::made_digest));
    assert_eq!(headers[11].made_digest(), header.made_digest());
    digests.push(payload_digest(b""));
    let count = digests.len();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), count);
}

#[test]
fn committees_of_one_ledger_and_of_two_have_different_domains() {
    let domains: Vec<_> = [DEPLOYMENT, Deployment(Digest::ZERO)]
        .into_iter()
        .flat_map(|deployment| (0..2).map(move |number| deployment.domain(CommitteeNumber(number))))
        .collect();
    for (at, domain) in domains.iter().enumerate() {
        assert_eq!(domain.chain_id(), 0);
        assert!(domains[..at].iter().all(|other| other != domain));
    }
}
