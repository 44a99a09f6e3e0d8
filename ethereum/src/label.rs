//! The name of an Ethereum node in messages: the origin of its URL. The rest of a URL often contains an access key. It
//! is removed from all error texts of the node and the transport, which often repeat it.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::{Position, Url};

/// The maximum number of characters of an external text in an error.
const QUOTE_LENGTH_MAX: usize = 200;
/// A shorter part of a URL, such as `v3` or `apikey`, is not a key, and may be in any text.
const KEY_LENGTH_MIN: usize = 8;

/// A node's name for messages, without the parts of its URL that may be secret.
pub(crate) struct Label {
    origin: String,
    /// The parts to remove, the longest first, because one may contain another.
    private: Vec<String>,
}

impl Label {
    pub(crate) fn new(url: &Url) -> Self {
        let user = &url[Position::BeforeUsername..Position::BeforeHost];
        // As they appear in the URL, whatever their length.
        let mut private: Vec<String> = [&url[Position::BeforePath..], url.path(), user].map(str::to_owned).into();
        private.retain(|part| !matches!(part.as_str(), "" | "/"));
        let words = private.iter().flat_map(|part| part.split(['/', '?', '&', '=', '#', ':', '@']));
        let decoded = |word: &str| percent_decode_str(word).decode_utf8_lossy().into_owned();
        let words: Vec<String> = words.flat_map(|word| [word.to_owned(), decoded(word)]).collect();
        private.extend(words.into_iter().filter(|word| word.len() >= KEY_LENGTH_MIN));
        private.sort_by_key(|part| std::cmp::Reverse(part.len()));
        Self { origin: url.origin().ascii_serialization(), private }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.origin
    }

    /// The start of an external text, on one line, without the private parts of the URL.
    pub(crate) fn quote(&self, text: &str) -> String {
        let open = self.private.iter().fold(text.to_owned(), |text, part| text.replace(part, "…"));
        open.chars().take(QUOTE_LENGTH_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

/// Shows the name alone.
impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_key_is_left_out_of_texts_and_nothing_else() {
        let url = "https://user:pass%20phrase@eth.example:8545/v3/0123456789abcdef?network=main&apikey=a-second-key";
        let label = Label::new(&url.parse().unwrap());
        assert_eq!(
            (label.as_str(), format!("{label:?}").as_str()),
            ("https://eth.example:8545", "\"https://eth.example:8545\"")
        );
        for (text, expected) in [
            (url, "https://…eth.example:8545…"),
            ("Cannot POST /v3/0123456789abcdef", "Cannot POST …"),
            ("the key 0123456789abcdef is unknown", "the key … is unknown"),
            ("a-second-key is over its limit", "… is over its limit"),
            ("no user with pass phrase, or pass%20phrase", "no user with …, or …"),
            ("apikey of v3 is wrong\non main", "apikey of v3 is wrong on main"),
        ] {
            assert_eq!(label.quote(text), expected);
        }
        // The private part is removed before the end is cut off.
        let cut = label.quote(&format!("{}0123456789abcdef", "x".repeat(QUOTE_LENGTH_MAX - 10)));
        assert!(cut.ends_with("x…"), "{cut}");
        let local = Label::new(&"http://127.0.0.1:8545".parse().unwrap());
        assert_eq!(local.quote("error at http://127.0.0.1:8545/ a/b"), "error at http://127.0.0.1:8545/ a/b");
        let short = Label::new(&"http://node.example/?k=1#x".parse().unwrap());
        assert_eq!(short.quote("url (http://node.example/?k=1#x): 1 + 1"), "url (http://node.example…): 1 + 1");
    }
}
