//! A committee of four whose keys the test holds, their feeds served over gRPC, and a chain with the
//! contract.
// Each test program uses a part of it.
#![allow(dead_code)]

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use alloy::primitives::{Address, U256};
use fastpay_core::{
    AccountKey, Amount, Asset, AuthorityKeys, Certificate, Committee, Domain, Epoch, Payment, Redemption,
    SequenceNumber, Transfer, sign_vote,
};
use fastpay_ethereum::testing::{Anvil, CHAIN_ID, Mining};
use fastpay_ethereum::{Call, Finality, Primary, PrimaryConfig, SenderConfig};
use fastpay_relayer::{BundleConfig, Config, KeyConfig, Relayer};
use fastpay_rpc::proto::{self, shard_server};
use tonic::{Request, Response, Status};

/// The asset that was never deposited.
pub const UNFUNDED: Asset = Asset(Address::repeat_byte(0x77));
pub const RECIPIENT: Address = Address::repeat_byte(0xcc);

#[derive(Default)]
struct Feed {
    certificates: Vec<proto::Certificate>,
    away: bool,
    claimed: Option<u64>,
    endless: Option<proto::Certificate>,
}

/// What one authority publishes; shared with its server.
#[derive(Clone, Default)]
pub struct Authority(Arc<Mutex<Feed>>);

impl Authority {
    pub fn publish(&self, certificate: &Certificate) {
        self.0.lock().unwrap().certificates.push(certificate.into());
    }

    pub fn clear(&self) {
        self.0.lock().unwrap().certificates.clear();
    }

    /// Goes on with this certificate for ever.
    pub fn repeat(&self, certificate: &Certificate) {
        let mut feed = self.0.lock().unwrap();
        (feed.claimed, feed.endless) = (Some(u64::MAX), Some(certificate.into()));
    }

    /// Claims a feed of this length.
    pub fn claim_total(&self, total: u64) {
        self.0.lock().unwrap().claimed = Some(total);
    }

    pub fn go_away(&self) {
        self.0.lock().unwrap().away = true;
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl shard_server::Shard for Authority {
    type SubmitStream = Pin<Box<dyn tokio_stream::Stream<Item = Result<proto::SubmitResponse, Status>> + Send>>;

    async fn list_redemptions(&self, request: Request<proto::PageRequest>) -> Answer<proto::CertificatePage> {
        let feed = self.0.lock().unwrap();
        if feed.away {
            return Err(Status::unavailable("away"));
        }
        let request = request.into_inner();
        let start = usize::try_from(request.start).unwrap();
        let limit = request.limit as usize;
        let listed = feed.certificates.iter().skip(start).take(limit).cloned();
        let certificates = match &feed.endless {
            Some(certificate) => listed.chain(std::iter::repeat_n(certificate.clone(), 3)).collect(),
            None => listed.collect(),
        };
        let total = feed.claimed.unwrap_or(feed.certificates.len() as u64);
        Ok(Response::new(proto::CertificatePage { certificates, total }))
    }

    async fn submit(&self, _: Request<tonic::Streaming<proto::SubmitRequest>>) -> Answer<Self::SubmitStream> {
        Err(Status::unimplemented("not here"))
    }
    async fn get_account(&self, _: Request<proto::AccountRequest>) -> Answer<proto::AccountResponse> {
        Err(Status::unimplemented("not here"))
    }
    async fn get_certificate(&self, _: Request<proto::CertificateRequest>) -> Answer<proto::Certificate> {
        Err(Status::unimplemented("not here"))
    }
    async fn list_received(&self, _: Request<proto::AccountPageRequest>) -> Answer<proto::ReceivedPage> {
        Err(Status::unimplemented("not here"))
    }
    async fn list_deposits(&self, _: Request<proto::AccountPageRequest>) -> Answer<proto::DepositPage> {
        Err(Status::unimplemented("not here"))
    }
    async fn vote_redemption_batch(
        &self,
        _: Request<proto::RedemptionBatchRequest>,
    ) -> Answer<proto::RedemptionBatchResponse> {
        Err(Status::unimplemented("not here"))
    }
    async fn get_status(&self, _: Request<proto::StatusRequest>) -> Answer<proto::StatusResponse> {
        Err(Status::unimplemented("not here"))
    }
}

pub struct Scene {
    pub anvil: Anvil,
    pub authorities: Vec<Authority>,
    pub config: Config,
    pub primary: Primary,
    keys: Vec<AuthorityKeys>,
    committee: Committee,
    domain: Domain,
    _folder: tempfile::TempDir,
}

impl Scene {
    /// A contract that holds 1,000 wei for accounts, final on the chain.
    pub async fn new(mining: Mining) -> Self {
        let mut keys: Vec<_> =
            (1..=4).map(|byte| AuthorityKeys::from_secrets([byte; 32], [byte + 10; 32]).unwrap()).collect();
        keys.sort_by_key(|keys| keys.public().name);
        let committee = Committee::new(Epoch(0), keys.iter().map(AuthorityKeys::public).collect()).unwrap();
        let anvil = Anvil::start(mining);
        let contract = anvil.deploy(&committee).await;
        let deposit = Call::deposit_ether(contract, AccountKey::ed25519([9; 32]).account(), Amount(1_000));
        let funder = anvil.rich_key(5);
        let hash = anvil.send_raw(&funder, 0, deposit.to.into(), U256::from(1_000), deposit.data).await;
        anvil.mined_receipt(hash).await;
        anvil.mine(2).await;

        let folder = tempfile::tempdir().unwrap();
        let authorities: Vec<_> = (0..4).map(|_| Authority::default()).collect();
        let mut endpoints = Vec::new();
        for (keys, authority) in keys.iter().zip(&authorities) {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            endpoints.push(serde_json::json!({ "name": keys.public().name, "shards": [address] }));
            let server = tonic::transport::Server::builder()
                .add_service(shard_server::ShardServer::new(authority.clone()))
                .serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener));
            tokio::spawn(server);
        }
        let file = folder.path().join("endpoints.json");
        std::fs::write(&file, serde_json::json!({ "authorities": endpoints }).to_string()).unwrap();

        let primary = PrimaryConfig { finality: Finality::Finalized, ..anvil.config(contract) };
        let config = Config {
            endpoints: file,
            data_dir: folder.path().join("data"),
            key: KeyConfig { file: PathBuf::new(), passphrase_file: None },
            sender: SenderConfig { stuck_after_ms: 60_000, ..SenderConfig::default() },
            bundle: BundleConfig { wait_ms_max: 0, ..BundleConfig::default() },
            minimum_fees: Default::default(),
            default_minimum_fee: Amount::ZERO,
            poll_interval_ms: 20,
            primary: primary.clone(),
        };
        let primary = Primary::connect(primary).await.unwrap();
        let domain = Domain::new(CHAIN_ID, contract);
        Self { anvil, authorities, config, primary, keys, committee, domain, _folder: folder }
    }

    /// A relayer on the scene's data folder, as if just started.
    pub async fn relayer(&self) -> Relayer {
        Relayer::open(self.config.clone(), self.anvil.rich_key(0)).await.unwrap()
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
        let order = AccountKey::ed25519([9; 32]).order(&self.domain, transfer).verify(&self.domain).unwrap();
        let vote = |keys| sign_vote(keys, &self.domain, Epoch(0), order.transfer(), order.digest());
        let verified = |keys| vote(keys).verify(&self.domain, &self.committee, &order).unwrap();
        let votes: Vec<_> = self.keys.iter().map(verified).collect();
        Certificate::from_votes(&order, &self.committee, &votes).unwrap().into_certificate()
    }

    /// Certifies and publishes redemptions of 100 wei with these sequence numbers, at every authority.
    pub fn publish(&self, sequences: impl IntoIterator<Item = u64>) {
        for sequence in sequences {
            let certificate = self.certify(Transfer::Redemption(self.redemption(sequence, 1)));
            self.authorities.iter().for_each(|authority| authority.publish(&certificate));
        }
    }

    pub fn payment(&self) -> Transfer {
        let Redemption { sender, asset, amount, sequence, memo, .. } = self.redemption(0, 0);
        Transfer::Payment(Payment { sender, recipient: sender, asset, amount, sequence, memo })
    }

    /// What redemptions have paid out so far, in wei.
    pub async fn paid_out(&self) -> u64 {
        1_000 - self.primary.total_balance(Asset::ETHER).await.unwrap().to::<u64>()
    }

    /// The number of transactions that the gas key has sent.
    pub async fn transactions(&self) -> u64 {
        let address = self.anvil.rich_key(0).address();
        let count: alloy::primitives::U64 =
            self.anvil.request("eth_getTransactionCount", serde_json::json!([address, "latest"])).await;
        count.to()
    }
}
