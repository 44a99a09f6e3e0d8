//! Memos: 32 bytes for the user's own purposes, shown as text where possible, in the form that all wallets share.

use std::str::FromStr;

use fastpay_core::Memo;

/// Why a text is not a memo.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoError {
    /// The text has too many bytes.
    #[error("the memo has {0} bytes; at most 32 fit")]
    TooLong(usize),
    /// The text is `0x` and 64 characters that are not all hexadecimal digits.
    #[error("the memo is not hexadecimal; give 0x and 64 digits, or text")]
    NotHexadecimal,
}

/// The memo of a text: its UTF-8 bytes, padded with zeros; or the 32 bytes that `0x` and 64 digits encode.
///
/// # Errors
/// See [`MemoError`].
pub fn parse_memo(text: &str) -> Result<Memo, MemoError> {
    if text.starts_with("0x") && text.len() == 66 {
        return Memo::from_str(text).map_err(|_| MemoError::NotHexadecimal);
    }
    let mut memo = [0; 32];
    let bytes = text.as_bytes();
    memo.get_mut(..bytes.len()).ok_or(MemoError::TooLong(bytes.len()))?.copy_from_slice(bytes);
    Ok(memo.into())
}

/// A memo as its author wrote it: text if it is text without control and formatting characters, which can reverse the
/// text around them; otherwise hexadecimal.
#[must_use]
pub fn format_memo(memo: &Memo) -> String {
    let end = memo.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
    let text = memo.get(..end).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text {
        Some(text) if !text.chars().any(|c| c.is_control() || is_formatting(c)) => text.to_owned(),
        _ => memo.to_string(),
    }
}

/// Whether a character is of Unicode's categories Cf, Zl or Zp: it is invisible, or reverses the text around it.
pub(crate) fn is_formatting(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memos_are_text_or_a_hash() {
        assert_eq!(parse_memo("").unwrap(), Memo::ZERO);
        assert!(parse_memo("invoice 7").unwrap().starts_with(b"invoice 7\0"));
        assert_eq!(format_memo(&parse_memo("invoice 7").unwrap()), "invoice 7");
        assert_eq!(parse_memo(&format!("0x{}", "ab".repeat(32))).unwrap(), Memo::repeat_byte(0xab));
        assert_eq!(parse_memo(&"x".repeat(33)), Err(MemoError::TooLong(33)));
        assert_eq!(parse_memo(&format!("0x{}", "zz".repeat(32))), Err(MemoError::NotHexadecimal));
        let turning = parse_memo("a\u{202e}b").unwrap();
        assert_eq!(format_memo(&turning), turning.to_string());
        assert_eq!(format_memo(&Memo::repeat_byte(0xff)), format!("0x{}", "ff".repeat(32)));
    }
}
