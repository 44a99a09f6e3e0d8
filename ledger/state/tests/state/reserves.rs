//! Reserves: opening, transfers, funding.

use fastpay_core::{AccountId, Amount, Asset};
use fastpay_ledger_statement::{Action, CommitteeNumber, EventKind, Outcome, Rejection, StateKey};

use crate::people::{account, client};
use crate::world::{COMMITTEE, ISSUED_EACH, World};

fn transfer(to: AccountId, amount: u128) -> Action {
    Action::Transfer { to, asset: Asset::ETHER, amount: Amount(amount) }
}

fn fund(committee: CommitteeNumber, account: AccountId, amount: u128) -> Action {
    Action::Fund { committee, account, asset: Asset::ETHER, amount: Amount(amount) }
}

#[test]
fn money_moves_between_reserves_of_one_shard_and_of_several() {
    for shards in [1, 2, 4] {
        let mut world = World::new(shards);
        for payer in 0..6 {
            assert_eq!(world.act(payer, Action::Open), Ok(Outcome::Opened));
        }
        let owners: Vec<_> = (0..6).map(|at| client(at).account()).collect();
        let across =
            owners.iter().any(|owner| world.partition().of_reserve(owner) != world.partition().of_reserve(&owners[0]));
        assert_eq!(across, shards > 1, "some transfers cross shards");
        for (at, to) in owners.iter().enumerate() {
            assert_eq!(world.act(0, transfer(*to, 10 + at as u128)), Ok(Outcome::Transferred));
        }
        // To itself, too, it moved 10.
        assert_eq!(world.reserve(owners[0]), ISSUED_EACH - 11 - 12 - 13 - 14 - 15);
        for (at, owner) in owners.iter().enumerate().skip(1) {
            assert_eq!(world.reserve(*owner), ISSUED_EACH + 10 + at as u128);
        }
        assert_eq!(world.total(), world.issued());
    }
}

#[test]
fn a_credit_to_a_reserve_that_is_not_open_is_a_claim_of_its_key() {
    let mut world = World::new(2);
    world.act(0, Action::Open).unwrap();
    let newcomer = client(77);
    world.act(0, transfer(newcomer.account(), 40)).unwrap();
    assert_eq!(world.reserve(newcomer.account()), 40);
    world.clients.push(crate::people::Client { key: newcomer });
    let at = world.clients.len() - 1;
    assert_eq!(world.act(at, transfer(client(0).account(), 1)), Err(Rejection::NotOpen));
    assert_eq!(world.act(at, Action::Open), Ok(Outcome::Opened));
    assert_eq!(world.act(at, transfer(client(0).account(), 40)), Ok(Outcome::Transferred));
    assert_eq!(world.reserve(client(0).account()), ISSUED_EACH);
}

/// Every rejection, and that it changes nothing but the answer.
#[test]
fn what_is_rejected_changes_nothing() {
    let mut world = World::new(2);
    world.act(0, Action::Open).unwrap();
    let other = client(1).account();
    let contract = AccountId::from_ethereum(world.layout().deployment().domain(COMMITTEE).contract());
    let rejected = |world: &mut World, client: usize, action: Action, expected| {
        let before = facts(world);
        assert_eq!(world.act(client, action.clone()), Err(expected), "{action:?}");
        assert_eq!(facts(world), before, "{action:?}");
    };
    rejected(&mut world, 0, Action::Open, Rejection::AlreadyOpen);
    rejected(&mut world, 1, transfer(other, 1), Rejection::NotOpen);
    rejected(&mut world, 1, fund(COMMITTEE, account(1), 1), Rejection::NotOpen);
    rejected(&mut world, 0, transfer(other, 0), Rejection::ZeroAmount);
    rejected(&mut world, 0, transfer(other, ISSUED_EACH + 1), Rejection::ReserveTooLow(Amount(ISSUED_EACH)));
    rejected(&mut world, 0, transfer(AccountId::ZERO, 1), Rejection::InvalidRecipient);
    rejected(&mut world, 0, fund(COMMITTEE, account(1), 0), Rejection::ZeroAmount);
    rejected(&mut world, 0, fund(COMMITTEE, AccountId::ZERO, 1), Rejection::InvalidRecipient);
    rejected(&mut world, 0, fund(COMMITTEE, contract, 1), Rejection::InvalidRecipient);
    let unknown = CommitteeNumber(9);
    rejected(&mut world, 0, fund(unknown, account(1), 1), Rejection::UnknownCommittee(unknown));
    let too_low = Rejection::ReserveTooLow(Amount(ISSUED_EACH));
    rejected(&mut world, 0, fund(COMMITTEE, account(1), u128::MAX), too_low);
    let no_such_asset = Action::Transfer { to: other, asset: Asset([1; 20].into()), amount: Amount(1) };
    rejected(&mut world, 0, no_such_asset, Rejection::ReserveTooLow(Amount(0)));
}

/// What the ledger remembers of everyone, apart from what it has sent.
pub fn facts(world: &World) -> Vec<(StateKey, Vec<u8>)> {
    let passes = |key: &StateKey| {
        matches!(
            key,
            StateKey::Taken(_)
                | StateKey::Sent(_)
                | StateKey::Pending(..)
                | StateKey::PendingCount(_)
                | StateKey::Queue(_)
                | StateKey::Queued(..)
        )
    };
    let entries = world.clusters.values().flat_map(|cluster| cluster.state.entries());
    entries.filter(|(key, _)| !passes(key)).map(|(key, value)| (key.clone(), value.to_vec())).collect()
}

#[test]
fn a_reserve_is_served_by_its_own_shard_only() {
    let mut world = World::new(4);
    let owner = client(0).account();
    let home = world.partition().of_reserve(&owner);
    let elsewhere = world.partition().shards().find(|shard| *shard != home).unwrap();
    let instruction = fastpay_ledger_statement::Instruction {
        deployment: world.layout().deployment(),
        shard: elsewhere,
        signer: owner,
        sequence: fastpay_core::SequenceNumber(0),
        action: Action::Open,
    };
    let signed = fastpay_ledger_statement::Request::Instruct(Box::new(instruction.signed(&client(0))));
    assert_eq!(world.ask(crate::world::COORDINATOR, signed), Err(Rejection::OtherShard(home)));
}

#[test]
fn funding_events_are_numbered_without_gap_and_hold_the_money() {
    for shards in [1, 3] {
        let mut world = World::new(shards);
        for payer in 0..6 {
            world.act(payer, Action::Open).unwrap();
            assert_eq!(world.act(payer, fund(COMMITTEE, account(9), 5 + payer as u128)), Ok(Outcome::Funding));
        }
        assert_eq!(world.omnibus(), 5 + 6 + 7 + 8 + 9 + 10);
        let events = world.events();
        assert_eq!(events.iter().map(|event| event.index.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        for (payer, event) in events.iter().enumerate() {
            let EventKind::Funded(funding) = &event.kind else { panic!("{event:?}") };
            let payer_id = client(payer.try_into().unwrap()).account();
            assert_eq!((funding.payer, funding.account, funding.amount.0), (payer_id, account(9), 5 + payer as u128));
        }
        assert_eq!(world.total(), world.issued());
    }
}
