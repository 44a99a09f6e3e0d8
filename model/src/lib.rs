//! Unlock and hand-over, explored state by state. docs/MODEL.md says what is found and how to run it.
//!
//! Read [`state`] first, then [`authority`], [`contract`], [`clock`] and [`handover`], which say who may do what, and
//! [`claims`]. [`rules`] has the names under which `--without` leaves a rule out.

pub mod authority;
pub mod check;
pub mod checkpoint;
pub mod claims;
pub mod clock;
pub mod contract;
pub mod handover;
pub mod merge;
pub mod mutants;
pub mod protocol;
pub mod retired;
pub mod rules;
pub mod setting;
pub mod state;
