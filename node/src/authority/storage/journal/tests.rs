//! The journal on a good disk, on a bad one, and after damage at every byte.

mod crashes;
mod damage;

use fastpay_testkit::MemoryDisk;

use super::format::{FORMAT_VERSION, FrameHeader, SEGMENT_HEADER_BYTES, Seed, SegmentHeader};
use super::*;

const FOLDER: &str = "/journal";
const START: JournalPosition = JournalPosition(0);

/// Small enough that a few batches of test records fill several segments.
fn small_segments() -> JournalOptions {
    JournalOptions { segment_bytes_max: 200, open_files_max: 2 }
}

fn create(disk: &MemoryDisk) -> Journal {
    Journal::create_on(Arc::new(disk.clone()), Path::new(FOLDER), small_segments()).unwrap()
}

fn open(disk: &MemoryDisk, validate_from: JournalPosition) -> Result<Journal, JournalError> {
    let disk = Arc::new(disk.clone());
    Journal::open_on(disk, Path::new(FOLDER), small_segments(), validate_from)
}

/// Appends and commits one batch; returns the records' positions.
fn commit(journal: &mut Journal, payloads: &[Vec<u8>]) -> Vec<JournalPosition> {
    let positions = payloads.iter().map(|payload| journal.append(payload).unwrap()).collect();
    journal.commit().unwrap();
    positions
}

fn all(reader: &JournalReader) -> Vec<Vec<u8>> {
    let records = reader.read_from(START);
    records.map(|record| record.unwrap().1).collect()
}

/// Records of different sizes, the empty one among them; `number` makes them distinct.
fn payloads(number: usize) -> Vec<Vec<u8>> {
    (0..number % 3 + 1).map(|index| vec![number as u8; (number * 7 + index * 13) % 40]).collect()
}

#[test]
fn a_reader_of_a_journal_that_is_being_written_sees_complete_frames_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("journal");
    std::fs::create_dir(&folder).unwrap();
    let mut journal = Journal::create(&folder, small_segments()).unwrap();
    let mut expected = Vec::new();
    for number in 0..20 {
        let before = expected.len();
        let end = journal.end();
        commit(&mut journal, &payloads(number));
        expected.extend(payloads(number));
        let reader = JournalReader::open(&folder).unwrap();
        assert_eq!((all(&reader), reader.end()), (expected.clone(), journal.end()));

        // The same while its last frame is being written.
        let mut segments: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        segments.sort();
        let last = segments.last().unwrap();
        let whole = std::fs::read(last).unwrap();
        let frame_bytes = (journal.end().0 - end.0) as usize;
        for missing in [1, frame_bytes / 2, frame_bytes - 1] {
            let torn = &whole[..whole.len() - missing];
            std::fs::write(last, torn).unwrap();
            let reader = JournalReader::open(&folder).unwrap();
            assert_eq!((all(&reader), reader.end()), (expected[..before].to_vec(), end));
            assert_eq!(std::fs::read(last).unwrap(), torn, "nothing is cut off");
        }
        std::fs::write(last, &whole).unwrap();
    }
    // A damaged frame before another one is none that is being written.
    let folder = place.path().join("damaged");
    std::fs::create_dir(&folder).unwrap();
    let mut journal = Journal::create(&folder, JournalOptions::default()).unwrap();
    commit(&mut journal, &[vec![7; 20]]);
    commit(&mut journal, &[vec![8; 20]]);
    let path = folder.join(segment_name(0));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[SEGMENT_HEADER_BYTES + 40] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(JournalReader::open(&folder), Err(JournalError::Corrupt { .. })));
    assert!(matches!(JournalReader::open(place.path()), Err(JournalError::NotFound { .. })));
}

#[test]
fn records_come_back_by_position_and_in_order_over_segments() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    let reader = journal.reader();
    let mut expected = Vec::new();
    for number in 0..20 {
        let batch = payloads(number);
        let positions = commit(&mut journal, &batch);
        expected.extend(positions.into_iter().zip(batch));
    }
    assert!(disk.paths().len() > 3, "several segments");

    let reopened = open(&disk, START).unwrap();
    assert_eq!(reopened.recovery().records, expected.len() as u64);
    assert_eq!(reopened.recovery().bytes_cut, 0);
    assert_eq!(reopened.end(), journal.end());
    for reader in [reader, reopened.reader()] {
        let records: Vec<_> = reader.read_from(START).map(Result::unwrap).collect();
        assert_eq!(records, expected);
        for (index, (position, payload)) in expected.iter().enumerate() {
            assert_eq!(&reader.read_at(*position).unwrap(), payload);
            let tail: Vec<_> = reader.read_from(*position).map(Result::unwrap).collect();
            assert_eq!(tail, expected[index..]);
        }
    }
}

#[test]
fn a_reader_sees_committed_records_only() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    let reader = journal.reader();
    let position = journal.append(b"first").unwrap();
    assert!(matches!(reader.read_at(position), Err(JournalError::OutOfRange { .. })));
    assert_eq!(reader.read_from(START).count(), 0);
    journal.commit().unwrap();
    assert_eq!(reader.read_at(position).unwrap(), b"first");

    let earlier = reader.read_from(START);
    let end = JournalRead::end(&reader);
    commit(&mut journal, &[b"second".to_vec()]);
    assert_eq!(earlier.count(), 1, "a stream ends where it began to look");
    let later: Vec<_> = reader.read_from(end).map(|r| r.unwrap().1).collect();
    assert_eq!(later, [b"second"]);
}

#[test]
fn a_batch_is_one_sync_and_no_batch_is_none() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    let before = disk.syncs();
    for _ in 0..5 {
        journal.append(b"r").unwrap();
    }
    journal.commit().unwrap();
    assert_eq!(disk.syncs() - before, 1);
    journal.commit().unwrap();
    assert_eq!(disk.syncs() - before, 1);
}

#[test]
fn positions_from_outside_are_refused_whatever_they_are() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    let mut good = Vec::new();
    for number in 0..12 {
        // A record that imitates a frame and a record with lengths that are not there.
        let mut posing = super::format::FRAME_MAGIC.to_vec();
        posing.extend([255; 12]);
        let mut batch = payloads(number);
        batch.push(posing);
        good.extend(commit(&mut journal, &batch));
    }
    let reader = journal.reader();
    let end = journal.end().0;
    for position in (0..end + 40).chain([u64::MAX, u64::MAX - 1, 1 << 63]) {
        let position = JournalPosition(position);
        let found = reader.read_at(position);
        let streamed = reader.read_from(position).next();
        if good.contains(&position) {
            assert_eq!(streamed.unwrap().unwrap(), (position, found.unwrap()));
        } else if position.0 >= end {
            assert!(matches!(found, Err(JournalError::OutOfRange { .. })));
        } else {
            assert!(matches!(found, Err(JournalError::BadRecord { .. })));
        }
    }
}

#[test]
fn a_position_inside_a_record_stops_the_stream_with_one_error() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    let positions = commit(&mut journal, &[vec![0; 30], vec![1; 30]]);
    let mut stream = journal.reader().read_from(JournalPosition(positions[0].0 + 3));
    assert!(matches!(stream.next(), Some(Err(JournalError::BadRecord { .. }))));
    assert!(stream.next().is_none());
    let beyond = JournalPosition(journal.end().0 + 1);
    let first = journal.reader().read_from(beyond).next();
    assert!(matches!(first, Some(Err(JournalError::OutOfRange { .. }))));
}

#[test]
fn a_record_too_large_is_refused_and_the_batch_goes_on() {
    let mut journal = create(&MemoryDisk::new());
    journal.append(b"before").unwrap();
    let refused = journal.append(&vec![0; RECORD_BYTES_MAX + 1]);
    assert!(matches!(refused, Err(JournalError::RecordTooLarge { bytes_max: RECORD_BYTES_MAX, .. })));
    journal.append(&vec![9; RECORD_BYTES_MAX]).unwrap();
    journal.commit().unwrap();
    let records = all(&journal.reader());
    assert_eq!(records[0], b"before");
    assert_eq!(records[1].len(), RECORD_BYTES_MAX);
}

#[test]
fn a_full_batch_wants_a_commit() {
    let mut journal = create(&MemoryDisk::new());
    let record = vec![0; RECORD_BYTES_MAX];
    let full = loop {
        match journal.append(&record) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(full, JournalError::BatchFull { .. }), "{full}");
    journal.commit().unwrap();
    journal.append(&record).unwrap();
}

#[test]
fn a_journal_is_created_once_and_opened_only_after_that() {
    let disk = MemoryDisk::new();
    let refused = open(&disk, START).err().unwrap();
    assert!(matches!(refused, JournalError::NotFound { .. }), "{refused}");
    assert!(disk.paths().is_empty());
    create(&disk);
    let refused = Journal::create_on(Arc::new(disk), Path::new(FOLDER), small_segments());
    assert!(matches!(refused.err(), Some(JournalError::AlreadyExists { .. })));
}

#[test]
fn a_checkpoint_beyond_the_end_is_refused_with_both_numbers() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    commit(&mut journal, &payloads(1));
    let end = journal.end();
    let checkpoint = JournalPosition(end.0 + 1);
    match open(&disk, checkpoint) {
        Err(JournalError::BehindCheckpoint { journal_end, checkpoint: given }) => {
            assert_eq!((journal_end, given), (end, checkpoint))
        }
        other => panic!("{:?}", other.err()),
    }
    open(&disk, end).unwrap();
}

#[test]
fn the_real_disk_keeps_records_over_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(folder.path(), small_segments()).unwrap();
    let mut expected = Vec::new();
    for number in 0..20 {
        commit(&mut journal, &payloads(number));
        expected.extend(payloads(number));
        if number % 5 == 0 {
            let end = journal.end();
            drop(journal);
            journal = Journal::open(folder.path(), small_segments(), end).unwrap();
        }
    }
    journal.append(b"never committed").unwrap();
    let reader = journal.reader();
    let from_another_thread = std::thread::spawn(move || all(&reader)).join().unwrap();
    assert_eq!(from_another_thread, expected);
    drop(journal);

    let last = RealDisk.list(folder.path()).unwrap().into_iter().max();
    let last = folder.path().join(last.unwrap());
    let mut torn = std::fs::read(&last).unwrap();
    torn.extend([0xAA; 50]);
    std::fs::write(&last, torn).unwrap();
    let journal = Journal::open(folder.path(), small_segments(), START).unwrap();
    assert_eq!(journal.recovery().bytes_cut, 50);
    assert_eq!(all(&journal.reader()), expected);
}
