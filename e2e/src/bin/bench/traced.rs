//! The cost of traces for the node: the closed loop with a collector that accepts and discards every span.

use std::net::SocketAddr;

use fastpay_e2e::Failure;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, async_trait};

use crate::load::{self, Report, Scenario};
use crate::machine::Cores;
use crate::{meter, runtime};

/// The first and last runs have no collector, because the machine's speed drifts.
const RATIOS: [Option<f64>; 5] = [None, Some(0.01), None, Some(1.0), None];

/// The spans since the node's start, by its own counters.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Spans {
    pub exported: f64,
    pub dropped: f64,
}

/// Repeats the closed loop `base` with and without traces.
pub fn measure(base: &Scenario, cores: Cores) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for traces in RATIOS {
        let what = traces.map_or_else(|| "no traces".to_owned(), |ratio| format!("traces of {:.0} %", ratio * 1e2));
        let name = format!("{}, {what}", base.name);
        reports.push(load::measure(&Scenario { name, traces, ..base.clone() }, cores)?);
    }
    Ok(reports)
}

/// An OTLP receiver on its own thread, which runs as long as this value lives.
pub struct Collector {
    address: SocketAddr,
    _running: oneshot::Sender<()>,
}

struct Sink;

#[async_trait]
impl TraceService for Sink {
    async fn export(
        &self,
        _: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Starts it, not on the node's core if there are several.
    pub fn start(core: Option<usize>) -> Result<Self, Failure> {
        let (running, mut dropped) = oneshot::channel::<()>();
        let (send, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let served = meter::on_core(core, || {
                runtime()?.block_on(async {
                    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(Failure::wrong)?;
                    // Without a receiver there is nothing to serve.
                    let _ = send.send(listener.local_addr().map_err(Failure::wrong)?);
                    let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(Sink));
                    let incoming = TcpListenerStream::new(listener);
                    tokio::select! {
                        served = server.serve_with_incoming(incoming) => served.map_err(Failure::wrong),
                        _ = &mut dropped => Ok(()),
                    }
                })
            });
            if let Err(failure) = served {
                eprintln!("the collector of traces ended: {failure}");
            }
        });
        let address = address.recv().map_err(|_| Failure::Wrong("the collector of traces did not start".into()))?;
        Ok(Self { address, _running: running })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
