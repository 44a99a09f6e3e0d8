//! One address that sends worthless requests as fast as it can, while other clients pay and must keep their throughput.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fastpay_e2e::Failure;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_stream::StreamExt;

use crate::arguments::Arguments;
use crate::load::{self, Report, Scenario};
use crate::machine::Cores;
use crate::overload::Peak;
use crate::wire;

/// The flood's address, which differs from the payers'.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// The number of streams, each on its own connection.
const STREAMS: usize = 32;
/// The number of forged orders, all different, so that the node knows none of them from before.
pub const FORGED: usize = 8_192;

/// The effect of a flood.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Flood {
    /// The result of the closed loop without the flood.
    pub peak: Peak,
    /// The throughput that the payers keep, as a share of the peak.
    pub ratio: f64,
    /// The same share per second of the node's processor time.
    pub ratio_by_processor_time: f64,
    pub report: Report,
}

/// Runs the closed loop `base` once more, during a flood.
pub fn measure(base: &Scenario, cores: Cores) -> Result<Flood, Failure> {
    let name = format!("the same beside {STREAMS} streams of forged orders from another address");
    let report = load::measure(&Scenario { name, flood: true, ..base.clone() }, cores)?;
    Ok(Flood { report, ..Flood::default() })
}

impl Flood {
    /// Compares it with a peak.
    pub fn against(self, peak: Peak) -> Self {
        let (ratio, ratio_by_processor_time) = peak.shares(&self.report);
        Self { peak, ratio, ratio_by_processor_time, ..self }
    }
}

/// A flood that lasts as long as this value lives.
pub struct Running {
    refused: Arc<AtomicU64>,
    _streams: JoinSet<()>,
}

impl Running {
    /// Sends `forged` to a shard again and again over all streams.
    pub async fn start(address: &str, forged: &[Bytes]) -> Result<Self, Failure> {
        let refused = Arc::new(AtomicU64::new(0));
        let mut streams = JoinSet::new();
        for number in 0..STREAMS {
            let turn = forged.len() / STREAMS * number;
            let forged: Vec<Bytes> = forged.iter().cycle().skip(turn).take(forged.len()).cloned().collect();
            let endless = std::iter::repeat_with(move || forged.clone()).flatten();
            let mut answers = wire::connect(address, Some(ADDRESS), tokio_stream::iter(endless)).await?;
            let refused = refused.clone();
            streams.spawn(async move {
                while let Some(Ok(_)) = answers.next().await {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Ok(Self { refused, _streams: streams })
    }

    /// The number of answers so far, all of which should be refusals.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Whether the bench measures the flood: the system must let it use [`ADDRESS`].
pub fn is_wanted(arguments: &Arguments) -> bool {
    let wanted = arguments.wants(crate::arguments::Topic::Flood);
    let possible = std::net::TcpListener::bind((ADDRESS, 0)).is_ok();
    if wanted && !possible {
        eprintln!("NOT MEASURED: the flood, because {ADDRESS} is not an address of this machine");
    }
    wanted && possible
}
