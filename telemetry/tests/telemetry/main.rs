//! Spans on their way to a collector that takes them, one that is not there, and one that never answers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use fastpay_core::Digest;
use fastpay_telemetry::{Attribute, Export, Service, Side, Span, TraceSettings, Tracer, root_span_id, trace_id};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, async_trait};

/// However slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

#[async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn start(address: &str) -> (Tracer, Export) {
    let settings: TraceSettings = toml::from_str(&format!("endpoint = \"http://{address}\"\nratio = 1.0\n")).unwrap();
    let service = Service { name: "fastpay-test", instance: Some("one".into()) };
    Export::start(&settings, service).unwrap()
}

fn record(tracer: &Tracer, count: u64) {
    for number in 0..count {
        let span = Span::new("fastpay.order", Side::Server, SystemTime::UNIX_EPOCH).with(Attribute::Block(number));
        tracer.record(&Digest::repeat_byte(7), span);
    }
}

async fn wait_until_dropped(tracer: &Tracer, at_least: u64) {
    let dropped = async {
        while tracer.counts().unwrap().dropped_so_far() < at_least {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, dropped).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_arrive_with_who_says_them_and_the_last_ones_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let collector = Collector::default();
    let service = TraceServiceServer::new(collector.clone());
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));

    let (tracer, export) = start(&address);
    // More than go together.
    record(&tracer, 1_200);
    tracer.record_root(&Digest::repeat_byte(7), Span::new("fastpay.payment", Side::Inside, SystemTime::UNIX_EPOCH));
    drop(export);
    assert_eq!(tracer.counts().unwrap().exported_so_far(), 1_201);
    assert_eq!(tracer.counts().unwrap().dropped_so_far(), 0);
    // After its end nothing leaves, and that is counted.
    record(&tracer, 1);
    assert_eq!(tracer.counts().unwrap().dropped_so_far(), 1);

    let requests = std::mem::take(&mut *collector.0.lock().unwrap());
    let mut spans = Vec::new();
    for resource_spans in requests.into_iter().flat_map(|request| request.resource_spans) {
        let resource = format!("{:?}", resource_spans.resource.unwrap());
        for word in ["service.name", "fastpay-test", "service.instance.id", "one", "service.version", "telemetry.sdk"] {
            assert!(resource.contains(word), "{resource}");
        }
        spans.extend(resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans));
    }
    let digest = Digest::repeat_byte(7);
    assert_eq!(spans.len(), 1_201);
    assert!(spans.iter().all(|span| span.trace_id == trace_id(&digest).to_bytes()));
    let (roots, others): (Vec<_>, Vec<_>) = spans.into_iter().partition(|span| span.parent_span_id.is_empty());
    assert_eq!(roots.len(), 1);
    assert_eq!(roots[0].span_id, root_span_id(&digest).to_bytes());
    assert!(others.iter().all(|span| span.parent_span_id == root_span_id(&digest).to_bytes()));
    assert_eq!(others.iter().map(|span| span.span_id.clone()).collect::<std::collections::BTreeSet<_>>().len(), 1_200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_costs_the_spans_and_nothing_else() {
    // Nobody listens on port 1.
    let (tracer, export) = start("127.0.0.1:1");
    record(&tracer, 10);
    wait_until_dropped(&tracer, 10).await;
    assert_eq!(tracer.counts().unwrap().exported_so_far(), 0);
    drop(export);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_never_answers_holds_up_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            open.push(connection);
        }
    });
    let (tracer, export) = start(&address);
    // Far more than wait: each call comes back at once all the same.
    record(&tracer, 20_000);
    wait_until_dropped(&tracer, 10_000).await;
    // One batch is under way, or was given up; the others wait. The end comes nevertheless.
    drop(export);
    assert_eq!(tracer.counts().unwrap().exported_so_far(), 0);
}

#[tokio::test]
async fn https_is_spoken_where_it_is_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let settings: TraceSettings = toml::from_str(&format!("endpoint = \"https://{address}\"\nratio = 1.0\n")).unwrap();
    let (tracer, export) = Export::start(&settings, Service { name: "fastpay-test", instance: None }).unwrap();
    record(&tracer, 1);
    let (connection, _) = tokio::time::timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let mut first = [0; 2];
    tokio::time::timeout(PATIENCE, tokio::io::AsyncReadExt::read_exact(&mut { connection }, &mut first))
        .await
        .unwrap()
        .unwrap();
    // A TLS handshake, of TLS 1.
    assert_eq!(first, [22, 3]);
    drop(export);
}
