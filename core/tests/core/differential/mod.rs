//! The same votes judged twice: by the code that authorities, wallets and relayers run, and by the contract.
//! If they disagreed on one certificate, it could not be redeemed, or be redeemed by the contract alone.
//!
//! ```text
//!  seed ─► Case (committee, redemptions, votes, a mutation) ─┬─► core ────► Expected ─┐
//!                                                            └─► forge ───► Verdict ──┴─► equal, each one
//! ```
//! Everything follows from the seed, which is printed: `DIFFERENTIAL_SEED=… DIFFERENTIAL_CASES=…` repeat a run or make
//! it longer. Needs what `make setup` installs.

mod case;
mod contract;
mod judge;
mod mutation;

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::case::Case;
use self::judge::Expected;

const CASES: usize = 240;
/// A script of Foundry ends, and does not say so, when its cases fill 128 MiB: at about 3,900 of them.
const CASES_AT_ONCE: usize = 500;

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

#[test]
fn core_and_the_contract_agree_on_every_case() {
    let seed = number_from("DIFFERENTIAL_SEED").unwrap_or_else(|| rand::rng().random());
    let count = number_from("DIFFERENTIAL_CASES").map_or(CASES, |count| usize::try_from(count).unwrap());
    println!("DIFFERENTIAL_SEED={seed} DIFFERENTIAL_CASES={count}");
    let mut random = StdRng::seed_from_u64(seed);
    let cases: Vec<Case> = (0..count).map(|_| Case::random(&mut random)).collect();
    let verdicts: Vec<_> = cases.chunks(CASES_AT_ONCE).flat_map(contract::judge).collect();
    assert_eq!(verdicts.len(), cases.len());

    let mut tally: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for (case, verdict) in cases.iter().zip(&verdicts) {
        let expected = judge::judge(case);
        assert_eq!(
            expected.accepted_by_contract(),
            verdict.accepted,
            "seed {seed}: core expects {expected:?}, the contract reverts with {:?} on {case:#?}",
            verdict.reason
        );
        tally.entry(case.label()).or_default()[usize::from(verdict.accepted)] += 1;
        if let Expected::ByDesign { .. } = expected {
            tally.entry(format!("by design: {expected:?}")).or_default()[usize::from(verdict.accepted)] += 1;
        }
    }
    for (label, [refused, accepted]) in &tally {
        println!("{accepted:4} accepted {refused:4} refused  {label}");
    }
    // Both verdicts must have been tried, or the agreement says nothing.
    let accepted = verdicts.iter().filter(|verdict| verdict.accepted).count();
    assert!(accepted * 8 > count && (count - accepted) * 8 > count, "{accepted} of {count} accepted");
}
