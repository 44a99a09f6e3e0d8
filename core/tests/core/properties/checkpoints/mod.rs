//! Checkpoints of the committee. A random [`History`] is executed by authorities with different numbers of shards, in
//! different orders, up to a cut, then to the next. At each cut the state that follows from the segment alone is the
//! one that every authority's shards hold, and that an oracle works out from the history without any of the rules; all
//! compute one checkpoint. Every altered segment is refused. A failing run prints its seed, see [`super::seeds`].
//!
//! [`History`]: history::History

mod alterations;
mod authority;
mod history;
mod oracle;
mod own;
mod recovery;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fastpay_core::Epoch;
use fastpay_core::checkpoint::{Checkpoint, CheckpointCertificate, CheckpointState, Cut, Segment, SegmentError};
use rand::prelude::*;
use rand::rngs::StdRng;

use self::authority::Authority;
use self::history::History;
use super::seeds;
use crate::streamed;

const FIXED: Range<u64> = 0..40;
const OTHERS: u64 = 20;
const CUTS: usize = 4;
/// The numbers of shards of the authorities that execute the history.
const SHARD_COUNTS: [u32; 3] = [1, 2, 3];

/// What the runs led to, so that they are known to lead to something.
#[derive(Debug, Default)]
struct Tally {
    executed: usize,
    voids: usize,
    events: usize,
    open: usize,
    unpaid: usize,
    kept: usize,
    refused: usize,
    premature: usize,
    ahead: usize,
    rebuilt: recovery::Tally,
}

#[test]
fn a_state_follows_from_the_segment_and_not_from_the_order_of_execution() {
    let (seeds, mut tally) = (seeds(FIXED, OTHERS), Tally::default());
    for seed in &seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(*seed, &mut tally))) {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            panic!("seed {seed} fails: {}", said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic"));
        }
    }
    println!("{tally:?} in {} runs", seeds.len());
    let Tally { executed, voids, events, open, unpaid, kept, refused, premature, ahead, ref rebuilt } = tally;
    let recovery::Tally { paid, behind, owing, left_out, found, complete, .. } = *rebuilt;
    let few = [voids, open, unpaid, kept, premature, ahead, paid, behind, owing, left_out, found];
    let few = few.into_iter().min().unwrap();
    let is_rebuilt = rebuilt.executed > 10 * seeds.len() && rebuilt.refused > 5 * seeds.len() && complete > 0;
    let is_telling = executed > 10 * seeds.len() && events > 10 * seeds.len() && refused > 5 * seeds.len();
    assert!(
        seeds.len() < 20 || (few > seeds.len() / 4 && is_telling && is_rebuilt),
        "the runs lead to little: {tally:?}"
    );
}

fn run(seed: u64, tally: &mut Tally) {
    let mut rng = StdRng::seed_from_u64(seed);
    let history = History::random(&mut rng);
    let domain = history.committee.domain;
    let mut authorities: Vec<_> = SHARD_COUNTS.iter().map(|count| Authority::new(&history.committee, *count)).collect();
    let mut state = CheckpointState::new(history.committee.committee.clone()).unwrap();
    let mut checkpoint = Checkpoint::first(&state.summary());
    let mut cuts = Vec::new();
    for number in 1..=CUTS {
        let cut = history.cut(state.cut(), number == CUTS, &mut rng);
        let segment = history.segment(state.cut(), &cut);
        if segment.entries.is_empty() {
            continue;
        }
        let applied = state.clone().apply(segment.clone(), &domain, &mut rng);
        streamed::compare(&state, &segment, &applied, &domain);
        let (next, root) = applied.expect("a true segment");
        assert_eq!(*next.cut(), cut);
        let epoch = Epoch(rng.random_range(0..2));
        let certified = checkpoint.next(&domain, epoch, &next.summary(), root).unwrap();
        for (at, authority) in authorities.iter_mut().enumerate() {
            authority.run_to(&history, &cut, &mut rng);
            authority.compare(&next, &history);
            // Each computes it from its own journals, and may have other signatures of owners.
            let mut own = Segment::from_records(history.events_from(1), authority.records(), state.cut(), &cut);
            assert_eq!(own, segment);
            if at == 1 {
                history.sign_again(&mut own);
            }
            let (own, own_root) = state.clone().apply(own, &domain, &mut rng).expect("a true segment");
            assert_eq!(checkpoint.next(&domain, epoch, &own.summary(), own_root).unwrap(), certified);
        }
        oracle::compare(&next, &history);
        cuts.push(cut.clone());
        recovery::is_rebuilt(&state, &checkpoint, &history, &mut rng, &mut tally.rebuilt);
        tally.ahead += own::follows_from_the_checkpoint_and_what_was_executed_since(&next, &cuts, &history, &mut rng);
        tally.premature += try_longer_cuts(&history, &state, &cut, &mut rng);
        survives_storage(&next, &segment);
        is_certified(&history, certified);
        tally.refused += alterations::try_all(&state, &segment, &checkpoint, &certified, &domain, &mut rng);
        tally.voids += next.numbers().iter().filter(|((account, at), _)| *at < cut.next(account)).count();
        tally.open += next.numbers().iter().filter(|((account, at), _)| *at >= cut.next(account)).count();
        tally.unpaid += next.unpaid().len();
        (state, checkpoint) = (next, certified);
    }
    tally.executed += usize::try_from(state.cut().next.values().map(|next| next.0).sum::<u64>()).unwrap();
    tally.events += usize::try_from(state.cut().up_to.0).unwrap();
    tally.kept += oracle::never_paid(state.cut(), &history);
}

/// A cut that includes one more number is refused if the number is not decided, or not covered, and is as good as the
/// cut otherwise. Says how many were refused because the number is not decided.
fn try_longer_cuts(history: &History, state: &CheckpointState, cut: &Cut, rng: &mut StdRng) -> usize {
    let mut premature = 0;
    for (longer, is_decided) in history.longer_cuts(cut) {
        let segment = history.segment(state.cut(), &longer);
        let applied = state.clone().apply(segment.clone(), &history.committee.domain, rng);
        streamed::compare(state, &segment, &applied, &history.committee.domain);
        match applied {
            Ok((next, _)) => {
                assert!(is_decided, "a number that is not decided is included");
                oracle::compare(&next, history);
            }
            Err(SegmentError::NegativeBalance { account, .. }) if is_decided => {
                assert_eq!(oracle::debtor(&longer, history), Some(account));
            }
            Err(error) => {
                use SegmentError::{Frozen, NotVoided, Overruled};
                let is_fitting = matches!(error, Frozen { .. } | Overruled { .. } | NotVoided { .. });
                assert!(is_fitting && !is_decided, "{error}");
                premature += 1;
            }
        }
    }
    premature
}

fn survives_storage(state: &CheckpointState, segment: &Segment) {
    let (mut of_state, mut of_segment) = (Vec::new(), Vec::new());
    state.write(&mut of_state).unwrap();
    segment.write(&mut of_segment).unwrap();
    assert_eq!(CheckpointState::read(&mut of_state.as_slice()).unwrap(), *state);
    assert_eq!(Segment::read(&mut of_segment.as_slice()).unwrap(), *segment);
}

fn is_certified(history: &History, checkpoint: Checkpoint) {
    let committee = history.committee_of(checkpoint.epoch);
    let votes = committee.keys.iter().map(|keys| checkpoint.sign(keys, &committee.domain)).collect();
    let certificate =
        CheckpointCertificate::from_votes(checkpoint, &committee.domain, &committee.committee, votes).unwrap();
    let verified = certificate.verify(&committee.domain, &history.installations_from(checkpoint.epoch)).unwrap();
    assert_eq!(verified.digest(), committee.domain.checkpoint_digest(&checkpoint));
}
