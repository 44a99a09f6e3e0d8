//! Keys of three of four members are stolen. The operators begin anew, with the commands of docs/OPERATIONS.md ("Emergency:
//! keys were stolen"), from what their nodes have executed: what was settled stays, what the thieves certified counts for
//! nothing, and what the contract paid them is debited.

use alloy::primitives::{Address, Bytes, U256};
use alloy::sol_types::{SolCall, SolError};
use fastpay_client::ClientError;
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Authority as Member, Balance, Certificate, Digest, Epoch, Memo, Redemption,
    SequenceNumber,
};
use fastpay_e2e::{By, Network, PATIENCE, Sources, User, audit, bring_all_up_to_date, wait_for};
use fastpay_ethereum::{IFastPay, certified_redemption};
use fastpay_rpc::Refusal;
use fastpay_testkit::TestCommittee;
use serde_json::{Value, json};

use crate::rotation::{DELAY_S, wait_for_epoch, wait_in_epoch};
use crate::scene::{balance, on_chain, payment};

const ETHER: u128 = 1_000_000_000_000_000_000;
const OUT: Address = Address::repeat_byte(0xde);
const YEAR_S: u64 = 31_536_000;

/// Who takes what there is: an account without a deposit, and one that it pays.
struct Thieves {
    committee: TestCommittee,
    mallory: AccountKey,
    accomplice: AccountId,
}

impl Thieves {
    /// They have the keys of a quorum.
    fn new(network: &Network) -> Self {
        let mut keys: Vec<_> = network.authorities.iter().map(|member| member.secret_keys().unwrap()).collect();
        keys.sort_by_key(|keys| keys.public().name);
        let committee = TestCommittee { domain: *network.domain(), committee: network.committee().clone(), keys };
        let accomplice = AccountKey::ed25519([0xac; 32]).account();
        Self { committee, mallory: AccountKey::ed25519([0x3a; 32]), accomplice }
    }

    fn pays(&self, ether: u128, sequence: u64) -> Certificate {
        let transfer = payment(&self.mallory, self.accomplice, ether * ETHER, sequence);
        self.committee.certificate(&self.mallory.order(&self.committee.domain, transfer))
    }

    fn redeems(&self, ether: u128, sequence: u64) -> Certificate {
        let redemption = Redemption {
            sender: self.mallory.account(),
            recipient: OUT,
            asset: Asset::ETHER,
            amount: Amount(ether * ETHER),
            fee: Amount::ZERO,
            sequence: SequenceNumber(sequence),
            memo: Memo::ZERO,
        };
        self.committee.certificate(&self.mallory.order(&self.committee.domain, redemption.into()))
    }

    /// The call by which the contract pays a redemption.
    fn call(&self, certificate: &Certificate) -> Bytes {
        let certified = certified_redemption(certificate, &self.committee.committee).unwrap();
        let (redemption, epoch, votes) = (certified.redemption, certified.epoch, certified.votes);
        IFastPay::redeemCall { redemption, epoch, votes }.abi_encode().into()
    }
}

/// What an account has at each member.
async fn all_have(network: &Network, account: AccountId, wei: Balance) {
    for client in network.clients().unwrap() {
        wait_for(PATIENCE, async || {
            let state = client.shard_of(&account).account(account).await.map_err(|error| error.to_string())?;
            let held = state.balance(Asset::ETHER);
            if held == wei { Ok(()) } else { Err(format!("{account} has {held} at {}, not {wei}", client.name())) }
        })
        .await
        .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_theft_of_three_keys_the_operators_begin_from_what_they_executed_and_no_unit_is_lost_or_made() {
    let mut network = on_chain("stolen").await;
    let second: Vec<Member> = network.authorities.iter_mut().map(|a| a.add_keys("keys-1").unwrap()).collect();
    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    let configured: Vec<_> =
        network.authorities.iter().map(|authority| std::fs::read(authority.config()).unwrap()).collect();
    network.authorities.iter().for_each(|authority| authority.set_archive(10).unwrap());
    network.start_authorities().await.unwrap();
    network.start_relayer().unwrap();
    let (alice, bob) = (User::new(&network, "alice").await.unwrap(), User::new(&network, "bob").await.unwrap());
    let (own, other) = (alice.import_rich_key("own", 0).await.unwrap(), bob.import_rich_key("own", 1).await.unwrap());
    for user in [&alice, &bob] {
        user.fastpay(["deposit", "10", "--wait", "240"]).await.unwrap();
    }
    let pay = async |ether: &str| {
        let paid = alice.fastpay(["pay", &other.to_string(), ether]).await.unwrap();
        assert_eq!(paid["state"], "settled", "{paid}");
    };
    pay("1").await;
    network.certified(1).await.unwrap();
    // Which checkpoint is the newest is clear from now on.
    for (number, configured) in configured.iter().enumerate() {
        network.authority(number).unwrap().stop().unwrap();
        std::fs::write(network.authorities[number].config(), configured).unwrap();
        network.authorities[number].set_archive(YEAR_S).unwrap();
    }
    network.start_authorities().await.unwrap();
    let archived = network.archived(0).unwrap();
    pay("2").await;
    let redeemed = bob.fastpay(["redeem", "1", "--to", &OUT.to_string(), "--wait", "120"]).await.unwrap();
    assert!(redeemed["redeemed"].is_object(), "{redeemed}");
    bring_all_up_to_date(&network, &[own, other]).await.unwrap();

    // The nodes execute what the stolen keys certify, and the contract pays it.
    let thieves = Thieves::new(&network);
    let mallory = thieves.mallory.account();
    let (paid, redeemed) = (thieves.pays(5, 0), thieves.redeems(1, 1));
    for client in network.clients().unwrap() {
        client.shard_of(&mallory).confirm(&paid).await.unwrap();
    }
    all_have(&network, thieves.accomplice, balance(5 * ETHER)).await;
    let contract = network.contract().unwrap();
    network.chain().unwrap().send(contract, U256::ZERO, thieves.call(&redeemed)).await.unwrap();

    // They announce a committee of which they are the guardian. Without the present guardian's word it takes 14 days.
    let guardian = ["--guardian".to_owned(), OUT.to_string()];
    let mut theirs = network.propose_with("none", network.committee().members(), &[0, 1, 2], 1, &guardian).unwrap();
    network.sign(&theirs).unwrap();
    network.announce_unendorsed(&theirs).unwrap().success().unwrap();
    let aside = network.place().path("theirs.json");
    std::fs::rename(std::mem::replace(&mut theirs.announcement, aside.clone()), &aside).unwrap();
    let votes = [0, 1, 2].map(|number| network.vote_file(1, "sign", number));
    theirs.proofs.iter().chain(&votes).for_each(|file| std::fs::remove_file(file).unwrap());

    let checkpoint: Digest = archived["checkpoint"].as_str().unwrap().parse().unwrap();
    let rotation = network.propose_naming(checkpoint, "keys-1", &second, &[0, 1, 2], (1, 0)).unwrap();
    let said = network.sign(&rotation).unwrap();
    assert!(said[0].err.contains("keys are compromised since epoch 0"), "{}", said[0].err);
    network.announce(&rotation).unwrap();
    network.chain().unwrap().pass(DELAY_S + 1).await.unwrap();
    let install = || network.send(By::Anyone, "install", &theirs, Vec::new()).unwrap();
    let early = install();
    assert!(early.err.contains("The guardian has not endorsed it"), "{}", early.err);
    network.install(&rotation).await.unwrap();
    let ended = install();
    assert!(ended.err.contains("has ended"), "{}", ended.err);

    // No vote of the stolen keys counts on the contract, and nobody votes or executes before a checkpoint is adopted.
    let call = json!([{ "to": contract, "data": thieves.call(&thieves.redeems(1, 2)) }, "latest"]);
    let refused = network.chain().unwrap().request::<Value>("eth_call", call).await.unwrap_err().to_string();
    assert!(refused.contains(&alloy::primitives::hex::encode(IFastPay::EpochEnded::SELECTOR)), "{refused}");
    for number in 0..4 {
        wait_in_epoch(&network, number, 1, false).await;
    }
    let order = thieves.mallory.order(network.domain(), payment(&thieves.mallory, own, 1, 0));
    for client in network.clients().unwrap() {
        let shard = client.shard_of(&mallory);
        let refused = shard.order(&order).await.unwrap_err();
        assert_eq!(refused, ClientError::Refused(Refusal::NotVoting(Epoch(1))));
        let refused = shard.confirm(&paid).await.unwrap_err();
        assert_eq!(refused, ClientError::Refused(Refusal::UnknownEpoch(Epoch(1))));
    }

    // A quorum of the operators bring their folders.
    let mut sources = Sources::default();
    for number in 0..3 {
        network.authority(number).unwrap().stop().unwrap();
        sources.journals.push(network.copy_data(number, &format!("data-{number}")).unwrap());
        network.authority(number).unwrap().start().unwrap();
    }
    let report = network.rebuilt(1, &sources).await.unwrap();
    assert_eq!((&report["folders"]["read"], &report["folders"]["quorum"]), (&json!(3), &json!(3)), "{report}");
    assert_eq!(report["base"], archived["number"], "{report}");
    let left_out = report["leftOut"].as_array().unwrap();
    assert_eq!((left_out.len(), &left_out[0]["account"], &left_out[0]["sequence"]), (1, &json!(mallory), &json!(0)));
    for list in ["paid", "owing"] {
        let accounts: Vec<_> = report[list].as_array().unwrap().iter().map(|one| &one["account"]).collect();
        assert_eq!(accounts, [&json!(mallory)], "{report}");
    }
    network.begin_anew(&report, &sources).await.unwrap();
    for number in 0..4 {
        wait_for_epoch(&network, number, 1).await;
    }

    let minus = |ether: u128| Balance::ZERO.debit(Amount(ether * ETHER));
    let all = [(own, balance(7 * ETHER)), (other, balance(12 * ETHER)), (thieves.accomplice, Balance::ZERO)];
    for (account, wei) in all.into_iter().chain([(mallory, minus(1))]) {
        all_have(&network, account, wei).await;
    }
    for client in network.clients().unwrap() {
        for ended in [&paid, &redeemed] {
            let refused = client.shard_of(&mallory).confirm(ended).await.unwrap_err();
            assert_eq!(refused, ClientError::Refused(Refusal::EpochEnded(Epoch(1))));
        }
    }
    let accounts = [own, other, mallory, thieves.accomplice];
    let balanced = async |network: &Network, ether: u128| {
        let lines = audit(network, &accounts, &[Asset::ETHER]).await.unwrap();
        assert!(lines.iter().all(|line| line.ok), "{lines:?}");
        assert_eq!(lines[0].contract_total, balance(ether * ETHER));
    };
    balanced(&network, 18).await;

    // Payments go on, and so do redemptions, without anything that users do.
    pay("1").await;
    let redeemed = bob.fastpay(["redeem", "1", "--to", &OUT.to_string(), "--wait", "120"]).await.unwrap();
    assert!(redeemed["redeemed"].is_object(), "{redeemed}");
    bring_all_up_to_date(&network, &[own, other]).await.unwrap();
    for (account, wei) in [(own, 6), (other, 12)] {
        all_have(&network, account, balance(wei * ETHER)).await;
    }
    balanced(&network, 17).await;
}
