//! The simulated Ethereum: the real follower, sender and relayer run against it, it answers as a real node does, and
//! the same seed gives the same run.

mod differential;
mod reading;
mod refusing;
mod scene;
mod sending;
