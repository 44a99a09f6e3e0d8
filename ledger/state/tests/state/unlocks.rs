//! Stuck numbers, by the contract's rules.

use fastpay_core::{
    AccountKey, Amount, Asset, Authorization, Balance, Digest, Domain, Epoch, SequenceNumber, UnlockVote,
};
use fastpay_ledger_statement::{
    Action, CommitteeNumber, EventKind, Outcome, Rejection, StateKey, Time, UnlockDecision, UnlockEntry, UnlockRequest,
};

use crate::committees::funded;
use crate::people::{
    address, authorities, certified, client, owner, redemption, request_unlock, unlock_votes, uphold, void,
};
use crate::reserves::facts;
use crate::world::{BOND, COMMITTEE, ISSUED_EACH, OTHER_COMMITTEE, PARAMETERS, WINDOW_MS, World};

/// It pays the bonds, and has put 500 into FastPay accounts before.
const PAYER: usize = 0;
const LEFT: u128 = ISSUED_EACH - 500;
const NUMBER: u64 = 6;

fn entry(world: &World, key: &AccountKey) -> Option<UnlockEntry> {
    world.read(world.settlement(), &StateKey::Unlock(COMMITTEE, key.account(), SequenceNumber(NUMBER)))
}

fn bonds(world: &World) -> u128 {
    let held: Option<Balance> = world.read(world.settlement(), &StateKey::Bonds(COMMITTEE, Asset::ETHER));
    held.unwrap_or_default().spendable().0
}

fn payer(world: &World) -> u128 {
    world.reserve(client(0).account())
}

/// The owner of a number has requested to unlock it.
fn requested(shards: u32) -> (World, Domain, AccountKey) {
    let (mut world, domain) = funded(shards);
    let key = owner(1);
    let request = Action::RequestUnlock(request_unlock(&domain, &key, NUMBER));
    assert_eq!(world.act(PAYER, request), Ok(Outcome::Unlocking));
    (world, domain, key)
}

/// After the request: the kinds of events since.
fn told(world: &mut World) -> Vec<EventKind> {
    let events = world.events();
    assert!(events.iter().zip(1..).all(|(event, index)| event.index.0 == index));
    events.into_iter().skip(1).map(|event| event.kind).collect()
}

#[test]
fn a_request_of_either_kind_of_key_costs_a_bond_and_is_told() {
    for shards in [1, 2, 4] {
        let (mut world, domain) = funded(shards);
        let keys = [owner(1), client(1)];
        for (done, key) in (1..).zip(&keys) {
            let request = Action::RequestUnlock(request_unlock(&domain, key, NUMBER));
            assert_eq!(world.act(PAYER, request), Ok(Outcome::Unlocking));
            assert_eq!((payer(&world), bonds(&world)), (LEFT - done * BOND.0, done * BOND.0));
        }
        let asked: Vec<_> = told(&mut world);
        assert_eq!(asked.len(), 2);
        for (kind, key) in asked.iter().zip(&keys) {
            let voidable_from = entry(&world, key).unwrap().voidable_from;
            assert!((world.now().0 - 1_000..world.now().0).contains(&(voidable_from.0 - WINDOW_MS)));
            let (account, sequence) = (key.account(), SequenceNumber(NUMBER));
            assert_eq!(*kind, EventKind::UnlockRequested { account, sequence, voidable_from });
        }
        assert_eq!((world.total(), world.overdrawn()), (world.issued(), vec![]));
    }
}

#[test]
fn a_request_of_before_gives_the_bond_back_and_changes_nothing() {
    for shards in [1, 2] {
        let (mut world, domain, key) = requested(shards);
        let again = Action::RequestUnlock(request_unlock(&domain, &key, NUMBER));
        let expected = (payer(&world), bonds(&world), entry(&world, &key), told(&mut world));
        for decided in [None, Some(uphold(&domain, 0, key.account(), NUMBER, Digest::repeat_byte(1)))] {
            let expected = match decided {
                None => expected.clone(),
                Some(action) => {
                    world.act(3, action).unwrap();
                    (payer(&world), bonds(&world), entry(&world, &key), told(&mut world))
                }
            };
            assert_eq!(world.act(PAYER, again.clone()), Ok(Outcome::Unlocking));
            assert_eq!((payer(&world), bonds(&world), entry(&world, &key), told(&mut world)), expected);
            assert_eq!(world.total(), world.issued());
        }
    }
}

#[test]
fn every_bad_request_has_its_error_and_changes_nothing() {
    let (mut world, domain) = funded(2);
    let key = owner(1);
    let good = request_unlock(&domain, &key, NUMBER);
    let refused = |world: &mut World, who: usize, request: UnlockRequest, expected| {
        let before = facts(world);
        assert_eq!(world.act(who, Action::RequestUnlock(request)), Err(expected));
        assert_eq!(facts(world), before);
    };
    let not_owner = Rejection::NotOwner(key.account());
    let by = |key: &AccountKey| key.authorize(domain.unlock_request_digest(good.account, good.sequence));
    refused(&mut world, PAYER, UnlockRequest { authorization: by(&owner(2)), ..good }, not_owner);
    refused(&mut world, PAYER, UnlockRequest { authorization: by(&client(1)), ..good }, not_owner);
    refused(&mut world, PAYER, UnlockRequest { sequence: SequenceNumber(NUMBER + 1), ..good }, not_owner);
    let account = owner(2).account();
    refused(&mut world, PAYER, UnlockRequest { account, ..good }, Rejection::NotOwner(account));
    refused(&mut world, PAYER, UnlockRequest { committee: OTHER_COMMITTEE, ..good }, not_owner);
    let unknown = CommitteeNumber(9);
    let nowhere = UnlockRequest { committee: unknown, ..good };
    refused(&mut world, PAYER, nowhere, Rejection::UnknownCommittee(unknown));
    // Of an Ethereum account, by another one's key.
    let ethereum = request_unlock(&domain, &client(1), NUMBER);
    let Authorization::Ethereum { .. } = ethereum.authorization else { panic!("an Ethereum key") };
    let authorization = client(3).authorize(domain.unlock_request_digest(ethereum.account, ethereum.sequence));
    let forged = UnlockRequest { authorization, ..ethereum };
    refused(&mut world, PAYER, forged, Rejection::NotOwner(ethereum.account));
    // The bond.
    refused(&mut world, 3, good, Rejection::NotOpen);
    let rest = Action::Transfer { to: client(1).account(), asset: Asset::ETHER, amount: Amount(LEFT - BOND.0 + 1) };
    world.act(PAYER, rest).unwrap();
    refused(&mut world, PAYER, good, Rejection::ReserveTooLow(Amount(BOND.0 - 1)));
}

#[test]
fn an_order_is_upheld_by_a_quorum_which_gets_its_bearer_the_bond() {
    for shards in [1, 2, 4] {
        let (mut world, domain, key) = requested(shards);
        let digest = Digest::repeat_byte(1);
        // Also where it was paid meanwhile.
        let paid = redemption(9, NUMBER, address(1), 7, 0);
        let paid = fastpay_core::Redemption { sender: key.account(), ..paid };
        world.act(4, certified(&domain, 0, paid)).unwrap();
        let outcome = world.act(3, uphold(&domain, 0, key.account(), NUMBER, digest));
        assert_eq!(outcome, Ok(Outcome::Upheld(fastpay_core::TransactionIndex(4))));
        assert_eq!((payer(&world), bonds(&world)), (LEFT - BOND.0, 0));
        assert_eq!(world.reserve(client(3).account()), ISSUED_EACH + BOND.0);
        let decided = entry(&world, &key).unwrap();
        assert_eq!((decided.payer, decided.decision), (None, Some((UnlockDecision::Upheld, Epoch(0)))));
        let upheld = EventKind::Upheld { account: key.account(), sequence: SequenceNumber(NUMBER), digest };
        assert_eq!(told(&mut world).last(), Some(&upheld));
        assert_eq!((world.total(), world.overdrawn()), (world.issued(), vec![]));
        // It is decided.
        let before = facts(&world);
        let other = uphold(&domain, 0, key.account(), NUMBER, Digest::repeat_byte(2));
        let voided = void(&domain, 0, key.account(), NUMBER, true);
        for action in [other, voided] {
            assert_eq!(world.act(3, action), Err(Rejection::AlreadyDecided));
        }
        assert_eq!(facts(&world), before);
    }
}

#[test]
fn a_number_is_voided_by_a_quorum_from_the_end_of_its_window_on() {
    let (mut world, domain, key) = requested(1);
    let from = entry(&world, &key).unwrap().voidable_from;
    let action = void(&domain, 0, key.account(), NUMBER, false);
    let before = facts(&world);
    assert_eq!(world.settle_at(Time(from.0 - 1), 3, action.clone()), Err(Rejection::NotVoidable(from)));
    assert_eq!(facts(&world), before);
    let outcome = world.settle_at(from, 3, action);
    assert_eq!(outcome, Ok(Outcome::Voided(fastpay_core::TransactionIndex(3))));
    // The bond goes back to whoever paid it.
    assert_eq!((payer(&world), bonds(&world), world.reserve(client(3).account())), (LEFT, 0, ISSUED_EACH));
    let decided = entry(&world, &key).unwrap();
    assert_eq!((decided.payer, decided.decision), (None, Some((UnlockDecision::Voided, Epoch(0)))));
    let voided = EventKind::Voided { account: key.account(), sequence: SequenceNumber(NUMBER) };
    assert_eq!(told(&mut world).last(), Some(&voided));
    // The number is spent, and its neighbours are not.
    let pay = |world: &mut World, sequence| {
        let paid = redemption(9, sequence, address(1), 1, 0);
        world.act(3, certified(&domain, 0, fastpay_core::Redemption { sender: key.account(), ..paid }))
    };
    assert_eq!(pay(&mut world, NUMBER), Err(Rejection::AlreadyRedeemed));
    assert!(pay(&mut world, NUMBER - 1).is_ok() && pay(&mut world, NUMBER + 1).is_ok());
    let before = facts(&world);
    for action in [
        void(&domain, 0, key.account(), NUMBER, true),
        uphold(&domain, 0, key.account(), NUMBER, Digest::repeat_byte(1)),
    ] {
        assert_eq!(world.act(3, action), Err(Rejection::AlreadyDecided));
    }
    assert_eq!(facts(&world), before);
}

#[test]
fn all_members_together_void_a_number_at_once_and_in_a_later_epoch_once_leavers_had_time() {
    let (mut world, domain, key) = requested(2);
    assert!(world.act(3, void(&domain, 0, key.account(), NUMBER, true)).is_ok());
    assert_eq!((payer(&world), bonds(&world)), (LEFT, 0));

    for compromised in [1, 0] {
        let (mut world, domain, key) = requested(1);
        assert!(world.rotate(1, compromised).is_ok());
        let current: fastpay_ledger_statement::CurrentEpoch =
            world.read(world.settlement(), &StateKey::Epoch(COMMITTEE)).unwrap();
        let from = Time(current.began.0 + PARAMETERS.votes_validity_ms);
        let action = void(&domain, 1, key.account(), NUMBER, true);
        // The number's own window has passed by then.
        let early = world.settle_at(Time(from.0 - 1), 3, action.clone());
        assert_eq!(early, Err(Rejection::NotVoidable(from)));
        assert!(world.settle_at(from, 3, action).is_ok());
        let by_quorum = void(&domain, 1, key.account(), NUMBER, false);
        assert_eq!(world.act(3, by_quorum), Err(Rejection::AlreadyDecided));
    }
}

#[test]
fn a_number_that_was_redeemed_is_not_voided() {
    let (mut world, domain, key) = requested(2);
    let paid = redemption(9, NUMBER, address(1), 7, 0);
    world.act(4, certified(&domain, 0, fastpay_core::Redemption { sender: key.account(), ..paid })).unwrap();
    let before = facts(&world);
    let voided = world.act(3, void(&domain, 0, key.account(), NUMBER, true));
    assert_eq!(voided, Err(Rejection::SequenceSpent));
    assert_eq!(facts(&world), before);
}

#[test]
fn every_bad_decision_has_its_error_and_changes_nothing() {
    let (mut world, domain, key) = requested(2);
    let account = key.account();
    let digest = Digest::repeat_byte(1);
    let names: Vec<_> = authorities(0).iter().map(|keys| keys.public().name).collect();
    let refused = |world: &mut World, action: Action, expected| {
        let before = facts(world);
        assert_eq!(world.act(3, action), Err(expected));
        assert_eq!(facts(world), before);
    };
    let upholding =
        |votes| Action::Uphold { committee: COMMITTEE, account, sequence: SequenceNumber(NUMBER), digest, votes };
    let voiding = |unanimous, votes| Action::Void {
        committee: COMMITTEE,
        account,
        sequence: SequenceNumber(NUMBER),
        unanimous,
        votes,
    };
    let votes = |epoch, count, vote| unlock_votes(&domain, epoch, count, account, NUMBER, vote);
    let certificate = |count| votes(0, count, UnlockVote::Certificate(digest));
    let count = |expected, found| Rejection::VoteCount { expected, found };
    refused(&mut world, upholding(certificate(2)), count(3, 2));
    refused(&mut world, upholding(certificate(4)), count(3, 4));
    let mut repeated = certificate(3);
    repeated[1] = repeated[0].clone();
    refused(&mut world, upholding(repeated), Rejection::VotesUnsorted(names[0]));
    // On another statement: another order, a void, another number or account, an epoch that has not begun.
    let invalid = Rejection::InvalidVote(names[0]);
    let others = [
        votes(0, 3, UnlockVote::Certificate(Digest::repeat_byte(2))),
        votes(0, 3, UnlockVote::Void { unanimous: false }),
        unlock_votes(&domain, 0, 3, account, NUMBER + 1, UnlockVote::Certificate(digest)),
        unlock_votes(&domain, 0, 3, owner(2).account(), NUMBER, UnlockVote::Certificate(digest)),
        unlock_votes(&Domain::new(1, domain.contract()), 0, 3, account, NUMBER, UnlockVote::Certificate(digest)),
    ];
    for votes in others {
        refused(&mut world, upholding(votes), invalid);
    }
    let next = authorities(1)[0].public().name;
    refused(&mut world, upholding(votes(1, 3, UnlockVote::Certificate(digest))), Rejection::InvalidVote(next));

    // All members, and each on the statement that needs all.
    let by_all = UnlockVote::Void { unanimous: true };
    refused(&mut world, voiding(true, votes(0, 3, by_all)), count(4, 3));
    refused(&mut world, voiding(true, votes(0, 4, UnlockVote::Void { unanimous: false })), invalid);
    let from = entry(&world, &key).unwrap().voidable_from;
    world.wait_until(from);
    refused(&mut world, voiding(false, votes(0, 3, by_all)), invalid);
    refused(&mut world, voiding(false, certificate(3)), invalid);
    refused(&mut world, voiding(false, votes(0, 4, UnlockVote::Void { unanimous: false })), count(3, 4));

    // Nobody asked.
    for sequence in [NUMBER - 1, NUMBER + 1] {
        refused(&mut world, void(&domain, 0, account, sequence, true), Rejection::NotRequested);
        refused(&mut world, uphold(&domain, 0, account, sequence, digest), Rejection::NotRequested);
    }
    let unknown = CommitteeNumber(9);
    let (sequence, votes) = (SequenceNumber(NUMBER), certificate(3));
    let nowhere = Action::Uphold { committee: unknown, account, sequence, digest, votes };
    refused(&mut world, nowhere, Rejection::UnknownCommittee(unknown));
    let votes = unlock_votes(&domain, 0, 3, account, NUMBER, UnlockVote::Certificate(digest));
    let elsewhere = Action::Uphold { committee: OTHER_COMMITTEE, account, sequence, digest, votes };
    refused(&mut world, elsewhere, Rejection::NotRequested);

    // After a rotation the votes of the epoch before count no more, though those for redemptions do.
    assert!(world.rotate(1, 1).is_ok());
    let (old, new) = (authorities(0)[0].public().name, uphold(&domain, 1, account, NUMBER, digest));
    refused(&mut world, uphold(&domain, 0, account, NUMBER, digest), Rejection::InvalidVote(old));
    refused(&mut world, void(&domain, 0, account, NUMBER, false), Rejection::InvalidVote(old));
    assert!(world.act(3, new).is_ok());
}

/// Its order may not exist, so another committee decides again. What it voided stays void, because it is spent.
#[test]
fn a_number_that_a_compromised_epoch_upheld_is_open_again_and_its_bond_is_gone() {
    let (mut world, domain, key) = requested(2);
    let other = owner(2);
    world.act(PAYER, Action::RequestUnlock(request_unlock(&domain, &other, NUMBER))).unwrap();
    world.act(3, uphold(&domain, 0, key.account(), NUMBER, Digest::repeat_byte(1))).unwrap();
    world.act(3, void(&domain, 0, other.account(), NUMBER, true)).unwrap();
    assert!(world.rotate(1, 1).is_ok());
    let again = |epoch| uphold(&domain, epoch, key.account(), NUMBER, Digest::repeat_byte(2));
    assert_eq!(world.act(3, again(1)), Err(Rejection::AlreadyDecided));
    // Epoch 1 says nothing of epoch 0, and epoch 3 does.
    assert!(world.rotate(2, 1).is_ok());
    assert_eq!(world.act(3, again(2)), Err(Rejection::AlreadyDecided));
    assert!(world.rotate(3, 0).is_ok());
    let void_again = void(&domain, 3, other.account(), NUMBER, false);
    assert_eq!(world.act(3, void_again), Err(Rejection::AlreadyDecided));
    let before = (payer(&world), bonds(&world), world.reserve(client(3).account()));
    assert!(world.act(3, again(3)).is_ok());
    assert_eq!((payer(&world), bonds(&world), world.reserve(client(3).account())), before);
    assert_eq!(world.act(3, again(3)), Err(Rejection::AlreadyDecided));
    // Or it is voided.
    let (mut world, domain, key) = requested(1);
    world.act(3, uphold(&domain, 0, key.account(), NUMBER, Digest::repeat_byte(1))).unwrap();
    assert!(world.rotate(1, 0).is_ok());
    world.wait_until(entry(&world, &key).unwrap().voidable_from);
    assert!(world.act(3, void(&domain, 1, key.account(), NUMBER, false)).is_ok());
    assert_eq!(bonds(&world), 0);
}
