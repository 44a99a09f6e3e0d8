//! The state of an authority that is ahead of a checkpoint: what its shards hold is the checkpoint's state, the events
//! that it has followed since, and what it has executed since, covered or not.

use std::collections::BTreeMap;

use fastpay_core::checkpoint::{CheckpointState, Cut, OwnState, SegmentError, StatePart};
use fastpay_core::{Record, SequenceNumber, Transfer};
use rand::prelude::*;
use rand::rngs::StdRng;

use super::authority::Authority;
use super::history::History;
use crate::streamed::stored;

/// Says how many numbers it had taken beyond the checkpoint.
pub fn follows_from_the_checkpoint_and_what_was_executed_since(
    certified: &CheckpointState,
    cuts: &[Cut],
    history: &History,
    rng: &mut StdRng,
) -> usize {
    let cut = certified.cut();
    let beyond = history.beyond(cut, rng);
    let mut authority = Authority::new(&history.committee, rng.random_range(1..4));
    // Along all cuts: of one that is left out, a number may be frozen later without outcome.
    cuts.iter().for_each(|cut| authority.run_to(history, cut, rng));
    authority.run_to(history, &beyond, rng);

    let events: Vec<_> = history.events_from(cut.up_to.0 + 1).take_while(|event| event.index <= beyond.up_to).collect();
    let mut taken = Vec::new();
    for record in authority.records() {
        let (account, sequence, transfer) = match record {
            Record::Confirmation { certificate, sent, .. } => {
                let transfer = certificate.order.transfer.clone();
                (transfer.sender(), SequenceNumber(sent.number), Some(transfer))
            }
            Record::Void { account, sent } => (account, SequenceNumber(sent.number), None),
            _ => continue,
        };
        if sequence >= cut.next(&account) {
            taken.push((account, sequence, transfer));
        }
    }
    let follow = |rows: CheckpointState| {
        let mut own = OwnState::new(rows, events.clone(), &history.committee.domain)?;
        taken.iter().try_for_each(|(account, sequence, paid)| own.take(*account, *sequence, paid.as_ref()))?;
        Ok::<_, SegmentError>(own.finish())
    };
    let (own, displaced) = follow(certified.clone()).unwrap();
    authority.compare(&own, history);
    // The rows of the accounts that were touched are enough.
    let paid = taken.iter().filter_map(|(.., transfer)| transfer.as_ref()).flat_map(Transfer::receipts);
    let touched = events.iter().filter_map(|event| event.kind.account()).chain(taken.iter().map(|taken| taken.0));
    let touched = touched.chain(paid.map(|receipt| receipt.payment.recipient)).collect();
    let base = stored(certified);
    let (part, of_part) = StatePart::read(&mut base.as_slice(), touched).unwrap().change(follow).unwrap();
    let mut merged = Vec::new();
    part.write(&mut base.as_slice(), &mut merged).unwrap();
    assert_eq!((merged, &of_part), (stored(&own), &displaced));

    // What was executed and is never paid is remembered, or it would be credited back once more.
    let mut remembered = BTreeMap::new();
    for shard in &authority.authority.shards {
        for (account, sequence, unlock) in shard.ledger().unlocks.iter() {
            let is_executed = sequence < own.cut().next(&account) && !unlock.is_voided();
            if is_executed && sequence >= cut.next(&account) && unlock.spent.is_some() {
                remembered.insert((account, sequence), ());
            }
        }
    }
    assert!(remembered.keys().eq(displaced.keys()), "{remembered:?} and {displaced:?}");
    taken.len()
}
