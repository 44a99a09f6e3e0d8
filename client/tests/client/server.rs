//! A scripted server.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use fastpay_rpc::proto::shard_server::{Shard, ShardServer};
use fastpay_rpc::proto::{self, SubmitRequest, SubmitResponse};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

/// Its behaviour on a stream: reads requests from one side, and writes answers to the other.
pub type Behaviour =
    Arc<dyn Fn(Streaming<SubmitRequest>, mpsc::Sender<Result<SubmitResponse, Status>>) -> BoxFuture + Send + Sync>;
pub type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Its answer to every read of an account.
pub type Account = Arc<dyn Fn() -> Result<proto::AccountResponse, Status> + Send + Sync>;

/// Its answer to every request for certificates by name.
pub type Certificates =
    Arc<dyn Fn(proto::CertificatesRequest) -> Result<proto::CertificatesResponse, Status> + Send + Sync>;

/// Its answer to every request for a vote, when it gives one.
pub type Votes<T> = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<T, Status>> + Send>> + Send + Sync>;

/// The answers of a server to each kind of request.
#[derive(Clone)]
pub struct Scripted {
    pub behaviour: Behaviour,
    pub account: Account,
    pub certificates: Certificates,
    pub batch: Votes<proto::RedemptionBatchResponse>,
    pub unlock: Votes<proto::UnlockVoteResponse>,
    pub asset_asked: Arc<Mutex<Vec<u8>>>,
}

impl Default for Scripted {
    /// One that answers nothing.
    fn default() -> Self {
        Self {
            behaviour: behaviour(|_, _| std::future::ready(())),
            account: Arc::new(|| Err(Status::unimplemented("not here"))),
            certificates: Arc::new(|_| Err(Status::unimplemented("not here"))),
            batch: Arc::new(|| Box::pin(async { Err(Status::unimplemented("not here")) })),
            unlock: Arc::new(|| Box::pin(async { Err(Status::unimplemented("not here")) })),
            asset_asked: Arc::default(),
        }
    }
}

/// A server that ends with this value.
pub struct Server {
    pub address: SocketAddr,
    asset_asked: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn behaviour<F>(
    run: impl Fn(Streaming<SubmitRequest>, mpsc::Sender<Result<SubmitResponse, Status>>) -> F + Send + Sync + 'static,
) -> Behaviour
where
    F: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |requests, answers| Box::pin(run(requests, answers)))
}

impl Server {
    pub async fn start(behaviour: Behaviour) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), behaviour).await
    }

    pub async fn start_at(address: SocketAddr, behaviour: Behaviour) -> Self {
        Self::with(address, Scripted { behaviour, ..Scripted::default() }).await
    }

    /// One that answers reads of accounts, and no streams.
    pub async fn reading(account: Account) -> Self {
        Self::with("127.0.0.1:0".parse().unwrap(), Scripted { account, ..Scripted::default() }).await
    }

    /// One that answers requests for certificates by name, and nothing else.
    pub async fn showing(certificates: Certificates) -> Self {
        Self::with("127.0.0.1:0".parse().unwrap(), Scripted { certificates, ..Scripted::default() }).await
    }

    /// One that answers every request for a batch vote so, and nothing else.
    pub async fn voting(response: Option<proto::redemption_batch_response::Response>) -> Self {
        let answer = proto::RedemptionBatchResponse { response };
        let batch: Votes<_> = Arc::new(move || Box::pin(std::future::ready(Ok(answer.clone()))));
        Self::with("127.0.0.1:0".parse().unwrap(), Scripted { batch, ..Scripted::default() }).await
    }

    pub async fn with(address: SocketAddr, scripted: Scripted) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asset_asked = scripted.asset_asked.clone();
        let server = tonic::transport::Server::builder().add_service(ShardServer::new(scripted));
        // A test that wants its connections gone as well, as when a process ends, stops them itself.
        let task =
            tokio::spawn(async move { server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap() });
        Self { address, asset_asked, task }
    }

    /// The asset of the last read of an account or a status.
    pub fn asset_asked(&self) -> Vec<u8> {
        self.asset_asked.lock().unwrap().clone()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

#[tonic::async_trait]
impl Shard for Scripted {
    type SubmitStream = ReceiverStream<Result<SubmitResponse, Status>>;

    async fn submit(
        &self,
        requests: Request<Streaming<SubmitRequest>>,
    ) -> Result<Response<Self::SubmitStream>, Status> {
        let (answers, stream) = mpsc::channel(4_096);
        tokio::spawn((self.behaviour)(requests.into_inner(), answers));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn get_account(
        &self,
        request: Request<proto::AccountRequest>,
    ) -> Result<Response<proto::AccountResponse>, Status> {
        *self.asset_asked.lock().unwrap() = request.into_inner().asset.to_vec();
        (self.account)().map(Response::new)
    }

    async fn get_certificate(
        &self,
        _: Request<proto::CertificateRequest>,
    ) -> Result<Response<proto::Certificate>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn read_certificates(
        &self,
        request: Request<proto::CertificatesRequest>,
    ) -> Result<Response<proto::CertificatesResponse>, Status> {
        (self.certificates)(request.into_inner()).map(Response::new)
    }

    async fn list_received(
        &self,
        _: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::ReceivedPage>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn list_deposits(
        &self,
        _: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::DepositPage>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn list_redemptions(
        &self,
        _: Request<proto::PageRequest>,
    ) -> Result<Response<proto::CertificatePage>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn vote_redemption_batch(
        &self,
        _: Request<proto::RedemptionBatchRequest>,
    ) -> Result<Response<proto::RedemptionBatchResponse>, Status> {
        (self.batch)().await.map(Response::new)
    }

    async fn vote_unlock(
        &self,
        _: Request<proto::UnlockVoteRequest>,
    ) -> Result<Response<proto::UnlockVoteResponse>, Status> {
        (self.unlock)().await.map(Response::new)
    }

    async fn read_archived(&self, _: Request<proto::ArchivedRequest>) -> Result<Response<proto::ArchivedPage>, Status> {
        Err(Status::not_found("no archive here"))
    }

    async fn exchange_endpoints(
        &self,
        _: Request<proto::EndpointsRequest>,
    ) -> Result<Response<proto::EndpointsResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn read_closing(&self, _: Request<proto::ClosingRequest>) -> Result<Response<proto::ArchivePart>, Status> {
        Err(Status::not_found("no Closing here"))
    }

    async fn read_archive(&self, _: Request<proto::ArchiveRequest>) -> Result<Response<proto::ArchivePart>, Status> {
        Err(Status::not_found("no archive here"))
    }

    async fn list_confirmed(
        &self,
        _: Request<proto::ConfirmedRequest>,
    ) -> Result<Response<proto::ConfirmedPage>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn get_status(
        &self,
        request: Request<proto::StatusRequest>,
    ) -> Result<Response<proto::StatusResponse>, Status> {
        *self.asset_asked.lock().unwrap() = request.into_inner().asset.to_vec();
        Err(Status::unimplemented("not here"))
    }
}
