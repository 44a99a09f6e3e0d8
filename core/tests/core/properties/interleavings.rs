//! Safety, redeemability and durability under random interleavings: see [`World`] for what is checked
//! after each step and at the end.

use std::sync::atomic::{AtomicUsize, Ordering};

use fastpay_core::Epoch;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::config;
use super::world::{World, step};

#[test]
fn whatever_happens_in_whatever_order() {
    let (cases, certificates, rotated) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
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
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    let (cases, certificates, rotated) = (cases.into_inner(), certificates.into_inner(), rotated.into_inner());
    println!("{certificates} certificates in {cases} cases, {rotated} of them after a rotation");
    assert!(certificates > 2 * cases, "the steps lead to nothing: {certificates} certificates in {cases} cases");
    assert!(2 * rotated > cases, "too few certificates after a rotation: {rotated} in {cases} cases");
}
