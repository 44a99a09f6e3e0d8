//! Real processes on a real anvil: the common parts of the demo, the localnet, the bench and the end-to-end tests.
//!
//! ```text
//!  Place (folder, programs) ─► Ports ─► Chain (anvil, deployment) ─► Authority × n ─► Relayer ─► Network
//!                                                                                      User ─┘ (the `fastpay` command)
//! ```
//! The programs are used as a user does: through command lines, ports and files, never through their memory.
//! Invariants: each process ends when its value is dropped; each wait has a limit, and its error names what was awaited
//! and has the end of the process's log; no two networks share a port, also across test programs that run at once.

mod audit;
mod authority;
mod chain;
mod failure;
mod http;
mod namespace;
mod network;
mod payers;
mod place;
mod process;
mod recovery;
mod relayer;
mod rotation;
mod user;

pub use audit::{AssetLine, audit, bring_all_up_to_date};
pub use authority::{Authority, Cell};
pub use chain::{CHAIN_ID, Chain, OUTFLOW_DELAY_S, RICH_KEYS, Token, VOTES_VALIDITY_S};
pub use failure::{Failure, PATIENCE, wait_for, within};
pub use fastpay_testkit::Ports;
pub use http::http_get;
pub use namespace::{Namespace, Own};
pub use network::{Layout, Network, Primary};
pub use payers::{Payers, PaymentReport};
pub use place::{Place, program};
pub use process::{Finished, Program, run};
pub use recovery::Sources;
pub use relayer::Relayer;
pub use rotation::{By, Rotation};
pub use user::User;
