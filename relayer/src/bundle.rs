//! Which redemptions go into one transaction: as many as succeed together, so that no bad one can hold up
//! the good.

use std::collections::VecDeque;

use fastpay_core::PrimaryAddress;
use fastpay_ethereum::{Call, PrimaryError, Revert};

use crate::item::Item;

/// What simulation says of some items.
#[derive(Debug, Default)]
pub(crate) struct Sifted {
    /// Succeed together, in this call.
    pub(crate) good: Option<(Vec<Item>, Call)>,
    /// Fail by themselves, and why.
    pub(crate) bad: Vec<(Item, String)>,
}

/// The outcome of trying some items together.
#[derive(Debug)]
pub(crate) enum Trial {
    /// This call succeeds.
    Succeeds(Call),
    /// The contract refuses.
    Reverts(Box<Revert>),
    /// There is no call, as too few authorities vote for these.
    Unsigned,
}

/// The call that redeems these items by their certificates. Several go through the function that skips what
/// others redeemed in the meantime.
pub(crate) fn by_certificates(contract: PrimaryAddress, items: &[Item]) -> Call {
    match items {
        [item] => Call::redeem(contract, item.certified()),
        items => Call::redeem_many(contract, items.iter().map(Item::certified).collect()),
    }
}

/// Finds the items at fault by asking `attempt`, until what is left of one part succeeds. Parts that were
/// not reached are in neither list and are for next time. At most about two attempts per item.
pub(crate) async fn sift(
    items: Vec<Item>,
    mut attempt: impl AsyncFnMut(&[Item]) -> Result<Trial, PrimaryError>,
) -> Result<Sifted, PrimaryError> {
    let mut sifted = Sifted::default();
    let mut parts = VecDeque::from([items]);
    while let Some(mut part) = parts.pop_front() {
        if part.is_empty() {
            continue;
        }
        let revert = match attempt(&part).await? {
            Trial::Succeeds(call) => {
                sifted.good = Some((part, call));
                break;
            }
            Trial::Unsigned => continue,
            // That is no item's fault.
            Trial::Reverts(revert) if revert.paused_until().is_some() => return Err(PrimaryError::Reverted(revert)),
            Trial::Reverts(revert) => revert,
        };
        if let [_] = part.as_slice() {
            // Done by somebody else a moment ago: not bad, and not to be tried now.
            if !revert.is_already_redeemed() {
                sifted.bad.extend(part.into_iter().map(|item| (item, revert.to_string())));
            }
            continue;
        }
        match named(&revert, part.len()) {
            Some(position) => {
                sifted.bad.push((part.remove(position), revert.to_string()));
                parts.push_front(part);
            }
            None => {
                let second = part.split_off(part.len() / 2);
                parts.push_front(second);
                parts.push_front(part);
            }
        }
    }
    Ok(sifted)
}

/// The item that the contract blames, if there is such an item.
fn named(revert: &Revert, count: usize) -> Option<usize> {
    revert.item().filter(|position| *position < count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::tests::item;
    use alloy::primitives::U256;
    use alloy::sol_types::SolError;
    use fastpay_ethereum::IFastPay;

    const CONTRACT: PrimaryAddress = PrimaryAddress::repeat_byte(8);

    /// Simulates a contract that refuses these sequence numbers, with or without saying which.
    async fn run(count: u64, bad: &[u64], says_which: bool) -> (Vec<u64>, Vec<u64>, usize) {
        let mut calls = 0;
        let attempt = async |items: &[Item]| {
            calls += 1;
            let fault = items.iter().position(|item| bad.contains(&item.redemption.sequence.0));
            let Some(position) = fault else { return Ok(Trial::Succeeds(by_certificates(CONTRACT, items))) };
            let named = IFastPay::ZeroRedemption { item: U256::from(position) }.abi_encode();
            let data = if says_which { named } else { Vec::new() };
            Ok(Trial::Reverts(Box::new(Revert::decode(data.into()))))
        };
        let sifted = sift((0..count).map(item).collect(), attempt).await.unwrap();
        let sequence = |item: &Item| item.redemption.sequence.0;
        let good = sifted.good.map_or(Vec::new(), |(items, call)| {
            assert_eq!(call, by_certificates(CONTRACT, &items));
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
        assert_eq!(run(5, &[1, 4], true).await, (vec![0, 2, 3], vec![1, 4], 3));
    }

    #[tokio::test]
    async fn unnamed_faults_are_found_by_halving() {
        assert_eq!(run(4, &[0], false).await, (vec![1], vec![0], 4));
        assert_eq!(run(4, &[3], false).await, (vec![0, 1], vec![], 2));
        let (good, mut bad, calls) = run(8, &[0, 1, 2, 3, 4, 5, 6, 7], false).await;
        bad.sort_unstable();
        assert_eq!((good, bad), (vec![], (0..8).collect()));
        assert!(calls < 16, "{calls}");
    }

    #[tokio::test]
    async fn what_others_have_redeemed_is_not_at_fault() {
        let again = IFastPay::AlreadyRedeemed { sender: Default::default(), sequence: 0 }.abi_encode();
        let refuse = async |_: &[Item]| Ok(Trial::Reverts(Box::new(Revert::decode(again.clone().into()))));
        let sifted = sift(vec![item(0)], refuse).await.unwrap();
        assert!(sifted.good.is_none() && sifted.bad.is_empty());
    }

    #[tokio::test]
    async fn a_pause_is_nobodys_fault() {
        let paused = IFastPay::PausedUntil { until: U256::from(7) }.abi_encode();
        let refuse = async |_: &[Item]| Ok(Trial::Reverts(Box::new(Revert::decode(paused.clone().into()))));
        let error = sift(vec![item(0), item(1)], refuse).await.unwrap_err();
        assert!(matches!(error, PrimaryError::Reverted(revert) if revert.paused_until() == Some(7)));
    }

    #[tokio::test]
    async fn what_is_not_voted_for_is_neither_good_nor_bad() {
        let unsigned = async |_: &[Item]| Ok(Trial::Unsigned);
        let sifted = sift(vec![item(0), item(1)], unsigned).await.unwrap();
        assert!(sifted.good.is_none() && sifted.bad.is_empty());
    }

    #[tokio::test]
    async fn a_node_that_does_not_answer_blames_nobody() {
        let refuse = async |_: &[Item]| Err(PrimaryError::InsufficientFunds);
        let error = sift(vec![item(0), item(1)], refuse).await.unwrap_err();
        assert!(matches!(error, PrimaryError::InsufficientFunds));
    }
}
