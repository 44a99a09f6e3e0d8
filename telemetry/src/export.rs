//! The thread that sends spans to the collector in batches and in bounded time, without delaying anybody else.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tonic::transport::ClientTlsConfig;

use crate::settings::TraceSettings;
use crate::tracer::{Counts, Tracer};

/// The maximum number of queued spans, about 1 kB each; further ones are dropped.
const SPANS_WAITING_MAX: usize = 4_096;
/// The maximum number of spans in one request.
const SPANS_PER_EXPORT_MAX: usize = 512;
/// How long the thread gathers spans before it sends a batch.
const GATHER: Duration = Duration::from_millis(200);
/// If the collector has not accepted a batch within this time, the batch is not sent again.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an ending program waits until the last spans are sent.
const FLUSH_PATIENCE: Duration = Duration::from_secs(2);

/// The program that reports spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The program's name.
    pub name: &'static str,
    /// The instance, if its identity is public.
    pub instance: Option<String>,
}

/// Why a program cannot start tracing. A collector that does not answer is no such error.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The OpenTelemetry library refuses its settings, some of which may come from its own environment variables.
    #[error("cannot send traces: {0}")]
    Exporter(#[from] ExporterBuildError),
    /// The system cannot start a thread.
    #[error("cannot start the thread for traces: {0}")]
    Thread(std::io::Error),
}

/// Sends the spans of its tracer until it is dropped, which waits a moment for the last spans to be sent.
#[derive(Debug)]
pub struct Export {
    stop: Option<oneshot::Sender<()>>,
    ended: Receiver<()>,
}

impl Export {
    /// Starts a program's tracer and the thread that sends its spans.
    ///
    /// # Errors
    /// If the settings are invalid, or the system cannot start a thread.
    pub fn start(settings: &TraceSettings, service: Service) -> Result<(Tracer, Self), TraceError> {
        let (queue, spans) = sync_channel(SPANS_WAITING_MAX);
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = sync_channel(1);
        let (begin, begun) = sync_channel(1);
        let counts = Arc::new(Counts::default());
        let tracer = Tracer::new(settings.ratio, queue, counts.clone());
        let settings = settings.clone();
        // The runtime lives and ends on that thread: this one may run another runtime, within which none may end.
        let run = move || match prepare(&settings, service) {
            Ok((runtime, exporter)) => {
                let _ = begin.send(Ok(()));
                runtime.block_on(Sending { exporter, spans, counts, failing: false }.run(stopped));
                let _ = end.send(());
            }
            Err(error) => drop(begin.send(Err(error))),
        };
        std::thread::Builder::new().name("traces".into()).spawn(run).map_err(TraceError::Thread)?;
        begun.recv().map_err(|_| TraceError::Thread(std::io::ErrorKind::BrokenPipe.into()))??;
        Ok((tracer, Self { stop: Some(stop), ended }))
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that is still sending ends with the process.
        let _ = self.ended.recv_timeout(FLUSH_PATIENCE);
    }
}

fn prepare(settings: &TraceSettings, service: Service) -> Result<(Runtime, SpanExporter), TraceError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(TraceError::Thread)?;
    // The exporter's connection needs this runtime.
    let inside = runtime.enter();
    let url = settings.endpoint.url();
    let mut builder = SpanExporter::builder().with_tonic().with_endpoint(url.as_str()).with_timeout(EXPORT_TIMEOUT);
    if url.scheme() == "https" {
        builder = builder.with_tls_config(ClientTlsConfig::new().with_native_roots());
    }
    let mut exporter = builder.build()?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let instance = service.instance.map(|instance| KeyValue::new("service.instance.id", instance));
    let attributes = std::iter::once(version).chain(instance);
    let resource = Resource::builder().with_service_name(service.name).with_attributes(attributes).build();
    exporter.set_resource(&resource);
    drop(inside);
    Ok((runtime, exporter))
}

struct Sending {
    exporter: SpanExporter,
    spans: Receiver<SpanData>,
    counts: Arc<Counts>,
    /// Whether the last batch failed, so that a failure is logged once and not for each batch.
    failing: bool,
}

impl Sending {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut stopping = false;
        loop {
            let batch: Vec<_> = self.spans.try_iter().take(SPANS_PER_EXPORT_MAX).collect();
            let is_full = batch.len() == SPANS_PER_EXPORT_MAX;
            if !batch.is_empty() {
                self.send(batch).await;
            }
            if is_full {
                continue;
            }
            if stopping {
                return;
            }
            // A span does not wake this thread: waking it would cost the recording thread more than the span itself.
            tokio::select! {
                _ = &mut stopped => stopping = true,
                () = tokio::time::sleep(GATHER) => {}
            }
        }
    }

    async fn send(&mut self, batch: Vec<SpanData>) {
        let spans = batch.len() as u64;
        let failure = match tokio::time::timeout(EXPORT_TIMEOUT, self.exporter.export(batch)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", EXPORT_TIMEOUT.as_secs())),
        };
        match &failure {
            None => self.counts.exported(spans),
            Some(_) => self.counts.dropped(spans),
        }
        match (&failure, self.failing) {
            (Some(error), false) => tracing::warn!(error, "the collector rejects traces; they are dropped"),
            (None, true) => tracing::info!("the collector accepts traces again"),
            _ => {}
        }
        self.failing = failure.is_some();
    }
}
