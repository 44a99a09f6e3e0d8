//! Amounts as people write them: decimal numbers in an asset's own decimals. They are exact: no number is ever rounded,
//! and none passes through a floating-point type.

use std::fmt::Display;

use fastpay_core::Amount;

/// The maximum length of an amount's text: 128 bits have 39 digits.
const TEXT_LENGTH_MAX: usize = 128;

/// Why a text is not an amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// It has signs, exponents, separators or spaces, or is empty.
    #[error("{0:?} is not an amount: write digits with at most one decimal point, such as 12 or 0.5")]
    Malformed(String),
    /// It has a comma, which could be a decimal point or separate thousands.
    #[error("{0:?} has a comma; write the decimal point as a point, such as 1.5, and no thousands separators")]
    Comma(String),
    /// It is finer than the asset's smallest unit.
    #[error("{text} has more decimals than the asset has ({decimals}); round it yourself")]
    TooManyDecimals {
        /// The value given.
        text: String,
        /// The number of the asset's decimals.
        decimals: u8,
    },
    /// It has more than 128 bits.
    #[error("{0} exceeds what any account can hold")]
    TooLarge(String),
}

/// Parses `text` as a number of whole units of an asset with this many decimals.
///
/// # Errors
/// See [`DecimalError`].
pub fn parse_amount(text: &str, decimals: u8) -> Result<Amount, DecimalError> {
    let shown = || text.chars().take(TEXT_LENGTH_MAX).collect();
    let malformed = || DecimalError::Malformed(shown());
    if text.contains(',') {
        return Err(DecimalError::Comma(shown()));
    }
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return Err(malformed()),
        None => (text, ""),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() > TEXT_LENGTH_MAX || whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(malformed());
    }
    let fraction = fraction.trim_end_matches('0');
    let missing = usize::from(decimals)
        .checked_sub(fraction.len())
        .ok_or_else(|| DecimalError::TooManyDecimals { text: text.into(), decimals })?;
    let zeros = std::iter::repeat_n(b'0', missing);
    let all = whole.bytes().chain(fraction.bytes()).chain(zeros);
    all.map(|byte| u128::from(byte.saturating_sub(b'0')))
        .try_fold(0_u128, |sum, digit| sum.checked_mul(10)?.checked_add(digit))
        .map(Amount)
        .ok_or_else(|| DecimalError::TooLarge(text.into()))
}

/// Shows a whole number of the smallest unit ([`Amount`], a balance, a 256-bit number) in whole units,
/// without superfluous zeros.
#[must_use]
pub fn format_units(units: impl Display, decimals: u8) -> String {
    let text = units.to_string();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let decimals = usize::from(decimals);
    let padded = format!("{digits:0>width$}", width = decimals.saturating_add(1));
    let (whole, fraction) = padded.split_at(padded.len().saturating_sub(decimals));
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Balance;

    #[test]
    fn amounts_are_read_exactly() {
        let check = |text: &str, decimals: u8, expected: u128| {
            assert_eq!(parse_amount(text, decimals), Ok(Amount(expected)), "{text} with {decimals} decimals");
        };
        check("0", 18, 0);
        check("1", 18, 1_000_000_000_000_000_000);
        check("0.1", 18, 100_000_000_000_000_000);
        check("0.000000000000000001", 18, 1);
        check("007.50", 2, 750);
        check("1.500000", 1, 15);
        check("12", 0, 12);
        check("12.0", 0, 12);
        check("340282366920938463463374607431768211455", 0, u128::MAX);
        check("340282366920938463463.374607431768211455", 18, u128::MAX);
        // 0.1 + 0.2 and 2^53 + 1, which floating point would get wrong.
        check("0.3", 1, 3);
        check("9007199254740993", 0, 9_007_199_254_740_993);
    }

    #[test]
    fn what_is_not_an_exact_amount_is_refused() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1_000", " 1", "1 ", "0x10", "1.2.3", "٣", "NaN"] {
            assert_eq!(parse_amount(text, 18), Err(DecimalError::Malformed(text.into())), "{text}");
        }
        for text in ["1,5", "1,000", "1,000.5", ","] {
            let error = parse_amount(text, 18).unwrap_err();
            assert!(error == DecimalError::Comma(text.into()) && error.to_string().contains("such as 1.5"), "{error}");
        }
        let too_fine = DecimalError::TooManyDecimals { text: "0.001".into(), decimals: 2 };
        assert_eq!(parse_amount("0.001", 2), Err(too_fine));
        for (text, decimals) in [("340282366920938463463374607431768211456", 0), ("1", 39), ("1", 255)] {
            assert_eq!(parse_amount(text, decimals), Err(DecimalError::TooLarge(text.into())));
        }
        assert!(parse_amount(&"1".repeat(1000), 0).is_err());
    }

    #[test]
    fn amounts_are_shown_as_they_are_read() {
        let check = |units: u128, decimals: u8, expected: &str| {
            assert_eq!(format_units(Amount(units), decimals), expected);
            assert_eq!(parse_amount(expected, decimals), Ok(Amount(units)));
        };
        check(0, 18, "0");
        check(1, 18, "0.000000000000000001");
        check(1_500_000, 6, "1.5");
        check(100, 0, "100");
        check(u128::MAX, 38, "3.40282366920938463463374607431768211455");
        assert_eq!(format_units(Balance::ZERO.debit(Amount(1_050)), 3), "-1.05");
    }
}
