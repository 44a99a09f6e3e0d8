//! Committees are followed on a real chain, through nodes that lag, lie, leave and return.

use alloy::primitives::{Address, B256, hex};
use alloy::sol_types::SolCall;
use fastpay_core::{
    Amount, Announcement, Asset, AuthorityKeys, Committee, Committees, CouncilStatement, Domain, Epoch, EpochEnd,
    Recovery, Redemption, SequenceNumber, sign_council_vote,
};
use fastpay_ethereum::{
    Alarm, DepositReader, DepositsError, EpochReader, Finality, ICouncil, IFastPay, Primary, PrimaryConfig,
};
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, GUARDIAN, LyingNode, Mining, Rotation, Signers, council_of};
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
}

impl Scene {
    async fn new() -> Self {
        let anvil = Anvil::start(Mining::Manual);
        let contract = anvil.deploy(&committee(0)).await;
        let node = LyingNode::start(&anvil.url());
        Self { anvil, node, contract }
    }

    /// Installs the committee of this epoch. The installation is in the newest block.
    async fn rotate(&self, epoch: u8) {
        let (now, next) = (committee(epoch - 1), committee(epoch));
        let (now_keys, next_keys) = (keys(epoch - 1), keys(epoch));
        let now = Signers { committee: &now, keys: &now_keys };
        self.anvil.rotate(self.contract, now, Signers { committee: &next, keys: &next_keys }).await;
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
    let scene = Scene::new().await;
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
}

#[tokio::test]
async fn the_committee_before_counts_unless_a_node_says_that_its_keys_were_out() {
    let scene = Scene::new().await;
    scene.anvil.mine(2).await;
    let reader = scene.reader().await;
    assert_eq!(reader.closing(&committees(0)).await.unwrap(), None, "there is none before the first");
    scene.rotate(1).await;
    scene.anvil.mine(2).await;
    assert_eq!(reader.closing(&committees(1)).await.unwrap(), Some(Epoch(0)));
    scene.rotate(2).await;
    scene.anvil.mine(2).await;
    assert_eq!(reader.closing(&committees(2)).await.unwrap(), Some(Epoch(1)));
    scene.lie_about(IFastPay::compromisedCall::SELECTOR, |result| *result = format!("0x{:064x}", 1));
    assert_eq!(reader.closing(&committees(2)).await.unwrap(), None);
    scene.node.repent();
    scene.node.go_away(true);
    assert!(reader.closing(&committees(2)).await.unwrap_err().is_retryable());
}

#[tokio::test]
async fn in_an_older_block_only_what_was_installed_there_is_read() {
    let scene = Scene::new().await;
    scene.anvil.mine(2).await;
    let (reader, before) = (scene.reader().await, scene.anvil.block_number().await - 2);
    scene.rotate(1).await;
    scene.anvil.mine(2).await;
    for known in [None, Some(committees(0))] {
        assert_eq!(reader.read_with_recovery_in(before, known.as_ref()).await.unwrap(), committees(0));
        let read = reader.read_with_recovery_in(u64::MAX, known.as_ref()).await.unwrap();
        assert_eq!(read, ended(committees(1), read.end(Epoch(0))));
    }
}

/// The same, and epoch 0 has ended so.
fn ended(mut committees: Committees, end: EpochEnd) -> Committees {
    committees.note_end(Epoch(0), end);
    committees
}

#[tokio::test]
async fn until_when_votes_of_the_epoch_before_count_is_read_once_and_kept() {
    let scene = Scene::new().await;
    scene.anvil.mine(2).await;
    let reader = scene.reader().await;
    scene.rotate(1).await;
    scene.anvil.mine(2).await;
    let first = reader.read_with_recovery(Some(&committees(0))).await.unwrap();
    let end = first.known_end(Epoch(0)).unwrap();
    let primary = scene.anvil.primary(scene.contract, Finality::Confirmations(0)).await;
    assert_eq!(end.kept_until, primary.epoch_valid_until(Epoch(0)).await.unwrap());
    let window = DepositReader::new(primary, 10).unlock_window().await.unwrap();
    assert_eq!(end.kept_until - end.executed_until, window);

    scene.rotate(2).await;
    scene.anvil.mine(2).await;
    let second = reader.read_with_recovery(Some(&first)).await.unwrap();
    assert_eq!(second.known_end(Epoch(0)), Some(end), "the contract has forgotten it");
    assert!(second.end(Epoch(1)).kept_until > end.kept_until);
    let late = reader.read_with_recovery(None).await.unwrap();
    assert_eq!((late.known_end(Epoch(0)), late.known_end(Epoch(1))), (None, second.known_end(Epoch(1))));
    // An installation that says that keys were out ends all epochs that it names.
    let (now, next) = ((committee(2), keys(2)), (committee(3), keys(3)));
    let [now, next] = [&now, &next].map(|(committee, keys)| Signers { committee, keys });
    let maturing = scene.anvil.time_s().await + 86_400;
    scene.anvil.install(&Rotation::since(Epoch(0), scene.contract, now, next, maturing)).await;
    scene.anvil.mine(2).await;
    let third = reader.read_with_recovery(Some(&second)).await.unwrap();
    for epoch in 0..3 {
        assert_eq!(third.known_end(Epoch(epoch)), Some(EpochEnd::default()), "epoch {epoch}");
    }
}

#[tokio::test]
async fn keys_that_were_out_are_noted_also_if_an_ordinary_installation_followed() {
    let scene = Scene::new().await;
    scene.rotate(1).await;
    scene.anvil.mine(2).await;
    let reader = scene.reader().await;
    let before = reader.read_with_recovery(None).await.unwrap();
    assert!(before.end(Epoch(0)).kept_until > 0);
    let (now, next) = ((committee(1), keys(1)), (committee(2), keys(2)));
    let [now, next] = [&now, &next].map(|(committee, keys)| Signers { committee, keys });
    let maturing = scene.anvil.time_s().await + 86_400;
    scene.anvil.install(&Rotation::since(Epoch(0), scene.contract, now, next, maturing)).await;
    scene.rotate(3).await;
    scene.anvil.mine(2).await;
    let after = reader.read_with_recovery(Some(&before)).await.unwrap();
    assert_eq!((after.known_end(Epoch(0)), after.end(Epoch(1))), (Some(EpochEnd::default()), EpochEnd::default()));
    assert!(after.end(Epoch(2)).kept_until > 0);
}

#[tokio::test]
async fn a_node_that_lies_about_the_end_of_an_epoch_raises_the_alarm() {
    let scene = Scene::new().await;
    scene.rotate(1).await;
    scene.anvil.mine(2).await;
    let reader = scene.reader().await;
    scene.lie_about(IFastPay::epochValidUntilCall::SELECTOR, |result| *result = format!("0x{}", "ff".repeat(32)));
    assert!(matches!(alarm(reader.read_with_recovery(None).await), Alarm::Disagreement { .. }));
}

#[tokio::test]
async fn the_contract_has_the_digests_of_core() {
    let scene = Scene::new().await;
    let primary = scene.anvil.primary(scene.contract, Finality::Confirmations(0)).await;
    assert_eq!(primary.council().await.unwrap(), council_of(scene.contract));
    assert_eq!(primary.recovery().await.unwrap(), Address::ZERO);
    assert_eq!(primary.clock_of(B256::repeat_byte(1)).await.unwrap(), None);
    let announcement = Announcement {
        committee: committee(1),
        guardian: Address::repeat_byte(1),
        recovery: Address::repeat_byte(2),
        compromised_since: Epoch(1),
        checkpoint: B256::repeat_byte(3),
        deadline: 4,
    };
    let redemption = Redemption {
        sender: fastpay_core::AccountId([5; 32]),
        recipient: Address::repeat_byte(6),
        asset: Asset(Address::repeat_byte(7)),
        amount: Amount(8),
        fee: Amount(1),
        sequence: SequenceNumber(9),
        memo: B256::repeat_byte(10),
    };
    let (epoch, hash) = (Epoch(11), B256::repeat_byte(12));
    for statement in [
        CouncilStatement::Announcement(&announcement),
        CouncilStatement::Acceptance { epoch, announcement: B256::repeat_byte(13), block_hash: hash },
        CouncilStatement::CapRaise { epoch, asset: redemption.asset, cap: Amount(14), deadline: 15 },
        CouncilStatement::Heartbeat { epoch, block_hash: hash },
        CouncilStatement::CheckpointAdoption { epoch, checkpoint: hash },
        CouncilStatement::Release { epoch, redemption: &redemption },
    ] {
        let digest = Domain::new(CHAIN_ID, scene.contract).council_digest(&statement);
        assert_eq!(primary.council_digest(&statement).await.unwrap(), digest, "{statement:?}");
    }
}

#[tokio::test]
async fn one_lying_node_of_two_raises_the_alarm_and_none_that_is_away() {
    let scene = Scene::new().await;
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
    let scene = Scene::new().await;
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

/// A rotation to the committee of `epoch`, after keys of those from `since` on were out.
async fn rotation(anvil: &Anvil, contract: Address, epoch: u8, since: u64) -> Rotation {
    let (now, next) = ((committee(epoch - 1), keys(epoch - 1)), (committee(epoch), keys(epoch)));
    let [now, next] = [&now, &next].map(|(committee, keys)| Signers { committee, keys });
    Rotation::since(Epoch(since), contract, now, next, anvil.time_s().await + 86_400)
}

fn recovered(newest: u8, epoch: u64, adopted: Option<B256>) -> Committees {
    let mut all = committees(newest);
    all.recover(Recovery { epoch: Epoch(epoch), adopted }).unwrap();
    all
}

/// The same, without the ends of epochs.
fn without_ends(read: &Committees) -> Committees {
    let mut all = committees(u8::try_from(read.current().epoch().0).unwrap());
    read.recovery().into_iter().for_each(|recovery| all.recover(recovery).unwrap());
    all
}

#[tokio::test]
async fn the_newest_installation_that_ends_earlier_epochs_begins_anew_and_what_it_adopts_counts_when_final() {
    let anvil = Anvil::start(Mining::Each);
    let contract = anvil.deploy(&committee(0)).await;
    let node = LyingNode::start(&anvil.url());
    let config = PrimaryConfig { rpc_urls: vec![anvil.url(), node.url()], ..anvil.config(contract) };
    let config = PrimaryConfig { finality: Finality::Confirmations(0), ..config };
    let reader = EpochReader::new(Primary::connect(config).await.unwrap());
    let read = async |known: Option<&Committees>| without_ends(&reader.read_with_recovery(known).await.unwrap());
    let adopt = async |rotation: &Rotation, epoch: u8, checkpoint: B256| {
        let statement = CouncilStatement::CheckpointAdoption { epoch: Epoch(epoch.into()), checkpoint };
        let domain = Domain::new(CHAIN_ID, contract);
        let digest = domain.council_digest(&statement);
        let vote = |keys| sign_council_vote(keys, &domain, &statement).verify(&committee(epoch), digest).unwrap();
        let votes: Vec<_> = keys(epoch).iter().map(vote).collect();
        anvil.call_as_guardian(rotation.adopt(checkpoint, &votes)).await;
        anvil.mine(2).await;
    };

    let first = rotation(&anvil, contract, 1, 0).await;
    anvil.install(&first).await;
    anvil.mine(2).await;
    for known in [None, Some(committees(0)), Some(recovered(1, 1, None))] {
        assert_eq!(read(known.as_ref()).await, recovered(1, 1, None));
    }
    assert_eq!(reader.read(None).await.unwrap(), committees(1), "clients do not ask");
    assert_eq!(reader.closing(&committees(1)).await.unwrap(), None, "its keys were out");
    assert_eq!(reader.adopted(Epoch(1)).await.unwrap(), None);
    // A node that hides it.
    node.lie(|_, params, answer| {
        let data = params[0]["data"].as_str().or(params[0]["input"].as_str()).unwrap_or_default();
        if data.contains(&hex::encode(IFastPay::compromisedCall::SELECTOR)) {
            answer["result"] = json!(format!("0x{:064x}", 0));
        }
    });
    let told = alarm(reader.read_with_recovery(Some(&committees(0))).await);
    assert!(matches!(told, Alarm::Disagreement { .. }), "{told}");
    node.repent();

    let checkpoint = B256::repeat_byte(7);
    adopt(&first, 1, checkpoint).await;
    for known in [None, Some(committees(0)), Some(recovered(1, 1, None)), Some(recovered(1, 1, Some(checkpoint)))] {
        assert_eq!(read(known.as_ref()).await, recovered(1, 1, Some(checkpoint)));
    }
    // A later rotation changes nothing, and a later emergency ends it, too, as well as the rotation between the two.
    anvil.install(&rotation(&anvil, contract, 2, 2).await).await;
    anvil.mine(2).await;
    for known in [None, Some(recovered(1, 1, Some(checkpoint)))] {
        assert_eq!(read(known.as_ref()).await, recovered(2, 1, Some(checkpoint)));
    }
    anvil.install(&rotation(&anvil, contract, 3, 1).await).await;
    anvil.mine(2).await;
    for known in [None, Some(committees(0)), Some(recovered(2, 1, Some(checkpoint)))] {
        assert_eq!(read(known.as_ref()).await, recovered(3, 3, None));
    }
    assert_eq!(reader.adopted(Epoch(1)).await.unwrap(), Some(checkpoint));
    node.lie(|_, params, answer| {
        let data = params[0]["data"].as_str().or(params[0]["input"].as_str()).unwrap_or_default();
        if data.contains(&hex::encode(ICouncil::adoptedCall::SELECTOR)) {
            answer["result"] = json!(format!("0x{:064x}", 0));
        }
    });
    let told = reader.adopted(Epoch(1)).await.unwrap_err();
    assert!(matches!(told, DepositsError::Alarm(Alarm::Disagreement { .. })), "{told}");
}

#[tokio::test]
async fn what_the_recovery_address_installed_begins_anew() {
    let anvil = Anvil::start(Mining::Each);
    let contract = anvil.deploy_recoverable(&committee(0)).await;
    let reader = EpochReader::new(anvil.primary(contract, Finality::Confirmations(0)).await);
    anvil.pass(Rotation::RECOVERY_SILENCE_S).await;
    let recovery = rotation(&anvil, contract, 1, 0).await;
    anvil.call_as_guardian(recovery.announce_recovery()).await;
    anvil.mine(2).await;
    assert_eq!(reader.read_with_recovery(None).await.unwrap(), committees(0), "it is announced");
    anvil.pass(Rotation::RECOVERY_NOTICE_S).await;
    anvil.mature(&recovery).await;
    anvil.mine(2).await;
    let expected = ended(recovered(1, 1, None), EpochEnd::default());
    assert_eq!(reader.read_with_recovery(Some(&committees(0))).await.unwrap(), expected);
}
