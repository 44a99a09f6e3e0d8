//! An account whose owner signed two orders with one number, on real processes: it is unlocked by all authorities, by a
//! quorum after the window, or by a certificate that somebody had withheld. A relayer unlocks it for an owner without
//! ETH, or after the owner has left.

use alloy::primitives::{Address, Bytes, U256};
use alloy::sol_types::{SolCall, SolError};
use fastpay_client::ClientError;
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Balance, Certificate, Epoch, Memo, Payment, PrimaryAddress, Redemption,
    SequenceNumber, Transfer, TransferOrder, VerifiedVote, sign_vote,
};
use fastpay_e2e::{Network, PATIENCE, User, audit, bring_all_up_to_date, wait_for};
use fastpay_ethereum::{Call, ICouncil, certified_redemption};
use fastpay_rpc::Refusal;
use fastpay_wallet::parse_memo;

use crate::merchant_scene::Merchant;
use crate::scene::{on_chain, payment};

/// The contract's unlock window, in seconds.
const WINDOW_S: u64 = 259_200;
const BOND: u128 = 5_000_000_000_000_000;
const ETHER: u128 = 1_000_000_000_000_000_000;

/// A network in which Alice has deposited, her account, and one that she pays.
struct Scene {
    network: Network,
    alice: User,
    /// The name of her key.
    name: &'static str,
    key: AccountKey,
    account: AccountId,
    to: String,
}

async fn scene(name: &str) -> Scene {
    let mut network = on_chain(name).await;
    network.start_authorities().await.unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    let account = alice.import_rich_key("own", 0).await.unwrap();
    let to = alice.new_ed25519_key("other").await.unwrap().to_string();
    alice.fastpay(["deposit", "10", "--from", "own"]).await.unwrap();
    wait_until_credited(&network, account).await;
    let (_, key) = alice.open("own").unwrap();
    Scene { network, alice, name: "own", key, account, to }
}

/// Wait until every authority has read the deposit, not only a quorum.
async fn wait_until_credited(network: &Network, account: AccountId) {
    for client in network.clients().unwrap() {
        wait_for(PATIENCE, async || {
            let state = client.shard_of(&account).account(account).await.map_err(|error| error.to_string())?;
            if state.deposits > 0 { Ok(()) } else { Err(format!("{} has no deposit", client.name())) }
        })
        .await
        .unwrap();
    }
}

/// The same with a relayer that serves wallets. The account cannot hold ETH on the chain.
async fn relayed(name: &str) -> Scene {
    let mut network = on_chain(name).await;
    network.publish_fees().unwrap();
    network.start_authorities().await.unwrap();
    network.start_relayer().unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    alice.import_rich_key("own", 0).await.unwrap();
    let account = alice.new_ed25519_key("poor").await.unwrap();
    let to = alice.new_ed25519_key("other").await.unwrap().to_string();
    alice.fastpay(["deposit", "10", "--from", "own", "--to", &account.to_string()]).await.unwrap();
    wait_until_credited(&network, account).await;
    let (_, key) = alice.open("poor").unwrap();
    Scene { network, alice, name: "poor", key, account, to }
}

impl Scene {
    fn order(&self, amount: u128, sequence: u64) -> TransferOrder {
        let recipient = self.to.parse().unwrap();
        self.key.order(self.network.domain(), payment(&self.key, recipient, amount, sequence))
    }

    /// Collects authorities' votes for an order, as a copy of the wallet would.
    async fn vote(&self, order: &TransferOrder, by: &[usize]) -> Vec<VerifiedVote> {
        let verified = order.clone().verify(self.network.domain()).unwrap();
        let (clients, mut votes) = (self.network.clients().unwrap(), Vec::new());
        for number in by {
            let (_, vote) = clients[*number].shard_of(&self.account).order(order).await.unwrap();
            votes.push(vote.verify(self.network.domain(), self.network.committee(), &verified).unwrap());
        }
        votes
    }

    /// Signs two orders with one number, and locks two authorities on each.
    async fn equivocate(&self, sequence: u64) {
        self.vote(&self.order(1_000, sequence), &[0, 1]).await;
        self.vote(&self.order(2_000, sequence), &[2, 3]).await;
    }

    async fn unlock(&self, wait: &str) -> serde_json::Value {
        self.unlock_with(&["--wait", wait]).await
    }

    async fn unlock_with(&self, options: &[&str]) -> serde_json::Value {
        let done = self.alice.try_fastpay([&["unlock", "--from", self.name], options].concat()).await.unwrap();
        // Printed if the test fails.
        println!("{}{}", done.out, done.err);
        serde_json::from_str(&done.out).unwrap()
    }

    async fn pay(&self) -> serde_json::Value {
        self.alice.fastpay(["pay", &self.to, "1", "--from", self.name]).await.unwrap()
    }

    /// Another account submits the owner's request for the first number.
    async fn request(&self) -> (Address, ICouncil::requestUnlockCall) {
        let (wallet, _) = self.alice.open(self.name).unwrap();
        let council = wallet.primary().await.unwrap().council().await.unwrap();
        let call = ICouncil::requestUnlockCall {
            account: self.account.0.into(),
            sequence: 0,
            authorization: self.key.sign_unlock_request(self.network.domain(), SequenceNumber(0)).into(),
        };
        let chain = self.network.chain().unwrap();
        chain.send(council, U256::from(BOND), Bytes::from(call.abi_encode())).await.unwrap();
        (council, call)
    }

    /// Shows one authority the certificate of an order, once it has read the request for its number.
    async fn show_late(&self, order: &TransferOrder, certificate: &Certificate) {
        self.wait_until_frozen(1, order).await;
        let client = self.network.clients().unwrap()[1].clone();
        let refused = client.shard_of(&self.account).confirm(certificate).await;
        assert_eq!(refused, Err(ClientError::Refused(Refusal::Frozen(SequenceNumber(0)))));
    }

    /// Waits until an authority has read the request to unlock the order's number.
    async fn wait_until_frozen(&self, authority: usize, order: &TransferOrder) {
        let client = self.network.clients().unwrap()[authority].clone();
        let shard = client.shard_of(&self.account);
        let frozen = wait_for(PATIENCE, async || match shard.order(order).await {
            Err(ClientError::Refused(refusal @ Refusal::Frozen(_))) => Ok(refusal),
            other => Err(format!("not frozen: {other:?}")),
        });
        assert_eq!(frozen.await.unwrap(), Refusal::Frozen(SequenceNumber(0)));
    }

    async fn is_sound(&self) {
        // An authority that has not read a decision yet confirms no order with its number.
        wait_for(PATIENCE, async || {
            bring_all_up_to_date(&self.network, &[self.account]).await.map_err(|error| error.to_string())
        })
        .await
        .unwrap();
        let lines = audit(&self.network, &[self.account, self.to.parse().unwrap()], &[Asset::ETHER]).await.unwrap();
        assert!(lines.iter().all(|line| line.ok), "{lines:?}");
        let audited = self.alice.fastpay(["audit"]).await.unwrap();
        assert_eq!(audited["ok"], true, "{audited}");
    }
}

/// The first bytes of an error of the contract, in hexadecimal.
fn selector<E: SolError>() -> String {
    alloy::hex::encode(E::SELECTOR)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_account_is_unlocked_by_all_authorities_at_once() {
    let scene = scene("unlock-all").await;
    scene.equivocate(0).await;
    let stuck = scene.alice.try_fastpay(["pay", &scene.to, "1", "--from", "own"]).await.unwrap();
    assert!(!stuck.status.success(), "{}", stuck.out);
    let unlocked = scene.unlock("100").await;
    assert_eq!(unlocked["outcome"], "voided", "{unlocked}");
    // Repeating it changes nothing.
    let again = scene.alice.fastpay(["unlock", "--from", "own", "--sequence", "0", "--wait", "9"]).await.unwrap();
    assert_eq!(again["outcome"], "voided", "{again}");
    let paid = scene.pay().await;
    assert_eq!((&paid["state"], &paid["sequence"]), (&"settled".into(), &1.into()), "{paid}");
    let nothing = scene.alice.try_fastpay(["unlock", "--from", "own"]).await.unwrap();
    assert!(!nothing.status.success() && nothing.err.contains("there is nothing to unlock"), "{}", nothing.err);
    scene.is_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_an_authority_away_a_quorum_unlocks_after_the_window() {
    let mut scene = scene("unlock-window").await;
    scene.equivocate(0).await;
    scene.network.authority(3).unwrap().kill();
    let waiting = scene.unlock("10").await;
    assert_eq!((&waiting["outcome"], &waiting["state"]), (&serde_json::Value::Null, &"waiting".into()), "{waiting}");
    assert!(waiting["voidableFrom"].is_u64(), "{waiting}");
    // The window begins at each authority when it has read the request.
    for authority in 0..3 {
        scene.wait_until_frozen(authority, &scene.order(1_000, 0)).await;
    }
    scene.network.chain().unwrap().pass(WINDOW_S + 3_600).await.unwrap();
    let unlocked = scene.unlock("100").await;
    assert_eq!(unlocked["outcome"], "voided", "{unlocked}");
    assert_eq!(scene.pay().await["state"], "settled");
    let authority = scene.network.authority(3).unwrap();
    authority.start().unwrap();
    authority.wait_ready().await.unwrap();
    scene.is_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_was_kept_hidden_is_upheld_when_one_authority_is_shown_it() {
    let scene = scene("unlock-upheld").await;
    let order = scene.order(1_000, 0);
    let votes = scene.vote(&order, &[0, 1, 2]).await;
    let verified = order.clone().verify(scene.network.domain()).unwrap();
    let certificate = Certificate::from_votes(&verified, scene.network.committee(), &votes).unwrap();
    // The owner requests the unlock before any authority sees the certificate.
    let (council, call) = scene.request().await;
    let chain = scene.network.chain().unwrap();
    // Nobody else can request her number, and she can request it only once.
    let refused = async |sequence, authorization: Bytes, value| {
        let call = ICouncil::requestUnlockCall { sequence, authorization, ..call.clone() };
        let refused = chain.send(council, U256::from(value), Bytes::from(call.abi_encode())).await;
        refused.unwrap_err().to_string()
    };
    let signed = |key: &AccountKey, sequence| {
        Bytes::from(key.sign_unlock_request(scene.network.domain(), SequenceNumber(sequence)))
    };
    let another = AccountKey::ethereum([7; 32]).unwrap();
    for (sequence, authorization) in [(7, Bytes::new()), (7, signed(&another, 7)), (7, signed(&scene.key, 8))] {
        let error = refused(sequence, authorization, BOND).await;
        assert!(error.contains(&selector::<ICouncil::NotOwner>()), "{error}");
    }
    let error = refused(0, signed(&scene.key, 0), BOND).await;
    assert!(error.contains(&selector::<ICouncil::AlreadyRequested>()), "{error}");
    let error = refused(7, signed(&scene.key, 7), BOND - 1).await;
    assert!(error.contains(&selector::<ICouncil::WrongBond>()), "{error}");
    scene.show_late(&order, certificate.certificate()).await;
    let unlocked = scene.unlock("100").await;
    assert_eq!(unlocked["outcome"], "upheld", "{unlocked}");
    let error = refused(0, signed(&scene.key, 0), BOND).await;
    assert!(error.contains(&selector::<ICouncil::AlreadyDecided>()), "{error}");
    assert_eq!(scene.pay().await["sequence"], 1);
    scene.is_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redemption_whose_number_a_thief_spent_is_credited_back_and_can_be_spent() {
    let scene = scene("unlock-thief").await;
    let domain = scene.network.domain();
    let redemption = |amount, recipient: u8| {
        Transfer::Redemption(Redemption {
            sender: scene.account,
            recipient: PrimaryAddress::repeat_byte(recipient),
            asset: Asset::ETHER,
            amount: Amount(amount),
            fee: Amount(0),
            sequence: SequenceNumber(0),
            memo: Memo::ZERO,
        })
    };
    // Her redemption is certified and confirmed, and nobody has submitted it.
    let own = scene.key.order(domain, redemption(3 * ETHER, 0x0a));
    let votes = scene.vote(&own, &[0, 1, 2]).await;
    let verified = own.clone().verify(domain).unwrap();
    let own = Certificate::from_votes(&verified, scene.network.committee(), &votes).unwrap();
    for client in scene.network.clients().unwrap() {
        client.shard_of(&scene.account).confirm(own.certificate()).await.unwrap();
    }
    // A thief has the redemption keys of a quorum. The contract does not see the owner's signature.
    let stolen = scene.key.order(domain, redemption(2 * ETHER, 0x66));
    let digest = domain.transfer_digest(&stolen.transfer);
    let keys = scene.network.authorities[..3].iter().map(|authority| authority.secret_keys().unwrap());
    let mut votes: Vec<_> = keys.map(|keys| sign_vote(&keys, domain, Epoch(0), &stolen.transfer, digest)).collect();
    votes.sort_by_key(|vote| vote.authority);
    let stolen = Certificate { order: stolen, epoch: Epoch(0), votes };
    let call = certified_redemption(&stolen, scene.network.committee()).unwrap();
    let call = Call::redeem(scene.network.contract().unwrap(), call);
    let chain = scene.network.chain().unwrap();
    chain.send(scene.network.contract().unwrap(), U256::ZERO, call.data).await.unwrap();
    for client in scene.network.clients().unwrap() {
        wait_for(PATIENCE, async || match client.shard_of(&scene.account).account(scene.account).await {
            Ok(state) if state.balance(Asset::ETHER) == Balance::from(Amount(10 * ETHER)) => Ok(()),
            state => Err(format!("not credited back: {state:?}")),
        })
        .await
        .unwrap();
    }
    let paid = scene.alice.fastpay(["pay", &scene.to, "10", "--from", "own"]).await.unwrap();
    assert_eq!(paid["state"], "settled", "{paid}");
    let history = scene.alice.fastpay(["history", "--from", "own"]).await.unwrap();
    let states: Vec<_> = history["events"].as_array().unwrap().iter().map(|event| &event["ethereum"]).collect();
    assert!(states.contains(&&"displaced".into()), "{history}");
    // The contract lacks the stolen amount, and the audit finds nothing else.
    bring_all_up_to_date(&scene.network, &[scene.account]).await.unwrap();
    let audited = scene.alice.try_fastpay(["audit", "--wait", "20"]).await.unwrap();
    let report: serde_json::Value = serde_json::from_str(&audited.out).unwrap();
    let solvency = &report["assets"][0]["solvency"];
    let sums =
        ["accounts", "displaced", "unexplained"].map(|sum| solvency[sum].as_str().unwrap().parse::<u128>().unwrap());
    assert_eq!(sums, [10 * ETHER, 3 * ETHER, 2 * ETHER], "{report}");
    let findings = report["findings"].to_string();
    assert!(!findings.contains("it reports") && !findings.contains("redemption log"), "{findings}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_without_ether_is_unlocked_by_a_relayer() {
    let mut scene = relayed("unlock-relayer").await;
    let not_stuck = scene.alice.try_fastpay(["unlock", "--from", "poor", "--relayer"]).await.unwrap();
    assert!(!not_stuck.status.success() && not_stuck.err.contains("there is nothing to unlock"), "{}", not_stuck.err);
    scene.equivocate(0).await;
    let unlocked = scene.unlock_with(&["--relayer", "--wait", "100"]).await;
    assert_eq!(unlocked["outcome"], "voided", "{unlocked}");
    let paid = scene.pay().await;
    assert_eq!((&paid["state"], &paid["sequence"]), (&"settled".into(), &1.into()), "{paid}");
    // Long enough for the relayer to see that its transactions are final.
    let relayer = scene.network.relayer().unwrap();
    let totals = wait_for(PATIENCE, async || {
        let totals = relayer.status().map_err(|error| error.to_string())?["totals"].clone();
        if totals["unlockVoided"] == 1 { Ok(totals) } else { Err(format!("{totals}")) }
    });
    assert_eq!(totals.await.unwrap()["unlockRequested"], 1);
    scene.is_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_certificate_is_upheld_by_a_relayer_while_its_owner_is_gone() {
    let mut scene = relayed("unlock-relayer-upheld").await;
    // She pays a shop that is offline until the end.
    let owner = User::new(&scene.network, "owner").await.unwrap();
    let till = owner.new_ed25519_key("till").await.unwrap();
    let mut shop = Merchant::start(&mut scene.network, &owner, till).await;
    let invoice = shop.create("bread", "1000", "600");
    shop.kill();
    let sender = scene.account;
    let memo = parse_memo(invoice["memo"].as_str().unwrap()).unwrap();
    let (asset, amount, sequence) = (Asset::ETHER, Amount(1_000), SequenceNumber(0));
    let payment = Transfer::Payment(Payment { sender, recipient: till, asset, amount, sequence, memo });
    let order = scene.key.order(scene.network.domain(), payment);
    let votes = scene.vote(&order, &[0, 1, 2]).await;
    let verified = order.clone().verify(scene.network.domain()).unwrap();
    let certificate = Certificate::from_votes(&verified, scene.network.committee(), &votes).unwrap();
    scene.request().await;
    scene.show_late(&order, certificate.certificate()).await;
    let relayer = scene.network.relayer().unwrap();
    let upheld = wait_for(PATIENCE, async || {
        let totals = relayer.status().map_err(|error| error.to_string())?["totals"].clone();
        if totals["unlockUpheld"] == 1 { Ok(()) } else { Err(format!("{totals}")) }
    });
    upheld.await.unwrap();
    // She returns, perhaps before the authorities have read the decision.
    let unlocked = scene.unlock_with(&["--relayer", "--sequence", "0", "--wait", "100"]).await;
    assert_eq!(unlocked["outcome"], "upheld", "{unlocked}");
    shop.run().await;
    shop.until(&invoice, "paid", "delivered").await;
    scene.to = till.to_string();
    assert_eq!(scene.pay().await["sequence"], 1);
    scene.is_sound().await;
}
