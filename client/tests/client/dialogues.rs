//! The conversations of `vectors/conversations.json` that need requests: settling a certificate, with the certificates
//! that an authority lacks, and votes of the current committee on a redemption and on a number to unlock.
//!
//! The real client speaks to servers that answer when it is their turn. The SDK's tests play the same file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{
    AuthorityClient, CertificateSource, ClientOptions, CommitteeClient, Network, PeerFailure, Progress, QuorumError,
    QuorumOptions, ShardClient,
};
use fastpay_core::{
    AccountId, AuthorityName, Certificate, Committees, Epoch, Payment, PrimaryAddress, Redemption, SequenceNumber,
    Transfer, UnlockVote, VerifiedCertificate, sign_batch_vote,
};
use fastpay_rpc::proto::submit_request::Request;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::proto::{self, Confirmed, SubmitResponse};
use fastpay_rpc::{BatchAnswer, Refusal, UnlockAnswer};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption, test_domain};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tonic::Status;

use crate::conversations::vectors;
use crate::server::{Scripted, Server, behaviour};

const PATIENCE: Duration = Duration::from_secs(60);

/// What is certified, and by whom.
#[derive(Clone)]
struct Scene {
    committee: TestCommittee,
    /// The number that the conversation is about.
    number: u64,
    is_redemption: bool,
    is_unanimous: bool,
    /// The numbers of the certificates that the client has.
    stored: Vec<u64>,
}

impl Scene {
    fn new(said: &Value) -> Self {
        let size = said["authorities"].as_u64().unwrap_or(4) as usize;
        let stored = said["stored"].as_array().into_iter().flatten();
        Self {
            committee: TestCommittee::with(size, test_domain(), Epoch(said["epoch"].as_u64().unwrap_or(0))),
            number: said["number"].as_u64().unwrap_or(2),
            is_redemption: said["kind"] == "redemption",
            is_unanimous: said["unanimous"] == json!(true),
            stored: stored.map(|number| number.as_u64().unwrap()).collect(),
        }
    }

    fn owner() -> TestAccount {
        TestAccount::numbered(0)
    }

    fn redemption(&self) -> Redemption {
        redemption(Self::owner().id(), PrimaryAddress::repeat_byte(9), 30, self.number)
    }

    fn transfer(&self, number: u64) -> Transfer {
        let payment: Payment = payment(Self::owner().id(), TestAccount::numbered(1).id(), 30, number);
        if self.is_redemption && number == self.number { self.redemption().into() } else { payment.into() }
    }

    fn certificate(&self, number: u64) -> VerifiedCertificate {
        self.committee.certified(&Self::owner().sign(&test_domain(), self.transfer(number)))
    }

    fn epoch(&self, says: &Value) -> Epoch {
        says["epoch"].as_u64().map_or(self.committee.committee.epoch(), Epoch)
    }

    fn refusal(&self, says: &Value) -> Option<Refusal> {
        let expected = || SequenceNumber(says["expected"].as_u64().unwrap());
        Some(match says["refusal"].as_str()? {
            "busy" => Refusal::Busy(Duration::from_millis(1)),
            "stopping" => Refusal::Stopping,
            "invalid" => Refusal::Invalid("it says".into()),
            "frozen" => Refusal::Frozen(SequenceNumber(self.number)),
            "voided" => Refusal::Voided(SequenceNumber(self.number)),
            "not-requested" => Refusal::NotRequested(SequenceNumber(self.number)),
            "missing-certificate" => Refusal::MissingCertificate(expected()),
            other => panic!("{other}"),
        })
    }

    /// The answer to a certificate; none for silence.
    fn submitted(&self, says: &Value) -> Option<Response> {
        if let Some(refusal) = self.refusal(says) {
            return Some(Response::Refused((&refusal).into()));
        }
        if says["rubbish"] == json!(true) {
            return Some(Response::Refused(proto::Refused { code: 999, ..proto::Refused::default() }));
        }
        let epoch = (says["epoch"] != json!("none")).then(|| self.epoch(says).0);
        says["confirms"].as_u64().map(|next_sequence| Response::Confirmed(Confirmed { next_sequence, epoch }))
    }

    fn voter(says: &Value) -> usize {
        says["voter"].as_u64().unwrap_or_else(|| says["by"].as_u64().unwrap()) as usize
    }

    fn batch_vote(&self, says: &Value) -> Result<proto::RedemptionBatchResponse, Status> {
        use proto::redemption_batch_response::Response;
        let response = if let Some(refusal) = self.refusal(says) {
            Response::Refused((&refusal).into())
        } else if says["lacks"] == json!(true) {
            (&BatchAnswer::Missing(vec![0])).into()
        } else {
            let mut signed = match says["vote"].as_str() {
                Some("own" | "of") => self.redemption(),
                Some("forged") => redemption(Self::owner().id(), PrimaryAddress::repeat_byte(9), 31, self.number),
                _ => return Err(Status::unavailable("silence")),
            };
            signed.memo = self.redemption().memo;
            let keys = &self.committee.keys[Self::voter(says)];
            let vote = sign_batch_vote(keys, &self.committee.domain, self.committee.committee.epoch(), &[signed]);
            (&BatchAnswer::Vote { epoch: self.epoch(says), vote }).into()
        };
        Ok(proto::RedemptionBatchResponse { response: Some(response) })
    }

    fn unlock_vote(&self, says: &Value) -> Result<proto::UnlockVoteResponse, Status> {
        use proto::unlock_vote_response::Response;
        let shown = match says["vote"].as_str() {
            Some("certificate") => Some(self.certificate(self.number)),
            Some("certificate-of-another-number") => Some(self.certificate(self.number + 1)),
            Some("void") => None,
            _ => {
                let refusal = self.refusal(says).ok_or_else(|| Status::unavailable("silence"))?;
                let response = Some(Response::Refused((&refusal).into()));
                return Ok(proto::UnlockVoteResponse { response });
            }
        };
        let statement = match &shown {
            Some(certificate) => UnlockVote::Certificate(certificate.digest()),
            None => UnlockVote::Void { unanimous: says["unanimous"].as_bool().unwrap_or(self.is_unanimous) },
        };
        let (epoch, keys) = (self.epoch(says), &self.committee.keys[Self::voter(says)]);
        let (owner, number) = (Self::owner().id(), SequenceNumber(self.number));
        let vote = statement.sign(keys, &self.committee.domain, self.committee.committee.epoch(), owner, number);
        let answer = match shown {
            Some(certificate) => {
                let certificate = Arc::new(certificate.certificate().clone());
                UnlockAnswer::Certificate { certificate, epoch, vote }
            }
            None => UnlockAnswer::Void { epoch, vote },
        };
        Ok(proto::UnlockVoteResponse { response: Some((&answer).into()) })
    }
}

impl CertificateSource for Scene {
    fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<Certificate> {
        assert_eq!(account, Self::owner().id());
        self.stored.contains(&sequence.0).then(|| self.certificate(sequence.0).certificate().clone())
    }
}

/// A request that waits for its answer.
struct Question {
    by: usize,
    /// The number of the certificate that is to be confirmed; none for a vote.
    confirm: Option<u64>,
    answer: oneshot::Sender<Value>,
}

/// Forwards the requests to one authority, and returns its scripted answer.
#[derive(Clone)]
struct Ear(usize, mpsc::UnboundedSender<Question>);

impl Ear {
    async fn ask(&self, confirm: Option<u64>) -> Result<Value, Status> {
        let (answer, answered) = oneshot::channel();
        let ended = |()| Status::unavailable("the conversation is over");
        self.1.send(Question { by: self.0, confirm, answer }).map_err(|_| ended(()))?;
        answered.await.map_err(|_| ended(()))
    }

    async fn serve(self, scene: Arc<Scene>) -> Server {
        let (batch_ear, batch_scene) = (self.clone(), scene.clone());
        let (unlock_ear, unlock_scene) = (self.clone(), scene.clone());
        let scripted = Scripted {
            behaviour: behaviour(move |mut requests, answers| {
                let (ear, scene) = (self.clone(), scene.clone());
                async move {
                    while let Ok(Some(request)) = requests.message().await {
                        let Some(Request::Certificate(certificate)) = request.request else { panic!("{request:?}") };
                        let certificate = Certificate::try_from(certificate).unwrap();
                        let number = certificate.order.transfer.sequence().0;
                        let Ok(says) = ear.ask(Some(number)).await else { return };
                        let silence = Err(Status::unavailable("silence"));
                        let answer = scene.submitted(&says);
                        let answer = answer.map(|answer| SubmitResponse { id: request.id, response: Some(answer) });
                        let _ = answers.send(answer.map_or(silence, Ok)).await;
                    }
                }
            }),
            batch: Arc::new(move || {
                let (ear, scene) = (batch_ear.clone(), batch_scene.clone());
                Box::pin(async move { scene.batch_vote(&ear.ask(None).await?) })
            }),
            unlock: Arc::new(move || {
                let (ear, scene) = (unlock_ear.clone(), unlock_scene.clone());
                Box::pin(async move { scene.unlock_vote(&ear.ask(None).await?) })
            }),
            ..Scripted::default()
        };
        Server::with("127.0.0.1:0".parse().unwrap(), scripted).await
    }
}

struct Dialogue<'a> {
    said: &'a Value,
    scene: Arc<Scene>,
    client: CommitteeClient,
    _servers: Vec<Server>,
    questions: mpsc::UnboundedReceiver<Question>,
    waiting: BTreeMap<usize, Question>,
    heard: mpsc::UnboundedReceiver<(AuthorityName, &'static str)>,
}

impl<'a> Dialogue<'a> {
    async fn new(said: &'a Value) -> Self {
        let scene = Arc::new(Scene::new(said));
        let (asks, questions) = mpsc::unbounded_channel();
        let (says, heard) = mpsc::unbounded_channel();
        let options = ClientOptions { connect_timeout: PATIENCE, request_timeout: PATIENCE };
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        for (by, member) in scene.committee.committee.members().iter().enumerate() {
            let server = Ear(by, asks.clone()).serve(scene.clone()).await;
            let shard = ShardClient::new(&server.url(), None, options).unwrap();
            clients.push(AuthorityClient::of(member.name, vec![shard]).unwrap());
            servers.push(server);
        }
        let mut committees = None::<Committees>;
        for epoch in 0..=scene.committee.committee.epoch().0 {
            let committee = TestCommittee::with(clients.len(), test_domain(), Epoch(epoch)).committee;
            match &mut committees {
                Some(committees) => committees.install(committee).unwrap(),
                None => committees = Some(Committees::new(committee).unwrap()),
            }
        }
        let network = Network::of(test_domain(), committees.unwrap(), clients);
        let millisecond = Duration::from_millis(1);
        let waits = QuorumOptions { deadline: PATIENCE, funds_patience: PATIENCE, ..QuorumOptions::default() };
        let options = QuorumOptions { backoff_min: millisecond, backoff_max: millisecond, ..waits };
        let client = CommitteeClient::new(network, scene.clone(), options).with_listener(Arc::new(move |progress| {
            let heard = match progress {
                Progress::Confirmed { authority, .. } => (*authority, "confirmed"),
                // The vectors name all refusals alike.
                Progress::Waiting { authority, failure: PeerFailure::Voided } => (*authority, "refused"),
                Progress::Waiting { authority, failure } => (*authority, failure.kind()),
                _ => return,
            };
            let _ = says.send(heard);
        }));
        Self { said, scene, client, _servers: servers, questions, waiting: BTreeMap::new(), heard }
    }

    /// Plays the authorities' scripted answers, and returns the client's conclusion after the last one.
    async fn play(mut self, client: JoinHandle<Value>) -> Value {
        let lines = self.said["says"].as_array().unwrap();
        for (at, says) in lines.iter().enumerate() {
            let by = says["by"].as_u64().unwrap() as usize;
            while !self.waiting.contains_key(&by) {
                assert!(!client.is_finished(), "{}: it has concluded before {says}", self.said["name"]);
                let question = self.questions.recv().await.unwrap();
                self.receive(question, lines.get(..at).unwrap());
            }
            let question = self.waiting.remove(&by).unwrap();
            let confirm = says["asked"].as_u64().or_else(|| says["confirms"].as_u64().map(|_| self.scene.number));
            assert!(confirm.is_none() || question.confirm == confirm, "{says}: asked {:?}", question.confirm);
            question.answer.send(says.clone()).unwrap();
            if let Some(means) = says["means"].as_str() {
                assert_eq!(self.meaning(by).await, means, "{}: {says}", self.said["name"]);
            }
        }
        // Those that have said all their lines repeat the last one.
        let mut client = client;
        loop {
            tokio::select! {
                concluded = &mut client => return concluded.unwrap(),
                Some(question) = self.questions.recv() => self.receive(question, lines),
            }
        }
    }

    /// Keeps a request until it is its authority's turn. An authority whose vote has counted gives it again.
    fn receive(&mut self, question: Question, said: &[Value]) {
        let by = json!(question.by);
        let last = said.iter().rfind(|says| says["by"] == by);
        match last {
            Some(says)
                if question.confirm.is_none() && says["vote"].is_string() && !self.has_more(question.by, said) =>
            {
                question.answer.send(says.clone()).unwrap();
            }
            _ => drop(self.waiting.insert(question.by, question)),
        }
    }

    fn has_more(&self, by: usize, said: &[Value]) -> bool {
        let rest = self.said["says"].as_array().unwrap().get(said.len()..).unwrap_or_default();
        rest.iter().any(|says| says["by"] == json!(by))
    }

    /// What the client reports of an authority's answer, or that it asks it again at once.
    async fn meaning(&mut self, by: usize) -> &'static str {
        let name = self.scene.committee.committee.members()[by].name;
        loop {
            tokio::select! {
                biased;
                Some((of, kind)) = self.heard.recv() => if of == name { return kind },
                Some(question) = self.questions.recv() => {
                    let is_again = question.by == by;
                    self.waiting.insert(question.by, question);
                    if is_again {
                        return "again";
                    }
                }
            }
        }
    }
}

fn concluded(error: &QuorumError, scene: &Scene) -> Value {
    match error {
        QuorumError::NewEpoch { epoch, .. } => json!({"newEpoch": epoch.0}),
        error if error.is_unsettled(&scene.committee.committee) => json!({"unsettled": true}),
        QuorumError::NoQuorum { count, timed_out: false, .. } => json!({"noQuorum": count}),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_conversation_about_settling_ends_as_it_should() {
    let vectors = vectors();
    for said in vectors["settlements"].as_array().unwrap() {
        let dialogue = Dialogue::new(said).await;
        let (client, scene) = (dialogue.client.clone(), dialogue.scene.clone());
        let members: Vec<_> = scene.committee.committee.members().iter().map(|member| member.name).collect();
        let settling = tokio::spawn(async move {
            match client.settle(&scene.certificate(scene.number)).await {
                Ok(settled) => {
                    settled.rest.abort();
                    let index = |name| members.iter().position(|member| member == name).unwrap();
                    let mut confirmed: Vec<_> = settled.confirmed.iter().map(index).collect();
                    confirmed.sort_unstable();
                    json!({"settled": confirmed})
                }
                Err(error) => concluded(&error, &scene),
            }
        });
        assert_eq!(dialogue.play(settling).await, said["concludes"], "{}", said["name"]);
    }
}

#[tokio::test]
async fn every_conversation_about_a_redemption_of_an_ended_epoch_ends_as_it_should() {
    let vectors = vectors();
    for said in vectors["batchVotes"].as_array().unwrap() {
        let dialogue = Dialogue::new(said).await;
        let (client, scene) = (dialogue.client.clone(), dialogue.scene.clone());
        let voting = tokio::spawn(async move {
            match client.vote_again(&[scene.redemption()]).await {
                // The contract reads a byte with a member's place, and 65 of the signature.
                Ok((epoch, votes)) => {
                    let voters: Vec<_> = votes.chunks(66).map(|vote| vote[0]).collect();
                    json!({"epoch": epoch.0, "voters": voters})
                }
                Err(error) => concluded(&error, &scene),
            }
        });
        assert_eq!(dialogue.play(voting).await, said["concludes"], "{}", said["name"]);
    }
}

#[tokio::test]
async fn every_conversation_about_unlocking_ends_as_it_should() {
    let vectors = vectors();
    for said in vectors["unlockVotes"].as_array().unwrap() {
        let dialogue = Dialogue::new(said).await;
        let (client, scene) = (dialogue.client.clone(), dialogue.scene.clone());
        let members: Vec<_> = scene.committee.committee.members().iter().map(|member| member.name).collect();
        let voting = tokio::spawn(async move {
            let number = (Scene::owner().id(), SequenceNumber(scene.number));
            let ballot = client.vote_unlock(number, scene.is_unanimous, PATIENCE).await;
            let (attesting, voiding) = ballot.votes();
            let decision = ballot.decision().map(|decision| match decision.vote {
                UnlockVote::Certificate(digest) => {
                    assert_eq!(digest, scene.certificate(scene.number).digest());
                    "uphold"
                }
                UnlockVote::Void { .. } => "void",
            });
            let index = |name| members.iter().position(|member| member == name).unwrap().to_string();
            let failures: BTreeMap<_, _> =
                ballot.failures().iter().map(|(name, failure)| (index(name), failure.kind())).collect();
            json!({"decision": decision, "attesting": attesting, "voiding": voiding, "failures": failures})
        });
        assert_eq!(dialogue.play(voting).await, said["concludes"], "{}", said["name"]);
    }
}
