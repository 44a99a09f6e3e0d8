//! What a fold refuses: a leader that leaves out or repeats groups, and clusters whose quorum lies.

use fastpay_core::{AccountId, Amount, Asset, Balance, Digest, SequenceNumber};
use fastpay_ledger_state::{FoldError, Overdraft, overdrafts};
use fastpay_ledger_statement::{
    Action, ClusterId, CommitteeEvent, CommitteeNumber, Credit, Deployment, EventKind, Funding, Instruction, Issue,
    Message, Outcome, Receiver, Rejection, Request, StateKey,
};

use crate::people::{account, certified, client, redemption};
use crate::world::{COMMITTEE, COORDINATOR, ISSUED_EACH, SETTLEMENT, World, genesis};

const UNKNOWN_ASSET: Asset = Asset(alloy_primitives::Address::repeat_byte(9));
const LARGE: Asset = Asset(alloy_primitives::Address::repeat_byte(8));

#[test]
fn a_group_left_out_or_repeated_spoils_the_proposal() {
    let mut world = World::new(2);
    let shard = world.partition().of_reserve(&client(0).account());
    for sequence in 0..3 {
        let action = if sequence == 0 { Action::Open } else { pay(1) };
        let Request::Instruct(mut signed) = world.sign(0, action) else { panic!() };
        signed.instruction.sequence.0 = sequence;
        let signed = signed.instruction.signed(&client(0));
        world.submit(COORDINATOR, Request::Instruct(Box::new(signed)));
        world.step(COORDINATOR, usize::MAX, usize::MAX);
    }
    let groups = world.due(shard, usize::MAX);
    assert_eq!(groups.len(), 3);
    let root = world.clusters[&shard].state.root();
    let refused = |world: &mut World, groups: Vec<_>, number, due| {
        let expected = FoldError::NotDue { from: COORDINATOR, number, due };
        assert_eq!(world.decide(shard, groups, vec![]), Err(expected));
        assert_eq!(world.clusters[&shard].state.root(), root);
    };
    refused(&mut world, groups[1..].to_vec(), 2, 1);
    refused(&mut world, vec![groups[0].clone(), groups[2].clone()], 3, 2);
    refused(&mut world, vec![groups[0].clone(), groups[0].clone()], 1, 2);
    world.decide(shard, groups.clone(), vec![]).unwrap();
    let expected = FoldError::NotDue { from: COORDINATOR, number: 1, due: 4 };
    assert_eq!(world.decide(shard, groups[..1].to_vec(), vec![]), Err(expected));
}

fn pay(amount: u128) -> Action {
    Action::Transfer { to: client(1).account(), asset: Asset::ETHER, amount: Amount(amount) }
}

/// A group that was verified for another receiver or ledger is due nowhere else, whatever its number is.
#[test]
fn a_group_for_somebody_else_or_of_another_ledger_spoils_the_proposal() {
    let [from, here, there] = [1, 2, 3].map(ClusterId);
    let group_for = |world: &mut World, receiver: ClusterId| {
        world.clusters.get_mut(&from).unwrap().forge(Receiver::Cluster(receiver), vec![]);
        world.due(receiver, usize::MAX)
    };
    let mut world = World::new(3);
    let misled = group_for(&mut world, there);
    let not_for_us = |to| Err(FoldError::NotForUs { from, number: 1, to: Receiver::Cluster(to) });
    assert_eq!(world.decide(here, misled, vec![]), not_for_us(there));
    let mut fixed = genesis(3);
    fixed.issued.pop();
    let foreign = group_for(&mut World::of(fixed), here);
    assert_eq!(world.decide(here, foreign, vec![]), not_for_us(here));
    let ours = group_for(&mut world, here);
    assert_eq!(world.decide(here, ours, vec![]), Ok(()));
}

/// Traitors may certify what they like. They move nothing of others, and send no nonsense on.
#[test]
fn messages_that_no_honest_cluster_sends_are_refused() {
    let world = World::new(2);
    let [here, there] = [1, 2].map(ClusterId);
    let owner_of = |world: &World, shard| {
        let owners = (0..6).map(|at| client(at).account());
        owners.into_iter().find(|owner| world.partition().of_reserve(owner) == shard).unwrap()
    };
    let (ours, theirs) = (owner_of(&world, here), owner_of(&world, there));
    let credit =
        |to: AccountId, amount: u128| Message::Credit(Credit { to, asset: Asset::ETHER, amount: Amount(amount) });
    let issued = 6 * ISSUED_EACH;
    let fund =
        Funding { committee: COMMITTEE, account: account(1), asset: Asset::ETHER, amount: Amount(1), payer: ours };
    let event = CommitteeEvent {
        index: Default::default(),
        kind: EventKind::Redeemed { redemption: redemption(1, 0, Default::default(), 1, 0), relayer: ours },
    };
    let owner = (0..6).map(client).find(|owner| owner.account() == ours).unwrap();
    let (deployment, signer, sequence, action) = (world.layout().deployment(), ours, SequenceNumber(0), Action::Open);
    let genuine = Instruction { deployment, shard: here, signer, sequence, action };
    let request =
        |instruction: Instruction, key| Message::Request(Request::Instruct(Box::new(instruction.signed(key))));
    // By the wrong key; and by the owner's, for another shard or ledger.
    let stranger = client(40);
    let forged = request(genuine.clone(), &stranger);
    let misrouted = request(Instruction { shard: there, ..genuine.clone() }, &owner);
    let elsewhere = Deployment(Digest::ZERO);
    let other_ledger = request(Instruction { deployment: elsewhere, ..genuine.clone() }, &owner);
    let bad = [
        credit(theirs, 1),
        credit(ours, 0),
        credit(ours, issued + 1),
        credit(ours, u128::MAX),
        Message::Credit(Credit { to: ours, asset: UNKNOWN_ASSET, amount: Amount(1) }),
        Message::Credit(Credit { to: ours, asset: UNKNOWN_ASSET, amount: Amount(0) }),
        Message::Fund(fund),
        Message::Event(event),
        forged,
        misrouted,
        other_ledger,
    ];
    // The same, for this shard and signed by its owner, is carried out.
    let mut taken = World::new(2);
    taken.clusters.get_mut(&there).unwrap().forge(Receiver::Cluster(here), vec![request(genuine, &owner)]);
    taken.step(here, usize::MAX, usize::MAX);
    assert!(taken.clusters[&here].state.read(&StateKey::Opened(ours)).is_some());
    for message in bad {
        let mut world = World::new(2);
        let root = world.clusters[&here].state.root();
        world.clusters.get_mut(&there).unwrap().forge(Receiver::Cluster(here), vec![credit(ours, 1), message.clone()]);
        let groups = world.due(here, usize::MAX);
        let faulty = FoldError::Faulty { from: there, number: 1 };
        assert_eq!(world.decide(here, groups, vec![]), Err(faulty), "{message:?}");
        assert_eq!(world.clusters[&here].state.root(), root);
    }
    // At the settlement cluster: funding that no honest shard lets through.
    let contract = AccountId::from_ethereum(world.layout().deployment().domain(COMMITTEE).contract());
    let bad = [
        Funding { committee: CommitteeNumber(9), ..fund },
        Funding { account: AccountId::ZERO, ..fund },
        Funding { account: contract, ..fund },
        Funding { amount: Amount(0), ..fund },
        Funding { amount: Amount(issued + 1), ..fund },
        Funding { asset: UNKNOWN_ASSET, ..fund },
        Funding { asset: UNKNOWN_ASSET, amount: Amount(0), ..fund },
    ];
    for funding in bad {
        let mut world = World::new(2);
        let forged = vec![Message::Fund(fund), Message::Fund(funding)];
        world.clusters.get_mut(&there).unwrap().forge(Receiver::Cluster(SETTLEMENT), forged);
        let groups = world.due(SETTLEMENT, usize::MAX);
        let faulty = FoldError::Faulty { from: there, number: 1 };
        assert_eq!(world.decide(SETTLEMENT, groups, vec![]), Err(faulty), "{funding:?}");
    }
}

/// A quorum of traitors makes more money than was issued. The audit names their cluster, and honest ones still pay each
/// other.
#[test]
fn money_made_by_one_cluster_stops_no_other_and_the_audit_names_it() {
    // As much as a genesis allows, so that two credits of it are more than 128 bits hold.
    let most = (1 << 127) - 1;
    let mut fixed = genesis(3);
    fixed.issued.push(Issue { owner: client(0).account(), asset: LARGE, amount: Amount(most) });
    let mut world = World::of(fixed);
    let [traitors, here, honest] = [1, 2, 3].map(ClusterId);
    let owner = |shard| (0..=u8::MAX).find(|at| world.partition().of_reserve(&client(*at).account()) == shard).unwrap();
    let [ours, theirs] = [here, honest].map(owner);
    let [ours_at, theirs_at] = [ours, theirs].map(|at| {
        world.clients.push(crate::people::Client::new(at));
        world.clients.len() - 1
    });
    let [ours, theirs] = [ours, theirs].map(|at| client(at).account());
    world.act(ours_at, Action::Open).unwrap();
    world.act(theirs_at, Action::Open).unwrap();
    assert_eq!(world.overdrawn(), []);

    let made = Message::Credit(Credit { to: ours, asset: LARGE, amount: Amount(most) });
    let traitor = world.clusters.get_mut(&traitors).unwrap();
    traitor.forge(Receiver::Cluster(here), vec![made.clone(), made.clone(), made]);
    world.step(here, usize::MAX, usize::MAX);
    assert_eq!(world.overdrawn(), [(traitors, here)]);

    // No message is of more than was issued, or its honest receiver would refuse the honest sender.
    let pay = |to, amount| Action::Transfer { to, asset: LARGE, amount: Amount(amount) };
    assert_eq!(world.act(ours_at, pay(theirs, most + 1)), Err(Rejection::ReserveTooLow(Amount(most))));
    for _ in 0..2 {
        assert_eq!(world.act(ours_at, pay(theirs, most)), Ok(Outcome::Transferred));
    }
    assert_eq!(world.act(theirs_at, pay(ours, most)), Ok(Outcome::Transferred));
    world.run();
    let balance = |owner, shard| world.read::<Balance>(shard, &StateKey::Reserve(owner, LARGE)).unwrap();
    let most = Balance::from(Amount(most));
    assert_eq!((balance(ours, here), balance(theirs, honest)), (most.plus(most), most));
    let states = world.clusters.iter().map(|(number, cluster)| (*number, cluster.state.clone())).collect();
    let excess = most.plus(most).plus(most);
    assert_eq!(overdrafts(&states), [Overdraft { from: traitors, to: here, asset: LARGE, excess }]);
}

/// The settlement cluster, too, pays no more at once than was issued.
#[test]
fn a_redemption_of_more_than_was_issued_is_refused_whatever_the_omnibus_has() {
    let mut world = World::new(2);
    let issued = 6 * ISSUED_EACH;
    let payer = client(0).account();
    let made =
        Funding { committee: COMMITTEE, account: account(1), asset: Asset::ETHER, amount: Amount(issued), payer };
    let traitor = world.clusters.get_mut(&ClusterId(1)).unwrap();
    traitor.forge(Receiver::Cluster(SETTLEMENT), vec![Message::Fund(made), Message::Fund(made)]);
    world.step(SETTLEMENT, usize::MAX, usize::MAX);
    assert_eq!(world.omnibus(), 2 * issued);
    let domain = world.layout().deployment().domain(COMMITTEE);
    let recipient = client(1).account().ethereum_address().unwrap();
    let redeem = |amount| certified(&domain, 0, redemption(1, 0, recipient, amount, 0));
    assert_eq!(world.act(3, redeem(issued + 1)), Err(Rejection::OmnibusTooLow(Amount(issued))));
    assert!(world.act(3, redeem(issued)).is_ok());
    assert_eq!((world.omnibus(), world.reserve(client(1).account())), (issued, ISSUED_EACH + issued));
}
