//! Everything that FastPay's programs share, apart from traces (`fastpay-telemetry`): configuration files, answers and
//! logs, exit codes, signals, files that survive a crash and the disk below them, secret keys on disk, HTTP ports within
//! bounds, and how metrics are declared.
//!
//! Modules in reading order: `error_kind` (exit codes), `console`, `configuration`, `signals`, `files`, `lock`, `disk`,
//! `keystore`, `http`, `clock`, `metrics`. None depends on the protocols.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod clock;
pub mod configuration;
pub mod console;
pub mod disk;
mod error_kind;
pub mod files;
pub mod http;
pub mod keystore;
mod lock;
mod metrics;
mod signals;

pub use clock::Clock;
pub use error_kind::ErrorKind;
pub use lock::{LOCK_FILE, Lock, LockError};
pub use signals::{stop_signal, until_stopped};
