//! Decides when to submit which redemptions, as a pure function, so that every case can be tested. A shared transaction
//! makes each redemption cheaper, but waiting for others delays it. The operator bounds the wait; the gas price decides
//! within that bound.

use serde::{Deserialize, Serialize};

use crate::gas::{Most, Payouts, Plan};

/// Company is enough if a full transaction would save each redemption less than this part of its gas: a tenth.
const SAVING_MIN_DIVISOR: u64 = 10;

/// What happens to a redemption whose fee does not cover its share of the gas after its longest wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BelowCost {
    /// Submit it at a loss. Anyone can then spend the relayer's gas.
    Pay,
    /// Leave it to other relayers and to its owner.
    #[default]
    Leave,
}

/// The operator's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) items_max: usize,
    pub(crate) wait_ms_max: u64,
    /// Above this gas price, in wei, every redemption waits as long as it may.
    pub(crate) patient_above_wei: Option<u128>,
    pub(crate) below_cost: BelowCost,
}

/// A redemption that could be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) waited_ms: u64,
    /// The value of its fee, in wei.
    pub(crate) fee_wei: u128,
    pub(crate) payouts: Payouts,
    /// The outflow limit leaves no room for it: its fee comes days later, after a second transaction.
    pub(crate) is_queued: bool,
    /// Its certificate is of an epoch that the contract no longer accepts.
    pub(crate) needs_batch: bool,
}

/// The conditions on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) quorum: usize,
    /// The newest base fee and the tip that is offered, in wei per gas.
    pub(crate) gas_price_wei: u128,
    pub(crate) room: Room,
}

/// The gas limits of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// The limit with one redemption.
    pub(crate) alone: u64,
    /// The limit with several redemptions.
    pub(crate) together: u64,
}

impl Room {
    /// The limit with this many redemptions.
    pub(crate) fn of(self, count: usize) -> u64 {
        if count > 1 { self.together } else { self.alone }
    }
}

/// The decision, as positions in the list that was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// The redemptions to submit together now, and the plan.
    pub(crate) submit: Option<(Plan, Vec<usize>)>,
    /// The redemptions to leave to others.
    pub(crate) leave: Vec<usize>,
    /// The decision with its reason.
    pub(crate) decision: Decision,
}

/// The decision, for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// The reason.
    pub reason: Reason,
    /// The plan by which the redemptions would be, or are, submitted.
    pub plan: Option<Plan>,
    /// The number of redemptions considered.
    pub items: usize,
    /// The gas of each redemption by the model.
    pub gas_each: u64,
    /// The gas price, in wei.
    pub gas_price_wei: u64,
}

/// Why something was submitted or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// There is nothing to submit.
    #[default]
    NothingToDo,
    /// Submitted: one has waited for the maximum time.
    WaitedLongEnough,
    /// Submitted: no more fit into one transaction.
    Full,
    /// Submitted: a larger bundle would save little gas.
    EnoughCompany,
    /// Waits: a larger bundle would save gas.
    WaitsForCompany,
    /// Waits: the gas price is above the operator's limit.
    WaitsForCheaperGas,
    /// Waits: the fees do not cover the gas.
    WaitsForFees,
    /// Waits: the gas key has too little ETH for a transaction.
    WaitsForFunds,
    /// Waits: the contract is paused.
    Paused,
}

impl Reason {
    /// The reason in words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NothingToDo => "nothing to submit",
            Self::WaitedLongEnough => "submitted: one has waited for the maximum time",
            Self::Full => "submitted: the transaction is full",
            Self::EnoughCompany => "submitted: a larger bundle would save little gas",
            Self::WaitsForCompany => "waits: a larger bundle would save gas",
            Self::WaitsForCheaperGas => "waits: the gas price is above patient_above_gwei",
            Self::WaitsForFees => "waits: the fees do not cover the gas",
            Self::WaitsForFunds => "waits: the gas key has too little ETH for a transaction",
            Self::Paused => "waits: the contract is paused",
        }
    }
}

/// Judges redemptions, the oldest first.
pub(crate) fn judge(waiting: &[Waiting], conditions: Conditions, policy: Policy) -> Judgement {
    let is_due = |item: &Waiting| item.waited_ms >= policy.wait_ms_max;
    let mut chosen: Vec<usize> = (0..waiting.len()).collect();
    let mut leave = Vec::new();
    // Removing a redemption changes the share of the others, so repeat until none is removed.
    let shares = loop {
        let shares = Shares::of(waiting, &chosen, conditions, policy);
        let covers = |item: &Waiting| item.fee_wei >= shares.cost_of(item, conditions);
        let (kept, out): (Vec<usize>, Vec<usize>) = chosen.iter().partition(|index| {
            waiting
                .get(**index)
                .is_some_and(|item| covers(item) || (is_due(item) && policy.below_cost == BelowCost::Pay))
        });
        leave.extend(out.iter().filter(|index| waiting.get(**index).is_some_and(is_due)));
        let is_settled = out.is_empty();
        chosen = kept;
        if is_settled {
            break shares;
        }
    };
    let fees_suffice = !chosen.is_empty();
    let is_full = shares.count < chosen.len() || shares.count >= policy.items_max;
    chosen.truncate(shares.count);
    let decide = |reason| Decision {
        reason,
        plan: (!chosen.is_empty()).then_some(shares.plan),
        items: chosen.len(),
        gas_each: if chosen.is_empty() { 0 } else { shares.gas_each },
        gas_price_wei: u64::try_from(conditions.gas_price_wei).unwrap_or(u64::MAX),
    };
    let chosen_items = || chosen.iter().filter_map(|index| waiting.get(*index));
    let full = shares.plan.gas_each(conditions.quorum, policy.items_max);
    let saving = shares.gas_each.saturating_sub(full);
    let reason = if chosen.is_empty() {
        match leave.len() == waiting.len() {
            _ if fees_suffice => Reason::WaitsForFunds,
            true => Reason::NothingToDo,
            false => Reason::WaitsForFees,
        }
    } else if chosen_items().any(is_due) {
        Reason::WaitedLongEnough
    } else if policy.patient_above_wei.is_some_and(|most| conditions.gas_price_wei > most) {
        Reason::WaitsForCheaperGas
    } else if is_full {
        Reason::Full
    } else if saving.saturating_mul(SAVING_MIN_DIVISOR) < shares.gas_each {
        Reason::EnoughCompany
    } else {
        Reason::WaitsForCompany
    };
    let decision = decide(reason);
    let goes = matches!(reason, Reason::WaitedLongEnough | Reason::Full | Reason::EnoughCompany);
    Judgement { submit: goes.then_some((shares.plan, chosen)), leave, decision }
}

/// The decision on a redemption that needs a transaction of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    Goes,
    Waits,
    Left,
}

/// Decides on a single redemption whose payee is a contract that used this much gas before.
pub(crate) fn judge_alone(item: Waiting, payee_gas: u64, conditions: Conditions, policy: Policy) -> Alone {
    let shares = Shares::of(&[item], &[0], conditions, policy);
    let payee_cost = u128::from(payee_gas).saturating_mul(conditions.gas_price_wei);
    let covers = item.fee_wei >= shares.cost_of(&item, conditions).saturating_add(payee_cost);
    let is_dear = policy.patient_above_wei.is_some_and(|most| conditions.gas_price_wei > most);
    match (item.waited_ms >= policy.wait_ms_max, covers || policy.below_cost == BelowCost::Pay) {
        (true, true) => Alone::Goes,
        (true, false) => Alone::Left,
        (false, _) if covers && !is_dear => Alone::Goes,
        (false, _) => Alone::Waits,
    }
}

/// The cost of each redemption.
struct Shares {
    plan: Plan,
    /// The number of redemptions, from the first, that fit into one transaction.
    count: usize,
    gas_each: u64,
}

impl Shares {
    fn of(waiting: &[Waiting], chosen: &[usize], conditions: Conditions, policy: Policy) -> Self {
        let items = || chosen.iter().take(policy.items_max).filter_map(|index| waiting.get(*index));
        let count = fitting(items().map(|item| item.payouts), conditions);
        let needs_batch = items().take(count).any(|item| item.needs_batch);
        let plan = if needs_batch { Plan::Batch } else { Plan::cheapest(conditions.quorum, count) };
        Self { plan, count, gas_each: plan.gas_each(conditions.quorum, count) }
    }

    /// The cost that the fee must cover. A redemption that the contract will queue must cover that of one alone, as the
    /// quoted fee does, because another transaction executes it.
    fn cost_of(&self, item: &Waiting, conditions: Conditions) -> u128 {
        let alone = Plan::Certificates.gas_each(conditions.quorum, 1);
        let share = if item.is_queued { self.gas_each.max(alone) } else { self.gas_each };
        let gas = share.saturating_add(item.payouts.gas());
        u128::from(gas).saturating_mul(conditions.gas_price_wei)
    }
}

/// The number of redemptions, from the first, that fit into one transaction with the full allowance of each payout.
fn fitting(items: impl Iterator<Item = Payouts>, conditions: Conditions) -> usize {
    let Conditions { quorum, room, .. } = conditions;
    let mut most = Most::of(Plan::Batch, quorum);
    let mut count = 0_usize;
    for payouts in items {
        most = most.with(payouts);
        if most.gas() > room.of(count.saturating_add(1)) {
            break;
        }
        count = count.saturating_add(1);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gas::Firsts;

    const GWEI: u128 = 1_000_000_000;
    const POLICY: Policy =
        Policy { items_max: 50, wait_ms_max: 1_000, patient_above_wei: None, below_cost: BelowCost::Pay };
    const ROOM: Room = Room { alone: 1 << 24, together: 1 << 24 };
    const CHEAP: Conditions = Conditions { quorum: 3, gas_price_wei: GWEI, room: ROOM };
    /// A redemption whose fee covers any share at one gwei.
    const GOOD: Waiting = Waiting {
        waited_ms: 0,
        fee_wei: 100_000 * GWEI,
        payouts: Payouts { is_token: false, has_fee: false, firsts: Firsts { order: false, payee: false } },
        is_queued: false,
        needs_batch: false,
    };
    const TOKEN: Waiting = Waiting { payouts: Payouts { is_token: true, has_fee: true, ..GOOD.payouts }, ..GOOD };
    const FREE: Waiting = Waiting { fee_wei: 0, ..GOOD };

    fn due(item: Waiting) -> Waiting {
        Waiting { waited_ms: 1_000, ..item }
    }

    fn check(waiting: &[Waiting], policy: Policy, reason: Reason, submit: Option<(Plan, &[usize])>, leave: &[usize]) {
        let judged = judge(waiting, CHEAP, policy);
        let expected = submit.map(|(plan, items)| (plan, items.to_vec()));
        assert_eq!((judged.decision.reason, judged.submit, &*judged.leave), (reason, expected, leave), "{waiting:?}");
    }

    #[test]
    fn a_redemption_waits_for_company_but_never_longer_than_it_may() {
        check(&[], POLICY, Reason::NothingToDo, None, &[]);
        check(&[GOOD], POLICY, Reason::WaitsForCompany, None, &[]);
        check(&[due(GOOD)], POLICY, Reason::WaitedLongEnough, Some((Plan::Certificates, &[0])), &[]);
        check(&[due(GOOD), TOKEN], POLICY, Reason::WaitedLongEnough, Some((Plan::Batch, &[0, 1])), &[]);
        let impatient = Policy { wait_ms_max: 0, ..POLICY };
        check(&[GOOD], impatient, Reason::WaitedLongEnough, Some((Plan::Certificates, &[0])), &[]);
    }

    #[test]
    fn a_full_transaction_or_enough_company_does_not_wait() {
        let two = Policy { items_max: 2, ..POLICY };
        check(&[GOOD; 3], two, Reason::Full, Some((Plan::Batch, &[0, 1])), &[]);
        // Redemptions whose fee is too small take no places.
        check(&[FREE, FREE, FREE, GOOD, GOOD], two, Reason::Full, Some((Plan::Batch, &[3, 4])), &[]);
        let enough = (2..50).find(|count| judge(&vec![GOOD; *count], CHEAP, POLICY).submit.is_some()).unwrap();
        assert!((10..30).contains(&enough), "{enough} are enough");
        assert_eq!(judge(&vec![GOOD; enough], CHEAP, POLICY).decision.reason, Reason::EnoughCompany);
    }

    #[test]
    fn dear_gas_is_waited_out_as_long_as_a_redemption_may_wait() {
        let patient = Policy { items_max: 2, patient_above_wei: Some(GWEI - 1), ..POLICY };
        check(&[GOOD; 2], patient, Reason::WaitsForCheaperGas, None, &[]);
        check(&[due(GOOD), GOOD], patient, Reason::WaitedLongEnough, Some((Plan::Batch, &[0, 1])), &[]);
        let same = Policy { patient_above_wei: Some(GWEI), ..patient };
        check(&[GOOD; 2], same, Reason::Full, Some((Plan::Batch, &[0, 1])), &[]);
    }

    #[test]
    fn what_does_not_cover_its_share_waits_and_is_then_paid_or_left() {
        let leaving = Policy { below_cost: BelowCost::Leave, ..POLICY };
        check(&[FREE], POLICY, Reason::WaitsForFees, None, &[]);
        check(&[FREE], leaving, Reason::WaitsForFees, None, &[]);
        check(&[due(FREE)], POLICY, Reason::WaitedLongEnough, Some((Plan::Certificates, &[0])), &[]);
        check(&[due(FREE)], leaving, Reason::NothingToDo, None, &[0]);
        // It neither delays the others nor is submitted early with them.
        check(&[FREE, due(GOOD)], POLICY, Reason::WaitedLongEnough, Some((Plan::Certificates, &[1])), &[]);
        check(&[due(FREE), GOOD], leaving, Reason::WaitsForCompany, None, &[0]);
        // The same for a token, by the value of its fee.
        check(&[due(TOKEN)], leaving, Reason::WaitedLongEnough, Some((Plan::Certificates, &[0])), &[]);
        check(&[due(Waiting { fee_wei: 0, ..TOKEN })], leaving, Reason::NothingToDo, None, &[0]);
    }

    #[test]
    fn a_fee_that_needs_company_goes_only_with_company() {
        let alone = Plan::Certificates.gas_each(3, 1);
        let together = Plan::Batch.gas_each(3, 2);
        let tight = Waiting { fee_wei: u128::from(together) * GWEI, ..GOOD };
        assert!(together < alone);
        let two = Policy { items_max: 2, ..POLICY };
        check(&[tight, tight], two, Reason::Full, Some((Plan::Batch, &[0, 1])), &[]);
        check(&[tight], two, Reason::WaitsForFees, None, &[]);
        // Without the second redemption, the share of the first grows beyond its fee.
        check(&[tight, FREE], two, Reason::WaitsForFees, None, &[]);
    }

    #[test]
    fn what_a_fee_and_a_token_cost_is_asked_of_the_one_that_has_them() {
        let share = Plan::Certificates.gas_each(3, 1);
        let with_fee = Payouts { has_fee: true, ..GOOD.payouts };
        for payouts in [with_fee, TOKEN.payouts, Payouts { firsts: Firsts::ALL, ..with_fee }] {
            let leaving = Policy { below_cost: BelowCost::Leave, ..POLICY };
            let cost = u128::from(share + payouts.gas()) * GWEI;
            let just = Waiting { fee_wei: cost, payouts, ..GOOD };
            check(&[due(just)], leaving, Reason::WaitedLongEnough, Some((Plan::Certificates, &[0])), &[]);
            let less = Waiting { fee_wei: cost - 1, ..just };
            check(&[due(less)], leaving, Reason::NothingToDo, None, &[0]);
        }
    }

    #[test]
    fn a_transaction_holds_the_whole_allowance_of_each_payout() {
        let gas = |item: Waiting, count| Plan::Batch.gas_max(3, vec![item.payouts; count]);
        let many = Policy { items_max: 256, ..POLICY };
        for (item, most) in [(GOOD, 200), (TOKEN, 30)] {
            let judged = judge(&[item; 256], CHEAP, many);
            let (_, chosen) = judged.submit.unwrap();
            assert_eq!(judged.decision.reason, Reason::Full);
            assert!((10..most).contains(&chosen.len()), "{}", chosen.len());
            assert!(gas(item, chosen.len()) <= 1 << 24 && gas(item, chosen.len() + 1) > 1 << 24);
        }
        // A single redemption may have more gas than several together.
        let room = Room { alone: gas(TOKEN, 1), together: gas(TOKEN, 1) - 1 };
        let judged = judge(&[TOKEN, TOKEN], Conditions { room, ..CHEAP }, many);
        assert_eq!(judged.submit, Some((Plan::Certificates, vec![0])));
        // A redemption that does not fit is not submitted, even if no other one needs the place.
        let poor = Room { alone: gas(TOKEN, 1) - 1, together: gas(TOKEN, 1) - 1 };
        let judged = judge(&[due(TOKEN)], Conditions { room: poor, ..CHEAP }, many);
        assert_eq!((judged.submit, judged.decision.reason), (None, Reason::WaitsForFunds));
        assert!(judged.leave.is_empty());
    }

    #[test]
    fn one_by_itself_pays_for_what_its_payee_spends_and_waits_for_no_company() {
        let leaving = Policy { below_cost: BelowCost::Leave, ..POLICY };
        let just = Waiting { fee_wei: u128::from(Plan::Certificates.gas_each(3, 1)) * GWEI, ..GOOD };
        let check = |item, payee_gas, policy, expected| {
            assert_eq!(judge_alone(item, payee_gas, CHEAP, policy), expected, "{item:?} {payee_gas} {policy:?}");
        };
        check(just, 0, leaving, Alone::Goes);
        check(just, 1, leaving, Alone::Waits);
        check(due(just), 0, leaving, Alone::Goes);
        check(due(just), 1, leaving, Alone::Left);
        check(due(just), 1, POLICY, Alone::Goes);
        check(just, 1, POLICY, Alone::Waits);
        let dear = Policy { patient_above_wei: Some(GWEI - 1), ..leaving };
        check(just, 0, dear, Alone::Waits);
        check(due(just), 0, dear, Alone::Goes);
        check(Waiting { fee_wei: just.fee_wei + 9 * GWEI, ..just }, 9, leaving, Alone::Goes);
    }

    #[test]
    fn what_the_contract_would_queue_pays_for_two_transactions_whatever_its_company() {
        let leaving = Policy { below_cost: BelowCost::Leave, items_max: 2, ..POLICY };
        let alone = u128::from(Plan::Certificates.gas_each(3, 1)) * GWEI;
        let queued = |fee_wei| due(Waiting { fee_wei, is_queued: true, ..GOOD });
        check(
            &[due(GOOD), queued(alone - 1)],
            leaving,
            Reason::WaitedLongEnough,
            Some((Plan::Certificates, &[0])),
            &[1],
        );
        check(&[due(GOOD), queued(alone)], leaving, Reason::WaitedLongEnough, Some((Plan::Batch, &[0, 1])), &[]);
    }

    #[test]
    fn a_certificate_of_an_ended_epoch_is_voted_for_again_even_alone() {
        let ended = Waiting { needs_batch: true, ..GOOD };
        check(&[due(ended)], POLICY, Reason::WaitedLongEnough, Some((Plan::Batch, &[0])), &[]);
    }

    #[test]
    fn a_decision_states_its_reason() {
        let decision = judge(&[due(GOOD), GOOD], CHEAP, POLICY).decision;
        let gas_each = Plan::Batch.gas_each(3, 2);
        let expected = Decision {
            reason: Reason::WaitedLongEnough,
            plan: Some(Plan::Batch),
            items: 2,
            gas_each,
            gas_price_wei: 1_000_000_000,
        };
        assert_eq!(decision, expected);
        assert_eq!(serde_json::to_value(&decision).unwrap()["reason"], "waited-long-enough");
    }
}
