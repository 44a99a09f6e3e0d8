//! The relayer's last stored state, for its operator.

use alloy::primitives::utils::format_ether;
use fastpay_core::AccountId;
use fastpay_ethereum::utc;
use serde_json::{Value, json};

use crate::gas_balance::GasBalance;
use crate::pending::{Parked, PendingRedemption, RedemptionId};
use crate::policy::Reason;
use crate::store::{Left, State, Totals};
use crate::unlocks::OpenUnlock;

const WEI_PER_GWEI: u128 = 1_000_000_000;
/// The maximum number of abandoned redemptions that are listed, the newest first.
const LEFT_SHOWN: usize = 20;

/// The status as text.
#[must_use]
pub fn status_text(state: &State, gas_balance: Option<&GasBalance>) -> String {
    let t = state.totals;
    let (open, in_queue) = state.counts();
    let is_on_ledger = state.chain_id == 0;
    let mut lines = vec![
        match is_on_ledger {
            true => format!("ledger         committee with the domain {}", state.contract),
            false => format!("contract       {} on chain {}", state.contract, state.chain_id),
        },
        format!(
            "redeemed       {} by us, {} by others; {} never paid, for their numbers were spent on other orders",
            t.redeemed, t.redeemed_by_others, t.displaced
        ),
    ];
    if is_on_ledger {
        lines.push(format!("to do          {open}"));
        lines.extend(state.address.map(|address| format!("reserve        {}", AccountId::from_ethereum(address))));
    } else {
        lines.push(format!(
            "to do          {open}, of which {} in {} transactions",
            under_way(state),
            state.bundles.len()
        ));
        lines.push(format!("decision       {}", decision_text(state, gas_balance)));
        lines.push(format!("queued         {in_queue} now, {} in all, {} executed by us", t.queued, t.executed));
        lines.extend(gas_balance.map(gas_balance_text));
        lines.push(format!(
            "unlocking      {} undecided; {} requested, {} upheld, {} voided by us; {} ETH spent on the last day",
            state.unlock.open.len(),
            t.unlock_requested,
            t.unlock_upheld,
            t.unlock_voided,
            format_ether(state.unlock.spent_wei)
        ));
    }
    for open in &state.unlock.open {
        let (ours, until) = (if open.is_ours { ", requested by us" } else { "" }, utc(open.voidable_from));
        let OpenUnlock { account, sequence, waits_for, .. } = open;
        lines.push(format!("               {account} order {sequence}{ours}, voidable from {until}: {waits_for}"));
    }
    if let Some(until) = state.paused_until {
        lines.push(format!("paused         until {}", utc(until)));
    }
    for (id, queued) in queued(state) {
        lines.push(format!("               {} order {}: due {}", id.sender, id.sequence, utc(queued.executable_at)));
    }
    lines.push(format!(
        "left out       {} for a while, {} for good, {} for their asset, {} for their fee",
        parked(state).count(),
        t.given_up.saturating_add(t.failed_alone),
        t.not_served,
        t.below_cost
    ));
    for (id, parked) in parked(state) {
        lines.push(format!("               {} order {}: {}", id.sender, id.sequence, parked.reason));
    }
    for Left { item, reason, .. } in state.left.iter().rev().take(LEFT_SHOWN) {
        lines.push(format!("               {} order {}, for good: {reason}", item.sender, item.sequence));
    }
    lines.join("\n")
}

/// The status as JSON.
#[must_use]
pub fn status_json(state: &State, gas_balance: Option<&GasBalance>) -> Value {
    let transactions = state.bundles.iter().map(|bundle| {
        let hashes: Vec<_> = bundle.submission.attempts.iter().map(|attempt| attempt.hash).collect();
        json!({ "nonce": bundle.submission.nonce, "hashes": hashes, "items": bundle.items, "unlock": bundle.unlock })
    });
    let queue = state.items.iter().filter_map(queued_json);
    let parked = parked(state).map(|(id, parked)| {
        let Parked { reason, attempts, until_ms } = parked;
        json!({ "item": id, "reason": reason, "attempts": attempts, "untilMs": until_ms })
    });
    let left = state.left.iter().map(|left| {
        let Left { item, reason, transaction } = left;
        json!({ "item": item, "reason": reason, "transaction": transaction })
    });
    json!({
        "chainId": state.chain_id,
        "contract": state.contract,
        "gas": gas_balance.map(gas_balance_json),
        "totals": totals_json(&state.totals),
        "items": state.counts().0,
        "decision": state.decision,
        "pausedUntil": state.paused_until,
        "transactions": transactions.collect::<Vec<_>>(),
        "queued": queue.collect::<Vec<_>>(),
        "parked": parked.collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
        "unlocks": state.unlock.open.iter().map(unlock_json).collect::<Vec<_>>(),
        "unlockSpentWei": state.unlock.spent_wei.to_string(),
        "freeNonces": state.free_nonces,
        "cursors": state.cursors,
    })
}

fn totals_json(totals: &Totals) -> Value {
    json!({
        "redeemed": totals.redeemed,
        "redeemedByOthers": totals.redeemed_by_others,
        "displaced": totals.displaced,
        "queued": totals.queued,
        "executed": totals.executed,
        "givenUp": totals.given_up,
        "failedAlone": totals.failed_alone,
        "notServed": totals.not_served,
        "belowCost": totals.below_cost,
        "invalid": totals.invalid,
        "unlockRequested": totals.unlock_requested,
        "unlockUpheld": totals.unlock_upheld,
        "unlockVoided": totals.unlock_voided,
    })
}

fn unlock_json(open: &OpenUnlock) -> Value {
    let OpenUnlock { account, sequence, voidable_from, is_ours, is_below: _, tries, next_at_ms, waits_for } = open;
    json!({
        "account": account, "sequence": sequence, "voidableFrom": voidable_from, "isOurs": is_ours, "tries": tries,
        "nextAtMs": next_at_ms, "waitsFor": waits_for,
    })
}

fn gas_balance_json(gas_balance: &GasBalance) -> Value {
    match &gas_balance.funds {
        Ok(funds) => json!({
            "address": gas_balance.address,
            "balanceWei": funds.balance_wei.to_string(),
            "gasPriceWei": u64::try_from(funds.gas_price_wei).unwrap_or(u64::MAX),
            "redemptions": funds.redemptions,
        }),
        Err(error) => json!({ "address": gas_balance.address, "error": error.to_string() }),
    }
}

fn gas_balance_text(gas_balance: &GasBalance) -> String {
    let address = gas_balance.address;
    match &gas_balance.funds {
        Err(error) => format!("gas            of {address}, not known: {error}"),
        Ok(funds) => {
            let (ether, gwei) = (format_ether(funds.balance_wei), funds.gas_price_wei / WEI_PER_GWEI);
            let enough =
                funds.redemptions.map(|count| format!(", enough for about {count} redemptions alone at {gwei} gwei"));
            format!("gas            {ether} ETH of {address}{}", enough.unwrap_or_default())
        }
    }
}

fn queued_json(item: &PendingRedemption) -> Option<Value> {
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

fn decision_text(state: &State, gas_balance: Option<&GasBalance>) -> String {
    let decision = &state.decision;
    let funds = gas_balance.and_then(|gas_balance| gas_balance.funds.as_ref().ok());
    // The decision does not consider the key's balance.
    if decision.plan.is_some() && funds.is_some_and(|funds| funds.redemptions == Some(0)) {
        return Reason::WaitsForFunds.text().to_owned();
    }
    let what = decision.reason.text();
    match decision.plan {
        Some(plan) => {
            let (items, gas, gwei) =
                (decision.items, decision.gas_each, u128::from(decision.gas_price_wei) / WEI_PER_GWEI);
            format!("{what} ({items} by {plan}, about {gas} gas each at {gwei} gwei)")
        }
        None => what.to_owned(),
    }
}

fn under_way(state: &State) -> usize {
    state.bundles.iter().map(|bundle| bundle.items.len()).sum()
}

fn queued(state: &State) -> impl Iterator<Item = (RedemptionId, fastpay_ethereum::Queued)> {
    state.items.iter().filter_map(|item| Some((item.id(), item.queued?)))
}

fn parked(state: &State) -> impl Iterator<Item = (RedemptionId, &Parked)> {
    state.items.iter().filter_map(|item| Some((item.id(), item.parked.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gas::Plan;
    use crate::gas_balance::Funds;
    use crate::policy::Decision;
    use alloy::primitives::{Address, U256};

    #[test]
    fn a_key_without_gas_is_reported_as_the_reason() {
        let reason = Reason::WaitsForCompany;
        let decision = Decision { reason, plan: Some(Plan::Certificates), items: 1, ..Decision::default() };
        let state = State { decision, ..State::new(1, Address::ZERO) };
        let gas_balance = |redemptions| GasBalance {
            address: Address::ZERO,
            funds: Ok(Funds { balance_wei: U256::ZERO, gas_price_wei: 1, redemptions }),
        };
        let told = |redemptions| decision_text(&state, Some(&gas_balance(redemptions)));
        assert_eq!(told(Some(0)), "waits: the gas key has too little ETH for a transaction");
        for enough in [Some(1), None] {
            assert!(told(enough).starts_with("waits: a larger bundle would save gas"), "{enough:?}");
        }
        assert!(decision_text(&state, None).starts_with("waits: a larger bundle"));
    }
}
