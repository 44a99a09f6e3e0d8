//! A shard's segment files after any kind of damage.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use fastpay_node::authority::storage::{Journal, JournalOptions, JournalPosition, JournalRead, JournalWrite};
use fastpay_testkit::MemoryDisk;

use crate::tagged;

/// Segments are small, so that a few records fill several.
const OPTIONS: JournalOptions = JournalOptions { segment_bytes_max: 256, open_files_max: 2 };
const FOLDER: &str = "/journal";
/// The maximum length of a file after damage, in bytes: a few dozen repetitions of its content would fill any memory.
const FILE_BYTES_MAX: usize = 1 << 16;
/// A damage is encoded as its kind and three more bytes.
const DAMAGE_BYTES: usize = 4;

/// A journal of four batches in several segments, and its records.
static WHOLE: LazyLock<(MemoryDisk, Vec<Vec<u8>>)> = LazyLock::new(|| {
    let disk = MemoryDisk::new();
    let mut journal = Journal::create_on(Arc::new(disk.clone()), Path::new(FOLDER), OPTIONS).unwrap();
    let records: Vec<Vec<u8>> = (0..8_u8).map(|number| vec![number; 10 + usize::from(number) * 9]).collect();
    for batch in records.chunks(2) {
        batch.iter().for_each(|record| assert!(journal.append(record).is_ok()));
        journal.commit().unwrap();
    }
    (disk, records)
});

/// If the first byte is even, the other bytes are damages to a whole journal; if it is odd, they are a segment file.
pub fn run(bytes: &[u8]) {
    let Some((tag, bytes)) = bytes.split_first() else { return };
    if tag % 2 == 0 {
        let (whole, records) = &*WHOLE;
        let disk = whole.copy();
        bytes.as_chunks::<DAMAGE_BYTES>().0.iter().for_each(|damage| inflict(&disk, *damage));
        open(&disk, records);
    } else {
        let disk = MemoryDisk::new();
        disk.put(&Path::new(FOLDER).join(format!("{:020}.journal", 0)), bytes.to_vec());
        if let Some(found) = open_once(&disk) {
            open(&disk, &found);
        }
    }
}

/// Damages files as failing disks, crashes and people do.
fn inflict(disk: &MemoryDisk, [kind, file, at_high, at_low]: [u8; DAMAGE_BYTES]) {
    let paths = disk.paths();
    let Some(path) = paths.get(usize::from(file) % paths.len().max(1)) else { return };
    let mut content = disk.bytes(path);
    let at = usize::from(u16::from_be_bytes([at_high, at_low])) % (content.len() + 1);
    match kind % 8 {
        0 => content.truncate(at),
        1 => content.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << ((kind >> 3) % 8)),
        2 => content.iter_mut().skip(at).take(usize::from(kind)).for_each(|byte| *byte = 0),
        3 => content.extend(vec![kind; at]),
        4 => content.extend_from_within(at..),
        5 => drop(content.drain(at..content.len().min(at + usize::from(kind)))),
        6 => return disk.remove(path),
        // Replace the content with that of another file.
        _ => content = disk.bytes(&paths[at % paths.len()]),
    }
    content.truncate(FILE_BYTES_MAX);
    disk.put(path, content);
}

/// Opens the journal. The records that it finds must be a prefix of `records`, and it must find them again and append
/// to them. If it refuses the files, it must not have changed them.
fn open(disk: &MemoryDisk, records: &[Vec<u8>]) {
    let before = files(disk);
    let Some(found) = open_once(disk) else {
        assert!(files(disk) == before, "a journal was refused, and changed all the same");
        return;
    };
    assert!(records.starts_with(&found), "a record was never written, or is out of its place: {found:?}");
    let mut journal = Journal::open_on(Arc::new(disk.clone()), Path::new(FOLDER), OPTIONS, JournalPosition(0)).unwrap();
    assert_eq!(journal.recovery().bytes_cut, 0, "what was cut off is there again");
    journal.append(b"one more").unwrap();
    journal.commit().unwrap();
    drop(journal);
    let again = open_once(disk).expect("a journal that was written to is whole");
    assert_eq!(again.split_last().unwrap(), (&b"one more".to_vec(), found.as_slice()));
}

/// The records of the journal; `None` if the journal refuses the files.
fn open_once(disk: &MemoryDisk) -> Option<Vec<Vec<u8>>> {
    let journal = Journal::open_on(Arc::new(disk.clone()), Path::new(FOLDER), OPTIONS, JournalPosition(0)).ok()?;
    let records = journal.reader().read_from(JournalPosition(0));
    Some(records.map(|record| record.expect("what was validated can be read").1).collect())
}

fn files(disk: &MemoryDisk) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.bytes(&path))).collect()
}

/// Some damage of each kind, and a valid segment.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = (0..8_u8).map(|kind| tagged(0, &[kind, kind, 0, 70])).collect();
    seeds.push(vec![0]);
    // The last segment is cut, with and without its first frame.
    seeds.push(tagged(0, &[0, 3, 0, 60]));
    let first = &WHOLE.0.paths()[0];
    seeds.push(tagged(1, &WHOLE.0.bytes(first)));
    seeds
}
