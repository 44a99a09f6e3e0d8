//! What the relayer last wrote to disk, for its operator.

use fastpay_ethereum::utc;
use serde_json::{Value, json};

use crate::item::{Item, ItemId, Parked};
use crate::store::State;

/// For people.
#[must_use]
pub fn status_text(state: &State) -> String {
    let t = state.totals;
    let (open, in_queue) = state.counts();
    let mut lines = vec![
        format!("contract       {} on chain {}", state.contract, state.chain_id),
        format!("redeemed       {} by us, {} by others", t.redeemed, t.redeemed_by_others),
        format!("to do          {open}, of which {} in {} transactions", under_way(state), state.bundles.len()),
        format!("decision       {}", decision_text(state)),
        format!("queued         {in_queue} now, {} in all, {} executed by us", t.queued, t.executed),
    ];
    if let Some(until) = state.paused_until {
        lines.push(format!("paused         until {}", utc(until)));
    }
    for (id, queued) in queued(state) {
        lines.push(format!("               {} order {}: due {}", id.sender, id.sequence, utc(queued.executable_at)));
    }
    lines.push(format!(
        "left out       {} for a while, {} for good, {} for their fee, {} for the gas",
        parked(state).count(),
        t.given_up,
        t.below_minimum,
        t.below_cost
    ));
    for (id, parked) in parked(state) {
        lines.push(format!("               {} order {}: {}", id.sender, id.sequence, parked.reason));
    }
    lines.join("\n")
}

/// For programs.
#[must_use]
pub fn status_json(state: &State) -> Value {
    let transactions = state.bundles.iter().map(|bundle| {
        let hashes: Vec<_> = bundle.submission.attempts.iter().map(|attempt| attempt.hash).collect();
        json!({ "nonce": bundle.submission.nonce, "hashes": hashes, "items": bundle.items })
    });
    let queue = state.items.iter().filter_map(queued_json);
    let parked = parked(state).map(|(id, parked)| json!({ "item": id, "parked": parked }));
    json!({
        "chainId": state.chain_id,
        "contract": state.contract,
        "totals": state.totals,
        "items": state.counts().0,
        "decision": state.decision,
        "pausedUntil": state.paused_until,
        "transactions": transactions.collect::<Vec<_>>(),
        "queued": queue.collect::<Vec<_>>(),
        "parked": parked.collect::<Vec<_>>(),
        "cursors": state.cursors,
    })
}

fn queued_json(item: &Item) -> Option<Value> {
    let queued = item.queued?;
    Some(json!({
        "item": item.id(),
        "asset": item.redemption.asset,
        "amount": item.redemption.amount.to_string(),
        "fee": item.redemption.fee.to_string(),
        "relayer": queued.relayer,
        "executableAt": queued.executable_at,
        "executableAtUtc": utc(queued.executable_at),
    }))
}

fn decision_text(state: &State) -> String {
    let decision = &state.decision;
    let what = decision.reason.text();
    match decision.plan {
        Some(plan) => {
            let (items, gas, gwei) = (decision.items, decision.gas_each, decision.gas_price_wei / 1_000_000_000);
            format!("{what} ({items} by {plan}, about {gas} gas each at {gwei} gwei)")
        }
        None => what.to_owned(),
    }
}

fn under_way(state: &State) -> usize {
    state.bundles.iter().map(|bundle| bundle.items.len()).sum()
}

fn queued(state: &State) -> impl Iterator<Item = (ItemId, fastpay_ethereum::Queued)> {
    state.items.iter().filter_map(|item| Some((item.id(), item.queued?)))
}

fn parked(state: &State) -> impl Iterator<Item = (ItemId, &Parked)> {
    state.items.iter().filter_map(|item| Some((item.id(), item.parked.as_ref()?)))
}
