//! A deterministic simulation: the production code of authorities (shards, commit stage, outboxes, checkpoints,
//! recovery, network service, stream of deposits) and of the wallet's client, in one thread and in simulated time.
//!
//! ```text
//!  seed ─► Plan ─► World ─┬─ Keeper: an honest authority on a disk that loses power ──┐
//!                         ├─ byzantine: authorities that lie      ├─ Link: encoded calls through the Weather
//!                         ├─ owner: correct clients, real quorums                     │
//!                         └─ adversary: clients that misbehave ───────────────────────┘
//!                         Oracle: checks every record on disk and every vote that leaves ─► Summary
//! ```
//!
//! The seed is the only source of randomness, time is tokio's paused clock, and everything runs in one thread, so the
//! same seed gives the same run, event by event. docs/RELIABILITY.md lists what is simulated and what is not.

mod adversary;
mod archiving;
mod byzantine;
mod chain;
mod changing;
mod checkpointing;
mod copying;
mod deceiving;
mod depositing;
mod dice;
mod disputed;
mod disputing;
mod errands;
mod explore;
mod handing_over;
mod handover_oracle;
mod lagging;
mod ledger;
mod link;
mod live_shard;
mod observer;
mod oracle;
mod owner;
mod plan;
mod process;
mod rebase_oracle;
mod rebasing;
mod relapsing;
mod relaying;
mod scenario;
mod storage;
mod straddling;
mod terms;
mod trace;
mod unlock_oracle;
mod weather;
mod world;

pub use explore::{Found, shrink};
pub use plan::{HandOver, Plan, Role};
pub use scenario::run;
pub use trace::Summary;
