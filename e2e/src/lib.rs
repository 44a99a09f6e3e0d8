//! Real processes on a real anvil: what the demo, the localnet, the bench and the end-to-end tests share.
//!
//! ```text
//!  Place (folder, programs) ─► Ports ─► Chain (anvil, deployment) ─► Authority × n ─► Relayer ─► Network
//!                                                                                      User ─┘ (the `fastpay` command)
//! ```
//! Everything is reached as a user reaches it: through command lines, ports and files. Nothing here looks into a
//! part's memory. Invariants: every process that is started ends with the value that stands for it; every wait has
//! a limit and says what was waited for, with the end of the process's log; no two networks share a port, not even
//! those of two test programs that run at once.

mod audit;
mod authority;
mod chain;
mod failure;
mod http;
mod namespace;
mod network;
mod payers;
mod place;
mod ports;
mod process;
mod relayer;
mod rotation;
mod user;

pub use audit::{AssetLine, audit, bring_all_up_to_date};
pub use authority::{Authority, Cell};
pub use chain::{CHAIN_ID, Chain, OUTFLOW_DELAY_S, RICH_KEYS, Token, VOTES_VALIDITY_S};
pub use failure::{Failure, wait_for, within};
pub use http::{http_get, http_post};
pub use namespace::{Namespace, Own};
pub use network::{Layout, Network, Primary};
pub use payers::{Payers, PaymentReport};
pub use place::{Place, program};
pub use ports::Ports;
pub use process::{Finished, Program, run};
pub use relayer::Relayer;
pub use rotation::Rotation;
pub use user::User;
