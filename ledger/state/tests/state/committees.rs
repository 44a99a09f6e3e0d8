//! Redemptions, by the contract's rules.

use fastpay_core::{
    AccountId, Amount, Asset, AuthorityName, Balance, ContractVote, Digest, Domain, EcdsaSignature, Epoch, Redemption,
    SequenceNumber, TransactionIndex,
};
use fastpay_ledger_statement::{
    Action, Announcing, CommitteeEvent, CommitteeNumber, CurrentEpoch, EventKind, Instruction, Outcome, Redeemed,
    Rejection, Request, RequestError, SpentOn, StateKey, Time,
};

use crate::people::{
    GUARDIAN, account, address, announce, authorities, certified, certified_batch, client, committee, next, redemption,
};
use crate::reserves::facts;
use crate::world::{COMMITTEE, ISSUED_EACH, OTHER_COMMITTEE, PARAMETERS, World};

/// 500 are in FastPay accounts.
pub fn funded(shards: u32) -> (World, Domain) {
    let mut world = World::new(shards);
    world.act(0, Action::Open).unwrap();
    let (asset, amount) = (Asset::ETHER, Amount(500));
    world.act(0, Action::Fund { committee: COMMITTEE, account: account(1), asset, amount }).unwrap();
    let domain = world.layout().deployment().domain(COMMITTEE);
    (world, domain)
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
    let key = StateKey::Spent(COMMITTEE, account(1), SequenceNumber(5));
    assert_eq!(world.read(world.settlement(), &key), Some(SpentOn::Redeemed(known)));
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
    let votes = |alter: &'static dyn Fn(&mut Vec<ContractVote>)| {
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
    let unknown = Rejection::UnknownCommittee(CommitteeNumber(9));
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

/// A redemption of an ended epoch is voted for again, together with others.
#[test]
fn redemptions_of_an_ended_epoch_are_paid_under_one_vote_of_the_current_one() {
    for shards in [1, 2, 4] {
        let (mut world, domain) = funded(shards);
        assert!(world.rotate(1, 1).is_ok());
        assert!(world.rotate(2, 2).is_ok());
        let orders: Vec<_> = [(1, 300), (2, 300), (1, 7)]
            .map(|(sender, sequence)| redemption(sender, sequence, address(1), 40, 3))
            .into();
        let old = world.act(3, certified(&domain, 0, orders[0].clone()));
        assert!(matches!(old, Err(Rejection::EpochEnded(Epoch(0), _))), "{old:?}");
        let old = world.act(3, certified_batch(&domain, 0, orders.clone()));
        assert!(matches!(old, Err(Rejection::EpochEnded(Epoch(0), _))), "{old:?}");
        // One of them is paid meanwhile.
        assert!(world.act(4, certified(&domain, 2, orders[1].clone())).is_ok());
        let again = certified_batch(&domain, 2, orders.clone());
        let paid = vec![Some(TransactionIndex(5)), None, Some(TransactionIndex(6))];
        assert_eq!(world.act(3, again.clone()), Ok(Outcome::RedeemedBatch(paid)));
        assert_eq!(world.act(4, again), Ok(Outcome::RedeemedBatch(vec![None; 3])), "by another relayer");
        assert_eq!(world.omnibus(), 500 - 3 * 40);
        assert_eq!(world.reserve(client(1).account()), ISSUED_EACH + 3 * 37);
        assert_eq!(world.reserve(client(3).account()), ISSUED_EACH + 2 * 3);
        let events = world.events();
        let told = |order: &Redemption| EventKind::Redeemed { redemption: order.clone(), relayer: client(3).account() };
        assert_eq!([&events[4].kind, &events[5].kind], [&told(&orders[0]), &told(&orders[2])]);
        assert_eq!((world.total(), world.overdrawn()), (world.issued(), vec![]));
    }
}

#[test]
fn every_bad_batch_has_its_error_and_changes_nothing() {
    let (mut world, domain) = funded(2);
    let orders = |amounts: &[(u128, u128)]| -> Vec<Redemption> {
        (0..).zip(amounts).map(|(at, (amount, fee))| redemption(1, at, address(1), *amount, *fee)).collect()
    };
    let good = orders(&[(40, 3), (50, 0)]);
    let refused = |world: &mut World, orders: Vec<Redemption>, alter: &dyn Fn(&mut Action), expected| {
        let mut action = certified_batch(&domain, 0, orders);
        alter(&mut action);
        let before = facts(world);
        assert_eq!(world.act(3, action), Err(expected));
        assert_eq!(facts(world), before);
    };
    let altered = |alter: &'static dyn Fn(&mut Vec<Redemption>, &mut Vec<ContractVote>)| {
        move |action: &mut Action| match action {
            Action::RedeemBatch { redemptions, votes, .. } => alter(redemptions, votes),
            _ => panic!("redemptions"),
        }
    };
    let [a, b] = [0, 1].map(|at| authorities(0)[at].public().name);
    let (plain, invalid) = (altered(&|_, _| ()), Rejection::InvalidVote(a));
    refused(&mut world, vec![], &plain, Rejection::EmptyBatch);
    let count = |found| Rejection::VoteCount { expected: 3, found };
    refused(&mut world, good.clone(), &altered(&|_, votes| votes.truncate(2)), count(2));
    refused(&mut world, good.clone(), &altered(&|_, votes| votes.push(votes[0].clone())), count(4));
    refused(&mut world, good.clone(), &altered(&|_, votes| votes.swap(1, 2)), Rejection::VotesUnsorted(b));
    // Others than were voted for: fewer, more, in another order, altered.
    refused(&mut world, good.clone(), &altered(&|orders, _| orders.truncate(1)), invalid);
    refused(&mut world, good.clone(), &altered(&|orders, _| orders.push(orders[0].clone())), invalid);
    refused(&mut world, good.clone(), &altered(&|orders, _| orders.swap(0, 1)), invalid);
    refused(&mut world, good.clone(), &altered(&|orders, _| orders[1].amount.0 += 1), invalid);
    // A vote for one is none for a batch of it, nor the other way round.
    let one = good[0].clone();
    let Action::Redeem { votes: of_one, .. } = certified(&domain, 0, one.clone()) else { panic!("a redemption") };
    let (committee, epoch) = (COMMITTEE, Epoch(0));
    let mixed = Action::RedeemBatch { committee, redemptions: vec![one.clone()], epoch, votes: of_one };
    let Action::RedeemBatch { votes, .. } = certified_batch(&domain, 0, vec![one.clone()]) else { panic!("a batch") };
    for action in [mixed, Action::Redeem { committee, redemption: one, epoch, votes }] {
        assert_eq!(world.act(3, action), Err(invalid));
    }
    let set = |alter: &'static dyn Fn(&mut Action)| alter;
    let other_epoch = set(&|action| match action {
        Action::RedeemBatch { epoch, .. } => *epoch = Epoch(1),
        _ => panic!("redemptions"),
    });
    refused(&mut world, good.clone(), other_epoch, Rejection::UnknownEpoch(Epoch(1)));
    let nowhere = set(&|action| match action {
        Action::RedeemBatch { committee, .. } => committee.0 = 9,
        _ => panic!("redemptions"),
    });
    refused(&mut world, good.clone(), nowhere, Rejection::UnknownCommittee(CommitteeNumber(9)));
    // What one of them fails for, all do.
    refused(&mut world, orders(&[(40, 3), (0, 0)]), &plain, Rejection::ZeroAmount);
    refused(&mut world, orders(&[(40, 3), (4, 5)]), &plain, Rejection::FeeAboveAmount);
    refused(&mut world, orders(&[(400, 3), (101, 0)]), &plain, Rejection::OmnibusTooLow(Amount(100)));
    refused(&mut world, orders(&[(501, 0)]), &plain, Rejection::OmnibusTooLow(Amount(500)));
    refused(&mut world, orders(&[(400, 0), (u128::MAX, 0)]), &plain, Rejection::OmnibusTooLow(Amount(100)));
}

#[test]
fn a_redemption_that_a_batch_repeats_is_paid_once() {
    let (mut world, domain) = funded(2);
    let order = redemption(1, 5, address(1), 300, 0);
    // Of the same number, and more than is left.
    let other = redemption(1, 5, address(3), 400, 0);
    let action = certified_batch(&domain, 0, vec![order.clone(), order, other]);
    let paid = vec![Some(TransactionIndex(2)), None, None];
    assert_eq!(world.act(3, action), Ok(Outcome::RedeemedBatch(paid)));
    assert_eq!((world.omnibus(), world.reserve(client(1).account())), (200, ISSUED_EACH + 300));
}

/// As many as a request has bytes for, all at once: their events and credits fit into groups.
#[test]
fn the_longest_batch_is_paid() {
    let (mut world, domain) = funded(2);
    let count = 440_u64;
    let orders: Vec<_> = (0..count).map(|sequence| redemption(1, sequence, address(1), 1, 0)).collect();
    let longer: Vec<_> = (0..count + 20).map(|sequence| redemption(1, sequence, address(1), 1, 0)).collect();
    let request = world.sign(3, certified_batch(&domain, 0, longer));
    assert!(matches!(request.verify(world.layout().deployment()), Err(RequestError::TooLong { .. })));
    let paid = (2..count + 2).map(|index| Some(TransactionIndex(index))).collect();
    assert_eq!(world.act(3, certified_batch(&domain, 0, orders)), Ok(Outcome::RedeemedBatch(paid)));
    assert_eq!((world.omnibus(), world.events().len()), (60, 441));
    assert_eq!((world.total(), world.overdrawn()), (world.issued(), vec![]));
}

#[test]
fn votes_of_the_epoch_before_count_for_a_while_and_older_ones_never() {
    let (mut world, domain) = funded(2);
    let pay = |world: &mut World, epoch: u8, sequence: u64| {
        world.act(3, certified(&domain, epoch, redemption(1, sequence, address(1), 1, 0)))
    };
    let installed = Outcome::Installed(Epoch(1), TransactionIndex(2));
    assert_eq!(world.rotate(1, 1), Ok(installed));
    assert!(pay(&mut world, 0, 0).is_ok());
    assert!(pay(&mut world, 1, 1).is_ok());

    // Until exactly the end, and not a step longer.
    let current: CurrentEpoch = world.read(world.settlement(), &StateKey::Epoch(COMMITTEE)).unwrap();
    let until = current.previous_counts_until.unwrap();
    assert_eq!((current.epoch, until), (Epoch(1), Time(current.began.0 + PARAMETERS.votes_validity_ms)));
    let last = certified(&domain, 0, redemption(1, 2, address(1), 1, 0));
    assert!(world.settle_at(until, 3, last).is_ok());
    assert_eq!(pay(&mut world, 0, 3), Err(Rejection::EpochEnded(Epoch(0), until)));

    // Two epochs back, they do not count even at once.
    assert!(world.rotate(2, 2).is_ok());
    assert!(matches!(pay(&mut world, 0, 4), Err(Rejection::EpochEnded(Epoch(0), _))));
    assert!(pay(&mut world, 1, 5).is_ok());
    assert_eq!(pay(&mut world, 3, 6), Err(Rejection::UnknownEpoch(Epoch(3))));
    // Where keys were out, those of the epoch before do not count at all.
    assert!(world.rotate(3, 2).is_ok());
    assert!(matches!(pay(&mut world, 2, 7), Err(Rejection::EpochEnded(Epoch(2), _))));
    assert!(pay(&mut world, 3, 8).is_ok());
    let events = world.events();
    let installed = |since, previous_counts_until| EventKind::Installed {
        committee: committee(since),
        guardian: address(GUARDIAN),
        previous_counts_until,
        compromised_since: Epoch(since.into()),
        checkpoint: Digest::repeat_byte(3),
    };
    assert_eq!(events[1].kind, installed(1, Some(until)));
    let compromised = |event: &CommitteeEvent| match &event.kind {
        EventKind::Installed { previous_counts_until, compromised_since, .. } => {
            Some((*compromised_since, previous_counts_until.is_some()))
        }
        _ => None,
    };
    let all: Vec<_> = events.iter().filter_map(compromised).collect();
    assert_eq!(all, [(Epoch(1), true), (Epoch(2), true), (Epoch(2), false)]);
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
        Action::RedeemBatch { redemptions, epoch, votes, .. } => {
            Action::RedeemBatch { committee: OTHER_COMMITTEE, redemptions, epoch, votes }
        }
        Action::Announce(of) => Action::Announce(Box::new(Announcing { committee: OTHER_COMMITTEE, ..*of })),
        other => panic!("{other:?}"),
    };
    let facts_of_other = |world: &World| {
        let keys = [
            StateKey::Omnibus(OTHER_COMMITTEE, asset),
            StateKey::EventIndex(OTHER_COMMITTEE),
            StateKey::Spent(OTHER_COMMITTEE, account(1), SequenceNumber(0)),
            StateKey::Epoch(OTHER_COMMITTEE),
            StateKey::AnnouncementCount(OTHER_COMMITTEE),
        ];
        let settlement = &world.clusters[&world.settlement()].state;
        keys.map(|key| settlement.read(&key).map(<[u8]>::to_vec))
    };
    let first = authorities(0)[0].public().name;
    let before = facts_of_other(&world);
    let order = redemption(1, 0, address(1), 40, 3);
    let paid = certified(&domain, 0, order.clone());
    let paid_together = certified_batch(&domain, 0, vec![redemption(1, 1, address(1), 1, 0)]);
    let announced = Action::Announce(Box::new(announce(&domain, next(1, 1))));
    for action in [&paid, &paid_together, &announced] {
        assert_eq!(world.act(3, to_other(action.clone())), Err(Rejection::InvalidVote(first)));
        assert!(world.act(3, action.clone()).is_ok());
        assert_eq!(world.act(3, to_other(action.clone())), Err(Rejection::InvalidVote(first)));
    }
    assert_eq!(facts_of_other(&world), before);
    assert_eq!(world.omnibus(), 500 - 41);

    // Signed for it, the same order is one of its own. It is still in epoch 0.
    let theirs = to_other(certified(&deployment.domain(OTHER_COMMITTEE), 0, order));
    assert_eq!(world.act(3, theirs), Ok(Outcome::Redeemed(TransactionIndex(2))));
    assert_eq!(world.omnibus(), 500 - 41);
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
    let instruction = Instruction { deployment, shard, signer, sequence, action };
    let request = Request::Instruct(Box::new(instruction.signed(&client(3))));
    let settlement = world.settlement();
    assert_eq!(world.ask(shard, request), Err(Rejection::OtherShard(settlement)));
    assert_eq!(world.reserve(AccountId::from_ethereum(address(1))), ISSUED_EACH);
}
