//! Brings redemption certificates to the Primary, for the fee that their senders offer. This is the way to a contract:
//!
//! ```text
//!  authorities' redemption logs ─► RedemptionLogs ─► verify, minimum fee, on-chain check ─► waiting redemptions ─► policy: now? how?
//!                                                                                            │
//!                            the committee's votes for them together, or their certificates ◄┘
//!                                                  ▼
//!   paid ◄─ final ◄─ status, replace, send again ◄─ broadcast ◄─ State on disk ◄─ simulated
//!            └► in the contract's queue ─► executed when due, in the same way
//!
//!  requests to unlock accounts: the contract's, and owners' own ─► the authorities' votes ─► requested, upheld, voided
//! ```
//! Modules in reading order: `config` and `assets` (what is served), `key`, `pending` (one redemption), `store` (what
//! survives a restart) and `deployment` (its contract), `primary` (what is needed of a Primary), `redemption_logs` (reading
//! the authorities), `ingest` (from logs to pending redemptions) and `outcomes` (what becomes of them). On a ledger:
//! `on_ledger`. On Ethereum: `ethereum`, `node_agreement` (of the nodes), `gas` and `policy` (when to submit what:
//! pure), `means` (the budget for gas), `votes` (of the committee for many together), `bundle` (what succeeds
//! together), `submit`, `queue` and `follow`, `unlocks` and `unlock` (stuck accounts: state, work), `relayer` (the
//! loop), `quote` and `wallets` (their port), `gas_balance`, `status`, `metrics` and `traces` (for the operator).
//!
//! Invariants: nothing is sent that is not on disk. A redemption is removed only when the Ethereum nodes agree that it
//! is paid in a final block, or the ledger proves it, when it is not worth its gas by the operator's rules, or when it failed in a transaction
//! of its own (its owner can always redeem it alone). No redemption can delay others: a transaction has gas for
//! whatever its payees do, and the redemptions of one that no node accepts are submitted singly. The relayer holds a
//! gas key, or that of a reserve, and nothing else.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod assets;
mod bundle;
mod config;
mod deployment;
mod ethereum;
mod follow;
mod gas;
mod gas_balance;
mod ingest;
mod key;
mod means;
mod members;
mod metrics;
mod node_agreement;
mod on_ledger;
mod outcomes;
mod payees;
mod pending;
mod policy;
mod primary;
mod queue;
mod quote;
mod redemption_logs;
mod relayer;
mod status;
mod store;
mod submit;
mod traces;
mod unlock;
mod unlocks;
mod votes;
mod wallets;

pub use assets::{Assets, Fees, Rate};
pub use config::{
    BundleConfig, Config, ConfigError, KeyConfig, LedgerSettings, Overrides, PrimarySection, UnlockConfig,
};
pub use ethereum::Ethereum;
pub use gas::{Firsts, Plan};
pub use gas_balance::{Funds, GasBalance};
pub use key::{create_key, read_key};
pub use metrics::{Metrics, Tick, serve as serve_metrics};
pub use on_ledger::OnLedger;
pub use pending::{Parked, PendingRedemption, RedemptionId};
pub use policy::{BelowCost, Decision, Reason};
pub use primary::{PrimarySide, Worth};
pub use quote::{Quote, QuoteReader};
pub use relayer::{Relayer, RelayerError, authorities};
pub use status::{status_json, status_text};
pub use store::{Bundle, Left, State, StoreError, Totals};
pub use unlock::{Refusal, RefusalCode, Taken, UnlockDesk};
pub use unlocks::{OpenUnlock, UnlockStep, UnlockStepKind, Unlocks};
pub use wallets::serve as serve_wallets;
