//! Payment links, which ask for money (docs/PAYMENT_LINKS.md). They are like EIP-681, but contain the chain and the
//! contract, so that a wallet of another deployment refuses them.
//!
//! ```text
//! fastpay:<account>@<chain id>/<contract>?asset=&amount=&memo=|text=&label=&expires=
//! https://wallet.example/pay#fastpay:…
//! ```
//! A link is text from a stranger: it is parsed strictly, and states who *asks* for money, without proof of identity.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use fastpay_core::{AccountId, Amount, Asset, Domain, Memo, PrimaryAddress};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::memo::{format_memo, is_formatting, parse_memo};

/// The maximum length of a link, in UTF-16 code units. A longer one would fit no QR code that a camera reads with ease.
pub const LINK_LENGTH_MAX: usize = 1_024;
/// The number of characters of a label that are shown.
pub const LABEL_LENGTH_MAX: usize = 64;

const SCHEME: &str = "fastpay:";
/// The largest chain id that programs agree on (EIP-2294), and a bound for times.
const NUMBER_MAX: u64 = 4_503_599_627_370_476;
/// The end of the year 9999, the latest time in a link.
const TIME_MAX: u64 = 253_402_300_799;
const PARAMETERS: [&str; 6] = ["asset", "amount", "memo", "text", "label", "expires"];
/// The characters that JavaScript's `encodeURIComponent` encodes, so that both write the same links.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// A payment link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentLink {
    /// The account to be paid.
    pub account: AccountId,
    /// The chain of the deployment that the payment is for.
    pub chain_id: u64,
    /// Its contract.
    pub contract: PrimaryAddress,
    /// The asset to be paid.
    pub asset: Asset,
    /// The amount; without it, the payer chooses.
    pub amount: Option<Amount>,
    /// The memo that the payment must carry, so that the recipient can recognise it.
    pub memo: Option<Memo>,
    /// The recipient's own name for itself, unverified.
    pub label: Option<String>,
    /// The time until which the recipient expects the payment, in seconds since 1970.
    pub expires: Option<u64>,
}

/// Why a text is not a usable link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this payment link cannot be used: {0}")]
pub struct LinkError(String);

/// A label has so many characters that payers would see only a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the label has {0} characters; at most {LABEL_LENGTH_MAX} are shown, so shorten it")]
pub struct LabelTooLong(pub usize);

impl From<LabelTooLong> for LinkError {
    fn from(error: LabelTooLong) -> Self {
        invalid(error.to_string())
    }
}

impl PaymentLink {
    /// A link to `account` of a deployment, without further conditions.
    #[must_use]
    pub fn new(account: AccountId, domain: &Domain, asset: Asset) -> Self {
        let (chain_id, contract) = (domain.chain_id(), domain.contract());
        Self { account, chain_id, contract, asset, amount: None, memo: None, label: None, expires: None }
    }

    /// The same link in its normal form, if every wallet can read it back.
    ///
    /// # Errors
    /// If it asks for an amount of zero, or it or its label is too long.
    pub fn check(&self) -> Result<Self, LinkError> {
        self.label.as_deref().map_or(Ok(()), check_label)?;
        self.to_string().parse()
    }

    /// The link for payers without a program for `fastpay:`: to a page of a web wallet that reads it. The link comes
    /// after the `#`, so the page's host never sees who asks for money.
    #[must_use]
    pub fn behind(&self, page: &url::Url) -> String {
        let mut page = page.clone();
        page.set_fragment(Some(&self.to_string()));
        page.into()
    }

    /// Whether the text claims to be a link of either form, well-formed or not.
    #[must_use]
    pub fn is_claimed_by(text: &str) -> bool {
        after_scheme(without_page(text.trim())).is_some()
    }
}

impl fmt::Display for PaymentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}@{}/{}", self.account, self.chain_id, self.contract)?;
        let mut separator = '?';
        let mut add = |name: &str, value: &str| {
            f.write_char(std::mem::replace(&mut separator, '&'))?;
            write!(f, "{name}={}", utf8_percent_encode(value, COMPONENT))
        };
        if self.asset != Asset::ETHER {
            add("asset", &self.asset.0.to_string())?;
        }
        if let Some(amount) = self.amount {
            add("amount", &amount.to_string())?;
        }
        if let Some(memo) = self.memo.filter(|memo| !memo.is_zero()) {
            let text = format_memo(&memo);
            // Text may represent the memo only if it parses to the very same bytes.
            let is_text = text != memo.to_string() && parse_memo(&text) == Ok(memo);
            add(if is_text { "text" } else { "memo" }, &text)?;
        }
        if let Some(label) = self.label.as_deref().filter(|label| !label.is_empty()) {
            add("label", label)?;
        }
        if let Some(expires) = self.expires {
            add("expires", &expires.to_string())?;
        }
        Ok(())
    }
}

impl FromStr for PaymentLink {
    type Err = LinkError;

    /// Parses a link of either form.
    fn from_str(text: &str) -> Result<Self, LinkError> {
        // JavaScript counts UTF-16 code units, and all wallets must agree.
        if text.encode_utf16().count() > LINK_LENGTH_MAX {
            return Err(invalid("it is too long; ask for a shorter one"));
        }
        let rest = after_scheme(without_page(text.trim()))
            .ok_or_else(|| invalid("it does not start with fastpay:; copy it again completely"))?;
        let (target, query) = rest.split_once('?').unwrap_or((rest, ""));
        let incomplete = || invalid("it lacks an account, chain or contract; copy it again completely");
        let (account, deployment) = target.split_once('@').ok_or_else(incomplete)?;
        let (chain_id, contract) = deployment.split_once('/').ok_or_else(incomplete)?;
        let account = AccountId::from_str(account).map_err(|error| invalid(error.to_string()))?;
        let parameters = Parameters::read(query)?;
        let amount = parameters.number("amount", u128::MAX)?.map(Amount);
        if amount == Some(Amount(0)) {
            return Err(invalid("its amount is zero; ask for a link with an amount"));
        }
        Ok(Self {
            account,
            chain_id: number("chain id", chain_id, NUMBER_MAX.into())?.try_into().map_err(|_| incomplete())?,
            contract: address("contract", contract)?,
            asset: parameters.get("asset").map_or(Ok(Asset::ETHER), |text| address("asset", text).map(Asset))?,
            amount,
            memo: parameters.memo()?,
            label: parameters.get("label").map(shown_label),
            expires: parameters.number("expires", TIME_MAX.into())?.and_then(|time| time.try_into().ok()),
        })
    }
}

/// The decoded parameters that this wallet knows.
struct Parameters(BTreeMap<&'static str, String>);

impl Parameters {
    fn read(query: &str) -> Result<Self, LinkError> {
        let mut found = BTreeMap::new();
        for pair in query.split('&').filter(|_| !query.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| invalid(format!("{pair:?} has no value; copy it again")))?;
            let Some(known) = PARAMETERS.into_iter().find(|known| *known == name) else {
                // As in BIP-21: an unknown parameter may be ignored unless its name says that it is required.
                if let Some(needed) = name.strip_prefix("req-") {
                    let why = format!("it needs {needed:?}, which this wallet does not know; use a newer wallet");
                    return Err(invalid(why));
                }
                continue;
            };
            if found.insert(known, decode(value)?).is_some() {
                return Err(invalid(format!("it has {known} twice; do not pay, and ask for another link")));
            }
        }
        Ok(Self(found))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str, max: u128) -> Result<Option<u128>, LinkError> {
        self.get(name).map(|text| number(name, text, max)).transpose()
    }

    fn memo(&self) -> Result<Option<Memo>, LinkError> {
        match (self.get("memo"), self.get("text")) {
            (Some(_), Some(_)) => Err(invalid("it has two memos; do not pay, and ask for another link")),
            (Some(digits), None) if digits.len() == 66 && digits.starts_with("0x") => {
                parse_memo(digits).map(Some).map_err(|error| invalid(error.to_string()))
            }
            (Some(_), None) => Err(invalid("its memo is not 0x and 64 digits; copy it again")),
            (None, text) => text.map(|text| parse_memo(text).map_err(|error| invalid(error.to_string()))).transpose(),
        }
    }
}

fn invalid(why: impl Into<String>) -> LinkError {
    LinkError(why.into())
}

fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(rest)
}

fn without_page(text: &str) -> &str {
    let starts = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let is_page = starts("https://") || starts("http://");
    text.split_once('#').filter(|_| is_page).map_or(text, |(_, behind)| behind)
}

fn decode(value: &str) -> Result<String, LinkError> {
    let damaged = || invalid("a % lacks its digits; copy it again");
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let mut escapes = value.as_bytes().split(|byte| *byte == b'%').skip(1);
    if !escapes.all(|after| is_digit(after.first()) && is_digit(after.get(1))) {
        return Err(damaged());
    }
    Ok(percent_decode_str(value).decode_utf8().map_err(|_| damaged())?.into_owned())
}

fn number(what: &str, text: &str, max: u128) -> Result<u128, LinkError> {
    let wrong = || invalid(format!("its {what} is not a number in range; copy it again"));
    let is_plain = (1..=39).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|value| is_plain && *value <= max);
    value.ok_or_else(wrong)
}

fn address(what: &str, text: &str) -> Result<PrimaryAddress, LinkError> {
    let wrong = || invalid(format!("its {what} is not an address, or is mistyped; copy it again completely"));
    if text.len() != 42 || !text.starts_with("0x") {
        return Err(wrong());
    }
    // Parse it as an account, which checks the capitals of an address.
    let account = AccountId::from_str(text).map_err(|_| wrong())?;
    account.ethereum_address().ok_or_else(wrong)
}

/// Checks that a label is short enough for payers to see all of it. A label that is read is cut; one that is written is
/// refused.
///
/// # Errors
/// If it is longer than [`LABEL_LENGTH_MAX`] characters.
pub fn check_label(label: &str) -> Result<(), LabelTooLong> {
    match plain(label).chars().count() {
        0..=LABEL_LENGTH_MAX => Ok(()),
        length => Err(LabelTooLong(length)),
    }
}

/// A stranger's label, cleaned for display.
fn shown_label(label: &str) -> String {
    plain(label).chars().take(LABEL_LENGTH_MAX).collect()
}

/// Removes characters that could mislead on the screen: control and formatting characters, which can reverse text.
fn plain(text: &str) -> String {
    let visible = text.chars().map(|c| if c.is_control() || is_formatting(c) { ' ' } else { c });
    visible.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
