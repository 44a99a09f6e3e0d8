//! Redemptions and rotations, by the contract's rules.

use fastpay_core::{
    AccountId, Amount, Asset, AuthorityName, Balance, Committee, Domain, EcdsaSignature, Epoch, PrimaryAddress,
    Redemption, SequenceNumber, TransactionIndex,
};
use fastpay_ledger_state::DEADLINE_MAX_S;
use fastpay_ledger_statement::{Action, EventKind, Outcome, Redeemed, Rejection, Rotation, StateKey};

use crate::people::{FAR, account, authorities, certified, client, committee, redemption, rotation, sign_rotation};
use crate::reserves::facts;
use crate::world::{COMMITTEE, ISSUED_EACH, OTHER_COMMITTEE, VALIDITY_MS, World};

/// 500 are in FastPay accounts.
fn funded(shards: u32) -> (World, Domain) {
    let mut world = World::new(shards);
    world.act(0, Action::Open).unwrap();
    let (asset, amount) = (Asset::ETHER, Amount(500));
    world.act(0, Action::Fund { committee: COMMITTEE, account: account(1), asset, amount }).unwrap();
    let domain = world.layout().deployment().domain(COMMITTEE);
    (world, domain)
}

fn address(at: u8) -> PrimaryAddress {
    client(at).account().ethereum_address().unwrap()
}

#[test]
fn a_redemption_is_paid_once_with_its_fee_in_any_order_of_numbers() {
    for shards in [1, 2, 4] {
        let (mut world, domain) = funded(shards);
        for (index, sequence) in [(2, 300), (3, 0), (4, 299), (5, u64::MAX - 1)] {
            let action = certified(&domain, 0, redemption(1, sequence, address(1), 40, 3));
            let paid = Outcome::Redeemed(TransactionIndex(index));
            assert_eq!(world.act(3, action.clone()), Ok(paid));
            assert_eq!(world.act(4, action), Err(Rejection::AlreadyRedeemed), "by another relayer");
        }
        assert_eq!(world.omnibus(), 500 - 4 * 40);
        assert_eq!(world.reserve(client(1).account()), ISSUED_EACH + 4 * 37);
        assert_eq!(world.reserve(client(3).account()), ISSUED_EACH + 4 * 3);
        let events = world.events();
        assert!(events.iter().zip(1..).all(|(event, index)| event.index == TransactionIndex(index)));
        let EventKind::Redeemed { redemption: paid, relayer } = &events[1].kind else { panic!() };
        assert_eq!((paid, relayer), (&redemption(1, 300, address(1), 40, 3), &client(3).account()));
        assert_eq!(world.total(), world.issued());
    }
}

/// Another redemption of the same number is the same right, spent.
#[test]
fn a_number_is_spent_whatever_its_redemption_says() {
    let (mut world, domain) = funded(1);
    let paid = redemption(1, 5, address(1), 40, 0);
    world.act(3, certified(&domain, 0, paid.clone())).unwrap();
    let other = certified(&domain, 0, redemption(1, 5, address(3), 41, 1));
    assert_eq!(world.act(4, other), Err(Rejection::AlreadyRedeemed));
    // The state proves for what.
    let digest = domain.transfer_digest(&paid.into());
    let known = Redeemed { digest, index: TransactionIndex(2), relayer: client(3).account() };
    let key = StateKey::Redeemed(COMMITTEE, account(1), SequenceNumber(5));
    assert_eq!(world.read(world.settlement(), &key), Some(known));
    // Of another account it is another number.
    assert!(world.act(3, certified(&domain, 0, redemption(2, 5, address(1), 1, 0))).is_ok());
}

#[test]
fn every_bad_redemption_has_its_error_and_changes_nothing() {
    let (mut world, domain) = funded(2);
    let good = redemption(1, 0, address(1), 40, 3);
    let [a, b, c, d] = authorities(0).iter().map(|keys| keys.public().name).collect::<Vec<AuthorityName>>()[..] else {
        panic!("four authorities")
    };
    let refused = |world: &mut World, redemption: Redemption, alter: &dyn Fn(&mut Action), expected| {
        let mut action = certified(&domain, 0, redemption);
        alter(&mut action);
        let before = facts(world);
        assert_eq!(world.act(3, action), Err(expected));
        assert_eq!(facts(world), before);
    };
    let votes = |alter: &'static dyn Fn(&mut Vec<fastpay_core::ContractVote>)| {
        move |action: &mut Action| match action {
            Action::Redeem { votes, .. } => alter(votes),
            _ => panic!("a redemption"),
        }
    };
    let count = |found| Rejection::VoteCount { expected: 3, found };
    refused(&mut world, good.clone(), &votes(&|votes| votes.truncate(2)), count(2));
    refused(&mut world, good.clone(), &votes(&|votes| votes.push(votes[0].clone())), count(4));
    refused(&mut world, good.clone(), &votes(&|votes| votes[1] = votes[0].clone()), Rejection::VotesUnsorted(a));
    refused(&mut world, good.clone(), &votes(&|votes| votes.swap(1, 2)), Rejection::VotesUnsorted(b));
    refused(
        &mut world,
        good.clone(),
        &votes(&|votes| votes[2].authority = authorities(0)[3].public().name),
        Rejection::InvalidVote(d),
    );
    refused(
        &mut world,
        good.clone(),
        &votes(&|votes| votes[2].signature = EcdsaSignature([27; 65])),
        Rejection::InvalidVote(c),
    );
    let foreign = AuthorityName([0xff; 32]);
    refused(
        &mut world,
        good.clone(),
        &votes(&|votes| votes[2].authority = AuthorityName([0xff; 32])),
        Rejection::InvalidVote(foreign),
    );
    let altered = |action: &mut Action| match action {
        Action::Redeem { redemption, .. } => redemption.amount = Amount(41),
        _ => panic!("a redemption"),
    };
    refused(&mut world, good.clone(), &altered, Rejection::InvalidVote(a));
    let other_epoch = |action: &mut Action| match action {
        Action::Redeem { epoch, .. } => *epoch = Epoch(1),
        _ => panic!("a redemption"),
    };
    refused(&mut world, good.clone(), &other_epoch, Rejection::UnknownEpoch(Epoch(1)));
    let other_committee = |action: &mut Action| match action {
        Action::Redeem { committee, .. } => committee.0 = 9,
        _ => panic!("a redemption"),
    };
    let unknown = Rejection::UnknownCommittee(fastpay_ledger_statement::CommitteeNumber(9));
    refused(&mut world, good, &other_committee, unknown);
    let plain = |_: &mut Action| ();
    refused(&mut world, redemption(1, 0, address(1), 0, 0), &plain, Rejection::ZeroAmount);
    refused(&mut world, redemption(1, 0, address(1), 4, 5), &plain, Rejection::FeeAboveAmount);
    refused(&mut world, redemption(1, 0, address(1), 501, 0), &plain, Rejection::OmnibusTooLow(Amount(500)));
    // Signed for another deployment, with the same keys.
    let elsewhere = certified(&Domain::new(1, domain.contract()), 0, redemption(1, 0, address(1), 40, 3));
    let before = facts(&world);
    assert_eq!(world.act(3, elsewhere), Err(Rejection::InvalidVote(a)));
    assert_eq!(facts(&world), before);
}

fn rotate(world: &mut World, domain: &Domain, epoch: u8, compromised: u8) -> Result<Outcome, Rejection> {
    world.act(5, Action::Rotate(Box::new(rotation(domain, epoch, compromised, FAR))))
}

#[test]
fn votes_of_the_epoch_before_count_for_a_while_and_older_ones_never() {
    let (mut world, domain) = funded(2);
    let pay = |world: &mut World, epoch: u8, sequence: u64| {
        world.act(3, certified(&domain, epoch, redemption(1, sequence, address(1), 1, 0)))
    };
    let rotated = Outcome::Rotated(Epoch(1), TransactionIndex(2));
    assert_eq!(rotate(&mut world, &domain, 1, 1), Ok(rotated));
    assert!(pay(&mut world, 0, 0).is_ok());
    assert!(pay(&mut world, 1, 1).is_ok());

    // Until exactly the end, and not a step longer.
    let settlement = world.settlement();
    let (_, until): (Epoch, Option<fastpay_ledger_statement::Time>) =
        world.read(settlement, &fastpay_ledger_statement::StateKey::Epoch(COMMITTEE)).unwrap();
    let until = until.unwrap();
    assert!(until.0 > world.clusters[&settlement].moment.time.0);
    assert!(until.0 <= world.clusters[&settlement].moment.time.0 + VALIDITY_MS);
    let last = certified(&domain, 0, redemption(1, 2, address(1), 1, 0));
    let request = world.sign(3, last).verify(world.layout().deployment()).unwrap();
    world.clusters.get_mut(&settlement).unwrap().moment.time.0 = until.0 - 100;
    world.decide(settlement, vec![], vec![request.clone()]).unwrap();
    assert!(world.answers[&request.digest()].is_ok());
    assert_eq!(pay(&mut world, 0, 3), Err(Rejection::EpochEnded(Epoch(0), until)));

    // Two epochs back, they do not count even at once.
    assert!(rotate(&mut world, &domain, 2, 2).is_ok());
    assert!(matches!(pay(&mut world, 0, 4), Err(Rejection::EpochEnded(Epoch(0), _))));
    assert!(pay(&mut world, 1, 5).is_ok());
    assert_eq!(pay(&mut world, 3, 6), Err(Rejection::UnknownEpoch(Epoch(3))));
    // Where keys were out, those of the epoch before do not count at all.
    assert!(rotate(&mut world, &domain, 3, 2).is_ok());
    assert!(matches!(pay(&mut world, 2, 7), Err(Rejection::EpochEnded(Epoch(2), _))));
    assert!(pay(&mut world, 3, 8).is_ok());
    let events = world.events();
    let EventKind::Rotated { committee, compromised_since, .. } = &events[1].kind else { panic!("{events:?}") };
    assert_eq!((committee, *compromised_since), (&crate::people::committee(1), Epoch(1)));
}

#[test]
fn a_rotation_needs_both_quorums_on_the_same_announcement() {
    let (mut world, domain) = funded(2);
    let good = rotation(&domain, 1, 1, FAR);
    let refused = |world: &mut World, alter: &dyn Fn(&mut fastpay_ledger_statement::Rotation), expected| {
        let mut rotation = good.clone();
        alter(&mut rotation);
        let before = facts(world);
        assert_eq!(world.act(5, Action::Rotate(Box::new(rotation))), Err(expected));
        assert_eq!(facts(world), before);
    };
    let of = |epoch: u8, at: usize| authorities(epoch)[at].public().name;
    let count = Rejection::VoteCount { expected: 3, found: 2 };
    refused(&mut world, &|r| r.announcing.truncate(2), count);
    refused(&mut world, &|r| r.accepting.truncate(2), count);
    refused(&mut world, &|r| r.announcing = r.accepting.clone(), Rejection::InvalidVote(of(1, 0)));
    refused(&mut world, &|r| r.accepting = r.announcing.clone(), Rejection::InvalidVote(of(0, 0)));
    refused(&mut world, &|r| r.checkpoint.0[0] ^= 1, Rejection::InvalidVote(of(0, 0)));
    refused(&mut world, &|r| r.compromised_since = Epoch(0), Rejection::InvalidVote(of(0, 0)));
    refused(&mut world, &|r| r.compromised_since = Epoch(2), Rejection::InvalidCompromise);
    refused(&mut world, &|r| r.deadline -= 1, Rejection::InvalidVote(of(0, 0)));
    // Other members for the same epoch, whom nobody announced.
    let others = |epoch: u64, of: u8| Committee::new(Epoch(epoch), committee(of).members().to_vec()).unwrap();
    refused(&mut world, &|r| r.next = others(1, 2), Rejection::InvalidVote(of(0, 0)));
    let skipped = |r: &mut fastpay_ledger_statement::Rotation| r.next = crate::people::committee(2);
    refused(&mut world, &skipped, Rejection::WrongNextEpoch(Epoch(1)));
    assert!(world.act(5, Action::Rotate(Box::new(good.clone()))).is_ok());
    refused(&mut world, &|_| (), Rejection::WrongNextEpoch(Epoch(2)));

    // The committee before the current one announces nothing, while its redemption votes still count.
    let second = sign_rotation(&domain, committee(2), Epoch(2), FAR, [0, 2]);
    let before = facts(&world);
    let refused = Rejection::InvalidVote(of(0, 0));
    assert_eq!(world.act(5, Action::Rotate(Box::new(second))), Err(refused));
    assert_eq!(facts(&world), before);
    assert!(world.act(3, certified(&domain, 0, redemption(1, 0, address(1), 1, 0))).is_ok());
    assert!(rotate(&mut world, &domain, 2, 2).is_ok());
}

/// The last second counts, on both sides.
#[test]
fn a_rotation_is_taken_until_its_deadline_which_is_thirty_days_ahead_at_most() {
    let now = 2_000_000;
    let answer = |deadline| {
        let (mut world, domain) = funded(1);
        let settlement = world.settlement();
        let action = Action::Rotate(Box::new(rotation(&domain, 1, 1, deadline)));
        let request = world.sign(5, action).verify(world.layout().deployment()).unwrap();
        // A height takes 100 ms in this world: the end of the second.
        world.clusters.get_mut(&settlement).unwrap().moment.time.0 = now * 1_000 + 899;
        let before = facts(&world);
        world.decide(settlement, vec![], vec![request.clone()]).unwrap();
        let answer = world.answers[&request.digest()].clone();
        assert_eq!(facts(&world) == before, answer.is_err());
        answer
    };
    assert_eq!(answer(now - 1), Err(Rejection::DeadlinePassed(now - 1)));
    assert!(answer(now).is_ok());
    let latest = now + DEADLINE_MAX_S;
    assert!(answer(latest).is_ok());
    assert_eq!(answer(latest + 1), Err(Rejection::DeadlineTooFar(latest)));
}

/// Two committees have the same members, and each its own accounts, numbers, events and epochs.
#[test]
fn what_one_committee_signed_is_worth_nothing_at_another_of_the_same_members() {
    let (mut world, domain) = funded(2);
    let deployment = world.layout().deployment();
    let (asset, amount) = (Asset::ETHER, Amount(100));
    world.act(0, Action::Fund { committee: OTHER_COMMITTEE, account: account(1), asset, amount }).unwrap();
    let to_other = |action: Action| match action {
        Action::Redeem { redemption, epoch, votes, .. } => {
            Action::Redeem { committee: OTHER_COMMITTEE, redemption, epoch, votes }
        }
        Action::Rotate(rotation) => Action::Rotate(Box::new(Rotation { committee: OTHER_COMMITTEE, ..*rotation })),
        other => panic!("{other:?}"),
    };
    let facts_of_other = |world: &World| {
        let keys = [
            StateKey::Omnibus(OTHER_COMMITTEE, asset),
            StateKey::EventIndex(OTHER_COMMITTEE),
            StateKey::Redeemed(OTHER_COMMITTEE, account(1), SequenceNumber(0)),
            StateKey::Committee(OTHER_COMMITTEE, Epoch(1)),
            StateKey::Epoch(OTHER_COMMITTEE),
        ];
        let settlement = &world.clusters[&world.settlement()].state;
        keys.map(|key| settlement.read(&key).map(<[u8]>::to_vec))
    };
    let first = authorities(0)[0].public().name;
    let before = facts_of_other(&world);
    let order = redemption(1, 0, address(1), 40, 3);
    let paid = certified(&domain, 0, order.clone());
    let rotated = Action::Rotate(Box::new(rotation(&domain, 1, 1, FAR)));
    for action in [&paid, &rotated] {
        assert_eq!(world.act(3, to_other(action.clone())), Err(Rejection::InvalidVote(first)));
        assert!(world.act(3, action.clone()).is_ok());
        assert_eq!(world.act(3, to_other(action.clone())), Err(Rejection::InvalidVote(first)));
    }
    assert_eq!(facts_of_other(&world), before);
    assert_eq!(world.omnibus(), 500 - 40);

    // Signed for it, the same order is one of its own. It is still in epoch 0.
    let theirs = to_other(certified(&deployment.domain(OTHER_COMMITTEE), 0, order));
    assert_eq!(world.act(3, theirs), Ok(Outcome::Redeemed(TransactionIndex(2))));
    assert_eq!(world.omnibus(), 500 - 40);
    let left: Balance = world.read(world.settlement(), &StateKey::Omnibus(OTHER_COMMITTEE, asset)).unwrap();
    assert_eq!(left, Balance::from(Amount(60)));
    assert_eq!(world.total(), world.issued());
}

/// An instruction for the settlement cluster that is signed for a shard.
#[test]
fn committees_are_kept_at_the_settlement_cluster_alone() {
    let (mut world, domain) = funded(2);
    let (deployment, shard) = (world.layout().deployment(), world.partition().first_shard);
    let action = certified(&domain, 0, redemption(1, 0, address(1), 1, 0));
    let (signer, sequence) = (client(3).account(), world.next(3, shard));
    let instruction = fastpay_ledger_statement::Instruction { deployment, shard, signer, sequence, action };
    let request = fastpay_ledger_statement::Request::Instruct(Box::new(instruction.signed(&client(3))));
    let settlement = world.settlement();
    assert_eq!(world.ask(shard, request), Err(Rejection::OtherShard(settlement)));
    assert_eq!(world.reserve(AccountId::from_ethereum(address(1))), ISSUED_EACH);
}
