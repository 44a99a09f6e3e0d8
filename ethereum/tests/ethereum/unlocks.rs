//! Numbers are asked about and decided on a real chain, and their events lie between deposits.

use alloy::primitives::{Address, Bytes, U256};
use alloy::signers::SignerSync;
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::SolCall;
use fastpay_core::{
    AccountId, Amount, AuthorityKeys, Committee, Digest, Domain, Epoch, SequenceNumber, TransactionIndex,
};
use fastpay_ethereum::{Call, DepositReader, Finality, ICouncil};
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, Mining, council_of};

const ACCOUNT: AccountId = AccountId([0xa1; 32]);
const BOND: u128 = 5_000_000_000_000_000;

struct Scene {
    anvil: Anvil,
    domain: Domain,
    /// The members' keys for the contract, in the order of the committee.
    signers: Vec<PrivateKeySigner>,
    nonce: u64,
}

impl Scene {
    async fn new() -> Self {
        let pair = |number: u8| {
            let keys = AuthorityKeys::from_secrets([number; 32], [number + 100; 32]).unwrap();
            (keys.public(), PrivateKeySigner::from_slice(&[number + 100; 32]).unwrap())
        };
        let mut members: Vec<_> = (1..=4).map(pair).collect();
        members.sort_by_key(|(authority, _)| authority.name);
        let (authorities, signers): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let anvil = Anvil::start(Mining::Manual);
        let contract = anvil.deploy(&Committee::new(Epoch(0), authorities).unwrap()).await;
        Self { anvil, domain: Domain::new(CHAIN_ID, contract), signers, nonce: 0 }
    }

    async fn send(&mut self, to: Address, wei: u128, data: Bytes) {
        let key = self.anvil.rich_key(0);
        let hash = self.anvil.send_raw(&key, self.nonce, to.into(), U256::from(wei), data).await;
        self.nonce += 1;
        self.anvil.mined_receipt(hash).await;
    }

    async fn deposit(&mut self, wei: u128) {
        let call = Call::deposit_ether(self.domain.contract(), ACCOUNT, Amount(wei));
        self.send(call.to, wei, call.data).await;
    }

    async fn council(&mut self, wei: u128, call: &impl SolCall) {
        self.send(council_of(self.domain.contract()), wei, call.abi_encode().into()).await;
    }

    async fn request(&mut self, sequence: u64, wei: u128) {
        let account = ACCOUNT.0.into();
        let call = ICouncil::requestUnlockCall { account, sequence, authorization: Bytes::from_static(b"signed") };
        self.council(wei, &call).await;
    }

    /// The votes of the first members.
    fn votes(&self, count: usize, digest: Digest) -> Bytes {
        let vote = |(index, signer): (usize, &PrivateKeySigner)| {
            let signature = signer.sign_hash_sync(&digest).unwrap().as_bytes();
            [&[u8::try_from(index).unwrap()], signature.as_slice()].concat()
        };
        self.signers.iter().enumerate().take(count).flat_map(vote).collect()
    }
}

#[tokio::test]
async fn requests_and_decisions_lie_between_deposits_without_a_gap() {
    let mut scene = Scene::new().await;
    let (account, digest) = (ACCOUNT.0.into(), Digest::repeat_byte(0xd1));
    scene.deposit(100).await;
    scene.request(7, BOND).await;
    scene.request(7, 0).await; // by somebody else
    scene.request(8, BOND).await;
    let vote = scene.domain.certificate_vote_digest(Epoch(0), ACCOUNT, SequenceNumber(7), digest);
    let votes = scene.votes(3, vote);
    scene.council(0, &ICouncil::upholdSequenceCall { account, sequence: 7, digest, votes }).await;
    let vote = scene.domain.void_vote_digest(Epoch(0), ACCOUNT, SequenceNumber(8), true);
    let votes = scene.votes(4, vote);
    scene.council(0, &ICouncil::voidSequenceCall { account, sequence: 8, unanimous: true, votes }).await;
    scene.deposit(200).await;

    let primary = scene.anvil.primary(scene.domain.contract(), Finality::Confirmations(0)).await;
    let mut reader = DepositReader::new(primary, 100);
    let start = reader.start().await.unwrap();
    let batch = reader.next(&start).await.unwrap();
    let found: Vec<_> = batch.deposits.iter().map(|deposit| (deposit.index.0, deposit.amount.0)).collect();
    assert_eq!(found, [(1, 100), (7, 200)]);
    assert_eq!(batch.cursor.last_index, TransactionIndex(7));
}
