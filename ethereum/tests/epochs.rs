//! Committees are followed on a real chain, through nodes that lag, lie, leave and return.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use alloy::primitives::{Address, U256, hex};
use alloy::sol_types::SolCall;
use fastpay_core::{AuthorityKeys, Committee, Committees, Domain, Epoch, VerifiedContractVote, sign_committee_vote};
use fastpay_ethereum::testing::{Anvil, CHAIN_ID, GUARDIAN, LyingNode, Mining};
use fastpay_ethereum::{
    Alarm, ContractAuthority, DepositsError, EpochReader, Finality, IFastPay, Primary, PrimaryConfig,
};
use serde_json::{Value, json};

/// The keys of the authorities in an epoch, in the order of their names.
fn keys(epoch: u8) -> Vec<AuthorityKeys> {
    let pair = |number: u8| AuthorityKeys::from_secrets([number; 32], [number + 100; 32]).unwrap();
    let mut keys: Vec<_> = (1..=4).map(|number| pair(10 * epoch + number)).collect();
    keys.sort_by_key(|keys| keys.public().name);
    keys
}

fn committee(epoch: u8) -> Committee {
    Committee::new(Epoch(epoch.into()), keys(epoch).iter().map(AuthorityKeys::public).collect()).unwrap()
}

fn committees(newest: u8) -> Committees {
    let mut all = Committees::new(committee(0)).unwrap();
    (1..=newest).for_each(|epoch| all.install(committee(epoch)).unwrap());
    all
}

struct Scene {
    anvil: Anvil,
    node: LyingNode,
    contract: Address,
    nonce: u64,
}

impl Scene {
    async fn new() -> Self {
        let anvil = Anvil::start(Mining::Manual);
        let contract = anvil.deploy(&committee(0)).await;
        let node = LyingNode::start(&anvil.url());
        Self { anvil, node, contract, nonce: 0 }
    }

    /// Installs the committee of this epoch, in a block of its own.
    async fn rotate(&mut self, epoch: u8) {
        let (now, next) = (committee(epoch - 1), committee(epoch));
        let domain = Domain::new(CHAIN_ID, self.contract);
        let digest = domain.committee_vote_digest(&next, GUARDIAN);
        let votes: Vec<_> = keys(epoch - 1)
            .iter()
            .map(|keys| sign_committee_vote(keys, &domain, &next, GUARDIAN).verify(&now, digest).unwrap())
            .collect();
        let votes = VerifiedContractVote::quorum(&now, digest, &votes).unwrap().into();
        let authorities = next.members().iter().map(ContractAuthority::from).collect();
        let call = IFastPay::rotateCall { authorities, guardian: GUARDIAN, votes };
        let key = self.anvil.rich_key(0);
        let input = call.abi_encode().into();
        let hash = self.anvil.send_raw(&key, self.nonce, self.contract.into(), U256::ZERO, input).await;
        self.nonce += 1;
        self.anvil.mined_receipt(hash).await;
    }

    fn config(&self) -> PrimaryConfig {
        PrimaryConfig { rpc_urls: vec![self.anvil.url(), self.node.url()], ..self.anvil.config(self.contract) }
    }

    async fn reader(&self) -> EpochReader {
        EpochReader::new(Primary::connect(self.config()).await.unwrap())
    }

    /// The second node says this to a view.
    fn lie_about(&self, selector: [u8; 4], change: impl Fn(&mut String) + Send + 'static) {
        let selector = hex::encode(selector);
        self.node.lie(move |method, params, answer| {
            let data = params[0]["data"].as_str().or(params[0]["input"].as_str()).unwrap_or_default();
            if method == "eth_call" && data[2..].starts_with(&selector) {
                let mut result = answer["result"].as_str().unwrap().to_owned();
                change(&mut result);
                answer["result"] = json!(result);
            }
        });
    }
}

fn alarm(result: Result<Committees, DepositsError>) -> Alarm {
    match result {
        Err(DepositsError::Alarm(alarm)) => alarm,
        other => panic!("no alarm but {other:?}"),
    }
}

#[tokio::test]
async fn committees_are_learned_when_final_and_all_of_them_however_long_one_was_away() {
    let mut scene = Scene::new().await;
    let reader = scene.reader().await;
    let early = reader.read(None).await.unwrap_err();
    assert!(matches!(early, DepositsError::Lagging { .. }) && early.is_retryable(), "{early}");
    scene.anvil.mine(2).await;
    assert_eq!(reader.read(None).await.unwrap(), committees(0));

    scene.rotate(1).await;
    assert_eq!(reader.read(Some(&committees(0))).await.unwrap(), committees(0), "it is not final");
    scene.anvil.mine(2).await;
    assert_eq!(reader.read(Some(&committees(0))).await.unwrap(), committees(1));
    scene.rotate(2).await;
    scene.rotate(3).await;
    scene.anvil.mine(2).await;
    for known in [None, Some(committees(0)), Some(committees(1)), Some(committees(3))] {
        assert_eq!(reader.read(known.as_ref()).await.unwrap(), committees(3));
    }
    let primary = scene.anvil.primary(scene.contract, Finality::Confirmations(0)).await;
    assert_eq!(primary.guardian().await.unwrap(), GUARDIAN);
    let digest = Domain::new(CHAIN_ID, scene.contract).committee_vote_digest(&committee(4), GUARDIAN);
    assert_eq!(primary.committee_vote_digest(&committee(4), GUARDIAN).await.unwrap(), digest);
}

#[tokio::test]
async fn one_lying_node_of_two_raises_the_alarm_and_none_that_is_away() {
    let mut scene = Scene::new().await;
    scene.rotate(1).await;
    scene.anvil.mine(2).await;
    let reader = scene.reader().await;
    let known = committees(0);
    // It hides the rotation, or knows of another committee.
    scene.lie_about(IFastPay::epochCall::SELECTOR, |result| *result = format!("0x{:064x}", 0));
    assert!(matches!(alarm(reader.read(Some(&known)).await), Alarm::Disagreement { .. }));
    scene.lie_about(IFastPay::committeeCall::SELECTOR, |result| {
        // The last redemption key.
        let place = result.len() - 4;
        let other = if &result[place..] == "abcd" { "abce" } else { "abcd" };
        result.replace_range(place.., other);
    });
    assert!(matches!(alarm(reader.read(Some(&known)).await), Alarm::Disagreement { .. }));
    // It hides what it said before.
    scene.lie_about(IFastPay::epochCall::SELECTOR, |result| *result = format!("0x{:064x}", 0));
    let lost = alarm(reader.read(Some(&committees(1))).await);
    assert!(matches!(lost, Alarm::EpochLost { known: Epoch(1), found: Epoch(0), .. }), "{lost}");
    // An epoch that was never installed.
    scene.lie_about(IFastPay::epochCall::SELECTOR, |result| *result = format!("0x{:064x}", u64::MAX));
    let invented = reader.read(Some(&known)).await.unwrap_err();
    assert!(!invented.is_retryable(), "{invented}");
    scene.node.repent();
    scene.node.go_away(true);
    assert!(reader.read(Some(&known)).await.unwrap_err().is_retryable());
    scene.node.go_away(false);
    assert_eq!(reader.read(Some(&known)).await.unwrap(), committees(1));
}

#[tokio::test]
async fn a_node_behind_the_deployment_or_without_it_is_waited_for() {
    let mut scene = Scene::new().await;
    scene.rotate(1).await;
    scene.anvil.mine(2).await;
    let reader = scene.reader().await;
    scene.node.lie(|method, params: &Value, answer| {
        if method == "eth_getBlockByNumber" && params[0] == "finalized" {
            answer["result"]["number"] = json!("0x0");
        }
    });
    let error = reader.read(Some(&committees(0))).await.unwrap_err();
    assert!(matches!(error, DepositsError::Lagging { head: 0, .. }) && error.is_retryable(), "{error}");
}
