//! What a fold refuses: a leader that leaves out or repeats groups, and clusters whose quorum lies.

use fastpay_core::{AccountId, Amount, Asset};
use fastpay_ledger_state::FoldError;
use fastpay_ledger_statement::{
    Action, ClusterId, CommitteeEvent, Credit, EventKind, Funding, Message, Receiver, Request,
};

use crate::people::{account, client};
use crate::world::{COMMITTEE, COORDINATOR, ISSUED_EACH, SETTLEMENT, World};

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

/// Traitors may certify what they like. They move nothing of others, and make no more than was issued.
#[test]
fn messages_that_no_honest_cluster_sends_are_refused() {
    let mut world = World::new(2);
    let [here, there] = [1, 2].map(ClusterId);
    let owner_of = |world: &World, shard| {
        let owners = (0..6).map(|at| client(at).account());
        owners.into_iter().find(|owner| world.partition().of_reserve(owner) == shard).unwrap()
    };
    let (ours, theirs) = (owner_of(&world, here), owner_of(&world, there));
    let held = world.reserve_total(here);
    let credit =
        |to: AccountId, amount: u128| Message::Credit(Credit { to, asset: Asset::ETHER, amount: Amount(amount) });
    let missing = 6 * ISSUED_EACH - held;
    let funding = |committee| {
        let (account, payer, asset, amount) = (account(1), ours, Asset::ETHER, Amount(1));
        Message::Fund(Funding { committee, account, asset, amount, payer })
    };
    let event = CommitteeEvent {
        index: Default::default(),
        kind: EventKind::Redeemed {
            redemption: crate::people::redemption(1, 0, Default::default(), 1, 0),
            relayer: ours,
        },
    };
    let foreign = fastpay_ledger_statement::Instruction {
        deployment: world.layout().deployment(),
        shard: here,
        signer: ours,
        sequence: Default::default(),
        action: Action::Open,
    };
    // By the wrong key; and a genuine one for another shard.
    let forged = Message::Request(Request::Instruct(Box::new(foreign.clone().signed(&client(40)))));
    let misrouted = fastpay_ledger_statement::Instruction { shard: there, ..foreign }.signed(&client(40));
    let misrouted = Message::Request(Request::Instruct(Box::new(misrouted)));
    let bad = [
        credit(theirs, 1),
        credit(ours, missing + 1),
        credit(ours, u128::MAX),
        Message::Credit(Credit { to: ours, asset: Asset([9; 20].into()), amount: Amount(1) }),
        funding(COMMITTEE),
        Message::Event(event),
        forged,
        misrouted,
    ];
    for message in bad {
        let mut world = World::new(2);
        let root = world.clusters[&here].state.root();
        world.clusters.get_mut(&there).unwrap().forge(Receiver::Cluster(here), vec![credit(ours, 1), message.clone()]);
        let groups = world.due(here, usize::MAX);
        let faulty = FoldError::Faulty { from: there, number: 1 };
        assert_eq!(world.decide(here, groups, vec![]), Err(faulty), "{message:?}");
        assert_eq!(world.clusters[&here].state.root(), root);
    }
    // Funding for a committee that does not exist, at the settlement cluster.
    let unknown = fastpay_ledger_statement::CommitteeNumber(8);
    world.clusters.get_mut(&there).unwrap().forge(Receiver::Cluster(SETTLEMENT), vec![funding(unknown)]);
    let groups = world.due(SETTLEMENT, usize::MAX);
    assert_eq!(world.decide(SETTLEMENT, groups, vec![]), Err(FoldError::Faulty { from: there, number: 1 }));

    // A cluster of traitors can make money as far as all that was issued. The audit of its pair with us finds it.
    assert_eq!(world.overdrawn(), []);
    world.clusters.get_mut(&there).unwrap().forge(Receiver::Cluster(here), vec![credit(ours, missing)]);
    let groups = world.due(here, usize::MAX);
    world.decide(here, groups, vec![]).unwrap();
    assert_eq!(world.reserve_total(here), 6 * ISSUED_EACH);
    assert_eq!(world.overdrawn(), [(there, here)]);
}

impl World {
    fn reserve_total(&self, cluster: ClusterId) -> u128 {
        self.clusters[&cluster].state.holdings()[&Asset::ETHER].reserves.spendable().0
    }
}
