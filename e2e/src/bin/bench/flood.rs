//! One address that sends nothing of worth as fast as it can, beside clients that pay: they must keep their throughput.

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

/// Another one than the payers'.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// Each on a connection of its own.
const STREAMS: usize = 32;
/// Different ones, so that none is known from before.
pub const FORGED: usize = 8_192;

/// What a flood does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Flood {
    /// The closed loop's without the flood.
    pub peak: Peak,
    /// What the payers still settle, as a share of the peak.
    pub ratio: f64,
    /// The same for each second of the node's processor time.
    pub ratio_by_processor_time: f64,
    pub report: Report,
}

/// The closed loop `base` once more, with the flood beside it.
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

/// A flood that goes on as long as this value lives.
pub struct Running {
    refused: Arc<AtomicU64>,
    _streams: JoinSet<()>,
}

impl Running {
    /// Sends `forged` to a shard, again and again, over all streams.
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

    /// How many were answered so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Whether the bench measures it: the system must let us have [`ADDRESS`].
pub fn is_wanted(arguments: &Arguments) -> bool {
    let wanted = arguments.wants(crate::arguments::Topic::Flood);
    let possible = std::net::TcpListener::bind((ADDRESS, 0)).is_ok();
    if wanted && !possible {
        eprintln!("NOT MEASURED: the flood, because {ADDRESS} is not an address of this machine");
    }
    wanted && possible
}
