//! An append-only file of frames: length, checksum, content. A frame that a crash cut off is removed when the file is
//! opened; a damaged one is found when it is read.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fastpay_program::files;

const HEAD_BYTES: u64 = 8;
/// No frame is longer: a proposal, its header and votes.
const FRAME_BYTES_MAX: u32 = 8 << 20;

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    offset: u64,
    length: u32,
}

impl Place {
    fn end(self) -> u64 {
        self.offset.saturating_add(HEAD_BYTES).saturating_add(self.length.into())
    }
}

/// An open file of frames.
#[derive(Debug)]
pub struct Frames {
    file: File,
    end: u64,
}

impl Frames {
    /// Opens the file, or creates it, and gives the places of its frames in order. Their contents are not checked.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<Place>)> {
        if !path.exists() {
            files::create(path, &[])?;
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        let mut frames = Self { file, end: 0 };
        let mut places = Vec::new();
        while let Some(place) = frames.place_at(frames.end)?.filter(|place| place.end() <= length) {
            frames.end = place.end();
            places.push(place);
        }
        frames.cut(frames.end)?;
        Ok((frames, places))
    }

    /// A new file without frames, in the place of any other.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        files::replace(path, &[])?;
        Ok(Self { file: OpenOptions::new().read(true).write(true).open(path)?, end: 0 })
    }

    /// The file, to be synced elsewhere.
    ///
    /// # Errors
    /// Any of the system.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    fn place_at(&self, offset: u64) -> io::Result<Option<Place>> {
        let mut length = [0; 4];
        match self.file.read_exact_at(&mut length, offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let length = u32::from_le_bytes(length);
        Ok((1..=FRAME_BYTES_MAX).contains(&length).then_some(Place { offset, length }))
    }

    /// Reads a frame; `None` if it is damaged.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn read(&self, place: Place) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; 8];
        self.file.read_exact_at(&mut head, place.offset)?;
        let mut content = vec![0; usize::try_from(place.length).unwrap_or(0)];
        self.file.read_exact_at(&mut content, place.offset.saturating_add(HEAD_BYTES))?;
        Ok((head == self::head(&content)).then_some(content))
    }

    /// Appends a frame. Not durable before [`Frames::sync`].
    ///
    /// # Errors
    /// Any of the file system, and a frame that is too long.
    pub fn append(&mut self, content: &[u8]) -> io::Result<Place> {
        let length = u32::try_from(content.len()).ok().filter(|length| (1..=FRAME_BYTES_MAX).contains(length));
        let length = length.ok_or_else(|| io::Error::other("the frame is empty or too long"))?;
        let place = Place { offset: self.end, length };
        self.file.write_all_at(&[&head(content), content].concat(), place.offset)?;
        self.end = place.end();
        Ok(place)
    }

    /// Makes all frames durable.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Removes a frame and all after it.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn cut_at(&mut self, place: Place) -> io::Result<()> {
        self.cut(place.offset)
    }

    /// Removes all frames.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn clear(&mut self) -> io::Result<()> {
        self.cut(0)
    }

    fn cut(&mut self, end: u64) -> io::Result<()> {
        self.end = end;
        self.file.set_len(end)
    }
}

fn head(content: &[u8]) -> [u8; 8] {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes();
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&length), content).to_le_bytes();
    std::array::from_fn(|at| *length.iter().chain(&checksum).nth(at).unwrap_or(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_back_and_a_torn_one_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        let (mut frames, places) = Frames::open(&path).unwrap();
        assert_eq!(places, []);
        let first = frames.append(b"first").unwrap();
        let second = frames.append(b"second").unwrap();
        frames.sync().unwrap();
        let whole = std::fs::metadata(&path).unwrap().len();
        for length in first.end()..whole {
            OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
            let (mut frames, places) = Frames::open(&path).unwrap();
            assert_eq!(places, [first], "cut at {length}");
            assert_eq!(frames.append(b"second").unwrap(), second);
            assert_eq!(frames.read(second).unwrap().unwrap(), b"second");
        }
    }

    #[test]
    fn a_damaged_frame_is_found_and_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        let (mut frames, _) = Frames::open(&path).unwrap();
        let first = frames.append(b"first").unwrap();
        let second = frames.append(b"second").unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let (mut frames, places) = Frames::open(&path).unwrap();
        assert_eq!(places, [first, second]);
        assert_eq!(frames.read(second).unwrap(), None);
        frames.cut_at(second).unwrap();
        assert_eq!(Frames::open(&path).unwrap().1, [first]);
        assert!(frames.append(&[]).is_err());
        assert!(frames.append(&vec![0; 1 + FRAME_BYTES_MAX as usize]).is_err());
    }
}
