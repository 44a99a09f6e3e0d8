//! Prints what a private transaction costs, in processor time of all threads together: the least of several runs.
//!
//! `cargo run --release --example figures [MEMBERS]` (in `private-prover/`)
#![allow(clippy::unwrap_used, clippy::indexing_slicing, dead_code)]

#[path = "../tests/prover/recorder.rs"]
mod recorder;
#[path = "../tests/prover/scene.rs"]
mod scene;

use std::hint::black_box;
use std::time::Duration;

use fastpay_private_prover::*;
use rand::rngs::OsRng;
use rustix::time::{ClockId, clock_gettime};
use scene::{Claim, Scene};

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Milliseconds.
fn least<T>(runs: usize, mut measured: impl FnMut() -> T) -> f64 {
    let run = |_| {
        let begin = processor_time();
        black_box(measured());
        (processor_time() - begin).as_secs_f64() * 1e3
    };
    (0..runs).map(run).fold(f64::MAX, f64::min)
}

fn main() {
    let members = std::env::args().nth(1).map_or(4, |members| members.parse().expect("a number of members"));
    let scene = Scene::new(members);
    let Claim { public, witness } = scene.payment_and_withdrawal();
    let recorded = scene.record(&Claim { public: public.clone(), witness: witness.clone() });
    let mut key = None;
    let setup =
        least(1, || key = Some(ProvingKey::development(scene.in_force.shape().unwrap(), DEVELOPMENT_CHAIN).unwrap()));
    let key = key.unwrap();
    println!("committee of {members}: {} constraints (goal for 4: at most 30,000)", recorded.constraints.len());
    println!("public inputs              {:8}", recorded.inputs - 1);
    println!("keys, once                 {:8.1} s, {:.1} MB", setup / 1e3, key.to_bytes().len() as f64 / 1e6);

    let statement = || scene.statement(&Claim { public: public.clone(), witness: witness.clone() });
    println!(
        "assign all variables       {:8.1} ms (with their names)",
        least(3, || recorder::Recorder::of(statement()))
    );
    let prove = least(7, || key.prove(&public, &witness, &mut OsRng).unwrap());
    println!("prove, and check the proof {prove:8.1} ms (goal for 4: 1,500, for 10: 2,500)");

    let proofs: Vec<_> = (0..4).map(|_| key.prove(&public, &witness, &mut OsRng).unwrap().to_bytes()).collect();
    let proof = Proof::from_bytes(&proofs[0]).unwrap();
    let decode = least(50, || Proof::from_bytes(&proofs[0]).unwrap());
    println!("decode a proof             {decode:8.3} ms");
    let one = least(50, || key.verifying().verify(&public, &proof).unwrap());
    println!("verify one                 {one:8.3} ms (goal: 1.5)");
    let member = &scene.members[0];
    let sign = least(50, || member.sign(scene.in_force.domain, Kind::Coin, public.coin, &mut OsRng));
    println!("sign a commitment          {sign:8.3} ms");
    for size in [8, 32, 128] {
        let batch = least(20, || {
            let proofs: Vec<Proof> =
                proofs.iter().cycle().take(size).map(|bytes| Proof::from_bytes(bytes).unwrap()).collect();
            let claims: Vec<(&Public, &Proof)> = proofs.iter().map(|proof| (&public, proof)).collect();
            assert_eq!(key.verifying().verify_batch(&claims, &mut OsRng), []);
        });
        let each = batch / size as f64;
        let authority = each + 2.0 * sign;
        println!("decode and verify, {size:3} together {each:5.3} ms each; with two signatures {authority:.3} ms");
    }
}
