//! Tests of the simulator: the same plan gives the same run, other seeds give other runs, and a short run has no
//! violation.

use std::collections::BTreeSet;

use fastpay_testkit::sim::{HandOver, Plan, Role, run};

/// A small plan with some of each event.
fn plan(seed: u64) -> Plan {
    Plan {
        seed,
        shards: vec![2, 1, 2, 1],
        byzantine: vec![Role::Mixed],
        clients: 2,
        payments: 2,
        adversaries: 1,
        storm_s: 20,
        crash_every_s: 5,
        loss_per_mille: 50,
        duplicates_per_mille: 50,
        delay_ms_max: 100,
        part_every_s: 10,
        rotations: 1,
        pause_ms_max: 500,
        checkpoint_bytes: 1_000,
        accounts_in_memory: 5,
        relayers: 2,
        relayed_at_a_loss: true,
        nodes_lie: true,
        is_restored: false,
        redemptions_per_mille: 300,
        disputes: 0,
        straddles: 0,
        aimed_kills: false,
        has_checkpoints: false,
        hand_over: None,
        on_ledger: false,
    }
}

#[test]
fn the_same_seed_gives_the_same_run_event_by_event() {
    for seed in 0..4 {
        let first = run(plan(seed), false);
        assert_eq!(first.violation, None);
        assert_eq!(run(plan(seed), false), first, "seed {seed}");
    }
    assert_ne!(run(plan(0), false).digest, run(plan(1), false).digest);
}

#[test]
fn disputed_numbers_are_decided_and_the_run_repeats_itself() {
    let disputed = |seed| Plan { disputes: 2, rotations: 0, clients: 1, payments: 1, adversaries: 0, ..plan(seed) };
    let first = run(disputed(0), false);
    assert_eq!(first.violation, None);
    let decided = |kind| first.counts.get(kind).copied().unwrap_or_default();
    assert!(decided("dispute") >= 2, "{:?}", first.counts);
    assert_eq!(decided("upheld") + decided("voided"), decided("dispute"), "{:?}", first.counts);
    assert_eq!(run(disputed(0), false), first);
}

#[test]
fn a_payment_straddles_a_change_of_the_committee_and_the_run_repeats_itself() {
    let alone = Plan { byzantine: Vec::new(), clients: 1, payments: 1, adversaries: 0, rotations: 0, ..plan(0) };
    let straddling = Plan { straddles: 1, ..alone };
    let first = run(straddling.clone(), false);
    assert_eq!(first.violation, None);
    assert!(first.counts.contains_key("straddled"), "{:?}", first.counts);
    assert_eq!(run(straddling, false), first);
}

#[test]
fn members_hand_over_and_the_run_repeats_itself() {
    let small = Plan { rotations: 2, clients: 1, payments: 1, adversaries: 0, ..plan(0) };
    let growing = Plan { shards: vec![2, 1, 1, 2, 1], hand_over: Some(HandOver::OneMore), ..small.clone() };
    let restored =
        Plan { byzantine: Vec::new(), is_restored: true, hand_over: Some(HandOver::OneKey), ..small.clone() };
    let shards = vec![2, 1, 1, 2, 1, 1];
    let moving = Plan { shards, rotations: 3, hand_over: Some(HandOver::FaultsMove), ..small };
    for (handing_over, turned) in [(growing, 0), (restored, 0), (moving, 1)] {
        let first = run(handing_over.clone(), false);
        assert_eq!(first.violation, None);
        let count = |kind| first.counts.get(kind).copied().unwrap_or_default();
        for kind in ["stated", "joined", "handed over"] {
            assert!(count(kind) > 0, "{:?}", first.counts);
        }
        // One that was faulty from the beginning comes back, too.
        assert_eq!((count("turned"), count("honest again")), (turned, 2 * turned));
        assert_eq!(run(handing_over, false), first);
    }
}

#[test]
fn authorities_are_rebased_onto_checkpoints_and_the_run_repeats_itself() {
    let rebasing = |seed| Plan { has_checkpoints: true, storm_s: 60, rotations: 0, payments: 4, ..plan(seed) };
    let first = run(rebasing(0), false);
    assert_eq!(first.violation, None);
    for kind in ["checkpoint", "rebased"] {
        assert!(first.counts.contains_key(kind), "{:?}", first.counts);
    }
    assert_eq!(run(rebasing(0), false), first);
}

#[test]
fn a_ledger_takes_the_place_of_the_contract_and_the_run_repeats_itself() {
    for seed in 0..2 {
        let on_ledger = Plan {
            on_ledger: true,
            relayers: 0,
            relayed_at_a_loss: false,
            nodes_lie: false,
            storm_s: 60,
            ..plan(seed)
        };
        let first = run(on_ledger.clone(), false);
        assert_eq!(first.violation, None);
        for kind in ["group", "deposit final", "epoch final", "transfer"] {
            assert!(first.counts.contains_key(kind), "{kind} in {:?}", first.counts);
        }
        assert_eq!(run(on_ledger, false), first, "seed {seed}");
    }
}

#[test]
fn a_run_also_does_not_depend_on_what_ran_before_in_its_thread() {
    let alone = std::thread::spawn(|| run(plan(7), false)).join().unwrap();
    let after = std::thread::spawn(|| (run(plan(8), false), run(plan(7), false)).1).join().unwrap();
    assert_eq!(alone, after);
}

#[test]
fn a_plan_is_the_same_for_the_same_seed_and_never_has_too_many_byzantine_authorities() {
    for (plan, again) in (0..1_000).flat_map(|seed| [Plan::of, Plan::on_ledger].map(|of| (of(seed), of(seed)))) {
        assert_eq!(plan, again);
        let missing = plan.byzantine.len() + usize::from(plan.is_restored);
        assert!(missing <= (plan.authorities() - 1) / 3, "{plan:?}");
        let mut faulty = BTreeSet::new();
        for (kind, epoch) in plan.hand_over.into_iter().flat_map(|kind| (0..=plan.rotations).map(move |at| (kind, at)))
        {
            let of_epoch = plan.faulty(kind, epoch);
            assert!(of_epoch.len() <= (plan.seats(kind, epoch).len() - 1) / 3, "epoch {epoch} of {plan:?}");
            faulty.extend(of_epoch.into_keys());
        }
        let moves = plan.hand_over == Some(HandOver::FaultsMove);
        assert_eq!(
            faulty.len(),
            if moves { 3 } else { plan.hand_over.map_or(0, |_| plan.byzantine.len()) },
            "{plan:?}"
        );
        assert!(plan.smaller().iter().all(|smaller| *smaller != plan));
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}
