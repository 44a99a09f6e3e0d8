//! All parts together, as real processes: what a user, an operator and an enemy can do to them from outside.
//!
//! | module | what it shows |
//! |---|---|
//! | `traces` | what `way` looks at in the traces of its payments, and a collector that is away or hangs |
//! | `way` | deposit, pay, redeem through the relayer and alone; the demo itself |
//! | `crashes` | the next release in place of one authority after the other, `kill -9` of all under load, votes that survive it, a frozen authority, one process per data folder |
//! | `restored` | a data folder that is an older copy, of one node or of two times |
//! | `storm` | everybody killed at random, for as long as one likes |
//! | `wire` | each bad order and certificate, over the wire, to a running node |
//! | `chain_faults` | blocks that are undone, below and above the finality rule; Ethereum nodes that lie, omit and lag |
//! | `gas` | a relayer whose transaction waits, is dropped, or loses its nonce; gas that is too dear; two relayers |
//! | `disk` | a disk that is full, really |
//! | `partition` | networks that are cut apart, and packets that are lost |
//! | `peers` | garbage, silence, messages too long, peers that never read |
//! | `setup` | configurations and keys that are wrong |
//! | `primary` | an Ethereum node that goes away, or serves another chain |
//! | `rotation` | all authorities change their keys while payments go on |
//! | `followers` | the wallet's command and a relayer that runs live through that |
//! | `merchant` | a shop that is paid by links and told by webhooks, also when it or the service is down |
//! | `migration` | everybody moves to a new contract while the old one runs |
//! | `unlock` | an account with two orders for one number: void by all, void after the window, a hidden certificate upheld |
//! | `relaying` | a relayer killed between write and submit; a batch, the contract's queue, a pause |
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod absent;
mod chain_faults;
mod crashes;
mod disk;
mod followers;
mod gas;
mod http_api;
mod lifecycle;
mod merchant;
mod merchant_scene;
mod migration;
mod partition;
mod peers;
mod primary;
mod proxy;
mod relaying;
mod restored;
mod rotation;
mod scene;
mod setup;
mod storm;
mod traces;
mod unlock;
mod wire;
