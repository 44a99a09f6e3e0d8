//! What it costs to verify: `cargo run --release -p fastpay-core --example verifier [part of a row's name]`. Microseconds of CPU time of
//! this thread, the median of several runs; compare figures of one run with each other only.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;

use fastpay_core::{
    Authorization, Certificate, Committees, Digest, Epoch, Request, TransferOrder, Verifier, sign_payment_votes,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, test_domain};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// So many runs of at least so many requests each.
const RUNS: usize = 7;
const REQUESTS_PER_RUN: usize = 2048;
/// Payments under one signature of an authority.
const VOTES_PER_ROOT: usize = 32;

fn main() {
    let committee = TestCommittee::new(4);
    let committees = Committees::new(committee.committee).unwrap();
    let senders: Vec<TestAccount> = (0..REQUESTS_PER_RUN as u64).map(TestAccount::ed25519).collect();
    let orders = |sequence| -> Vec<TransferOrder> {
        let to = TestAccount::numbered(1).id();
        let order = |sender: &TestAccount| sender.sign(&test_domain(), payment(sender.id(), to, 1, sequence));
        senders.iter().map(order).collect()
    };
    let (first, second) = (orders(0), orders(1));
    let with_bad = |every: usize| -> Vec<TransferOrder> {
        let mut orders = second.clone();
        for order in orders.iter_mut().step_by(every) {
            let Authorization::Ed25519 { signature, .. } = &mut order.authorization else { continue };
            signature.0[40] ^= 1;
        }
        orders
    };
    println!("{:52} {:>8} {:>8} {:>8} {:>8} {:>8}", "µs per request, in batches of", 1, 16, 64, 256, 1024);
    let only = std::env::args().nth(1).unwrap_or_default();
    let row = |name: &str, known: &[Request], asked: &[Request], committees: &Committees| {
        if !name.contains(&only) {
            return;
        }
        print!("{name:52}");
        for size in [1, 16, 64, 256, 1024] {
            print!(" {:>8.2}", measure(known, asked, committees, size));
        }
        println!();
    };
    let submit = |orders: &[TransferOrder]| orders.iter().cloned().map(Request::Order).collect::<Vec<_>>();
    row("order, sender never seen", &[], &submit(&second), &committees);
    row("order, sender's key known", &submit(&first), &submit(&second), &committees);
    row("order, key known, 1 in 256 bad", &submit(&first), &submit(&with_bad(256)), &committees);
    row("order, key known, all bad", &submit(&first), &submit(&with_bad(1)), &committees);
    for size in [4, 10, 20] {
        let committee = TestCommittee::new(size);
        let committees = Committees::new(committee.committee.clone()).unwrap();
        let certificates = certify(&committee, &second);
        let name = |what: &str| format!("certificate, n = {size}, {what}");
        row(&name("order known"), &submit(&second), &certificates, &committees);
        row(&name("the same once more"), &certificates, &certificates, &committees);
    }
}

/// Certificates with votes from batches of [`VOTES_PER_ROOT`].
fn certify(committee: &TestCommittee, orders: &[TransferOrder]) -> Vec<Request> {
    let certify = |orders: &[TransferOrder]| {
        let digests: Vec<Digest> = orders.iter().map(|order| test_domain().transfer_digest(&order.transfer)).collect();
        let voters = committee.keys.iter().take(committee.committee.quorum());
        let votes = voters.map(|keys| sign_payment_votes(keys, &test_domain(), Epoch(0), &digests).unwrap().0);
        let votes: Vec<_> = votes.collect();
        let one = |(at, order): (usize, &TransferOrder)| Certificate {
            order: order.clone(),
            epoch: Epoch(0),
            votes: votes.iter().map(|votes| votes[at].clone()).collect(),
        };
        orders.iter().enumerate().map(one).map(Request::Certificate).collect::<Vec<_>>()
    };
    orders.chunks(VOTES_PER_ROOT).flat_map(certify).collect()
}

/// Microseconds for each request of `asked`, by a verifier that has verified `known` before.
fn measure(known: &[Request], asked: &[Request], committees: &Committees, batch: usize) -> f64 {
    let mut rng = StdRng::seed_from_u64(1);
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let mut verifier = Verifier::new(test_domain());
            verifier.verify(known.to_vec(), committees, &mut rng);
            let batches: Vec<Vec<Request>> = asked.chunks(batch).map(<[_]>::to_vec).collect();
            let start = cpu_time_us();
            for batch in batches {
                black_box(verifier.verify(batch, committees, &mut rng));
            }
            (cpu_time_us() - start) / asked.len() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

/// CPU time of this thread so far, in microseconds.
fn cpu_time_us() -> f64 {
    // The first number is the time on the CPU in nanoseconds.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1000.0
}
