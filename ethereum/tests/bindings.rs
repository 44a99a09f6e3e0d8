//! The bindings say what the compiled interface says.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use alloy::json_abi::JsonAbi;
use alloy::sol_types::SolInterface;
use fastpay_ethereum::IFastPay::{IFastPayCalls, IFastPayErrors, IFastPayEvents};
use fastpay_ethereum::testing::workspace_root;

#[test]
fn functions_errors_and_events_are_those_of_the_contract() {
    let path = workspace_root().join("out/IFastPay.sol/IFastPay.json");
    let text = std::fs::read_to_string(&path).expect("run `make setup` first");
    let artifact: serde_json::Value = serde_json::from_str(&text).unwrap();
    let abi: JsonAbi = serde_json::from_value(artifact["abi"].clone()).unwrap();

    let declared: BTreeSet<_> = abi.functions().map(|function| function.selector()).collect();
    let missing: Vec<_> = IFastPayCalls::selectors().filter(|s| !declared.contains(s)).collect();
    assert!(missing.is_empty(), "the contract has no functions {missing:x?}");

    let declared: BTreeSet<_> = abi.errors().map(|error| error.selector().0).collect();
    let bound: BTreeSet<_> = IFastPayErrors::selectors().collect();
    assert_eq!(bound, declared, "errors");

    let declared: BTreeSet<_> =
        abi.events().filter(|e| e.name != "EIP712DomainChanged").map(|e| e.selector()).collect();
    let bound: BTreeSet<_> = IFastPayEvents::SELECTORS.iter().map(|s| alloy::primitives::B256::from(*s)).collect();
    assert_eq!(bound, declared, "events");
}
