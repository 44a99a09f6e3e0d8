//! Chooses the redemptions of one transaction: those that succeed together, so that a failing one cannot delay the
//! others. A redemption counts as faulty only if it fails in a transaction of its own.

use std::collections::VecDeque;

use fastpay_core::PrimaryAddress;
use fastpay_ethereum::{Call, PrimaryError, Revert};

use crate::pending::PendingRedemption;

/// The outcome of a simulation.
#[derive(Debug, Default)]
pub(crate) struct Sifted {
    /// The redemptions that succeed together, in this transaction.
    pub(crate) good: Option<(Vec<PendingRedemption>, Ready)>,
    /// The redemptions that fail by themselves, each with the reason.
    pub(crate) bad: Vec<(PendingRedemption, Box<Revert>)>,
}

/// A call that succeeded in a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) call: Call,
    /// The gas of its transaction.
    pub(crate) gas_limit: u64,
}

/// The outcome of trying some redemptions together.
#[derive(Debug)]
pub(crate) enum Trial {
    /// The call succeeds.
    Succeeds(Ready),
    /// It needs more gas than a transaction may have.
    TooLarge,
    /// The contract reverts.
    Reverts(Box<Revert>),
    /// There is no call, because too few authorities vote for these.
    Unsigned,
}

/// The call that redeems these redemptions by their certificates. For several, it is the function that skips
/// redemptions that others submitted in the meantime.
pub(crate) fn by_certificates(contract: PrimaryAddress, items: &[PendingRedemption]) -> Call {
    match items {
        [item] => Call::redeem(contract, item.certified()),
        items => Call::redeem_many(contract, items.iter().map(PendingRedemption::certified).collect()),
    }
}

/// Finds the faulty redemptions by calling `attempt` on parts, until the rest of one part succeeds. Parts that were not
/// reached are in neither list, and are tried next time. Takes at most about two attempts for each redemption.
pub(crate) async fn sift(
    items: Vec<PendingRedemption>,
    mut attempt: impl AsyncFnMut(&[PendingRedemption]) -> Result<Trial, PrimaryError>,
) -> Result<Sifted, PrimaryError> {
    let mut sifted = Sifted::default();
    let mut parts = VecDeque::from([items]);
    while let Some(mut part) = parts.pop_front() {
        if part.is_empty() {
            continue;
        }
        let revert = match attempt(&part).await? {
            Trial::Succeeds(ready) => {
                sifted.good = Some((part, ready));
                break;
            }
            Trial::Unsigned => continue,
            Trial::TooLarge => {
                halve(part, &mut parts);
                continue;
            }
            // A pause is not the fault of any redemption.
            Trial::Reverts(revert) if revert.paused_until().is_some() => return Err(PrimaryError::Reverted(revert)),
            Trial::Reverts(revert) => revert,
        };
        if let [_] = part.as_slice() {
            // Somebody else redeemed it a moment ago: it is not faulty, and need not be tried now.
            if !revert.is_already_redeemed() {
                sifted.bad.extend(part.pop().map(|item| (item, revert)));
            }
            continue;
        }
        match named(&revert, part.len()) {
            // Try the named one alone first: it may only have failed because another one took what it needs.
            Some(position) => {
                let named = part.remove(position);
                parts.push_front(part);
                parts.push_front(vec![named]);
            }
            None => halve(part, &mut parts),
        }
    }
    Ok(sifted)
}

/// Puts both halves of a part at the front. A part of one is dropped.
fn halve(mut part: Vec<PendingRedemption>, parts: &mut VecDeque<Vec<PendingRedemption>>) {
    let second = part.split_off(part.len().div_ceil(2));
    if !second.is_empty() {
        parts.push_front(second);
        parts.push_front(part);
    }
}

/// The position of the redemption that the contract names as the cause, if it names one.
fn named(revert: &Revert, count: usize) -> Option<usize> {
    revert.item().filter(|position| *position < count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::tests::item;
    use alloy::primitives::U256;
    use alloy::sol_types::SolError;
    use fastpay_ethereum::IFastPay;

    const CONTRACT: PrimaryAddress = PrimaryAddress::repeat_byte(8);

    /// Simulates a contract that refuses these sequence numbers, with or without naming the redemption.
    async fn run(count: u64, bad: &[u64], says_which: bool) -> (Vec<u64>, Vec<u64>, usize) {
        let mut calls = 0;
        let attempt = async |items: &[PendingRedemption]| {
            calls += 1;
            let fault = items.iter().position(|item| bad.contains(&item.redemption.sequence.0));
            let Some(position) = fault else {
                let call = by_certificates(CONTRACT, items);
                return Ok(Trial::Succeeds(Ready { call, gas_limit: 7 }));
            };
            let named = IFastPay::ZeroRedemption { item: U256::from(position) }.abi_encode();
            let data = if says_which { named } else { Vec::new() };
            Ok(Trial::Reverts(Box::new(Revert::decode(data.into()))))
        };
        let sifted = sift((0..count).map(item).collect(), attempt).await.unwrap();
        let sequence = |item: &PendingRedemption| item.redemption.sequence.0;
        let good = sifted.good.map_or(Vec::new(), |(items, ready)| {
            assert_eq!(ready.call, by_certificates(CONTRACT, &items));
            items.iter().map(sequence).collect()
        });
        (good, sifted.bad.iter().map(|(item, _)| sequence(item)).collect(), calls)
    }

    #[tokio::test]
    async fn good_items_go_together() {
        assert_eq!(run(4, &[], true).await, (vec![0, 1, 2, 3], vec![], 1));
    }

    #[tokio::test]
    async fn named_faults_are_taken_out_one_by_one() {
        assert_eq!(run(5, &[1, 4], true).await, (vec![0, 2, 3], vec![1, 4], 5));
    }

    #[tokio::test]
    async fn one_that_is_blamed_and_succeeds_alone_is_not_at_fault() {
        let attempt = async |items: &[PendingRedemption]| {
            let blamed = IFastPay::BalanceTooLow {
                item: U256::from(1),
                asset: Default::default(),
                balance: U256::ZERO,
                amount: 1,
            };
            Ok(match items {
                [_] => Trial::Succeeds(Ready { call: by_certificates(CONTRACT, items), gas_limit: 7 }),
                _ => Trial::Reverts(Box::new(Revert::decode(blamed.abi_encode().into()))),
            })
        };
        let sifted = sift(vec![item(0), item(1)], attempt).await.unwrap();
        assert_eq!(sifted.good.unwrap().0, [item(1)]);
        assert!(sifted.bad.is_empty());
    }

    #[tokio::test]
    async fn what_is_too_large_together_goes_in_parts_and_is_not_at_fault() {
        let sizes = std::cell::RefCell::new(Vec::new());
        let attempt = async |items: &[PendingRedemption]| {
            sizes.borrow_mut().push(items.len());
            let ready = || Ready { call: by_certificates(CONTRACT, items), gas_limit: 7 };
            Ok(if items.len() > 2 { Trial::TooLarge } else { Trial::Succeeds(ready()) })
        };
        let sifted = sift((0..7).map(item).collect(), attempt).await.unwrap();
        assert_eq!((sifted.good.unwrap().0.len(), sizes.take()), (2, vec![7, 4, 2]));
        assert!(sifted.bad.is_empty());
        let sifted = sift(vec![item(0), item(1)], async |_: &[PendingRedemption]| Ok(Trial::TooLarge)).await.unwrap();
        assert!(sifted.good.is_none() && sifted.bad.is_empty());
    }

    #[tokio::test]
    async fn unnamed_faults_are_found_by_halving() {
        assert_eq!(run(4, &[0], false).await, (vec![1], vec![0], 4));
        assert_eq!(run(4, &[3], false).await, (vec![0, 1], vec![], 2));
        assert_eq!(run(5, &[0], false).await, (vec![1], vec![0], 5));
        let (good, mut bad, calls) = run(8, &[0, 1, 2, 3, 4, 5, 6, 7], false).await;
        bad.sort_unstable();
        assert_eq!((good, bad), (vec![], (0..8).collect()));
        assert!(calls < 16, "{calls}");
    }

    #[tokio::test]
    async fn what_others_have_redeemed_is_not_at_fault() {
        let again = IFastPay::AlreadyRedeemed { sender: Default::default(), sequence: 0 }.abi_encode();
        let refuse = async |_: &[PendingRedemption]| Ok(Trial::Reverts(Box::new(Revert::decode(again.clone().into()))));
        let sifted = sift(vec![item(0)], refuse).await.unwrap();
        assert!(sifted.good.is_none() && sifted.bad.is_empty());
    }

    #[tokio::test]
    async fn a_pause_is_nobodys_fault() {
        let paused = IFastPay::PausedUntil { until: U256::from(7) }.abi_encode();
        let refuse =
            async |_: &[PendingRedemption]| Ok(Trial::Reverts(Box::new(Revert::decode(paused.clone().into()))));
        let error = sift(vec![item(0), item(1)], refuse).await.unwrap_err();
        assert!(matches!(error, PrimaryError::Reverted(revert) if revert.paused_until() == Some(7)));
    }

    #[tokio::test]
    async fn what_is_not_voted_for_is_neither_good_nor_bad() {
        let unsigned = async |_: &[PendingRedemption]| Ok(Trial::Unsigned);
        let sifted = sift(vec![item(0), item(1)], unsigned).await.unwrap();
        assert!(sifted.good.is_none() && sifted.bad.is_empty());
    }

    #[tokio::test]
    async fn a_node_that_does_not_answer_blames_nobody() {
        let refuse = async |_: &[PendingRedemption]| Err(PrimaryError::InsufficientFunds);
        let error = sift(vec![item(0), item(1)], refuse).await.unwrap_err();
        assert!(matches!(error, PrimaryError::InsufficientFunds));
    }
}
