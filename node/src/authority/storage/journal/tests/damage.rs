//! Files cut, altered, removed, renamed and mixed up.

use super::*;
use std::path::PathBuf;

/// A journal over several segments: after how many bytes of frames each batch ends.
struct Sample {
    disk: MemoryDisk,
    batches: Vec<Vec<Vec<u8>>>,
    ends: Vec<u64>,
}

impl Sample {
    fn new() -> Self {
        let disk = MemoryDisk::new();
        let mut journal = create(&disk);
        let mut batches = Vec::new();
        let mut ends = Vec::new();
        for number in 1..9 {
            commit(&mut journal, &payloads(number));
            batches.push(payloads(number));
            ends.push(journal.end().0);
        }
        let sample = Self { disk, batches, ends };
        assert!(sample.disk.paths().len() >= 3);
        sample
    }

    fn segments(&self) -> Vec<PathBuf> {
        self.disk.paths()
    }

    /// All records of batches that end at or before a position.
    fn records_until(&self, position: u64) -> Vec<Vec<u8>> {
        let ended = self.ends.iter().filter(|end| **end <= position).count();
        self.batches[..ended].concat()
    }

    fn last_batch_start(&self) -> u64 {
        self.ends[self.ends.len() - 2]
    }
}

fn start_of(path: &Path) -> u64 {
    path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

fn altered(disk: &MemoryDisk, path: &Path, alter: impl FnOnce(&mut Vec<u8>)) -> MemoryDisk {
    let disk = disk.copy();
    let mut bytes = disk.bytes(path);
    alter(&mut bytes);
    disk.put(path, bytes);
    disk
}

fn contents(disk: &MemoryDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = disk.paths().into_iter();
    paths.map(|path| (path.clone(), disk.bytes(&path))).collect()
}

/// Every prefix of every segment: a cut in the last one is a torn write, a cut anywhere else is
/// noticed.
#[test]
fn a_cut_at_every_byte_is_recovered_or_refused() {
    let sample = Sample::new();
    let segments = sample.segments();
    for path in &segments {
        let is_last = Some(path) == segments.last();
        for length in 0..sample.disk.bytes(path).len() {
            let disk = altered(&sample.disk, path, |bytes| bytes.truncate(length));
            let before = contents(&disk);
            let opened = open(&disk, START);
            if is_last && length >= SEGMENT_HEADER_BYTES {
                let position = start_of(path) + (length - SEGMENT_HEADER_BYTES) as u64;
                let mut journal = opened.unwrap();
                assert_eq!(all(&journal.reader()), sample.records_until(position));
                // The cut must not hide what is written next.
                commit(&mut journal, &[b"next".to_vec()]);
                let records = all(&open(&disk, START).unwrap().reader());
                assert_eq!(records.last().unwrap(), b"next");
                continue;
            }
            let error = opened.err().unwrap();
            assert!(matches!(error, JournalError::SegmentMissing { .. } | JournalError::Corrupt { .. }), "{error}");
            assert_eq!(contents(&disk), before, "a refusal changes nothing");
        }
    }
}

/// Every bit of every segment: only in the very last batch it can pass for a torn write.
#[test]
fn a_flip_of_every_bit_is_recovered_or_refused() {
    let sample = Sample::new();
    let segments = sample.segments();
    for path in &segments {
        for bit in 0..sample.disk.bytes(path).len() * 8 {
            let disk = altered(&sample.disk, path, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            let offset = bit / 8;
            let in_last_batch = Some(path) == segments.last()
                && offset >= SEGMENT_HEADER_BYTES
                && start_of(path) + (offset - SEGMENT_HEADER_BYTES) as u64 >= sample.last_batch_start();
            match open(&disk, START) {
                Ok(journal) => {
                    assert!(in_last_batch, "{} bit {bit}", path.display());
                    let expected = sample.records_until(sample.last_batch_start());
                    assert_eq!(all(&journal.reader()), expected);
                    assert!(journal.recovery().bytes_cut > 0);
                }
                Err(JournalError::Corrupt { position, .. }) => {
                    assert!(!in_last_batch);
                    let end = start_of(path) + offset as u64;
                    assert!(position.0 <= end);
                }
                Err(error) => panic!("{} bit {bit}: {error}", path.display()),
            }
        }
    }
}

/// As a write that reached the disk only in parts: zeros anywhere in the last batch.
#[test]
fn zeros_in_the_last_batch_are_cut_off() {
    let sample = Sample::new();
    let path = sample.segments().pop().unwrap();
    let length = sample.disk.bytes(&path).len();
    let from = SEGMENT_HEADER_BYTES + (sample.last_batch_start() - start_of(&path)) as usize;
    for zeros_from in from..length {
        for zeros_to in zeros_from + 1..=length {
            let disk = altered(&sample.disk, &path, |bytes| {
                bytes[zeros_from..zeros_to].fill(0);
            });
            if contents(&disk) == contents(&sample.disk) {
                continue;
            }
            let journal = open(&disk, START).unwrap();
            let expected = sample.records_until(sample.last_batch_start());
            assert_eq!(all(&journal.reader()), expected);
        }
    }
}

#[test]
fn a_missing_segment_is_noticed_unless_it_is_the_newest_and_no_checkpoint_knows_it() {
    let sample = Sample::new();
    let segments = sample.segments();
    let end = JournalPosition(*sample.ends.last().unwrap());
    for path in &segments {
        let disk = sample.disk.copy();
        disk.remove(path);
        let error = open(&disk, end).err().unwrap();
        if Some(path) == segments.last() {
            assert!(matches!(error, JournalError::BehindCheckpoint { .. }));
        } else {
            assert!(matches!(error, JournalError::SegmentMissing { .. }));
        }
    }
}

#[test]
fn a_torn_tail_that_a_checkpoint_includes_is_refused_and_kept() {
    let sample = Sample::new();
    let path = sample.segments().pop().unwrap();
    let end = JournalPosition(*sample.ends.last().unwrap());
    let disk = altered(&sample.disk, &path, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let before = contents(&disk);
    let error = open(&disk, end).err().unwrap();
    assert!(
        matches!(error, JournalError::BehindCheckpoint { journal_end, checkpoint }
            if journal_end.0 == sample.last_batch_start() && checkpoint == end),
        "{error}"
    );
    assert_eq!(contents(&disk), before);
}

#[test]
fn damage_before_the_validated_part_is_found_when_it_is_read() {
    let sample = Sample::new();
    let first = &sample.segments()[0];
    let offset = SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES + RECORD_HEADER_BYTES;
    let disk = altered(&sample.disk, first, |bytes| bytes[offset] ^= 1);
    let end = JournalPosition(*sample.ends.last().unwrap());
    let journal = open(&disk, end).unwrap();
    let record = JournalPosition(FRAME_HEADER_BYTES as u64);
    let read = journal.reader().read_at(record);
    assert!(matches!(read, Err(JournalError::BadRecord { position }) if position == record));
    let streamed = journal.reader().read_from(START).next();
    assert!(matches!(streamed, Some(Err(JournalError::BadRecord { .. }))));
}

#[test]
fn wrong_names_are_refused() {
    let sample = Sample::new();
    let segments = sample.segments();
    let bytes = sample.disk.bytes(&segments[1]);

    let disk = sample.disk.copy();
    disk.put(&Path::new(FOLDER).join("7.journal"), bytes.clone());
    let error = open(&disk, START).err().unwrap();
    assert!(matches!(error, JournalError::SegmentName { .. }), "{error}");

    let disk = sample.disk.copy();
    disk.put(&segments[0], bytes);
    let error = open(&disk, START).err().unwrap();
    assert!(matches!(error, JournalError::SegmentName { .. }), "{error}");
}

#[test]
fn files_of_others_and_leftovers_are_ignored() {
    let sample = Sample::new();
    let disk = sample.disk.copy();
    disk.put(&Path::new(FOLDER).join("notes"), b"x".to_vec());
    let leftover = format!(".{}.tmp", segment_name(9));
    disk.put(&Path::new(FOLDER).join(leftover), b"x".to_vec());
    open(&disk, START).unwrap();
}

/// Two journals can have segments of the same lengths, as two shards with the same history.
#[test]
fn a_segment_of_another_journal_is_refused() {
    let sample = Sample::new();
    let other = Sample::new();
    let path = &sample.segments()[1];
    assert_eq!(&other.segments()[1], path);
    let disk = sample.disk.copy();
    disk.put(path, other.disk.bytes(path));
    let error = open(&disk, START).err().unwrap();
    assert!(matches!(error, JournalError::ForeignSegment { .. }), "{error}");
}

#[test]
fn newer_formats_are_refused_and_kept() {
    let newer = FORMAT_VERSION + 1;
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    let path = disk.paths().pop().unwrap();
    let salt = journal.shared.salt();
    commit(&mut journal, &payloads(1));

    let header = SegmentHeader::with_version(0, salt, newer).to_bytes();
    let newer_segment = altered(&disk, &path, |bytes| {
        bytes[..SEGMENT_HEADER_BYTES].copy_from_slice(&header);
    });
    let seed = journal.shared.seed();
    let header = FrameHeader::with_version(seed, journal.end().0, 1, b"", newer).to_bytes();
    let newer_frame = altered(&disk, &path, |bytes| bytes.extend(header));
    for disk in [newer_segment, newer_frame] {
        let before = contents(&disk);
        match open(&disk, START) {
            Err(JournalError::UnsupportedVersion { found, .. }) => assert_eq!(found, newer),
            other => panic!("{:?}", other.err()),
        }
        assert_eq!(contents(&disk), before);
    }
}

/// A user chooses bytes inside records. A torn batch with an imitated frame in it must not look like
/// corruption, or that user could keep the node from starting.
#[test]
fn an_imitated_frame_in_a_torn_batch_deceives_nobody() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    let inner = (FRAME_HEADER_BYTES + RECORD_HEADER_BYTES) as u64;
    let imitation = FrameHeader::new(Seed::new(0), inner, 1, b"").to_bytes();
    commit(&mut journal, &[imitation.to_vec()]);
    let path = disk.paths().pop().unwrap();
    let disk = altered(&disk, &path, |bytes| bytes[SEGMENT_HEADER_BYTES] ^= 1);
    let journal = open(&disk, START).unwrap();
    assert_eq!(journal.end(), START);
}

/// The search for a later frame has to look across the windows in which it reads.
#[test]
fn a_frame_far_behind_the_damage_is_found() {
    const WINDOW_BYTES: usize = 1 << 20;
    let options = JournalOptions::default();
    for before_border in (0..FRAME_HEADER_BYTES + 5).step_by(4) {
        let disk = MemoryDisk::new();
        let mut journal = Journal::create_on(Arc::new(disk.clone()), Path::new(FOLDER), options).unwrap();
        // The search begins one byte after the damage.
        let first_bytes = 1 + WINDOW_BYTES - before_border;
        commit(&mut journal, &[vec![5; first_bytes - FRAME_HEADER_BYTES - RECORD_HEADER_BYTES]]);
        let follower = journal.end();
        commit(&mut journal, &payloads(3));
        let path = disk.paths().pop().unwrap();
        let disk = altered(&disk, &path, |bytes| bytes[SEGMENT_HEADER_BYTES] ^= 1);
        match Journal::open_on(Arc::new(disk), Path::new(FOLDER), options, START) {
            Err(JournalError::Corrupt { damage: Damage::BatchBeforeAnother { follower: found }, .. }) => {
                assert_eq!(found, follower);
            }
            other => panic!("{before_border}: {:?}", other.err()),
        }
    }
}
