//! An authority as a relayer sees it: a redemption log, votes for batches, certificates taken and given. Served over gRPC.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use fastpay_core::{
    AccountId, AuthorityKeys, Certificate, Domain, Epoch, Redemption, SequenceNumber, Transfer, sign_batch_vote,
};
use fastpay_rpc::Refusal;
use fastpay_rpc::proto::redemption_batch_response::Response as BatchResponse;
use fastpay_rpc::proto::submit_request::Request as Ask;
use fastpay_rpc::proto::submit_response::Response as Told;
use fastpay_rpc::proto::{self, shard_server};
use tonic::{Request, Response, Status};

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
struct Served {
    certificates: Vec<proto::Certificate>,
    away: bool,
    claimed: Option<u64>,
    endless: Option<proto::Certificate>,
    part: Part,
    confirmed: BTreeMap<(AccountId, u64), Redemption>,
    voter: Option<(AuthorityKeys, Domain, Epoch)>,
    ballots: usize,
}

impl Served {
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
pub struct Authority(Arc<Mutex<Served>>);

impl Authority {
    /// It signs with these keys, in epoch 0.
    pub fn votes_with(&self, keys: AuthorityKeys, domain: Domain) {
        self.0.lock().unwrap().voter = Some((keys, domain, Epoch(0)));
    }

    /// It signs in this epoch from now on.
    pub fn votes_in(&self, epoch: Epoch) {
        self.0.lock().unwrap().voter.as_mut().unwrap().2 = epoch;
    }

    pub fn publish(&self, certificate: &Certificate) {
        let mut served = self.0.lock().unwrap();
        served.certificates.push(certificate.into());
        served.confirm(certificate);
    }

    pub fn play(&self, part: Part) {
        self.0.lock().unwrap().part = part;
    }

    /// As if it had not heard of the certificate of this number.
    pub fn forget(&self, sequence: u64) {
        let mut served = self.0.lock().unwrap();
        served.confirmed.retain(|name, _| name.1 != sequence);
        served.certificates.retain(|certificate| {
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
        let mut served = self.0.lock().unwrap();
        (served.claimed, served.endless) = (Some(u64::MAX), Some(certificate.into()));
    }

    /// Claims a redemption log of this length.
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
        let served = self.0.lock().unwrap();
        if served.away {
            return Err(Status::unavailable("away"));
        }
        let request = request.into_inner();
        let start = usize::try_from(request.start).unwrap();
        let limit = request.limit as usize;
        let listed = served.certificates.iter().skip(start).take(limit).cloned();
        let certificates = match &served.endless {
            Some(certificate) => listed.chain(std::iter::repeat_n(certificate.clone(), 3)).collect(),
            None => listed.collect(),
        };
        let total = served.claimed.unwrap_or(served.certificates.len() as u64);
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
                    let mut served = authority.0.lock().unwrap();
                    if served.part == Part::Stubborn {
                        response = Told::Refused((&Refusal::Invalid("I will not".into())).into());
                    } else {
                        served.confirm(&certificate);
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
        let served = self.0.lock().unwrap();
        let is_asked = |certificate: &&proto::Certificate| {
            let transfer = Certificate::try_from((*certificate).clone()).unwrap().order.transfer;
            transfer.sequence().0 == request.sequence && transfer.sender().0.as_slice() == request.account.as_ref()
        };
        let found = served.certificates.iter().find(is_asked).cloned();
        found.map(Response::new).ok_or_else(|| Status::not_found("not here"))
    }
    async fn read_certificates(&self, _: Request<proto::CertificatesRequest>) -> Answer<proto::CertificatesResponse> {
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
        request: Request<proto::RedemptionBatchRequest>,
    ) -> Answer<proto::RedemptionBatchResponse> {
        let mut served = self.0.lock().unwrap();
        if served.away {
            return Err(Status::unavailable("away"));
        }
        let names: Vec<_> = request.into_inner().try_into().unwrap();
        Ok(Response::new(proto::RedemptionBatchResponse { response: Some(served.vote(&names)) }))
    }
    async fn get_status(&self, _: Request<proto::StatusRequest>) -> Answer<proto::StatusResponse> {
        Err(Status::unimplemented("not here"))
    }
}
