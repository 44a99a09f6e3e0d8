//! The stream in which states, segments and Closings are stored and sent.
//!
//! ```text
//!  stream = magic (8 bytes) ‖ { length (4 bytes, little-endian) ‖ item }*
//! ```

use std::io::{Error, ErrorKind, Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};

/// The longest item of a stream, in bytes: more than the largest order, a payout with its signature, takes.
const ITEM_BYTES_MAX: usize = 32_768;

pub(crate) fn encode(item: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(item).expect("writing to memory does not fail")
}

pub(crate) fn invalid(reason: &str) -> Error {
    Error::new(ErrorKind::InvalidData, reason)
}

/// Writes a stream.
pub(super) fn write_stream<T: BorshSerialize>(
    writer: &mut impl Write,
    magic: &[u8; 8],
    mut items: impl Iterator<Item = Result<T>>,
) -> Result<()> {
    write_magic(writer, magic)?;
    items.try_for_each(|item| write_item(writer, &item?))
}

/// Writes the beginning of a stream.
pub(crate) fn write_magic(writer: &mut impl Write, magic: &[u8; 8]) -> Result<()> {
    writer.write_all(magic)
}

/// Writes the next item of a stream.
pub(crate) fn write_item(writer: &mut impl Write, item: &impl BorshSerialize) -> Result<()> {
    let bytes = encode(item);
    let length = u32::try_from(bytes.len()).map_err(|_| invalid("an item is too long"))?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(&bytes)
}

/// Reads the beginning of a stream.
pub(crate) fn read_magic(reader: &mut impl Read, magic: &[u8; 8]) -> Result<()> {
    let mut found = [0; 8];
    reader.read_exact(&mut found)?;
    if found == *magic { Ok(()) } else { Err(invalid("not a stream of this kind and version")) }
}

/// Reads the next item of a stream, whose bytes are in `item` then; `None` at the end.
pub(crate) fn read_item<T: BorshDeserialize>(reader: &mut impl Read, item: &mut Vec<u8>) -> Result<Option<T>> {
    item.clear();
    reader.by_ref().take(4).read_to_end(item)?;
    if item.is_empty() {
        return Ok(None);
    }
    let length = item.first_chunk().filter(|_| item.len() == 4).ok_or(ErrorKind::UnexpectedEof)?;
    let length = u32::from_le_bytes(*length);
    if length as usize > ITEM_BYTES_MAX {
        return Err(invalid("an item is too long"));
    }
    item.clear();
    reader.by_ref().take(u64::from(length)).read_to_end(item)?;
    if item.len() != length as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    T::try_from_slice(item).map(Some)
}
