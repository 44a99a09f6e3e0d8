//! What a transaction will cost, before anything is asked of anyone: a line through the figures that the
//! contract's own tests measure (`snapshots/gas.json`). It decides between plans and whether waiting pays;
//! what is really offered comes from the node's estimate.

/// A transaction by itself, and what its first redemption touches that the others share.
const TRANSACTION: u64 = 29_400;
/// One vote: its calldata, the recovery of its signer.
const VOTE: u64 = 4_420;
/// One redemption with votes of its own, less the votes.
const CERTIFIED: u64 = 22_800;
/// One redemption among those that one quorum voted for together.
const BATCHED: u64 = 21_400;

/// How redemptions are brought to the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// Each with its own certificate.
    Certificates,
    /// All under one vote of the current committee.
    Batch,
}

impl Plan {
    /// The gas of a transaction with so many redemptions, where a quorum has so many votes.
    #[must_use]
    pub fn gas(self, quorum: usize, count: usize) -> u64 {
        let (quorum, count) = (to_u64(quorum), to_u64(count));
        let votes = VOTE.saturating_mul(quorum);
        let items = match self {
            Self::Certificates => CERTIFIED.saturating_add(votes).saturating_mul(count),
            Self::Batch => BATCHED.saturating_mul(count).saturating_add(votes),
        };
        TRANSACTION.saturating_add(items)
    }

    /// The share of each of them, rounded up.
    #[must_use]
    pub fn gas_each(self, quorum: usize, count: usize) -> u64 {
        self.gas(quorum, count).div_ceil(to_u64(count.max(1)))
    }

    /// The plan for so many redemptions with certificates that the contract still takes. A single one is not
    /// worth the authorities' trouble.
    #[must_use]
    pub fn cheapest(quorum: usize, count: usize) -> Self {
        let batch_pays = count > 1 && Self::Batch.gas(quorum, count) < Self::Certificates.gas(quorum, count);
        if batch_pays { Self::Batch } else { Self::Certificates }
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Certificates => "certificates",
            Self::Batch => "batch",
        })
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUORUMS: [(usize, usize); 4] = [(4, 3), (10, 7), (20, 14), (100, 67)];

    fn quorum(n: usize) -> usize {
        QUORUMS.iter().find(|(size, _)| *size == n).unwrap().1
    }

    #[test]
    fn the_model_is_within_a_twentieth_of_what_is_measured() {
        let text = std::fs::read_to_string(fastpay_ethereum::testing::workspace_root().join("snapshots/gas.json"));
        let measured: std::collections::BTreeMap<String, u64> = serde_json::from_str(&text.unwrap()).unwrap();
        let figures = [
            ("redeem_n4", Plan::Certificates, 4, 1),
            ("redeem_n10", Plan::Certificates, 10, 1),
            ("redeem_n20", Plan::Certificates, 20, 1),
            ("bundle10_n4", Plan::Certificates, 4, 10),
            ("batch100_n4", Plan::Batch, 4, 100),
            ("batch100_n100", Plan::Batch, 100, 100),
        ];
        for (name, plan, n, count) in figures {
            let (found, expected) = (plan.gas_each(quorum(n), count), measured[name]);
            assert!(found.abs_diff(expected) * 20 <= expected, "{name}: {found} by the model, {expected} measured");
        }
    }

    #[test]
    fn one_goes_by_its_certificate_and_company_by_a_batch() {
        for (_, quorum) in QUORUMS {
            assert_eq!(Plan::cheapest(quorum, 1), Plan::Certificates);
            assert_eq!(Plan::cheapest(quorum, 2), Plan::Batch);
            assert_eq!(Plan::cheapest(quorum, 256), Plan::Batch);
        }
    }

    #[test]
    fn company_never_makes_a_share_dearer_and_nothing_overflows() {
        for plan in [Plan::Certificates, Plan::Batch] {
            assert!((1..256).all(|count| plan.gas_each(3, count + 1) <= plan.gas_each(3, count)));
            assert_eq!(plan.gas(usize::MAX, usize::MAX), u64::MAX);
            assert_eq!(plan.gas_each(3, 0), plan.gas(3, 0));
        }
    }
}
