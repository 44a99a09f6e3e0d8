//! Safety, redeemability and durability under random interleavings: see [`World`] for what is checked
//! after each step and at the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use fastpay_core::Epoch;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::world::{World, step};
use super::{config, seeds};

#[test]
fn whatever_happens_in_whatever_order() {
    let (cases, certificates, rotated) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let (attested, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Committees with one faulty member and with two, whoever they are, in whose first epoch the keys of some of them are
    // out.
    let cases_of = (prop_oneof![3 => Just(4), 1 => Just(7)], 0..7_usize, any::<u8>(), vec(step(), 60..300));
    TestRunner::new(config(128))
        .run(&cases_of, |(size, first_faulty, out, steps)| {
            let mut world = World::new(size, first_faulty, out);
            steps.iter().for_each(|step| world.take(step));
            world.settle();
            cases.fetch_add(1, Ordering::Relaxed);
            certificates.fetch_add(world.certificates.len(), Ordering::Relaxed);
            let later = world.certificates.iter().filter(|certificate| certificate.epoch > Epoch(0)).count();
            rotated.fetch_add(later, Ordering::Relaxed);
            attested.fetch_add(world.attested, Ordering::Relaxed);
            refused.fetch_add(world.refused, Ordering::Relaxed);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    let (cases, certificates, rotated) = (cases.into_inner(), certificates.into_inner(), rotated.into_inner());
    let (attested, refused) = (attested.into_inner(), refused.into_inner());
    println!("{certificates} certificates in {cases} cases, {rotated} of them after a rotation");
    println!("{attested} executed because members attest them, {refused} forged ones refused");
    assert!(attested > 0 && refused > cases, "too little of epochs that ended: {attested}, {refused} in {cases} cases");
    assert!(certificates > 2 * cases, "the steps lead to nothing: {certificates} certificates in {cases} cases");
    assert!(2 * rotated > cases, "too few certificates after a rotation: {rotated} in {cases} cases");
}

/// The same by seeds, for the mutants of epochs that have ended.
#[test]
fn retired_keys_in_whatever_order() {
    let (mut attested, mut refused) = (0, 0);
    let seeds = seeds(0..20, 5);
    for seed in &seeds {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let drawn = vec(step(), 300..400).new_tree(&mut runner).expect("steps can be drawn").current();
        let mut world = World::new(4, (seed % 4) as usize, u8::MAX);
        let run = catch_unwind(AssertUnwindSafe(|| {
            drawn.iter().for_each(|step| world.take(step));
            world.settle();
        }));
        assert!(run.is_ok(), "seed {seed} fails");
        attested += world.attested;
        refused += world.refused;
    }
    println!("{attested} executed because members attest them, {refused} forged ones refused");
    assert!(seeds.len() < 20 || (attested > 0 && refused > seeds.len()), "the runs lead to little");
}
