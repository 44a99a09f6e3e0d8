//! A committee of four whose keys the test holds, their feeds and votes served over gRPC, and a chain with
//! the contract.
// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use alloy::primitives::{Address, B256, Bytes, U256};
use alloy::sol_types::SolCall;
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, AuthorityKeys, Certificate, Committee, Domain, Epoch, Payment, Redemption,
    SequenceNumber, Transfer, VerifiedContractVote, sign_batch_vote, sign_committee_vote, sign_vote,
};
use fastpay_ethereum::testing::{Anvil, CHAIN_ID, GUARDIAN, Mining};
use fastpay_ethereum::{Call, ContractAuthority, Finality, IFastPay, Primary, PrimaryConfig, SenderConfig};
use fastpay_relayer::{BundleConfig, Config, KeyConfig, Relayer};
use fastpay_rpc::Refusal;
use fastpay_rpc::proto::redemption_batch_response::Response as BatchResponse;
use fastpay_rpc::proto::submit_request::Request as Ask;
use fastpay_rpc::proto::submit_response::Response as Told;
use fastpay_rpc::proto::{self, shard_server};
use tonic::{Request, Response, Status};

/// The asset that was never deposited.
pub const UNFUNDED: Asset = Asset(Address::repeat_byte(0x77));
/// In wei.
pub const ETHER: u128 = 1_000_000_000_000_000_000;
pub const RECIPIENT: Address = Address::repeat_byte(0xcc);

/// How an authority votes for batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// For what it has confirmed.
    #[default]
    Honest,
    /// With a signature of something else.
    BadSignature,
    /// Says that it lacks what it was not asked for.
    WrongPositions,
    /// Says that it lacks the first item, whatever it confirms.
    AlwaysMissing,
    /// Takes no certificates.
    Stubborn,
}

#[derive(Default)]
struct Feed {
    certificates: Vec<proto::Certificate>,
    away: bool,
    claimed: Option<u64>,
    endless: Option<proto::Certificate>,
    part: Part,
    confirmed: BTreeMap<(AccountId, u64), Redemption>,
    voter: Option<(AuthorityKeys, Domain, Epoch)>,
    ballots: usize,
}

impl Feed {
    fn confirm(&mut self, certificate: &Certificate) {
        if let Transfer::Redemption(redemption) = &certificate.order.transfer {
            self.confirmed.insert((redemption.sender, redemption.sequence.0), redemption.clone());
        }
    }

    fn vote(&mut self, names: &[(AccountId, SequenceNumber)]) -> BatchResponse {
        self.ballots += 1;
        let missing = |positions: Vec<u32>| BatchResponse::Missing(proto::MissingRedemptions { positions });
        let position = |index: usize| u32::try_from(index).unwrap();
        let lacks = |index: &usize| !self.confirmed.contains_key(&(names[*index].0, names[*index].1.0));
        let lacking: Vec<u32> = (0..names.len()).filter(lacks).map(position).collect();
        match self.part {
            Part::WrongPositions => return missing(vec![position(names.len())]),
            Part::AlwaysMissing => return missing(vec![0]),
            _ if !lacking.is_empty() => return missing(lacking),
            _ => {}
        }
        let redemptions: Vec<_> =
            names.iter().map(|(sender, sequence)| self.confirmed[&(*sender, sequence.0)].clone()).collect();
        let (keys, domain, epoch) = self.voter.as_ref().unwrap();
        let mut vote = sign_batch_vote(keys, domain, *epoch, &redemptions);
        if self.part == Part::BadSignature {
            vote.signature.0[5] ^= 1;
        }
        BatchResponse::Vote((*epoch, &vote).into())
    }
}

/// What one authority publishes and votes for; shared with its server.
#[derive(Clone, Default)]
pub struct Authority(Arc<Mutex<Feed>>);

impl Authority {
    pub fn publish(&self, certificate: &Certificate) {
        let mut feed = self.0.lock().unwrap();
        feed.certificates.push(certificate.into());
        feed.confirm(certificate);
    }

    pub fn play(&self, part: Part) {
        self.0.lock().unwrap().part = part;
    }

    /// As if it had not heard of the certificate of this number.
    pub fn forget(&self, sequence: u64) {
        let mut feed = self.0.lock().unwrap();
        feed.confirmed.retain(|name, _| name.1 != sequence);
        feed.certificates.retain(|certificate| {
            let certificate = Certificate::try_from(certificate.clone()).unwrap();
            certificate.order.transfer.sequence() != SequenceNumber(sequence)
        });
    }

    pub fn has_confirmed(&self, sequence: u64) -> bool {
        self.0.lock().unwrap().confirmed.keys().any(|name| name.1 == sequence)
    }

    /// How often it was asked to vote.
    pub fn ballots(&self) -> usize {
        self.0.lock().unwrap().ballots
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

    async fn submit(&self, requests: Request<tonic::Streaming<proto::SubmitRequest>>) -> Answer<Self::SubmitStream> {
        let (mut requests, authority) = (requests.into_inner(), self.clone());
        let (answers, stream) = tokio::sync::mpsc::channel(8);
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                let Some(Ask::Certificate(certificate)) = request.request else { break };
                let certificate = Certificate::try_from(certificate).unwrap();
                let next_sequence = certificate.order.transfer.sequence().0 + 1;
                let mut response = Told::Confirmed(proto::Confirmed { next_sequence });
                {
                    let mut feed = authority.0.lock().unwrap();
                    if feed.part == Part::Stubborn {
                        response = Told::Refused((&Refusal::Invalid("I will not".into())).into());
                    } else {
                        feed.confirm(&certificate);
                    }
                }
                let _ = answers.send(Ok(proto::SubmitResponse { id: request.id, response: Some(response) })).await;
            }
        });
        Ok(Response::new(Box::pin(tokio_stream::wrappers::ReceiverStream::new(stream))))
    }
    async fn get_account(&self, _: Request<proto::AccountRequest>) -> Answer<proto::AccountResponse> {
        Err(Status::unimplemented("not here"))
    }
    async fn get_certificate(&self, request: Request<proto::CertificateRequest>) -> Answer<proto::Certificate> {
        let request = request.into_inner();
        let feed = self.0.lock().unwrap();
        let is_asked = |certificate: &&proto::Certificate| {
            let transfer = Certificate::try_from((*certificate).clone()).unwrap().order.transfer;
            transfer.sequence().0 == request.sequence && transfer.sender().0.as_slice() == request.account.as_ref()
        };
        let found = feed.certificates.iter().find(is_asked).cloned();
        found.map(Response::new).ok_or_else(|| Status::not_found("not here"))
    }
    async fn list_received(&self, _: Request<proto::AccountPageRequest>) -> Answer<proto::ReceivedPage> {
        Err(Status::unimplemented("not here"))
    }
    async fn list_deposits(&self, _: Request<proto::AccountPageRequest>) -> Answer<proto::DepositPage> {
        Err(Status::unimplemented("not here"))
    }
    async fn vote_redemption_batch(
        &self,
        request: Request<proto::RedemptionBatchRequest>,
    ) -> Answer<proto::RedemptionBatchResponse> {
        let mut feed = self.0.lock().unwrap();
        if feed.away {
            return Err(Status::unavailable("away"));
        }
        let names: Vec<_> = request.into_inner().try_into().unwrap();
        Ok(Response::new(proto::RedemptionBatchResponse { response: Some(feed.vote(&names)) }))
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
    /// A contract that holds one ETH for accounts, final on the chain.
    pub async fn new(mining: Mining) -> Self {
        let mut keys: Vec<_> =
            (1..=4).map(|byte| AuthorityKeys::from_secrets([byte; 32], [byte + 10; 32]).unwrap()).collect();
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
        for (keys, authority) in keys.iter().zip(&authorities) {
            authority.0.lock().unwrap().voter = Some((keys.clone(), domain, Epoch(0)));
        }
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
        let epoch = self.committee.epoch();
        let vote = |keys| sign_vote(keys, &self.domain, epoch, order.transfer(), order.digest());
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

    /// The same with what each is worth and pays, in wei.
    pub fn publish_worth(&self, sequence: u64, amount: u128, fee: u128) {
        let redemption = Redemption { amount: Amount(amount), ..self.redemption(sequence, fee) };
        let certificate = self.certify(Transfer::Redemption(redemption));
        self.authorities.iter().for_each(|authority| authority.publish(&certificate));
    }

    /// Installs the next epoch, with the same authorities.
    pub async fn rotate(&mut self) {
        let next = Committee::new(Epoch(self.committee.epoch().0 + 1), self.committee.members().to_vec()).unwrap();
        let digest = self.domain.committee_vote_digest(&next, Address::ZERO);
        let votes = self.keys.iter().map(|keys| {
            sign_committee_vote(keys, &self.domain, &next, Address::ZERO).verify(&self.committee, digest).unwrap()
        });
        let votes = VerifiedContractVote::quorum(&self.committee, digest, &votes.collect::<Vec<_>>()).unwrap();
        let authorities = next.members().iter().map(ContractAuthority::from).collect();
        let call = IFastPay::rotateCall { authorities, guardian: Address::ZERO, votes: votes.into() };
        let key = self.anvil.rich_key(4);
        let hash = self
            .anvil
            .send_raw(
                &key,
                self.committee.epoch().0,
                self.primary.contract().into(),
                U256::ZERO,
                call.abi_encode().into(),
            )
            .await;
        self.anvil.mined_receipt(hash).await;
        self.anvil.mine(2).await;
        for authority in &self.authorities {
            authority.0.lock().unwrap().voter.as_mut().unwrap().2 = next.epoch();
        }
        self.committee = next;
    }

    /// The chain's clock goes on by so many seconds, in final blocks.
    pub async fn pass(&self, seconds: u64) {
        let _: serde_json::Value = self.anvil.request("evm_increaseTime", serde_json::json!([seconds])).await;
        self.anvil.mine(3).await;
    }

    /// The guardian pauses the contract.
    pub async fn pause(&self) {
        let call = Bytes::from(IFastPay::pauseCall {}.abi_encode());
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

    /// What redemptions have paid out so far, in wei.
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
