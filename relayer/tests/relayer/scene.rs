//! A committee of four whose keys the test holds, their redemption logs and votes served over gRPC, and a chain with
//! the contract.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use alloy::primitives::{Address, B256, Bytes, U256};
use alloy::sol_types::SolCall;
use fastpay_core::{
    AccountKey, Amount, Asset, AuthorityKeys, Certificate, Committee, Domain, Epoch, Payment, Redemption,
    SequenceNumber, Transfer, TransferOrder,
};
use fastpay_ethereum::{Call, Finality, IFastPay, Primary, PrimaryConfig, SenderConfig};
use fastpay_program::Clock;
use fastpay_relayer::{
    Assets, BelowCost, BundleConfig, Config, Fees, KeyConfig, Rate, Relayer, RelayerError, StoreError, UnlockConfig,
    authorities,
};
use fastpay_testkit::TestCommittee;
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, GUARDIAN, Mining, SAFETY_PARAMETERS, Signers};
use fastpay_testkit::fake::{FakeAuthority, FakeCommittee};

/// The asset that was never deposited.
pub const UNFUNDED: Asset = Asset(Address::repeat_byte(0x77));
/// In wei.
pub const ETHER: u128 = 1_000_000_000_000_000_000;
pub const RECIPIENT: Address = Address::repeat_byte(0xcc);

pub struct Scene {
    pub anvil: Anvil,
    pub authorities: Vec<FakeAuthority>,
    pub config: Config,
    pub primary: Primary,
    committee: FakeCommittee,
    _folder: tempfile::TempDir,
}

/// Fills all places in a relayer's folder with copies of its first redemption, under other numbers.
pub fn fill_places(data_dir: &Path) {
    let path = data_dir.join("state.json");
    let mut state: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mut item = state["items"][0].clone();
    item.as_object_mut().unwrap().remove("parked");
    let numbered = |sequence: u64| {
        let mut item = item.clone();
        item["redemption"]["sequence"] = (100 + sequence).into();
        item
    };
    state["items"] = (0..2_000).map(numbered).collect();
    std::fs::write(&path, state.to_string()).unwrap();
}

impl Scene {
    /// As [`fill_places`] for the stopped relayer.
    pub fn fill_places(&self) {
        fill_places(&self.config.data_dir);
    }

    /// A contract that holds one ETH for accounts, final on the chain.
    pub async fn new(mining: Mining) -> Self {
        Self::of(mining, 1..=4).await
    }

    /// The same with a committee of the keys that these bytes make: on a chain of its own, at the same address.
    pub async fn of(mining: Mining, keys: RangeInclusive<u8>) -> Self {
        let mut keys: Vec<_> =
            keys.map(|byte| AuthorityKeys::from_secrets([byte; 32], [byte + 10; 32]).unwrap()).collect();
        keys.sort_by_key(|keys| keys.public().name);
        let committee = Committee::new(Epoch(0), keys.iter().map(AuthorityKeys::public).collect()).unwrap();
        let anvil = Anvil::start(mining);
        let contract = anvil.deploy(&committee).await;
        let deposit = Call::deposit_ether(contract, AccountKey::ed25519([9; 32]).account(), Amount(ETHER));
        let funder = anvil.rich_key(5);
        let hash = anvil.send_raw(&funder, 0, deposit.to.into(), U256::from(ETHER), deposit.data).await;
        anvil.mined_receipt(hash).await;
        anvil.mine(2).await;

        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::new(CHAIN_ID, contract);
        let committee = FakeCommittee::start_with(TestCommittee { domain, committee, keys }).await;
        let file = folder.path().join("endpoints.json");
        std::fs::write(&file, serde_json::to_string(&committee.endpoints).unwrap()).unwrap();

        let primary = PrimaryConfig { finality: Finality::Finalized, ..anvil.config(contract) };
        let config = Config { endpoints: file, ..config(folder.path(), primary.clone()) };
        let primary = Primary::connect(primary).await.unwrap();
        let authorities = committee.authorities.clone();
        Self { anvil, authorities, config, primary, committee, _folder: folder }
    }

    /// A relayer on the scene's data folder, as if just started.
    pub async fn relayer(&self) -> Relayer {
        let mut tries = 0;
        loop {
            let opened = Relayer::open(self.config.clone(), self.anvil.rich_key(0)).await;
            if let Some(relayer) = unless_in_use(opened, &mut tries) {
                return relayer;
            }
        }
    }

    /// The same, by a clock at which it is this time now, in milliseconds since 1970.
    pub fn relayer_at(&self, now_ms: u64) -> Relayer {
        let mut tries = 0;
        loop {
            let authorities = authorities(&self.config.endpoints).unwrap();
            let (config, key, primary) = (self.config.clone(), self.anvil.rich_key(0), self.primary.clone());
            let opened = Relayer::over(config, key, primary, authorities, Clock::at(now_ms));
            if let Some(relayer) = unless_in_use(opened, &mut tries) {
                return relayer;
            }
        }
    }

    pub fn redemption(&self, sequence: u64, fee: u128) -> Redemption {
        Redemption {
            sender: AccountKey::ed25519([9; 32]).account(),
            recipient: RECIPIENT,
            asset: Asset::ETHER,
            amount: Amount(100),
            fee: Amount(fee),
            sequence: SequenceNumber(sequence),
            memo: Default::default(),
        }
    }

    /// A valid certificate, whatever it says.
    pub fn certify(&self, transfer: Transfer) -> Certificate {
        self.certificate_of(&AccountKey::ed25519([9; 32]), transfer)
    }

    fn certificate_of(&self, owner: &AccountKey, transfer: Transfer) -> Certificate {
        let committee = self.committee.newest();
        committee.certificate(&owner.order(&committee.domain, transfer))
    }

    /// A valid certificate of an order.
    pub fn certify_order(&self, order: &TransferOrder) -> Certificate {
        self.committee.newest().certificate(order)
    }

    /// A valid certificate of a redemption by the owner with this secret, who is nobody that deposited.
    pub fn certify_of(&self, owner: &AccountKey, redemption: Redemption) -> Certificate {
        let redemption = Redemption { sender: owner.account(), ..redemption };
        self.certificate_of(owner, redemption.into())
    }

    /// Publishes a certificate at every authority.
    pub fn show(&self, certificate: &Certificate) {
        self.authorities.iter().for_each(|authority| authority.publish(certificate));
    }

    /// Puts code at an address.
    pub async fn set_code(&self, at: Address, code: &str) {
        let _: serde_json::Value = self.anvil.request("anvil_setCode", serde_json::json!([at, code])).await;
    }

    /// Certifies and publishes redemptions of 100 wei with these sequence numbers, at every authority.
    pub fn publish(&self, sequences: impl IntoIterator<Item = u64>) {
        for sequence in sequences {
            let certificate = self.certify(Transfer::Redemption(self.redemption(sequence, 1)));
            self.authorities.iter().for_each(|authority| authority.publish(&certificate));
        }
    }

    /// The same with what each is worth and pays, in wei.
    pub fn publish_worth(&self, sequence: u64, amount: u128, fee: u128) {
        let redemption = Redemption { amount: Amount(amount), ..self.redemption(sequence, fee) };
        let certificate = self.certify(Transfer::Redemption(redemption));
        self.authorities.iter().for_each(|authority| authority.publish(&certificate));
    }

    /// Installs the next epoch, with the same authorities.
    pub async fn rotate(&self) {
        let now = self.committee.newest();
        let epoch = Epoch(now.committee.epoch().0 + 1);
        let committee = Committee::new(epoch, now.committee.members().to_vec()).unwrap();
        self.install(TestCommittee { committee, ..now }).await;
    }

    /// Installs the next epoch, in which all authorities have new keys.
    pub async fn rotate_keys(&self) {
        self.install(self.committee.newest().rotated()).await;
    }

    /// As `rotate_keys`, long ago: the contract takes no votes of the epoch before, and authorities take its certificates
    /// only with the votes of f + 1 of them.
    pub async fn retire_keys(&self) {
        self.install_at(self.committee.newest().rotated(), FakeAuthority::rotate_long_ago).await;
        self.pass(u64::from(SAFETY_PARAMETERS.votesValidity) + 3_600).await;
    }

    async fn install(&self, next: TestCommittee) {
        self.install_at(next, FakeAuthority::rotate).await;
    }

    async fn install_at(&self, next: TestCommittee, follow: impl Fn(&FakeAuthority)) {
        let now = self.committee.newest();
        self.anvil
            .rotate(
                self.primary.contract(),
                Signers { committee: &now.committee, keys: &now.keys },
                Signers { committee: &next.committee, keys: &next.keys },
            )
            .await;
        self.anvil.mine(2).await;
        self.committee.install(next);
        self.authorities.iter().for_each(follow);
    }

    /// The chain's clock goes on by so many seconds, in final blocks.
    pub async fn pass(&self, seconds: u64) {
        let _: serde_json::Value = self.anvil.request("evm_increaseTime", serde_json::json!([seconds])).await;
        self.anvil.mine(3).await;
    }

    /// The guardian pauses the contract.
    pub async fn pause(&self) {
        self.as_guardian(IFastPay::pauseCall {}.abi_encode().into()).await;
    }

    /// The guardian postpones what was queued with votes of epoch 0.
    pub async fn postpone(&self, seconds: u64) {
        let call = IFastPay::postponeCall { epoch: 0, extra: U256::from(seconds) };
        self.as_guardian(call.abi_encode().into()).await;
    }

    async fn as_guardian(&self, call: Bytes) {
        let gas = U256::from(ETHER);
        let _: serde_json::Value = self.anvil.request("anvil_setBalance", serde_json::json!([GUARDIAN, gas])).await;
        let _: serde_json::Value = self.anvil.request("anvil_impersonateAccount", serde_json::json!([GUARDIAN])).await;
        let transaction = serde_json::json!([{ "from": GUARDIAN, "to": self.primary.contract(), "data": call }]);
        let hash: B256 = self.anvil.request("eth_sendTransaction", transaction).await;
        self.anvil.mined_receipt(hash).await;
    }

    pub fn payment(&self) -> Transfer {
        let Redemption { sender, asset, amount, sequence, memo, .. } = self.redemption(0, 0);
        Transfer::Payment(Payment { sender, recipient: sender, asset, amount, sequence, memo })
    }

    /// The amount paid out by redemptions so far, in wei.
    pub async fn paid_out(&self) -> u64 {
        (U256::from(ETHER) - self.primary.total_balance(Asset::ETHER).await.unwrap()).to()
    }

    /// The number of transactions that the gas key has sent.
    pub async fn transactions(&self) -> u64 {
        let address = self.anvil.rich_key(0).address();
        let count: alloy::primitives::U64 =
            self.anvil.request("eth_getTransactionCount", serde_json::json!([address, "latest"])).await;
        count.to()
    }
}

/// ETH, and these tokens at the same rate.
pub fn serving(tokens: impl IntoIterator<Item = Asset>) -> Assets {
    tokens.into_iter().chain([Asset::ETHER]).map(|asset| (asset, Rate::ONE)).collect()
}

/// Of a relayer that works for nothing, at once, in this folder.
pub fn config(folder: &Path, primary: PrimaryConfig) -> Config {
    Config {
        endpoints: PathBuf::new(),
        data_dir: folder.join("data"),
        key: KeyConfig { file: PathBuf::new(), passphrase_file: None },
        sender: SenderConfig { stuck_after_ms: 60_000, ..SenderConfig::default() },
        bundle: BundleConfig { wait_ms_max: 0, below_cost: BelowCost::Pay, ..BundleConfig::default() },
        unlock: UnlockConfig::default(),
        assets: serving([UNFUNDED]),
        fees: Fees::default(),
        traces: None,
        poll_interval_ms: 20,
        metrics: None,
        http: None,
        primary,
    }
}

/// The lock of a relayer that is closed lasts as long as a program that another test is starting has not replaced its
/// copy of this process: it is tried again for five seconds.
fn unless_in_use(opened: Result<Relayer, RelayerError>, tries: &mut u32) -> Option<Relayer> {
    *tries += 1;
    match opened {
        Err(RelayerError::Store(StoreError::InUse(_))) if *tries < 500 => {
            sleep(Duration::from_millis(10));
            None
        }
        opened => Some(opened.unwrap()),
    }
}
