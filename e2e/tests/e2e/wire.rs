//! Each kind of invalid order and certificate, sent to a running node by a client that checks nothing. Each test ends
//! by checking that the account is unchanged and a valid order still succeeds.

use alloy::primitives::Address;
use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{
    AccountKey, Amount, Asset, AuthorityKeys, Authorization, Certificate, Committee, Domain, Epoch, Memo, Redemption,
    SequenceNumber, Transfer, TransferOrder, sign_vote,
};
use fastpay_e2e::Network;
use fastpay_rpc::{AccountState, Refusal};

use crate::scene::{START, balance, key, on_chain, payment, standalone};

struct Wire {
    network: Network,
    client: AuthorityClient,
    keys: Vec<AuthorityKeys>,
    sender: AccountKey,
}

impl Wire {
    /// One authority of four runs; the test has the keys of all.
    async fn new(name: &str) -> Self {
        let sender = key(4);
        let mut network = standalone(name, &[sender.account()]);
        let authority = network.authority(0).unwrap();
        authority.start().unwrap();
        authority.wait_ready().await.unwrap();
        let client = authority.client().unwrap();
        let keys = network.authorities.iter().map(|authority| authority.secret_keys().unwrap()).collect();
        Self { network, client, keys, sender }
    }

    fn domain(&self) -> &Domain {
        self.network.domain()
    }

    fn committee(&self) -> &Committee {
        self.network.committee()
    }

    async fn order(&self, order: &TransferOrder) -> Result<(), ClientError> {
        self.client.shard_of(&self.sender.account()).order(order).await.map(drop)
    }

    async fn confirm(&self, certificate: &Certificate) -> Result<SequenceNumber, ClientError> {
        self.client.shard_of(&self.sender.account()).confirm(certificate).await.map(|(_, next)| next)
    }

    async fn state(&self) -> AccountState {
        self.client.shard_of(&self.sender.account()).account(self.sender.account()).await.unwrap()
    }

    fn pays(&self, amount: u128, sequence: u64) -> TransferOrder {
        self.sender.order(self.domain(), payment(&self.sender, key(5).account(), amount, sequence))
    }

    fn certificate(&self, order: &TransferOrder) -> Certificate {
        let digest = self.domain().transfer_digest(&order.transfer);
        let vote = |keys: &AuthorityKeys| sign_vote(keys, self.domain(), Epoch(0), &order.transfer, digest);
        let mut votes: Vec<_> = self.keys.iter().map(vote).collect();
        votes.sort_by_key(|vote| vote.authority);
        votes.truncate(self.committee().quorum());
        Certificate { order: order.clone(), epoch: Epoch(0), votes }
    }
}

/// Checks the refusal, which says what to do.
fn refused<T: std::fmt::Debug>(answer: Result<T, ClientError>, said: &str) -> Refusal {
    match answer {
        Err(ClientError::Refused(refusal)) => {
            assert!(refusal.to_string().contains(said), "{refusal:?} does not say {said:?}");
            refusal
        }
        other => panic!("{said:?} should have been refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_orders_are_refused_and_change_nothing() {
    let wire = Wire::new("orders").await;
    refused(wire.order(&wire.pays(0, 0)).await, "amount is zero");
    refused(wire.order(&wire.pays(1, 1)).await, "expects sequence number 0");
    refused(wire.order(&wire.pays(START + 1, 0)).await, "balance at the authority is 1000000");
    let stranger = key(6);
    let stolen = payment(&wire.sender, stranger.account(), 1, 0);
    refused(wire.order(&stranger.order(wire.domain(), stolen)).await, "does not own account");

    let mut altered = wire.pays(1, 0);
    if let Transfer::Payment(payment) = &mut altered.transfer {
        payment.amount = Amount(2);
    }
    refused(wire.order(&altered).await, "not valid for this statement");
    let mut altered = wire.pays(1, 0);
    if let Authorization::Ed25519 { signature, .. } = &mut altered.authorization {
        signature.0[40] ^= 1;
    }
    refused(wire.order(&altered).await, "not valid for this statement");
    for domain in [Domain::new(1, wire.domain().contract()), Domain::new(0, Address::repeat_byte(9))] {
        let elsewhere = wire.sender.order(&domain, payment(&wire.sender, stranger.account(), 1, 0));
        refused(wire.order(&elsewhere).await, "not valid for this statement");
    }
    let redemption = |fee| {
        Transfer::Redemption(Redemption {
            sender: wire.sender.account(),
            recipient: Address::repeat_byte(1),
            asset: Asset::ETHER,
            amount: Amount(5),
            fee: Amount(fee),
            sequence: SequenceNumber(0),
            memo: Memo::ZERO,
        })
    };
    refused(wire.order(&wire.sender.order(wire.domain(), redemption(6))).await, "fee 6 exceeds the amount 5");
    assert_eq!(refused(wire.order(&wire.sender.order(wire.domain(), redemption(0))).await, ""), Refusal::NoPrimary);

    assert_eq!(wire.state().await.pending, None);
    wire.order(&wire.pays(1, 0)).await.unwrap();
    // Another order while one is pending: the answer contains the pending one.
    let refusal = refused(wire.order(&wire.pays(2, 0)).await, "locked on another order");
    assert_eq!(refusal, Refusal::OrderPending(Box::new(wire.pays(1, 0))));
    wire.confirm(&wire.certificate(&wire.pays(1, 0))).await.unwrap();
    assert_eq!(
        refused(wire.order(&wire.pays(1, 0)).await, "already confirmed"),
        Refusal::AlreadyConfirmed(SequenceNumber(1))
    );
    assert_eq!(wire.state().await.balance(Asset::ETHER), balance(START - 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_certificates_are_refused_and_change_nothing() {
    let wire = Wire::new("certificates").await;
    let good = wire.certificate(&wire.pays(1, 0));

    let mut few = good.clone();
    few.votes.pop();
    refused(wire.confirm(&few).await, "it must have exactly 3");
    let mut twice = good.clone();
    twice.votes[1] = twice.votes[0].clone();
    refused(wire.confirm(&twice).await, "repeated");
    let mut other_epoch = good.clone();
    other_epoch.epoch = Epoch(1);
    refused(wire.confirm(&other_epoch).await, "epoch");
    let mut altered = good.clone();
    if let Transfer::Payment(payment) = &mut altered.order.transfer {
        payment.amount = Amount(1_000);
    }
    refused(wire.confirm(&altered).await, "not valid for this statement");
    let mut stranger = good.clone();
    let keys = AuthorityKeys::from_secrets([1; 32], [1; 32]).unwrap();
    let digest = wire.domain().transfer_digest(&good.order.transfer);
    stranger.votes[0] = sign_vote(&keys, wire.domain(), Epoch(0), &good.order.transfer, digest);
    stranger.votes.sort_by_key(|vote| vote.authority);
    refused(wire.confirm(&stranger).await, "not a member");
    let mut exchanged = good.clone();
    let signature = exchanged.votes[0].signature.clone();
    exchanged.votes[1].signature = signature;
    refused(wire.confirm(&exchanged).await, "not valid for this statement");
    // A gap: the answer names the first missing certificate.
    let later = wire.certificate(&wire.pays(1, 1));
    assert_eq!(refused(wire.confirm(&later).await, "first"), Refusal::MissingCertificate(SequenceNumber(0)));
    assert_eq!(
        wire.state().await,
        AccountState { deposits: 1, holdings: vec![(Asset::ETHER, balance(START))], ..Default::default() }
    );

    assert_eq!(wire.confirm(&good).await.unwrap(), SequenceNumber(1));
    assert_eq!(wire.confirm(&later).await.unwrap(), SequenceNumber(2));
    // Repeating it changes nothing.
    assert_eq!(wire.confirm(&good).await.unwrap(), SequenceNumber(2));
    assert_eq!(wire.state().await.balance(Asset::ETHER), balance(START - 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_is_served_by_its_own_shard_alone() {
    let wire = Wire::new("shards").await;
    let own = wire.client.shard_of(&wire.sender.account()).status().await.unwrap().shard;
    let other =
        wire.client.shards().iter().find(|shard| !std::ptr::eq(*shard, wire.client.shard_of(&wire.sender.account())));
    let answer = other.unwrap().order(&wire.pays(1, 0)).await;
    assert_eq!(refused(answer, "belongs to shard"), Refusal::WrongShard(own));
}

/// In a deployment with a contract, a signature for another chain or contract is not valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_for_another_contract_is_refused() {
    let mut network = on_chain("domain").await;
    let authority = network.authority(0).unwrap();
    authority.start().unwrap();
    authority.wait_ready().await.unwrap();
    let client = authority.client().unwrap();
    let (sender, domain) = (key(7), *network.domain());
    for wrong in [Domain::new(1, domain.contract()), Domain::new(domain.chain_id(), Address::repeat_byte(3))] {
        let order = sender.order(&wrong, payment(&sender, key(0).account(), 1, 0));
        refused(client.shard_of(&sender.account()).order(&order).await, "not valid for this statement");
    }
    // Signed for this deployment, only the balance is too low.
    let order = sender.order(&domain, payment(&sender, key(0).account(), 1, 0));
    refused(client.shard_of(&sender.account()).order(&order).await, "balance at the authority is 0");
}
