//! The customer's data of an invoice on its checkout page: its description and items, and the link back to the shop.
//!
//! The page's address contains a separate key, because everybody can read the invoice's id in its payments' memo.

use fastpay_core::Amount;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The maximum number of lines: they fit on a page of paper.
pub const ITEMS_MAX: usize = 50;
const NAME_LENGTH_MAX: usize = 128;
const DESCRIPTION_LENGTH_MAX: usize = 256;
const URL_LENGTH_MAX: usize = 1_024;

/// The text of an invoice for the customer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkout {
    /// A description for the customer.
    pub description: Option<String>,
    /// The purchased items.
    pub items: Vec<Item>,
    /// The URL to which the customer returns.
    pub return_url: Option<String>,
}

/// A line of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// The quantity.
    pub quantity: u32,
    /// The price of all of them, in the asset's smallest unit.
    pub amount: Amount,
}

/// Why an invoice cannot be shown to a customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckoutError {
    /// The description is empty, too long or not plain.
    #[error("description must have 1 to {DESCRIPTION_LENGTH_MAX} characters and no control character")]
    Description,
    /// Too many lines.
    #[error("items must have at most {ITEMS_MAX} entries")]
    TooMany,
    /// A line's name or quantity is not valid.
    #[error(
        "an item must have a name of 1 to {NAME_LENGTH_MAX} characters without control characters, and a quantity of \
         at least 1"
    )]
    Item,
    /// The items do not add up to the amount, so the customer would see another sum than the one to pay.
    #[error("the amounts of the items do not add up to the amount of the invoice")]
    Sum,
    /// The URL to return to is not safe.
    #[error(
        "returnUrl begins with https://, or with http:// and this machine's own name, has no user and no password, and at \
         most {URL_LENGTH_MAX} characters"
    )]
    ReturnUrl,
}

impl Checkout {
    /// Checks the text that the customer of an invoice of `amount` would see.
    ///
    /// # Errors
    /// If a text is too long or not plain, the items do not add up, or the URL to return to is not safe.
    pub fn check(&self, amount: Amount) -> Result<(), CheckoutError> {
        let is_plain = |text: &str, length_max: usize| {
            (1..=length_max).contains(&text.chars().count()) && !text.chars().any(char::is_control)
        };
        if !self.description.as_deref().is_none_or(|text| is_plain(text, DESCRIPTION_LENGTH_MAX)) {
            return Err(CheckoutError::Description);
        }
        if self.items.len() > ITEMS_MAX {
            return Err(CheckoutError::TooMany);
        }
        if !self.items.iter().all(|item| is_plain(&item.name, NAME_LENGTH_MAX) && item.quantity > 0) {
            return Err(CheckoutError::Item);
        }
        let sum = self.items.iter().try_fold(0_u128, |sum, item| sum.checked_add(item.amount.0));
        if !self.items.is_empty() && sum != Some(amount.0) {
            return Err(CheckoutError::Sum);
        }
        if !self.return_url.as_deref().is_none_or(is_safe) { Err(CheckoutError::ReturnUrl) } else { Ok(()) }
    }
}

/// Whether a customer may be sent to a URL: it is encrypted or local, and not a script.
pub(crate) fn is_safe(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_this_machine = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_scheme = url.scheme() == "https" || (url.scheme() == "http" && is_this_machine);
    is_scheme && url.username().is_empty() && url.password().is_none() && text.len() <= URL_LENGTH_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_encrypted_or_stays_on_this_machine() {
        let long = format!("https://shop.example/{}", "x".repeat(URL_LENGTH_MAX));
        for (url, is_fit) in [
            ("https://shop.example/thanks?order=7#top", true),
            ("http://localhost:3000/thanks", true),
            ("http://127.0.0.1:3000/", true),
            ("http://[::1]:3000/", true),
            ("http://shop.example/", false),
            ("http://localhost.shop.example/", false),
            ("http://127.0.0.1@shop.example/", false),
            ("https://user:secret@shop.example/", false),
            ("javascript:alert(1)", false),
            ("data:text/html,hello", false),
            ("//shop.example/", false),
            ("", false),
            (long.as_str(), false),
        ] {
            let checkout = Checkout { return_url: Some(url.into()), ..Checkout::default() };
            let expected = if is_fit { Ok(()) } else { Err(CheckoutError::ReturnUrl) };
            assert_eq!(checkout.check(Amount(1)), expected, "{url}");
        }
    }

    #[test]
    fn the_lines_add_up_to_what_is_paid_and_are_plain_text() {
        let item = |name: &str, quantity, amount| Item { name: name.into(), quantity, amount: Amount(amount) };
        let check = |items: Vec<Item>| Checkout { items, ..Checkout::default() }.check(Amount(10));
        assert_eq!(check(vec![]), Ok(()));
        assert_eq!(check(vec![item("Bread", 1, 4), item("Cake", 2, 6)]), Ok(()));
        assert_eq!(check(vec![item("Bread", 1, 4)]), Err(CheckoutError::Sum));
        assert_eq!(check(vec![item("Bread", 1, u128::MAX), item("Cake", 1, 11)]), Err(CheckoutError::Sum));
        assert_eq!(check(vec![item("Bread", 0, 10)]), Err(CheckoutError::Item));
        for name in ["", "a\nb", "\u{1b}[0m", &"x".repeat(NAME_LENGTH_MAX + 1)] {
            assert_eq!(check(vec![item(name, 1, 10)]), Err(CheckoutError::Item), "{name:?}");
        }
        assert_eq!(check(vec![item("Bread", 1, 0); ITEMS_MAX + 1]), Err(CheckoutError::TooMany));
        for text in ["", "a\tb", &"x".repeat(DESCRIPTION_LENGTH_MAX + 1)] {
            let checkout = Checkout { description: Some(text.into()), ..Checkout::default() };
            assert_eq!(checkout.check(Amount(10)), Err(CheckoutError::Description), "{text:?}");
        }
    }
}
