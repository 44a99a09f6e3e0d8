//! Traces of real payments, as a collector receives them: spans of wallet, authorities and relayer, which share only a
//! digest. And collectors that are unreachable, or accept connections and never answer.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fastpay_core::{AccountId, Digest, ShardLayout};
use fastpay_e2e::{Network, PATIENCE, http_get, wait_for};
use fastpay_telemetry::{root_span_id, trace_id};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Said;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, async_trait};

/// The attributes that a stage may have.
const ATTRIBUTES: [&str; 10] = [
    "error.type",
    "fastpay.authority",
    "fastpay.batch",
    "fastpay.block",
    "fastpay.digest",
    "fastpay.outcome",
    "fastpay.resumed",
    "fastpay.shard",
    "fastpay.to_shard",
    "fastpay.transaction",
];

/// Makes a program trace all payments, from its next start on.
pub fn trace_to(config: &Path, address: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).open(config).unwrap();
    writeln!(file, "\n[traces]\nendpoint = \"http://{address}\"\nratio = 1.0").unwrap();
}

/// A real OTLP receiver.
pub struct Collector {
    address: String,
    took: Took,
}

#[derive(Clone, Default)]
struct Took(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

#[async_trait]
impl TraceService for Took {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// A span and the program that sent it.
#[derive(Clone, Debug)]
struct Seen {
    service: String,
    instance: Option<String>,
    span: Span,
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let value = attributes.iter().find(|pair| pair.key == key)?.value.as_ref()?.value.as_ref()?;
    Some(match value {
        Said::StringValue(text) => text.clone(),
        Said::IntValue(number) => number.to_string(),
        Said::BoolValue(is) => is.to_string(),
        other => panic!("{key} is {other:?}"),
    })
}

impl Seen {
    fn value_of(&self, key: &str) -> Option<String> {
        text(&self.span.attributes, key)
    }

    fn is_failed(&self) -> bool {
        self.span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error)
    }

    /// Its beginning, its steps by name and its end, in order.
    fn steps(&self) -> Vec<&str> {
        let mut before = self.span.start_time_unix_nano;
        for event in &self.span.events {
            assert!(event.time_unix_nano >= before, "{self:?}");
            before = event.time_unix_nano;
        }
        assert!(self.span.end_time_unix_nano >= before, "{self:?}");
        self.span.events.iter().map(|event| event.name.as_str()).collect()
    }
}

impl Collector {
    pub async fn start(network: &mut Network) -> Self {
        let address = format!("127.0.0.1:{}", network.ports().next(1).unwrap());
        let listener = TcpListenerStream::new(TcpListener::bind(&address).await.unwrap());
        let took = Took::default();
        let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(took.clone()));
        tokio::spawn(server.serve_with_incoming(listener));
        Self { address, took }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Makes authorities and relayer trace to it, from their next start on.
    pub fn watch(&self, network: &Network) {
        let configs = network.authorities.iter().map(|authority| authority.config());
        for config in configs.chain(network.relayer.iter().map(|relayer| relayer.config())) {
            trace_to(config, &self.address);
        }
    }

    /// All spans of a payment so far.
    fn trace(&self, digest: &Digest) -> Vec<Seen> {
        let requests = self.took.0.lock().unwrap().clone();
        let mut trace = Vec::new();
        for from in requests.into_iter().flat_map(|request| request.resource_spans) {
            let resource = from.resource.unwrap().attributes;
            assert_eq!(text(&resource, "service.version").unwrap(), env!("CARGO_PKG_VERSION"));
            let service = text(&resource, "service.name").unwrap();
            let instance = text(&resource, "service.instance.id");
            for span in from.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                if span.trace_id == trace_id(digest).to_bytes() {
                    trace.push(Seen { service: service.clone(), instance: instance.clone(), span });
                }
            }
        }
        trace
    }

    /// The trace, once it has at least this many spans of each of these names, not counting refusals.
    async fn wait_for(&self, digest: &Digest, names: &[(&str, usize)]) -> Trace {
        wait_for(PATIENCE, async || {
            let trace = Trace(self.trace(digest));
            let count = |name| trace.named(name).filter(|seen| !seen.is_failed()).count();
            let missing = names.iter().find(|(name, expected)| count(name) < *expected);
            match missing {
                None => Ok(trace),
                Some((name, count)) => {
                    let found: Vec<_> = trace.0.iter().map(|seen| (&seen.service, &seen.span.name)).collect();
                    Err(format!("fewer than {count} of {name}: {found:?}"))
                }
            }
        })
        .await
        .unwrap()
    }

    /// Checks that the payment `paid` was traced from order to settled.
    pub async fn expect_payment(&self, network: &Network, paid: &Value, [sender, recipient]: [AccountId; 2]) {
        let digest: Digest = paid["digest"].as_str().unwrap().parse().unwrap();
        let quorum = network.committee().quorum();
        let layout = ShardLayout::new(2.try_into().unwrap());
        let crosses = layout.shard_of(&sender) != layout.shard_of(&recipient);
        let trace = self
            .wait_for(
                &digest,
                &[
                    ("fastpay.payment", 1),
                    ("fastpay.vote", quorum),
                    ("fastpay.confirmation", quorum),
                    ("fastpay.order", quorum),
                    ("fastpay.certificate", quorum),
                    ("fastpay.credit", if crosses { quorum } else { 0 }),
                ],
            )
            .await;
        trace.expect_whole(network, &digest, "fastpay.payment");
        assert_eq!(trace.named("fastpay.credit").count() > 0, crosses);
        for credit in trace.named("fastpay.credit") {
            assert_eq!(credit.value_of("fastpay.shard"), Some(layout.shard_of(&sender).0.to_string()));
            assert_eq!(credit.value_of("fastpay.to_shard"), Some(layout.shard_of(&recipient).0.to_string()));
        }
    }

    /// Checks that the redemption `redeemed` was traced from order to payout.
    pub async fn expect_redemption(&self, network: &Network, redeemed: &Value) {
        let digest: Digest = redeemed["digest"].as_str().unwrap().parse().unwrap();
        let quorum = network.committee().quorum();
        let stages = ["seen", "submitted", "included", "paid"].map(|stage| format!("fastpay.relay.{stage}"));
        let mut names = vec![("fastpay.redemption", 1), ("fastpay.order", quorum), ("fastpay.certificate", quorum)];
        names.extend(stages.iter().map(|stage| (stage.as_str(), 1)));
        let trace = self.wait_for(&digest, &names).await;
        trace.expect_whole(network, &digest, "fastpay.redemption");
        assert_eq!(trace.named("fastpay.credit").count(), 0);
        let stages = stages.map(|stage| trace.named(&stage).next().unwrap().clone());
        assert!(stages.is_sorted_by_key(|stage| stage.span.end_time_unix_nano), "{stages:?}");
        let relayer = network.relayer.as_ref().unwrap().address().to_string();
        for stage in &stages {
            assert_eq!((stage.service.as_str(), stage.instance.as_ref()), ("fastpay-relayer", Some(&relayer)));
        }
        let [_, submitted, included, paid] = &stages;
        let transaction = submitted.value_of("fastpay.transaction").unwrap();
        assert_eq!(included.value_of("fastpay.transaction").as_ref(), Some(&transaction));
        assert_eq!(paid.value_of("fastpay.outcome").unwrap(), "redeemed");
        let receipt: Value =
            network.chain().unwrap().request("eth_getTransactionReceipt", json!([transaction])).await.unwrap();
        let block = u64::from_str_radix(receipt["blockNumber"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        assert_eq!(included.value_of("fastpay.block").unwrap(), block.to_string());
    }

    /// Checks that no span contains payer, recipient, amount or memo.
    pub fn expect_nothing_private(&self, accounts: &[AccountId]) {
        let requests = self.took.0.lock().unwrap().clone();
        let spans = requests.iter().flat_map(|request| &request.resource_spans).flat_map(|from| &from.scope_spans);
        for span in spans.flat_map(|scope| &scope.spans) {
            let said = span.attributes.iter().chain(span.events.iter().flat_map(|event| &event.attributes));
            for attribute in said {
                assert!(ATTRIBUTES.contains(&attribute.key.as_str()), "{attribute:?}");
            }
        }
        let all = format!("{requests:?}").to_lowercase();
        let accounts = accounts.iter().flat_map(|account| {
            // The account as shown, in full, and as an address.
            let digits = alloy::primitives::hex::encode(account.0);
            [account.to_string().to_lowercase(), digits.clone(), digits[24..].to_owned()]
        });
        let words = ["lodging", "correct horse", "2500000000000000000", "1000000000000000000", "250000000000000000"];
        for private in accounts.chain(words.map(str::to_owned)) {
            assert!(!all.contains(&private), "{private} was sent");
        }
    }
}

struct Trace(Vec<Seen>);

impl Trace {
    fn named(&self, name: &str) -> impl Iterator<Item = &Seen> {
        self.0.iter().filter(move |seen| seen.span.name == name)
    }

    /// One root span of the wallet, and all others under it; a quorum of authorities sent its stages in order.
    fn expect_whole(&self, network: &Network, digest: &Digest, root: &str) {
        let root_id = root_span_id(digest).to_bytes();
        let (roots, others): (Vec<_>, Vec<_>) = self.0.iter().partition(|seen| seen.span.parent_span_id.is_empty());
        assert_eq!(roots.len(), 1, "{roots:?}");
        assert_eq!((roots[0].service.as_str(), roots[0].span.name.as_str()), ("fastpay-wallet", root));
        assert_eq!((roots[0].span.span_id.as_slice(), roots[0].instance.as_ref()), (root_id.as_slice(), None));
        assert_eq!(
            (roots[0].value_of("fastpay.resumed").unwrap().as_str(), roots[0].steps()),
            ("false", vec!["certified"])
        );
        for seen in &others {
            assert_eq!(seen.span.parent_span_id, root_id, "{seen:?}");
        }
        let ids: BTreeSet<_> = self.0.iter().map(|seen| seen.span.span_id.clone()).collect();
        assert_eq!(ids.len(), self.0.len(), "no id twice");
        for seen in &self.0 {
            assert_eq!(seen.value_of("fastpay.digest"), Some(digest.to_string()));
        }

        let members: BTreeSet<_> = network.authorities.iter().map(|each| each.member().name.to_string()).collect();
        for (name, outcome) in [("fastpay.order", "voted"), ("fastpay.certificate", "confirmed")] {
            let mut said = BTreeSet::new();
            for seen in self.named(name) {
                assert_eq!(seen.service, "fastpay-node");
                assert_eq!(seen.steps(), ["taken", "decided", "durable"]);
                assert!(seen.value_of("fastpay.batch").unwrap().parse::<u64>().unwrap() > 0);
                assert!(seen.value_of("fastpay.shard").is_some());
                // A lagging authority may not have the money yet.
                match (seen.value_of("fastpay.outcome").as_deref(), seen.is_failed()) {
                    (Some("refused"), true) => assert!(seen.value_of("error.type").is_some(), "{seen:?}"),
                    (found, failed) => {
                        assert_eq!((found, failed), (Some(outcome), false), "{seen:?}");
                        said.insert(seen.instance.clone().unwrap());
                    }
                }
            }
            assert!(said.is_subset(&members) && said.len() >= network.committee().quorum(), "{name}: {said:?}");
        }
        for (name, outcome) in [("fastpay.vote", "voted"), ("fastpay.confirmation", "confirmed")] {
            let all = || self.named(name);
            assert!(all().all(|seen| seen.service == "fastpay-wallet"));
            assert!(all().all(|seen| members.contains(&seen.value_of("fastpay.authority").unwrap())));
            // Requests beyond the quorum are cancelled.
            let good =
                all().filter(|seen| seen.value_of("fastpay.outcome").as_deref() == Some(outcome) && !seen.is_failed());
            assert!(good.count() >= network.committee().quorum(), "{name}: {:?}", all().collect::<Vec<_>>());
        }
    }
}

/// Accepts connections, and never answers.
pub struct Hanging {
    address: String,
    /// An address at which nobody listens.
    nowhere: String,
}

impl Hanging {
    pub async fn start(network: &mut Network) -> Self {
        let [address, nowhere] = [(); 2].map(|()| format!("127.0.0.1:{}", network.ports().next(1).unwrap()));
        let listener = TcpListener::bind(&address).await.unwrap();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                open.push(connection);
            }
        });
        Self { address, nowhere }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Half of the authorities trace to it, and half to an unused address.
    pub fn watch(&self, network: &mut Network) {
        for (authority, address) in network.authorities.iter().zip([&self.address, &self.nowhere].into_iter().cycle()) {
            trace_to(authority.config(), address);
        }
    }
}

/// Checks that the metrics of at least a quorum of authorities show dropped spans and no sent ones. A wallet need not
/// have asked all authorities.
pub async fn expect_dropped(network: &Network) {
    let urls: Vec<_> =
        network.authorities.iter().map(|authority| authority.endpoints().unwrap().http.clone().unwrap()).collect();
    wait_for(PATIENCE, async || {
        let mut dropping = 0;
        for url in &urls {
            let (_, metrics) = http_get(url, "/metrics").await.map_err(|error| error.to_string())?;
            let said = |name: &str| {
                let line = metrics.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
                line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
            };
            assert_eq!(said("fastpay_spans_exported_total"), 0);
            dropping += usize::from(said("fastpay_spans_dropped_total") > 0);
        }
        if dropping >= network.committee().quorum() { Ok(()) } else { Err(format!("{dropping} have dropped any")) }
    })
    .await
    .unwrap();
}
