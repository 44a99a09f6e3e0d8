//! The state of an authority that is ahead of a checkpoint: what its shards hold is the checkpoint's state, the events
//! that it has followed since, and what it has executed since, covered or not.

use std::collections::BTreeMap;

use fastpay_core::checkpoint::{CheckpointState, Cut, OwnState};
use fastpay_core::{Record, SequenceNumber};
use rand::prelude::*;
use rand::rngs::StdRng;

use super::authority::Authority;
use super::history::History;

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

    let events = history.events_from(cut.up_to.0 + 1).take_while(|event| event.index <= beyond.up_to);
    let mut own = OwnState::new(certified.clone(), events, &history.committee.domain).unwrap();
    let mut taken = 0;
    for record in authority.records() {
        let (account, sequence, transfer) = match &record {
            Record::Confirmation { certificate, sent, .. } => {
                let transfer = &certificate.order.transfer;
                (transfer.sender(), SequenceNumber(sent.number), Some(transfer))
            }
            Record::Void { account, sent } => (*account, SequenceNumber(sent.number), None),
            _ => continue,
        };
        if sequence >= cut.next(&account) {
            own.take(account, sequence, transfer).unwrap();
            taken += 1;
        }
    }
    let (own, displaced) = own.finish();
    authority.compare(&own, history);

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
    taken
}
