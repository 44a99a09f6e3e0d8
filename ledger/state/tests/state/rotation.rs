//! From one committee to the next, by the contract's rules.

use fastpay_core::{
    Committee, CouncilStatement, Digest, Domain, EcdsaSignature, Ed25519Signature, Epoch, PossessionProof,
    PrimaryAddress,
};
use fastpay_ledger_state::DEADLINE_MAX_S;
use fastpay_ledger_statement::{
    Action, Announcing, CommitteeNumber, CurrentEpoch, EventKind, NextCommittee, Outcome, Receiver, Rejection, Request,
    StateKey, Time,
};

use crate::committees::funded;
use crate::people::{
    FAR, GUARDIAN, accept, address, announce, authorities, certified, committee, council_votes, next, redemption,
};
use crate::reserves::facts;
use crate::world::{COMMITTEE, OTHER_COMMITTEE, PARAMETERS, STEP_MS, World};

const ANYBODY: usize = 5;

fn announced(world: &mut World, next: NextCommittee) -> Digest {
    let domain = world.domain();
    let id = next.id(&domain);
    let action = Action::Announce(Box::new(announce(&domain, next)));
    assert_eq!(world.act(ANYBODY, action), Ok(Outcome::Announced(id)));
    id
}

fn endorse(announcement: Digest) -> Action {
    Action::Endorse { committee: COMMITTEE, announcement }
}

fn mature(announcement: Digest) -> Action {
    Action::Mature { committee: COMMITTEE, announcement }
}

fn refused(world: &mut World, who: usize, action: Action, expected: Rejection) {
    let before = facts(world);
    assert_eq!(world.act(who, action), Err(expected));
    assert_eq!(facts(world), before);
}

/// The same at an exact time, at the settlement cluster.
fn refused_at(world: &mut World, time: Time, action: Action, expected: Rejection) {
    let before = facts(world);
    assert_eq!(world.settle_at(time, ANYBODY, action), Err(expected));
    assert_eq!(facts(world), before);
}

fn after(time: Time, ms: u64) -> Time {
    Time(time.0 + ms)
}

fn current(world: &World) -> CurrentEpoch {
    world.read(world.settlement(), &StateKey::Epoch(COMMITTEE)).unwrap()
}

#[test]
fn every_bad_announcement_has_its_error_and_changes_nothing() {
    let (mut world, domain) = funded(2);
    let good = announce(&domain, next(1, 1));
    let altered = |alter: &dyn Fn(&mut Announcing)| {
        let mut announcing = good.clone();
        alter(&mut announcing);
        Action::Announce(Box::new(announcing))
    };
    let mut refuse = |alter: &dyn Fn(&mut Announcing), expected| refused(&mut world, ANYBODY, altered(alter), expected);
    let of = |epoch: u8, at: usize| authorities(epoch)[at].public().name;
    refuse(&|of| of.votes.truncate(2), Rejection::VoteCount { expected: 3, found: 2 });
    refuse(&|of| of.votes.push(of.votes[0].clone()), Rejection::VoteCount { expected: 3, found: 4 });
    refuse(&|of| of.votes.swap(0, 1), Rejection::VotesUnsorted(of(0, 0)));
    // Whatever is announced is signed.
    let not_signed = Rejection::InvalidVote(of(0, 0));
    refuse(&|of| of.next.checkpoint.0[0] ^= 1, not_signed);
    refuse(&|of| of.next.compromised_since = Epoch(0), not_signed);
    refuse(&|of| of.next.guardian = address(1), not_signed);
    refuse(&|of| of.next.deadline -= 1, not_signed);
    let others = Committee::new(Epoch(1), committee(2).members().to_vec()).unwrap();
    refuse(&|of| of.next.committee = others.clone(), not_signed);
    // By the next committee itself, and on another statement.
    let statement = good.next.announcement();
    let own = council_votes(&domain, 1, &CouncilStatement::Announcement(&statement));
    refuse(&|of| of.votes = own.clone(), Rejection::InvalidVote(of(1, 0)));
    let heartbeat = CouncilStatement::Heartbeat { epoch: Epoch(0), block_hash: Digest::ZERO };
    let heartbeat = council_votes(&domain, 0, &heartbeat);
    refuse(&|of| of.votes = heartbeat.clone(), not_signed);

    refuse(&|of| of.next.compromised_since = Epoch(2), Rejection::InvalidCompromise);
    refuse(&|of| of.next = next(2, 2), Rejection::WrongNextEpoch(Epoch(1)));
    let again = Committee::new(Epoch(0), committee(1).members().to_vec()).unwrap();
    refuse(&|of| of.next.committee = again.clone(), Rejection::WrongNextEpoch(Epoch(1)));
    refuse(&|of| of.committee = CommitteeNumber(9), Rejection::UnknownCommittee(CommitteeNumber(9)));
    refuse(&|of| of.committee = OTHER_COMMITTEE, not_signed);

    // Both keys of each member, for this committee.
    let count = |found| Rejection::ProofCount { expected: 4, found };
    refuse(&|of| of.proofs.truncate(3), count(3));
    refuse(&|of| of.proofs.push(of.proofs[0]), count(5));
    refuse(&|of| of.proofs.swap(0, 1), Rejection::NoPossession(of(1, 0)));
    refuse(&|of| of.proofs[3].redemption_signature = EcdsaSignature([27; 65]), Rejection::NoPossession(of(1, 3)));
    refuse(&|of| of.proofs[3].voting_signature = Ed25519Signature([0; 64]), Rejection::NoPossession(of(1, 3)));
    let elsewhere = PossessionProof::new(&authorities(1)[2], &Domain::new(1, domain.contract()));
    refuse(&|of| of.proofs[2] = elsewhere.into(), Rejection::NoPossession(of(1, 2)));

    announced(&mut world, good.next.clone());
    refused(&mut world, ANYBODY, altered(&|_| ()), Rejection::AlreadyAnnounced);
}

/// The last second counts, on both sides.
#[test]
fn an_announcement_is_taken_until_its_deadline_which_is_thirty_days_ahead_at_most() {
    let now = 2_000_000;
    let answer = |deadline| {
        let (mut world, domain) = funded(1);
        let action = Action::Announce(Box::new(announce(&domain, NextCommittee { deadline, ..next(1, 1) })));
        let before = facts(&world);
        // The end of the second.
        let answer = world.settle_at(Time(now * 1_000 + 999), ANYBODY, action);
        assert_eq!(facts(&world) == before, answer.is_err());
        answer
    };
    assert_eq!(answer(now - 1), Err(Rejection::DeadlinePassed(now - 1)));
    assert!(answer(now).is_ok());
    let latest = now + DEADLINE_MAX_S;
    assert!(answer(latest).is_ok());
    assert_eq!(answer(latest + 1), Err(Rejection::DeadlineTooFar(latest)));
}

#[test]
fn an_announcement_waits_for_long_and_with_an_endorsement_for_a_short_time_from_then_on() {
    // How long after the announcement it is endorsed, and can be installed.
    let (short, long) = (PARAMETERS.endorsed_delay_ms, PARAMETERS.announced_delay_ms);
    let cases = [(None, long), (Some(1_000), 1_000 + short), (Some(long - short), long), (Some(long - 1_000), long)];
    for (endorsed, expected) in cases {
        let (mut world, domain) = funded(1);
        let id = announced(&mut world, next(1, 1));
        let begin = world.announced(id).unwrap().announced_at;
        if let Some(ms) = endorsed {
            let by_guardian = world.settle_at(after(begin, ms), GUARDIAN.into(), endorse(id));
            assert_eq!(by_guardian, Ok(Outcome::Endorsed));
        }
        let at = after(begin, expected);
        let early = Rejection::NotInstallable(at);
        refused_at(&mut world, Time(at.0 - 1), mature(id), early);
        assert_eq!(world.settle_at(at, ANYBODY, mature(id)), Ok(Outcome::Matured));
        let accepted = accept(&domain, 1, id, &world.announced(id).unwrap());
        let installed = world.settle_at(after(at, STEP_MS), ANYBODY, accepted);
        assert_eq!(installed, Ok(Outcome::Installed(Epoch(1), fastpay_core::TransactionIndex(2))));
    }
}

#[test]
fn only_the_guardian_endorses_and_once() {
    let (mut world, _) = funded(2);
    let id = announced(&mut world, NextCommittee { guardian: PrimaryAddress::ZERO, ..next(1, 1) });
    let guardian = usize::from(GUARDIAN);
    let stranger = Rejection::NotGuardian(address(GUARDIAN));
    refused(&mut world, 1, endorse(id), stranger);
    refused(&mut world, guardian, endorse(Digest::ZERO), Rejection::NotAnnounced);
    assert_eq!(world.act(guardian, endorse(id)), Ok(Outcome::Endorsed));
    refused(&mut world, guardian, endorse(id), Rejection::AlreadyEndorsed);
    // The next committee has none, so nobody endorses what it announces.
    world.wait_until(world.announced(id).unwrap().installable_at(&PARAMETERS));
    world.act(ANYBODY, mature(id)).unwrap();
    let accepted = accept(&world.domain(), 1, id, &world.announced(id).unwrap());
    world.act(ANYBODY, accepted).unwrap();
    let id = announced(&mut world, next(2, 2));
    refused(&mut world, guardian, endorse(id), Rejection::NotGuardian(PrimaryAddress::ZERO));
}

#[test]
fn an_announcement_lapses_and_an_endorsement_does_not_change_when() {
    let lapses = PARAMETERS.announced_delay_ms + PARAMETERS.lapse_ms;
    for is_endorsed in [false, true] {
        let begun = || {
            let (mut world, _) = funded(1);
            let id = announced(&mut world, next(1, 1));
            let last = after(world.announced(id).unwrap().announced_at, lapses);
            if is_endorsed {
                world.act(GUARDIAN.into(), endorse(id)).unwrap();
            }
            (world, id, last)
        };
        let matured = || {
            let (mut world, id, last) = begun();
            assert_eq!(world.settle_at(Time(last.0 - STEP_MS), ANYBODY, mature(id)), Ok(Outcome::Matured));
            let install = accept(&world.domain(), 1, id, &world.announced(id).unwrap());
            (world, install, last)
        };
        // Exactly until then.
        let (mut world, install, last) = matured();
        assert!(world.settle_at(last, ANYBODY, install).is_ok());
        let (mut world, install, last) = matured();
        let (over, lapsed) = (Time(last.0 + 1), Rejection::AnnouncementLapsed(last));
        refused_at(&mut world, over, install, lapsed);
        let (mut world, id, _) = begun();
        refused_at(&mut world, over, mature(id), lapsed);
        refused(&mut world, GUARDIAN.into(), endorse(id), lapsed);
    }
}

#[test]
fn an_acceptance_names_a_group_of_after_the_delay_and_is_by_a_quorum_of_the_next_committee() {
    let (mut world, domain) = funded(2);
    let id = announced(&mut world, next(1, 1));
    let open = world.announced(id).unwrap();
    let install = |votes| Action::Install { committee: COMMITTEE, announcement: id, votes };
    let at = open.installable_at(&PARAMETERS);
    refused(&mut world, ANYBODY, install(vec![]), Rejection::NotInstallable(at));
    world.wait_until(at);
    refused(&mut world, ANYBODY, install(vec![]), Rejection::NotMatured);
    refused(&mut world, ANYBODY, mature(Digest::ZERO), Rejection::NotAnnounced);
    let before = world.clusters[&world.settlement()].moment.time;
    assert_eq!(world.act(ANYBODY, mature(id)), Ok(Outcome::Matured));
    refused(&mut world, ANYBODY, mature(id), Rejection::AlreadyMatured);

    // The group of that very height, which is sent for it.
    let open = world.announced(id).unwrap();
    let groups = &world.clusters[&world.settlement()].sent[&Receiver::Committee(COMMITTEE)];
    let digest = |of: &fastpay_ledger_statement::CompactDecision| {
        of.group.head().digest(of.header.deployment, of.header.cluster)
    };
    let named = groups.iter().find(|of| Some(digest(of)) == open.matured).unwrap();
    assert!(named.header.time >= at && named.header.time > before && named.group.messages.is_empty());

    let votes = |by, statement: &CouncilStatement<'_>| council_votes(&domain, by, statement);
    let good = open.acceptance(id).unwrap();
    let of = |epoch: u8| authorities(epoch)[0].public().name;
    let count = Rejection::VoteCount { expected: 3, found: 2 };
    refused(&mut world, ANYBODY, install(votes(1, &good)[..2].to_vec()), count);
    refused(&mut world, ANYBODY, install(votes(0, &good)), Rejection::InvalidVote(of(0)));
    let (epoch, announcement, block_hash) = (Epoch(1), id, open.matured.unwrap());
    let others = [
        CouncilStatement::Acceptance { epoch, announcement, block_hash: Digest::ZERO },
        CouncilStatement::Acceptance { epoch, announcement: Digest::ZERO, block_hash },
        CouncilStatement::Acceptance { epoch: Epoch(2), announcement, block_hash },
        CouncilStatement::Announcement(&open.next.announcement()),
    ];
    for other in others {
        refused(&mut world, ANYBODY, install(votes(1, &other)), Rejection::InvalidVote(of(1)));
    }
    let unknown = CommitteeNumber(9);
    let nowhere = Action::Install { committee: unknown, announcement: id, votes: votes(1, &good) };
    refused(&mut world, ANYBODY, nowhere, Rejection::UnknownCommittee(unknown));
    let elsewhere = Action::Install { committee: OTHER_COMMITTEE, announcement: id, votes: votes(1, &good) };
    refused(&mut world, ANYBODY, elsewhere, Rejection::NotAnnounced);
    let unknown = Action::Install { committee: COMMITTEE, announcement: Digest::ZERO, votes: votes(1, &good) };
    refused(&mut world, ANYBODY, unknown, Rejection::NotAnnounced);
    assert!(world.act(ANYBODY, install(votes(1, &good))).is_ok());
}

/// It cannot be installed twice in one height either: what has matured names the group that ends the height.
#[test]
fn what_matures_is_not_installed_at_the_same_height() {
    let (mut world, _) = funded(1);
    let settlement = world.settlement();
    let id = announced(&mut world, next(1, 1));
    world.wait_until(world.announced(id).unwrap().installable_at(&PARAMETERS));
    let install = Action::Install { committee: COMMITTEE, announcement: id, votes: vec![] };
    let requests = [(1, mature(id)), (3, mature(id)), (4, install)].map(|(who, action)| {
        let request: Request = world.sign(who, action);
        request.verify(world.layout().deployment()).unwrap()
    });
    world.decide(settlement, vec![], requests.to_vec()).unwrap();
    let answers = requests.map(|request| world.answers[&request.digest()].clone());
    assert_eq!(answers, [Ok(Outcome::Matured), Err(Rejection::AlreadyMatured), Err(Rejection::NotMatured)]);
}

/// Nothing supersedes an announcement. An installation ends all others of its epoch.
#[test]
fn announcements_are_a_set_that_an_installation_ends() {
    let (mut world, domain) = funded(2);
    let all: Vec<Digest> =
        (0..3).map(|at| announced(&mut world, NextCommittee { deadline: FAR - at, ..next(1, 1) })).collect();
    let count: u64 = world.read(world.settlement(), &StateKey::AnnouncementCount(COMMITTEE)).unwrap();
    let id_at = |number| world.read(world.settlement(), &StateKey::AnnouncementId(COMMITTEE, number));
    assert_eq!((0..count).filter_map(id_at).collect::<Vec<Digest>>(), all);
    world.wait_until(world.announced(all[2]).unwrap().installable_at(&PARAMETERS));
    for id in &all[..2] {
        world.act(ANYBODY, mature(*id)).unwrap();
    }
    let accepted = |world: &World, id| accept(&domain, 1, id, &world.announced(id).unwrap());
    let (first, second) = (accepted(&world, all[0]), accepted(&world, all[1]));
    assert!(world.act(ANYBODY, second).is_ok());
    let ended = Rejection::AnnouncementEnded(Epoch(1));
    refused(&mut world, ANYBODY, first, ended);
    refused(&mut world, ANYBODY, mature(all[2]), ended);
    refused(&mut world, GUARDIAN.into(), endorse(all[2]), ended);

    // The committee before the current one announces nothing, while its redemption votes still count.
    let mut old = announce(&domain, next(2, 2));
    old.votes = council_votes(&domain, 0, &CouncilStatement::Announcement(&old.next.announcement()));
    let not_a_member = Rejection::InvalidVote(authorities(0)[0].public().name);
    refused(&mut world, ANYBODY, Action::Announce(Box::new(old)), not_a_member);
    assert!(world.act(3, certified(&domain, 0, redemption(1, 0, address(1), 1, 0))).is_ok());
    assert!(world.rotate(2, 2).is_ok());
}

#[test]
fn what_an_installation_fixes_is_kept_and_told() {
    let (mut world, domain) = funded(2);
    let guardian = address(1);
    let id = announced(&mut world, NextCommittee { guardian, ..next(1, 1) });
    world.wait_until(world.announced(id).unwrap().installable_at(&PARAMETERS));
    world.act(ANYBODY, mature(id)).unwrap();
    let accepted = accept(&domain, 1, id, &world.announced(id).unwrap());
    world.act(ANYBODY, accepted).unwrap();
    let now = current(&world);
    assert_eq!((now.epoch, now.guardian, &now.compromised[..]), (Epoch(1), guardian, &[][..]));
    assert_eq!(now.previous_counts_until, Some(after(now.began, PARAMETERS.votes_validity_ms)));
    let kept: Option<Committee> = world.read(world.settlement(), &StateKey::Committee(COMMITTEE, Epoch(1)));
    assert_eq!(kept, Some(committee(1)));
    let told = world.events().pop().unwrap().kind;
    let expected = EventKind::Installed {
        committee: committee(1),
        guardian,
        previous_counts_until: now.previous_counts_until,
        compromised_since: Epoch(1),
        checkpoint: Digest::repeat_byte(3),
    };
    assert_eq!(told, expected);
}

#[test]
fn compromised_epochs_are_remembered() {
    let (mut world, _) = funded(1);
    let compromised = |world: &World| {
        let now = current(world);
        (0..8).filter(|epoch| now.is_compromised(Epoch(*epoch))).collect::<Vec<u64>>()
    };
    let rotations = [(1, 1, vec![]), (2, 1, vec![1]), (3, 3, vec![1]), (4, 4, vec![1]), (5, 4, vec![1, 4])];
    for (epoch, since, expected) in rotations {
        assert!(world.rotate(epoch, since).is_ok());
        assert_eq!(compromised(&world), expected);
        assert_eq!(current(&world).previous_counts_until.is_some(), since == epoch);
    }
    // One that covers others takes their place.
    assert!(world.rotate(6, 1).is_ok());
    assert_eq!(compromised(&world), [1, 2, 3, 4, 5]);
    assert_eq!(current(&world).compromised, [(Epoch(1), Epoch(6))]);
}
