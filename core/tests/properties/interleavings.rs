//! Safety, redeemability and durability under random interleavings: see [`World`] for what is checked
//! after each step and at the end.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::test_runner::TestRunner;

use crate::config;
use crate::world::{World, step};

#[test]
fn whatever_happens_in_whatever_order() {
    let (cases, certificates) = (AtomicUsize::new(0), AtomicUsize::new(0));
    TestRunner::new(config(128))
        .run(&vec(step(), 60..300), |steps| {
            let mut world = World::new();
            steps.iter().for_each(|step| world.take(step));
            world.settle();
            cases.fetch_add(1, Ordering::Relaxed);
            certificates.fetch_add(world.certificates.len(), Ordering::Relaxed);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    let (cases, certificates) = (cases.into_inner(), certificates.into_inner());
    println!("{certificates} certificates in {cases} cases");
    assert!(certificates > 4 * cases, "the steps lead to nothing: {certificates} certificates in {cases} cases");
}
