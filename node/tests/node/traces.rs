//! The spans of shards for traced payments.

use std::sync::mpsc::sync_channel;

use fastpay_core::{Digest, ShardId};
use fastpay_node::authority::shard::{Answer, ShardLimits};
use fastpay_rpc::Refusal;
use fastpay_telemetry::{Ratio, Tracer, root_span_id, trace_id};
use fastpay_testkit::payment;

use crate::scene::{PATIENCE, Shards};

/// A span's name, its steps, and what it says, in words.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    name: String,
    steps: Vec<String>,
    words: Vec<String>,
}

struct Traced {
    shards: Shards,
    next: Box<dyn Fn(&Digest) -> Said>,
    is_silent: Box<dyn Fn() -> bool>,
    _folder: tempfile::TempDir,
}

fn traced(ratio: f64, shards: u32) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    let (queue, spans) = sync_channel(64);
    let spans = std::sync::Arc::new(std::sync::Mutex::new(spans));
    let tracer = Tracer::new(Ratio::try_from(ratio).unwrap(), queue, Default::default());
    let shards = Shards::traced(folder.path(), shards, ShardLimits::default(), tracer);
    let others = spans.clone();
    let next = move |digest: &Digest| {
        let span = spans.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        assert_eq!(span.span_context.trace_id(), trace_id(digest));
        assert_eq!(span.parent_span_id, root_span_id(digest));
        let mut words: Vec<_> = span.attributes.iter().map(|pair| format!("{}={}", pair.key, pair.value)).collect();
        words.retain(|word| *word != format!("fastpay.digest={digest}"));
        words.sort();
        Said { name: span.name.into(), steps: span.events.iter().map(|step| step.name.to_string()).collect(), words }
    };
    let is_silent = move || others.lock().unwrap().try_recv().is_err();
    Traced { shards, next: Box::new(next), is_silent: Box::new(is_silent), _folder: folder }
}

fn said(name: &str, steps: &[&str], words: &[&str]) -> Said {
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Said { name: name.into(), steps: own(steps), words: own(words) }
}

const STEPS: [&str; 3] = ["taken", "decided", "durable"];

#[test]
fn a_payment_is_traced_from_order_to_credit_and_a_refusal_by_its_code() {
    let Traced { shards, next, is_silent, _folder } = traced(1.0, 2);
    let domain = shards.committee.domain;
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(1, 0));
    shards.deposit(&[(alice.id(), 100)]);
    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 30, 0));
    let other = alice.sign(&domain, payment(alice.id(), bob.id(), 31, 0));
    let [digest, of_other] = [&order, &other].map(|order| domain.transfer_digest(&order.transfer));

    shards.vote(&order);
    let words = ["fastpay.batch=1", "fastpay.outcome=voted", "fastpay.shard=0"];
    assert_eq!(next(&digest), said("fastpay.order", &STEPS, &words));
    shards.refusal(&other);
    let words = ["error.type=order-pending", "fastpay.batch=1", "fastpay.outcome=refused", "fastpay.shard=0"];
    assert_eq!(next(&of_other), said("fastpay.order", &STEPS, &words));

    shards.confirm(&shards.committee.certificate(&order));
    let words = ["fastpay.batch=1", "fastpay.outcome=confirmed", "fastpay.shard=0"];
    let certificate = said("fastpay.certificate", &STEPS, &words);
    let credit = said("fastpay.credit", &[], &["fastpay.shard=0", "fastpay.to_shard=1"]);
    // Two threads report: either may come first.
    let (first, second) = (next(&digest), next(&digest));
    assert!(
        [&first, &second] == [&certificate, &credit] || [&first, &second] == [&credit, &certificate],
        "{first:?}, {second:?}"
    );
    assert_eq!(shards.ledger(1).inbox(ShardId(0)), 1);
    shards.stop();
    assert!(is_silent());
}

#[test]
fn what_nobody_signed_makes_no_span() {
    let Traced { shards, next: _, is_silent, _folder } = traced(1.0, 1);
    let domain = shards.committee.domain;
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(0, 1));
    shards.deposit(&[(alice.id(), 100)]);
    let mut forged = alice.sign(&domain, payment(alice.id(), bob.id(), 30, 0));
    forged.authorization = alice.sign(&domain, payment(alice.id(), bob.id(), 31, 0)).authorization;
    assert!(matches!(shards.refusal(&forged), Refusal::Invalid(_)));
    let mut certificate = shards.committee.certificate(&alice.sign(&domain, payment(alice.id(), bob.id(), 30, 0)));
    certificate.votes.pop();
    assert!(matches!(shards.confirm(&certificate), Answer::Refused(Refusal::Invalid(_))));
    shards.stop();
    assert!(is_silent());
}

#[test]
fn payments_that_are_not_sampled_are_not_traced() {
    let Traced { shards, next: _, is_silent, _folder } = traced(0.0, 2);
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(1, 0));
    shards.deposit(&[(alice.id(), 100)]);
    shards.pay(&alice.sign(&shards.committee.domain, payment(alice.id(), bob.id(), 30, 0)));
    shards.settle();
    shards.stop();
    assert!(is_silent());
}
