//! Random sequences: money is conserved at every step, two folds agree, and so do all partitions. A run prints its seed.

use std::collections::BTreeMap;

use fastpay_core::{Amount, Asset, Domain};
use fastpay_ledger_state::State;
use fastpay_ledger_statement::{Action, Condition, Key, Outcome, Rejection, Value};

use crate::people::{FAR, account, certified, client, redemption, rotation};
use crate::world::{CLIENTS, COMMITTEE, COORDINATOR, World, namespace};

fn seeded(name: &str) -> (fastrand::Rng, u64) {
    let seed = rand::random();
    println!("{name}: seed {seed}");
    (fastrand::Rng::with_seed(seed), seed)
}

/// A step of somebody, sound or not. `epoch` is the current one.
fn random_step(random: &mut fastrand::Rng, domain: &Domain, epoch: &mut u8) -> (usize, Action) {
    let who = random.usize(0..usize::from(CLIENTS));
    let (asset, amount) = (Asset::ETHER, Amount(random.u128(0..400)));
    let action = match random.u8(0..14) {
        0..=1 => Action::Open,
        2..=5 => Action::Transfer { to: client(random.u8(0..CLIENTS + 2)).account(), asset, amount },
        6..=8 => Action::Fund { committee: COMMITTEE, account: account(random.u8(1..4)), asset, amount },
        9..=11 => {
            let (sender, sequence) = (random.u8(1..3), random.u64(0..20));
            let recipient = client(random.u8(0..2)).account().ethereum_address().unwrap();
            let fee = random.u128(0..amount.0 / 4 + 2);
            let voters = random.u8(epoch.saturating_sub(2)..*epoch + 1);
            certified(domain, voters, redemption(sender, sequence, recipient, amount.0, fee))
        }
        12 if *epoch < 6 => {
            *epoch += 1;
            let compromised = *epoch - random.u8(0..2);
            return (who, Action::Rotate(Box::new(rotation(domain, *epoch, compromised, FAR))));
        }
        _ => {
            let key = Key::new(vec![random.u8(0..5)]).unwrap();
            let condition = if random.bool() { Condition::Always } else { Condition::Absent };
            let value = random.bool().then(|| Value::new(vec![random.u8(..)]).unwrap());
            return (random.usize(0..2), Action::Write { namespace: namespace("first"), key, condition, value });
        }
    };
    (who, action)
}

/// The books, whatever is between the clusters.
fn check_books(world: &World, seed: u64) {
    assert_eq!(world.total(), world.issued(), "seed {seed}");
    assert_eq!(world.overdrawn(), [], "seed {seed}");
}

#[test]
fn money_is_conserved_while_groups_are_under_way_and_two_folds_agree() {
    let (mut random, seed) = seeded("conservation");
    for shards in [1, 2, 4] {
        let mut world = World::new(shards);
        let domain = world.layout().deployment().domain(COMMITTEE);
        let clusters: Vec<_> = world.clusters.keys().copied().collect();
        let mut epoch = 0;
        for _ in 0..150 {
            if random.bool() {
                let (who, action) = random_step(&mut random, &domain, &mut epoch);
                let request = world.sign(who, action);
                // By one way or another, sometimes twice.
                for _ in 0..random.u8(1..3) {
                    world.submit(clusters[random.usize(0..clusters.len())], request.clone());
                }
            }
            let cluster = clusters[random.usize(0..clusters.len())];
            world.step(cluster, random.usize(0..3), random.usize(0..3));
            check_books(&world, seed);
        }
        world.run();
        world.run();
        check_books(&world, seed);
        let indexes: Vec<_> = world.events().iter().map(|event| event.index.0).collect();
        assert_eq!(indexes, (1..=indexes.len() as u64).collect::<Vec<_>>(), "seed {seed}");
        replay(&world, seed);
    }
}

/// The same inputs from the genesis on: the same roots at every height.
fn replay(world: &World, seed: u64) {
    for cluster in world.clusters.values() {
        let mut state = State::genesis(&cluster.layout);
        for (moment, groups, requests, root) in &cluster.log {
            state = state.execute(&cluster.layout, *moment, groups, requests).unwrap().state;
            assert_eq!(state.root(), *root, "seed {seed}");
        }
    }
}

/// What one partition leads to: the answers, reserves and omnibus. Positions and heights differ, so versions do.
#[derive(Debug, PartialEq)]
struct Course {
    answers: Vec<Result<Outcome, Rejection>>,
    reserves: BTreeMap<u8, u128>,
    omnibus: u128,
    events: usize,
}

#[test]
fn every_partition_gives_the_same_answers_and_balances() {
    let (_, seed) = seeded("partitions");
    let course = |shards: u32| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new(shards);
        // Votes are for a deployment, which the partition is a part of: so every one signs its own.
        let domain = world.layout().deployment().domain(COMMITTEE);
        let mut epoch = 0;
        let mut answers = vec![];
        for _ in 0..70 {
            let (who, action) = random_step(&mut random, &domain, &mut epoch);
            answers.push(world.act(who, action).map(without_version).map_err(without_time));
        }
        let reserves = (0..CLIENTS + 2).map(|at| (at, world.reserve(client(at).account()))).collect();
        let (omnibus, events) = (world.omnibus(), world.events().len());
        check_books(&world, seed);
        Course { answers, reserves, omnibus, events }
    };
    let alone = course(1);
    assert!(alone.answers.iter().filter(|answer| answer.is_ok()).count() > 10, "seed {seed}: too little happens");
    for shards in [2, 4] {
        assert_eq!(course(shards), alone, "{shards} shards, seed {seed}");
    }
}

fn without_version(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Written(_) => Outcome::Written(Default::default()),
        Outcome::ConditionFailed(version) => Outcome::ConditionFailed(version.map(|_| Default::default())),
        other => other,
    }
}

fn without_time(rejection: Rejection) -> Rejection {
    match rejection {
        Rejection::EpochEnded(epoch, _) => Rejection::EpochEnded(epoch, Default::default()),
        other => other,
    }
}

/// Every entry of a certified state can be read with a proof, and so can the absence of others.
#[test]
fn every_state_proves_what_it_has_and_what_it_has_not() {
    use fastpay_ledger_statement::{Evidence, StateKey};
    let (mut random, seed) = seeded("proofs");
    let mut world = World::new(2);
    let domain = world.layout().deployment().domain(COMMITTEE);
    let mut epoch = 0;
    for _ in 0..40 {
        let (who, action) = random_step(&mut random, &domain, &mut epoch);
        let request = world.sign(who, action);
        world.ask(COORDINATOR, request).ok();
        for cluster in world.clusters.values() {
            for at in 0..CLIENTS {
                let owner = client(at).account();
                for key in [StateKey::Reserve(owner, Asset::ETHER), StateKey::Opened(owner), StateKey::Sequence(owner)]
                {
                    let proof = cluster.state.prove(&key);
                    assert_eq!(proof.root(key.digest()), Some(cluster.state.root()), "seed {seed}");
                    let value = cluster.state.read(&key);
                    assert_eq!(
                        matches!(&proof.evidence, Evidence::Present(found) if value == Some(found)),
                        value.is_some()
                    );
                }
            }
        }
    }
}
