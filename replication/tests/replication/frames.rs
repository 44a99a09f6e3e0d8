//! What is no frame, and by which error it is refused.

use fastpay_replication::{
    Body, ChainEnd, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, FRAME_OVERHEAD_BYTES, Frame, FrameError, FrameKey, Kind,
    MachineId, Machines, Nonce, RECORDS_BYTES_MAX, Start,
};

use crate::fixture::{FOUNDER, SECOND, SECRET, chain, key, next, open, start};

#[test]
fn a_frame_comes_back_as_it_was_written() {
    for (_, frame) in chain() {
        let read = open(frame.bytes()).unwrap();
        assert_eq!(read, frame);
        assert_eq!(read.records().is_some(), *read.kind() == Kind::Records);
    }
    assert_eq!(chain()[1].1.records(), Some(&b"a frame of format 1"[..]));
}

#[test]
fn a_frame_with_any_bit_flipped_is_refused() {
    for (_, frame) in chain() {
        for bit in 0..frame.bytes().len() * 8 {
            let mut altered = frame.bytes().to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&altered).is_err(), "bit {bit} of {:?}", frame.kind());
        }
    }
}

#[test]
fn a_frame_of_any_other_length_is_refused() {
    for (_, frame) in chain() {
        let bytes = frame.bytes();
        for length in 0..bytes.len() {
            assert!(open(&bytes[..length]).is_err(), "{length} bytes");
            assert!(open(&bytes[length + 1..]).is_err(), "without the first {}", length + 1);
        }
        assert!(open(&[&bytes[..], &[0]].concat()).is_err());
        assert!(open(&[&bytes[..], &bytes[..]].concat()).is_err());
    }
}

#[test]
fn random_bytes_and_random_changes_are_refused_and_never_panic() {
    let seed = 1;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let frames = chain();
    for _ in 0..20_000 {
        let mut bytes = match random.bool() {
            true => frames[random.usize(..frames.len())].1.bytes().to_vec(),
            false => {
                let bytes = random.usize(..300);
                std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
            }
        };
        let original = bytes.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..=bytes.len());
            match random.u8(..3) {
                0 => bytes.insert(at, random.u8(..)),
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ if at < bytes.len() => bytes[at] = random.u8(..),
                _ => bytes.truncate(random.usize(..=bytes.len())),
            }
        }
        assert!(bytes == original || open(&bytes).is_err());
    }
}

#[test]
fn each_alteration_has_its_error() {
    let frame = &chain()[1].1;
    let with = |at: usize, byte: u8| {
        let mut bytes = frame.bytes().to_vec();
        bytes[at] = byte;
        open(&bytes).unwrap_err()
    };
    assert_eq!(open(&[]).unwrap_err(), FrameError::Size { bytes: 0 });
    let short = FRAME_OVERHEAD_BYTES - 1;
    assert_eq!(open(&frame.bytes()[..short]).unwrap_err(), FrameError::Size { bytes: short });
    let long = FRAME_BYTES_MAX + 1;
    assert_eq!(open(&vec![0; long]).unwrap_err(), FrameError::Size { bytes: long });
    assert_eq!(with(0, b'G'), FrameError::Magic);
    assert_eq!(with(4, 3), FrameError::Version(3));
    assert!(matches!(with(8, 20), FrameError::Length { body_bytes: 20, .. }));
    assert!(matches!(with(36, 0), FrameError::ForeignStart(_)));
    assert_eq!(with(7, 2), FrameError::Altered);
    assert_eq!(with(FRAME_HEADER_BYTES, 0), FrameError::Altered);
}

/// Frames that only a holder of the key can write.
#[test]
fn an_authentic_frame_that_is_malformed_is_refused() {
    for (_, frame) in chain() {
        for kind in 0..8 {
            let bytes = retagged(&frame, |bytes| bytes[6] = kind);
            match open(&bytes) {
                Ok(read) => assert!(kind < 5 && read.bytes()[..] == bytes, "{kind}"),
                Err(error) => assert_eq!(error, FrameError::Malformed, "{kind} of {:?}", frame.kind()),
            }
        }
    }
    let empty_records = retagged(&chain()[2].1, |bytes| bytes[6] = 1);
    assert_eq!(open(&empty_records).unwrap_err(), FrameError::Malformed);
    let twice_the_same_machine = retagged(&chain()[0].1, |bytes| {
        let at = bytes.windows(16).position(|window| window == SECOND.0).unwrap();
        bytes[at..at + 16].copy_from_slice(&FOUNDER.0);
    });
    assert_eq!(open(&twice_the_same_machine).unwrap_err(), FrameError::Malformed);
}

/// The frame with a change and the right tag. It derives the key as the crate does.
fn retagged(frame: &Frame, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = frame.bytes()[..frame.bytes().len() - 32].to_vec();
    change(&mut bytes);
    let material = [&SECRET[..], &start().id().0].concat();
    let key = blake3::derive_key("FastPay 2026-11 frames of a replicated journal", &material);
    let tag = *blake3::keyed_hash(&key, &bytes).as_bytes();
    [bytes, tag.to_vec()].concat()
}

#[test]
fn a_frame_of_another_start_or_another_authority_is_refused() {
    let frame = &chain()[1].1;
    let changes: [fn(&mut Start); 7] = [
        |start| start.authority.0[0] ^= 1,
        |start| start.shard.0 += 1,
        |start| start.position.0 += 1,
        |start| start.tail.0[0] ^= 1,
        |start| start.salt += 1,
        |start| start.machines = Machines::new([SECOND, FOUNDER, MachineId([3; 16])]).unwrap(),
        |start| start.nonce = Nonce([0; 16]),
    ];
    for change in changes {
        let mut other = start();
        change(&mut other);
        let opened = Frame::open(&FrameKey::derive(&SECRET, &other), frame.bytes().clone());
        assert_eq!(opened.unwrap_err(), FrameError::ForeignStart(start().id()));
    }
    let opened = Frame::open(&FrameKey::derive(&[8; 32], &start()), frame.bytes().clone());
    assert_eq!(opened.unwrap_err(), FrameError::Altered);
    assert!(!format!("{:?}", key()).contains("07"), "the key is not printed");
}

#[test]
fn the_largest_batch_fits_and_no_larger_one_is_written() {
    let end = ChainEnd::before_first(&start());
    let largest = next(&end, &Body::Records(vec![1; RECORDS_BYTES_MAX]));
    assert_eq!(largest.bytes().len(), FRAME_BYTES_MAX);
    assert_eq!(open(largest.bytes()).unwrap(), largest);
    for bytes in [0, RECORDS_BYTES_MAX + 1] {
        let written = std::panic::catch_unwind(|| next(&end, &Body::Records(vec![1; bytes])));
        assert!(written.is_err(), "{bytes} bytes");
    }
}

#[test]
fn three_machines_are_different() {
    let (a, b) = (MachineId([1; 16]), MachineId([2; 16]));
    for same in [[a, a, b], [a, b, a], [b, a, a]] {
        assert!(Machines::new(same).is_err());
    }
}
