//! What an operator runs beside the authority: `setup` makes a configuration and a data folder, `check` finds what stands in
//! the way of a start, `status` asks a running authority, `backup` copies a stopped one, and `committee` signs what the
//! contract's council counts.

pub mod backup;
pub mod check;
pub mod committee;
pub mod setup;
pub mod status;
