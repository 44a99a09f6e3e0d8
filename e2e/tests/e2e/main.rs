//! All parts together, as real processes: what users, operators and attackers can do to them from outside.
//!
//! | module | what it tests |
//! |---|---|
//! | `traces` | the traces of the payments of `lifecycle`, and a collector that is unreachable or hangs |
//! | `lifecycle` | deposit, pay, redeem with and without the relayer; the demo itself |
//! | `crashes` | a rolling upgrade, `kill -9` of all under load, votes that survive it, a frozen authority, one process
//! per data folder |
//! | `restored` | a data folder that is an older copy, or mixes two copies |
//! | `storm` | random kills of all programs, for a configurable time |
//! | `chain_faults` | reorganizations below and above the final block; Ethereum nodes that lie, omit and lag |
//! | `disk` | a full disk, without an archive and with one, whose disk is full, too |
//! | `pruning` | a month is pruned under load, each step killed once; a late member, an observer, a lost disk, other shards |
//! | `archive_reads` | what is pruned there, read over HTTP, by wallets, by the audit and by the SDK |
//! | `partition` | network partitions and packet loss |
//! | `peers` | garbage and silence |
//! | `primary` | an Ethereum node that is unreachable, or serves another chain |
//! | `rotation` | all authorities change their keys under load |
//! | `replace` | a new authority in the place of a lost one, and one more: both join and vote |
//! | `changing` | four members become seven and four again under load: a new one dies while it joins, one lies, one stalls
//! | `runbooks` | a member that lies, one stolen key, no guardian, an announcement that lapses |
//! | `members` | three new members of whom no endpoints file tells |
//! | `recovery` | a lost committee, rebuilt from what is left and adopted; wallets with certificates of it |
//! | `stolen` | keys of three of four members are stolen: their operators begin anew from what they executed |
//! | `followers` | the `fastpay` command and a running relayer during a rotation |
//! | `merchant` | a shop that is paid by links and notified by webhooks, also while it or the service is down |
//! | `migration` | a move to a new contract while the old one runs |
//! | `unlock` | an account with two orders with one number: voided by all, voided after the window, a hidden
//! certificate upheld |
//! | `relaying` | a relayer killed between storing and sending; a batch, the contract's queue, a pause |
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod absent;
mod archive_reads;
mod chain_faults;
mod changing;
mod crashes;
mod disk;
mod followers;
mod killed;
mod liar;
mod lifecycle;
mod members;
mod merchant;
mod merchant_scene;
mod migration;
mod partition;
mod peers;
mod primary;
mod proxy;
mod pruning;
mod recovery;
mod relaying;
mod replace;
mod restored;
mod rotation;
mod runbooks;
mod scene;
mod stolen;
mod storm;
mod traces;
mod traffic;
mod unlock;
