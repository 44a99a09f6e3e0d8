//! Random sequences: money is conserved at every step, two folds agree, and so do all partitions. A run prints its
//! seed.

use std::collections::BTreeMap;

use fastpay_core::{Amount, Asset, Digest, Redemption};
use fastpay_ledger_state::State;
use fastpay_ledger_statement::{
    Action, Condition, CurrentEpoch, EventKind, Evidence, Key, Outcome, Rejection, StateKey, Time, Value,
};

use crate::people::{
    GUARDIAN, accept, account, address, announce, certified, certified_batch, client, next, owner, redemption,
    request_unlock, uphold, void,
};
use crate::world::{CLIENTS, COMMITTEE, COORDINATOR, World, namespace};

fn seeded(name: &str) -> (fastrand::Rng, u64) {
    let seed = rand::random();
    println!("{name}: seed {seed}");
    (fastrand::Rng::with_seed(seed), seed)
}

/// Whose numbers are unlocked and redeemed.
const OWNERS: std::ops::Range<u8> = 1..3;
const NUMBERS: std::ops::Range<u64> = 0..12;

/// A step of somebody, sound or not, in this world.
fn random_step(random: &mut fastrand::Rng, world: &World) -> (usize, Action) {
    let who = random.usize(0..usize::from(CLIENTS));
    let (asset, amount) = (Asset::ETHER, Amount(random.u128(0..400)));
    let current: CurrentEpoch = world.read(world.settlement(), &StateKey::Epoch(COMMITTEE)).unwrap();
    let (domain, epoch) = (world.domain(), u8::try_from(current.epoch.0).unwrap());
    let action = match random.u8(0..25) {
        0..=1 => Action::Open,
        2..=5 => Action::Transfer { to: client(random.u8(0..CLIENTS + 2)).account(), asset, amount },
        6..=8 => Action::Fund { committee: COMMITTEE, account: account(random.u8(1..4)), asset, amount },
        9..=11 => {
            let voters = random.u8(epoch.saturating_sub(2)..epoch + 1);
            certified(&domain, voters, random_redemption(random, amount.0))
        }
        12..=13 => {
            let orders = (0..random.u8(1..4)).map(|_| random_redemption(random, amount.0 / 4)).collect();
            certified_batch(&domain, random.u8(epoch.saturating_sub(1)..epoch + 1), orders)
        }
        14..=16 => {
            let signer = owner(random.u8(OWNERS));
            Action::RequestUnlock(request_unlock(&domain, &signer, random.u64(NUMBERS)))
        }
        17..=18 => {
            let account = owner(random.u8(OWNERS)).account();
            uphold(&domain, epoch, account, random.u64(NUMBERS), Digest::repeat_byte(random.u8(..)))
        }
        19..=20 => {
            let account = owner(random.u8(OWNERS)).account();
            void(&domain, epoch, account, random.u64(NUMBERS), random.bool())
        }
        21..=22 if epoch < 6 => {
            // One of two announcements of the next epoch, at whatever stage it is.
            let since = epoch + random.u8(0..2);
            let wanted = next(epoch + 1, since);
            let id = wanted.id(&domain);
            match world.announced(id) {
                None => Action::Announce(Box::new(announce(&domain, wanted))),
                Some(announced) if announced.matured.is_some() => accept(&domain, epoch + 1, id, &announced),
                Some(announced) if announced.endorsed_at.is_none() && random.bool() => {
                    return (GUARDIAN.into(), Action::Endorse { committee: COMMITTEE, announcement: id });
                }
                Some(_) => Action::Mature { committee: COMMITTEE, announcement: id },
            }
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

fn random_redemption(random: &mut fastrand::Rng, amount: u128) -> Redemption {
    let recipient = address(random.u8(0..2));
    let order = redemption(0, random.u64(NUMBERS), recipient, amount, random.u128(0..amount / 4 + 2));
    Redemption { sender: owner(random.u8(OWNERS)).account(), ..order }
}

/// Lets some time pass at all clusters. Windows and delays are multiples of it, and all steps of a course take less, so
/// what is possible does not depend on how many heights a request takes.
fn random_wait(random: &mut fastrand::Rng, world: &mut World) {
    let turns = [0, 0, 0, 0, 1, 2, 4][random.usize(0..7)];
    world.wait_until(Time(world.now().0 + turns * 30_000));
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
        let clusters: Vec<_> = world.clusters.keys().copied().collect();
        for _ in 0..200 {
            if random.bool() {
                random_wait(&mut random, &mut world);
                let (who, action) = random_step(&mut random, &world);
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
    events: Vec<&'static str>,
}

#[test]
fn every_partition_gives_the_same_answers_and_balances() {
    let (_, seed) = seeded("partitions");
    let course = |shards: u32| {
        let mut random = fastrand::Rng::with_seed(seed);
        // Votes are for a deployment, which the partition is a part of: so every world signs its own.
        let mut world = World::new(shards);
        let mut answers = vec![];
        for _ in 0..70 {
            random_wait(&mut random, &mut world);
            let (who, action) = random_step(&mut random, &world);
            answers.push(world.act(who, action).map(without_version).map_err(without_time));
        }
        let reserves = (0..CLIENTS + 2).map(|at| (at, world.reserve(client(at).account()))).collect();
        let events = world.events().into_iter().map(|event| kind_of(&event.kind)).collect();
        let omnibus = world.omnibus();
        check_books(&world, seed);
        Course { answers, reserves, omnibus, events }
    };
    let alone = course(1);
    assert!(alone.answers.iter().filter(|answer| answer.is_ok()).count() > 10, "seed {seed}: too little happens");
    for shards in [2, 4] {
        assert_eq!(course(shards), alone, "{shards} shards, seed {seed}");
    }
}

fn kind_of(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Funded(_) => "funded",
        EventKind::Redeemed { .. } => "redeemed",
        EventKind::Installed { .. } => "installed",
        EventKind::UnlockRequested { .. } => "requested",
        EventKind::Upheld { .. } => "upheld",
        EventKind::Voided { .. } => "voided",
    }
}

/// Without what differs between partitions: versions, and ids, which are of a deployment.
fn without_version(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Announced(_) => Outcome::Announced(Digest::ZERO),
        Outcome::Written(_) => Outcome::Written(Default::default()),
        Outcome::ConditionFailed(version) => Outcome::ConditionFailed(version.map(|_| Default::default())),
        other => other,
    }
}

fn without_time(rejection: Rejection) -> Rejection {
    match rejection {
        Rejection::EpochEnded(epoch, _) => Rejection::EpochEnded(epoch, Default::default()),
        Rejection::NotVoidable(_) => Rejection::NotVoidable(Default::default()),
        Rejection::NotInstallable(_) => Rejection::NotInstallable(Default::default()),
        Rejection::AnnouncementLapsed(_) => Rejection::AnnouncementLapsed(Default::default()),
        other => other,
    }
}

/// Every entry of a certified state can be read with a proof, and so can the absence of others.
#[test]
fn every_state_proves_what_it_has_and_what_it_has_not() {
    let (mut random, seed) = seeded("proofs");
    let mut world = World::new(2);
    for _ in 0..40 {
        let (who, action) = random_step(&mut random, &world);
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
