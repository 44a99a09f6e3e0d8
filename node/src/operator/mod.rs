//! Commands for an authority's operator: `setup` makes a configuration and a data folder, `check` finds errors that
//! prevent a start, `status` asks a running authority, `backup` copies its data folder, `rebase` ends its journals at a
//! certified checkpoint, `recover` rebuilds a checkpoint after a committee was lost, `run` runs an authority that ends
//! its journals by itself, `committee` signs statements for the contract's council, `join` watches a new member, and
//! `leave` says when a former one may be stopped, and stops it (`stop`).

pub mod backup;
pub mod check;
pub mod committee;
pub mod join;
pub mod leave;
mod own_node;
pub mod rebase;
pub mod recover;
pub mod run;
pub mod setup;
pub mod status;
mod stop;
