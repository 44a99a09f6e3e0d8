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

/// Encodes an item in the place of what a buffer holds.
pub(super) fn encode_into(item: &impl BorshSerialize, bytes: &mut Vec<u8>) {
    bytes.clear();
    item.serialize(bytes).expect("writing to memory does not fail");
}

/// Writes a stream.
pub(super) fn write_stream<T: BorshSerialize>(
    writer: &mut impl Write,
    magic: &[u8; 8],
    mut items: impl Iterator<Item = Result<T>>,
) -> Result<()> {
    write_magic(writer, magic)?;
    let mut bytes = Vec::new();
    items.try_for_each(|item| {
        encode_into(&item?, &mut bytes);
        write_encoded(writer, &bytes)
    })
}

/// Writes the beginning of a stream.
pub(crate) fn write_magic(writer: &mut impl Write, magic: &[u8; 8]) -> Result<()> {
    writer.write_all(magic)
}

/// Writes the next item of a stream.
pub(crate) fn write_item(writer: &mut impl Write, item: &impl BorshSerialize) -> Result<()> {
    write_encoded(writer, &encode(item))
}

fn write_encoded(writer: &mut impl Write, bytes: &[u8]) -> Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| invalid("an item is too long"))?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(bytes)
}

/// Reads the beginning of a stream.
pub(crate) fn read_magic(reader: &mut impl Read, magic: &[u8; 8]) -> Result<()> {
    let mut found = [0; 8];
    reader.read_exact(&mut found)?;
    if found == *magic { Ok(()) } else { Err(invalid("not a stream of this kind and version")) }
}

/// Reads the next item of a stream, whose bytes are in `item` then; `None` at the end.
pub(crate) fn read_item<T: BorshDeserialize>(reader: &mut impl Read, item: &mut Vec<u8>) -> Result<Option<T>> {
    let Some(length) = read_length(reader)? else {
        item.clear();
        return Ok(None);
    };
    if length > ITEM_BYTES_MAX {
        return Err(invalid("an item is too long"));
    }
    item.resize(length, 0);
    reader.read_exact(item)?;
    T::try_from_slice(item).map(Some)
}

/// The length of the next item; `None` at the end.
fn read_length(reader: &mut impl Read) -> Result<Option<usize>> {
    let mut length = [0; 4];
    let [first, rest @ ..] = &mut length;
    loop {
        match reader.read(std::slice::from_mut(first)) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    reader.read_exact(rest)?;
    Ok(Some(u32::from_le_bytes(length) as usize))
}
