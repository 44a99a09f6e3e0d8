//! All rules in the bounded settings, and each mutant. `--nocapture` shows how many states there are and how long it takes.

use fastpay_model::check::explore;
use fastpay_model::mutants::{COVERED, MUTANTS};
use fastpay_model::rules::{Rule, Rules};
use fastpay_model::setting::BOUNDED;

#[test]
fn all_rules_together_keep_every_claim() {
    for setting in BOUNDED {
        let report = explore(setting, Rules::ALL, 1);
        println!("{:32} {report}", setting.name);
        assert!(report.broken.is_none(), "{}: {:?}", setting.name, report.broken);
        assert!(report.missed.is_empty(), "{}: not {:?}", setting.name, report.missed);
    }
}

#[test]
fn without_a_rule_a_claim_breaks() {
    for mutant in MUTANTS {
        let report = explore(&mutant.setting, mutant.rules(), 1);
        println!("without {:24} {:13} {report}", mutant.name(), mutant.setting.name);
        let broken = report.broken.map(|(claim, _)| claim);
        assert_eq!(broken, Some(mutant.breaks.name()), "without {}", mutant.name());
    }
}

#[test]
fn without_a_covered_rule_no_claim_breaks() {
    for mutant in COVERED {
        let report = explore(&mutant.setting, mutant.rules(), 1);
        println!("without {:24} {:13} {report}", mutant.name(), mutant.setting.name);
        assert!(report.broken.is_none(), "without {}: {:?}", mutant.name(), report.broken);
    }
}

#[test]
fn every_rule_has_a_mutant() {
    for rule in Rule::ALL {
        assert!(MUTANTS.iter().chain(COVERED).any(|mutant| mutant.without.contains(rule)), "{}", rule.name());
    }
}
