//! The bindings say what the compiled interfaces say.

use std::collections::BTreeSet;

use alloy::json_abi::JsonAbi;
use alloy::sol_types::SolInterface;
use fastpay_ethereum::ICouncil::{ICouncilCalls, ICouncilErrors, ICouncilEvents};
use fastpay_ethereum::IFastPay::{IFastPayCalls, IFastPayErrors, IFastPayEvents};
use fastpay_testkit::anvil::workspace_root;

/// Exactly the functions, errors and events of the interface are declared, without those that it inherits.
fn check<C: SolInterface, E: SolInterface>(interface: &str, events: &[[u8; 32]]) {
    let path = workspace_root().join(format!("out/{interface}.sol/{interface}.json"));
    let text = std::fs::read_to_string(&path).expect("run `make setup` first");
    let artifact: serde_json::Value = serde_json::from_str(&text).unwrap();
    let abi: JsonAbi = serde_json::from_value(artifact["abi"].clone()).unwrap();

    let functions = abi.functions().filter(|function| function.name != "eip712Domain");
    let functions: BTreeSet<_> = functions.map(|function| function.selector().0).collect();
    assert_eq!(C::selectors().collect::<BTreeSet<_>>(), functions, "functions of {interface}");

    let errors: BTreeSet<_> = abi.errors().map(|error| error.selector().0).collect();
    assert_eq!(E::selectors().collect::<BTreeSet<_>>(), errors, "errors of {interface}");

    let events_of = abi.events().filter(|event| event.name != "EIP712DomainChanged");
    let declared: BTreeSet<_> = events_of.map(|event| event.selector().0).collect();
    assert_eq!(events.iter().copied().collect::<BTreeSet<_>>(), declared, "events of {interface}");
}

#[test]
fn functions_errors_and_events_are_those_of_the_contracts() {
    check::<IFastPayCalls, IFastPayErrors>("IFastPay", IFastPayEvents::SELECTORS);
    check::<ICouncilCalls, ICouncilErrors>("ICouncil", ICouncilEvents::SELECTORS);
}
