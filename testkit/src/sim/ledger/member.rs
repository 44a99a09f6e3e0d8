//! A member's gRPC service, and the way to it. Honest members may be behind or away; the one that lies withholds groups,
//! leaves them out, repeats, alters and exchanges them, hands over those of another ledger, and shows old states.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastpay_core::Amount;
use fastpay_ledger_client::Carrier;
use fastpay_ledger_client::api::proto::ledger_server::{Ledger as Service, LedgerServer};
use fastpay_ledger_client::api::proto::{
    DecisionsReply, DecisionsRequest, ReadReply, ReadRequest, RelayReply, RelayRequest, StatePart, StateRequest,
    StatusReply, StatusRequest, SubmitReply, SubmitRequest,
};
use fastpay_ledger_client::api::{receiver, state_key};
use fastpay_ledger_statement::{ClusterId, CompactDecision, EventKind, Message, ReadProof, Receiver, Request, Wire};
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, sleep};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service as _, StdError, http};
use tonic::{Response, Status};

use super::{COMMITTEE, Ledger};
use crate::sim::weather::Fate;
use crate::sim::world::World;

/// A member looks so often whether there is an answer or a group.
const LOOK: Duration = Duration::from_millis(200);
/// A request waits so long for its answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(25);
/// A lost message is noticed after so long, as by keep-alive.
const NOTICED_AFTER: Duration = Duration::from_secs(30);
/// A page has at most so many groups.
const PAGE_MAX: usize = 6;

/// A member of a cluster.
#[derive(Clone)]
pub struct Member {
    pub world: Arc<World>,
    pub cluster: ClusterId,
    pub at: usize,
}

impl Member {
    fn ledger(&self) -> &Ledger {
        self.world.chain.ledger().expect("the Primary is a ledger")
    }

    fn lies(&self) -> bool {
        self.ledger().cluster(self.cluster, |cluster| cluster.liar) == Some(self.at)
    }

    /// What a liar hands over in place of these groups.
    fn alter(&self, to: Receiver, from: u64, mut groups: Vec<CompactDecision>) -> Vec<Vec<u8>> {
        let dice = &self.world.dice;
        let mut cut = 0;
        match dice.below(8) {
            0 => groups.clear(),
            1 if groups.len() > 1 => drop(groups.remove(0)),
            2 => groups.extend(groups.first().cloned()),
            3 => groups.reverse(),
            4 => groups = self.ledger().foreign(to, from),
            5 => {
                if let Some(group) = groups.first_mut() {
                    raise(group);
                }
            }
            6 => cut = 1,
            _ => {}
        }
        let mut encoded: Vec<_> = groups.iter().map(Wire::encode).collect();
        if let Some(first) = encoded.first_mut() {
            first.truncate(first.len() - cut);
        }
        encoded
    }
}

/// Raises the amount of a deposit; where there is none, changes the time.
fn raise(decision: &mut CompactDecision) {
    for message in &mut decision.group.messages {
        if let Message::Event(event) = message
            && let EventKind::Funded(funding) = &mut event.kind
        {
            funding.amount = Amount(funding.amount.0 + 1_000);
            return;
        }
    }
    decision.header.time.0 += 1;
}

#[tonic::async_trait]
impl Service for Member {
    async fn submit(&self, request: tonic::Request<SubmitRequest>) -> Result<Response<SubmitReply>, Status> {
        let malformed = || Status::invalid_argument("malformed");
        let request = Request::decode(&request.into_inner().request).map_err(|_| malformed())?;
        let (digest, deployment) = (request.digest(), self.ledger().deployment());
        let request = request.verify(deployment).map_err(|_| malformed())?;
        if self.lies() && self.world.dice.chance(700) {
            return Err(Status::unavailable("withheld"));
        }
        let before = self.ledger().cluster(self.cluster, |cluster| {
            cluster.hear(request);
            cluster.answers.get(&digest).map_or(0, Vec::len)
        });
        let until = Instant::now() + ANSWERED_WITHIN;
        while Instant::now() < until {
            let answer = self.ledger().cluster(self.cluster, |cluster| {
                let answers = cluster.answers.get(&digest)?;
                let carried_out = answers.iter().find(|proof| proof.answer.result.is_ok());
                carried_out.or(answers.get(before)).map(Wire::encode)
            });
            if let Some(answer) = answer {
                return Ok(Response::new(SubmitReply { answer }));
            }
            sleep(LOOK).await;
        }
        Err(Status::deadline_exceeded("no answer yet"))
    }

    async fn relay(&self, _: tonic::Request<RelayRequest>) -> Result<Response<RelayReply>, Status> {
        Err(Status::unimplemented("members do that among themselves"))
    }

    async fn read(&self, request: tonic::Request<ReadRequest>) -> Result<Response<ReadReply>, Status> {
        let (key, lies) = (state_key(&request.into_inner().key)?, self.lies());
        let proof = self.ledger().cluster(self.cluster, |cluster| {
            let view = cluster.view(self.at);
            let shown =
                if lies && !view.is_empty() { view.get(self.world.dice.below(view.len())) } else { view.last() };
            let shown = shown.ok_or_else(|| Status::unavailable("nothing is decided yet"))?;
            let (header, certificate) = (shown.header, shown.certificate.clone());
            Ok::<_, Status>(ReadProof { header, certificate, proof: shown.state.prove(&key) })
        })?;
        Ok(Response::new(ReadReply { proof: proof.encode() }))
    }

    async fn decisions(&self, request: tonic::Request<DecisionsRequest>) -> Result<Response<DecisionsReply>, Status> {
        let DecisionsRequest { receiver: to, from, wait_ms } = request.into_inner();
        let to = receiver(&to)?;
        let until = Instant::now() + Duration::from_millis(wait_ms.into());
        loop {
            let mut groups = self.ledger().cluster(self.cluster, |cluster| cluster.groups(self.at, to, from));
            groups.truncate(1 + self.world.dice.below(PAGE_MAX));
            let decisions = match self.lies() {
                true => self.alter(to, from, groups),
                false => groups.iter().map(Wire::encode).collect(),
            };
            if !decisions.is_empty() || Instant::now() >= until {
                return Ok(Response::new(DecisionsReply { decisions }));
            }
            sleep(LOOK).await;
        }
    }

    async fn status(&self, _: tonic::Request<StatusRequest>) -> Result<Response<StatusReply>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    type StateStream = tokio_stream::Empty<Result<StatePart, Status>>;

    async fn state(&self, _: tonic::Request<StateRequest>) -> Result<Response<Self::StateStream>, Status> {
        Err(Status::unimplemented("the oracle reads states"))
    }
}

/// The way from a client to a member.
pub struct Link {
    pub member: Member,
    pub client: usize,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "c{}-m{}.{}", self.client, self.member.cluster, self.member.at)
    }
}

/// Waits until a message arrives.
async fn pass(member: &Member, client: usize) -> Result<(), Status> {
    let (world, at) = (&member.world, member.world.plan.authorities() + member.at);
    let fate = world.weather().fate(client, at, &world.dice);
    match fate {
        Fate::Lost => {
            sleep(NOTICED_AFTER).await;
            Err(Status::unavailable("the connection broke"))
        }
        Fate::Arrives(delay) | Fate::ArrivesTwice(delay, _) => {
            sleep(delay).await;
            Ok(())
        }
    }
}

impl Carrier for Link {
    fn carry(&self, call: http::Request<Body>) -> BoxFuture<http::Response<Body>, StdError> {
        let (member, client) = (self.member.clone(), self.client);
        Box::pin(async move {
            let (parts, body) = call.into_parts();
            let bytes: Bytes = body.collect().await?.to_bytes();
            pass(&member, client).await?;
            let call = http::Request::from_parts(parts, Body::new(Full::new(bytes)));
            let Ok(answer) = LedgerServer::new(member.clone()).call(call).await;
            let (parts, body) = answer.into_parts();
            let body = body.collect().await?;
            pass(&member, client).await?;
            Ok(http::Response::from_parts(parts, Body::new(body)))
        })
    }
}

/// The committee's groups.
pub fn of_committee() -> Receiver {
    Receiver::Committee(COMMITTEE)
}
