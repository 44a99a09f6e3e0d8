//! All targets without the engine: seeds, regressions, random changes of both, and what messages cost in memory.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};

use fastpay_core::{Certificate, TransferOrder};
use fastpay_fuzz::memory::peak;
use fastpay_fuzz::signed::SIGNED;
use fastpay_fuzz::{TARGETS, Target};
use fastpay_rpc::{proto, request_bytes_max};
use prost::Message;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Changed copies of each seed. `make fuzz` goes much further.
const CHANGES: usize = 200;

fn regressions(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// One or more of: a byte changed, a part left out, a part repeated, an end cut off.
fn change(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(1..4) {
        let from = random.random_range(0..=bytes.len());
        let to = random.random_range(from..=bytes.len().min(from + 40));
        match random.random_range(0..5) {
            0 | 1 if from < bytes.len() => bytes[from] = random.random(),
            2 => drop(bytes.drain(from..to)),
            3 => drop(bytes.splice(from..from, bytes[from..to].to_vec()).collect::<Vec<_>>()),
            _ => bytes.truncate(from.max(1)),
        }
    }
}

#[test]
fn what_was_found_is_found_no_more_and_little_changes_harm_nobody() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty());
        for (path, bytes) in regressions(&target) {
            println!("{}", path.display());
            (target.run)(&bytes);
        }
        for mut bytes in seeds {
            (target.run)(&bytes);
            for _ in 0..CHANGES {
                // A copy that grows apart from its seed, step by step.
                change(&mut bytes, &mut random);
                (target.run)(&bytes);
            }
        }
    }
}

#[test]
fn the_seeds_are_what_they_should_be() {
    // A target that decodes none of its seeds would find nothing.
    for certificate in &SIGNED.certificates {
        let wire = proto::Certificate::from(certificate).encode_to_vec();
        let read: Certificate = proto::Certificate::decode(wire.as_slice()).unwrap().try_into().unwrap();
        assert!(read.verify(&SIGNED.committee.domain, &SIGNED.committee.committee).is_ok());
    }
    let folder = tempfile::tempdir().unwrap();
    let seeds = fastpay_fuzz::configuration::seeds();
    let path = folder.path().join("file");
    let write = |seed: &[u8]| std::fs::write(&path, &seed[1..]).unwrap();
    for node in &seeds[..2] {
        write(node);
        fastpay_node::authority::config::Config::read(&path, Default::default()).unwrap();
    }
    write(&seeds[2]);
    fastpay_relayer::Config::read(&path, Default::default()).unwrap();
    for wallet in &seeds[3..5] {
        write(wallet);
        fastpay_wallet::folder::Config::read(&path).unwrap();
    }
    fastpay_fuzz::files::read_seeds(folder.path());
}

#[test]
#[should_panic(expected = "a forged order is valid")]
fn a_forged_order_would_be_noticed() {
    // Signed by its owner, but not one of those that the world of the fuzzer knows.
    let owner = fastpay_testkit::TestAccount::ed25519(0);
    let forged = owner.sign(&SIGNED.committee.domain, fastpay_testkit::payment(owner.id(), owner.id(), 1, 77));
    SIGNED.check_order(forged);
}

/// How many bytes a decoded message may take for each byte on the wire: the smallest parts are the dearest.
const BYTES_EACH_MAX: usize = 96;

#[test]
fn a_message_takes_memory_in_proportion_to_its_bytes() {
    let bytes_max = request_bytes_max(SIGNED.committee.committee.quorum());
    let fill = |part: &[u8]| part.repeat(bytes_max / part.len());
    // An empty vote is a field of no bytes; so is an empty name in a batch.
    let cases: [(&str, usize, &dyn Fn()); 3] = [
        ("a certificate of empty votes", bytes_max, &|| {
            let certificate = proto::Certificate::decode(fill(&[0x1a, 0]).as_slice()).unwrap();
            assert!(certificate.votes.len() > 1_000 && Certificate::try_from(certificate).is_err());
        }),
        ("a batch of empty names", bytes_max, &|| {
            let batch = proto::RedemptionBatchRequest::decode(fill(&[0x0a, 0]).as_slice()).unwrap();
            assert!(batch.redemptions.len() > 1_000 && Vec::<_>::try_from(batch).is_err());
        }),
        ("an order", 300, &|| {
            let wire = proto::TransferOrder::from(&SIGNED.orders[0]).encode_to_vec();
            let _: TransferOrder = proto::TransferOrder::decode(wire.as_slice()).unwrap().try_into().unwrap();
        }),
    ];
    for (what, bytes, decode) in cases {
        let ((), held) = peak(decode);
        println!("{what}: {bytes} bytes on the wire take {held} bytes, {} each", held / bytes);
        assert!(held <= bytes * BYTES_EACH_MAX, "{what}: {held} bytes for {bytes}");
    }
}
