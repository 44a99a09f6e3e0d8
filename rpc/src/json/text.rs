//! Numbers, bytes and accounts as text.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fastpay_core::{AccountId, Balance};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::archived::ArchiveCursor;

/// A number as decimal text: no sign where it has none, no zeros in front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decimal<T>(pub T);

/// A count, an index, a sequence number, an epoch.
pub type Uint64 = Decimal<u64>;
/// An amount.
pub type Uint128 = Decimal<u128>;
/// A balance.
pub type Int256 = Decimal<Balance>;
/// An address on the Primary.
pub type Bytes20 = Hex<20>;
/// A hash or a key.
pub type Bytes32 = Hex<32>;
/// An Ed25519 signature.
pub type Bytes64 = Hex<64>;
/// A secp256k1 signature.
pub type Bytes65 = Hex<65>;

/// The properties of a kind of number.
pub trait Digits {
    /// The name in the schema.
    const NAME: &'static str;
    /// The pattern of its texts.
    const PATTERN: &'static str;
    /// For people.
    const DESCRIPTION: &'static str;
}

impl Digits for u64 {
    const NAME: &'static str = "Uint64";
    const PATTERN: &'static str = "^(0|[1-9][0-9]{0,19})$";
    const DESCRIPTION: &'static str = "An unsigned number of 64 bits, decimal.";
}

impl Digits for u128 {
    const NAME: &'static str = "Uint128";
    const PATTERN: &'static str = "^(0|[1-9][0-9]{0,38})$";
    const DESCRIPTION: &'static str =
        "An unsigned number of 128 bits, decimal: an amount in the asset's smallest unit.";
}

impl Digits for Balance {
    const NAME: &'static str = "Int256";
    const PATTERN: &'static str = "^(0|-?[1-9][0-9]{0,77})$";
    const DESCRIPTION: &'static str = "A signed number of 256 bits, decimal: a balance in the asset's smallest unit.";
}

/// Bytes as `0x` and two hexadecimal digits each, lower case where it is written, either where it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex<const N: usize>(pub [u8; N]);

/// Any number of bytes, as [`Hex`]. The message bounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// An account: `fp1…` or a checksummed `0x…` address. Its 32 bytes in hexadecimal digits are read, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account(pub AccountId);

/// A text that is not of the form that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseTextError(String);

/// A stranger's text is not repeated at any length.
fn shown(text: &str) -> Cow<'_, str> {
    let short: String = text.chars().take(80).collect();
    if short.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(short + "…") }
}

impl<T: fmt::Display> fmt::Display for Decimal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: FromStr> FromStr for Decimal<T> {
    type Err = ParseTextError;
    fn from_str(text: &str) -> Result<Self, ParseTextError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let canonical = plain && (!digits.starts_with('0') || text == "0");
        let wrong =
            || ParseTextError(format!("{:?} is not a number of this size in plain decimal digits", shown(text)));
        if canonical { text.parse().map(Self).map_err(|_| wrong()) } else { Err(wrong()) }
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.0))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> FromStr for Hex<N> {
    type Err = ParseTextError;
    fn from_str(text: &str) -> Result<Self, ParseTextError> {
        let wrong = || ParseTextError(format!("{:?} is not 0x and {} hexadecimal digits", shown(text), N * 2));
        let mut bytes = [0; N];
        let digits = text.strip_prefix("0x").ok_or_else(wrong)?;
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| wrong())?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(&self.0))
    }
}

impl FromStr for Bytes {
    type Err = ParseTextError;
    fn from_str(text: &str) -> Result<Self, ParseTextError> {
        let bytes = text.strip_prefix("0x").and_then(|digits| hex::decode(digits).ok());
        bytes.map(Self).ok_or_else(|| ParseTextError(format!("{:?} is not 0x and hexadecimal digits", shown(text))))
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Account {
    type Err = ParseTextError;
    fn from_str(text: &str) -> Result<Self, ParseTextError> {
        if let Ok(bytes) = text.parse::<Hex<32>>() {
            return Ok(Self(AccountId(bytes.0)));
        }
        // The parser's error repeats the text.
        text.parse().map(Self).map_err(|error: fastpay_core::ParseIdentityError| match text.len() {
            0..=80 => ParseTextError(error.to_string()),
            _ => ParseTextError(format!("{:?} is not an account: it is too long", shown(text))),
        })
    }
}

/// Serde by `Display` and `FromStr`, and a schema to match.
macro_rules! as_text {
    ($([$($generics:tt)*] $type:ty [$($bounds:tt)*];)*) => { $(
        impl<$($generics)*> Serialize for $type where $($bounds)* {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de, $($generics)*> Deserialize<'de> for $type where $($bounds)* {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: Cow<'de, str> = Deserialize::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )* };
}
as_text! {
    [T] Decimal<T> [T: fmt::Display + FromStr];
    [const N: usize] Hex<N> [];
    [] Account [];
    [] Bytes [];
    [] ArchiveCursor [];
}

fn text(description: &str, pattern: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).description(Some(description)).pattern(Some(pattern)).build()
}

impl<T: Digits> PartialSchema for Decimal<T> {
    fn schema() -> RefOr<Schema> {
        text(T::DESCRIPTION, T::PATTERN).into()
    }
}

impl<T: Digits> ToSchema for Decimal<T> {
    fn name() -> Cow<'static, str> {
        T::NAME.into()
    }
}

impl<const N: usize> PartialSchema for Hex<N> {
    fn schema() -> RefOr<Schema> {
        let description = format!("{N} bytes, 0x and {} hexadecimal digits, written in lower case.", N * 2);
        text(&description, &format!("^0x[0-9a-fA-F]{{{}}}$", N * 2)).into()
    }
}

impl<const N: usize> ToSchema for Hex<N> {
    fn name() -> Cow<'static, str> {
        format!("Bytes{N}").into()
    }
}

impl PartialSchema for Bytes {
    fn schema() -> RefOr<Schema> {
        text("Bytes, 0x and hexadecimal digits, written in lower case.", "^0x([0-9a-fA-F]{2})*$").into()
    }
}

impl ToSchema for Bytes {}

impl PartialSchema for ArchiveCursor {
    fn schema() -> RefOr<Schema> {
        let description =
            "A place in an archive: the checkpoint's number, a dot, and the entry's position in its segment.";
        text(description, "^(0|[1-9][0-9]{0,19})[.](0|[1-9][0-9]{0,9})$").into()
    }
}

impl ToSchema for ArchiveCursor {}

impl PartialSchema for Account {
    fn schema() -> RefOr<Schema> {
        let description = "An account: fp1… (bech32m) or the 0x… address of its owner, checksummed. \
                           The account's own 32 bytes are read, too.";
        text(description, "^(0x[0-9a-fA-F]{40}|0x[0-9a-fA-F]{64}|fp1[02-9ac-hj-np-z]{58})$").into()
    }
}

impl ToSchema for Account {
    fn name() -> Cow<'static, str> {
        "Account".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_text() {
        assert_eq!("18446744073709551615".parse(), Ok(Decimal(u64::MAX)));
        assert_eq!("0".parse(), Ok(Decimal(0_u128)));
        assert_eq!(serde_json::to_string(&Decimal(u128::MAX)).unwrap(), format!("\"{}\"", u128::MAX));
        let balance: Decimal<Balance> = serde_json::from_str("\"-7\"").unwrap();
        assert_eq!(balance.to_string(), "-7");
        for wrong in ["", "-", "+1", "01", "00", "-1", "1.0", "1e3", "0x1", " 1", "18446744073709551616", "١"] {
            assert!(wrong.parse::<Decimal<u64>>().is_err(), "{wrong}");
        }
        for wrong in ["-0", "--1", "- 1", "-01"] {
            assert!(wrong.parse::<Decimal<Balance>>().is_err(), "{wrong}");
        }
        assert!(serde_json::from_str::<Decimal<u64>>("7").is_err(), "a JSON number may have lost digits");
    }

    #[test]
    fn bytes_are_written_in_lower_case() {
        assert_eq!("0xABcd".parse::<Hex<2>>().unwrap().to_string(), "0xabcd");
        for wrong in ["", "0x", "abcd", "0xabc", "0xabcde", "0xabcdef", "0Xabcd", "0xabcg"] {
            assert!(wrong.parse::<Hex<2>>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn accounts_are_read_in_all_three_forms() {
        let ed25519 = AccountId::from_ed25519(&[7; 32]);
        let ethereum: AccountId = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045".parse().unwrap();
        for account in [ed25519, ethereum] {
            assert_eq!(account.to_string().parse(), Ok(Account(account)));
            assert_eq!(Hex(account.0).to_string().parse(), Ok(Account(account)));
        }
        for wrong in ["", "0x", "fp1", "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045", &"0".repeat(100_000)] {
            let error = wrong.parse::<Account>().unwrap_err().to_string();
            assert!(error.len() < 300, "{error}");
        }
    }
}
