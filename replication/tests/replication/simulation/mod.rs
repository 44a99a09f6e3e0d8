//! Three machines over a stream that misbehaves, from a seed. The production rules run as they are; the world drives
//! them, crashes them at each write, stops and wakes them, and asks the oracle after each answer.
//!
//! `REPLICATION_SEEDS=7..8 cargo test --workspace --test replication simulation` runs one seed.

mod machine;
mod oracle;
pub mod stream;
mod world;

use std::ops::Range;

use world::{Profile, World};

fn seeds(default: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("REPLICATION_SEEDS") else { return default };
    let (from, to) = text.split_once("..").unwrap();
    from.parse().unwrap()..to.parse().unwrap()
}

fn run(profile: Profile, default: Range<u64>) {
    for seed in seeds(default) {
        println!("seed {seed}: {profile:?}");
        let visible = World::new(seed, profile).run();
        println!("seed {seed}: {visible} frames were visible");
    }
}

/// Servers keep what they acknowledged. Machines and messages fail, and one machine may stay away.
#[test]
fn with_intact_servers_frames_become_visible_and_none_is_lost() {
    run(Profile::Intact, 0..200);
}

/// Servers have holes and altered frames among those that two machines hold, and purge.
#[test]
fn damaged_frames_are_read_from_the_other_machines() {
    run(Profile::Damaged, 0..60);
}

/// Servers forget the tail that they acknowledged, or all of it, or damage what nobody has
/// read. The shard may stop, and nothing is contradicted.
#[test]
fn servers_that_forget_stop_the_shard_and_contradict_nothing() {
    run(Profile::Forgetful, 0..60);
}
