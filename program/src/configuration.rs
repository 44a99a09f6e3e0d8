//! Errors of malformed configurations: the place, the key, and the expected form, never the value itself.
//! Configurations hold secrets, such as keys in the URLs of Ethereum providers, and errors end up in logs.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::ops::Range;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

/// The minimum length of a text that is removed everywhere: a shorter one may be part of any word.
const TEXT_LENGTH_MIN: usize = 4;

/// The place and the cause of a malformed configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    line: usize,
    column: usize,
    key: Option<String>,
    reason: String,
}

impl std::error::Error for Malformed {}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}, ", self.line, self.column)?;
        self.key.iter().try_for_each(|key| write!(f, "`{key}`: "))?;
        f.write_str(&self.reason)
    }
}

/// Keys of earlier versions, with their present names.
const RENAMED: [(&str, &str); 1] = [("witness", "high_water_mark")];

/// Reads a configuration in TOML.
///
/// # Errors
/// If the text is not TOML, has an unknown key, lacks a required key, or has a value of the wrong type.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Malformed> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..text.len());
        let mut found = Found { span: span.clone(), key: Vec::new(), texts: Vec::new() };
        if let Ok(table) = DeTable::parse(text) {
            found.search_table(&mut Vec::new(), table.get_ref());
        }
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let renamed = found.key.last().and_then(|key| RENAMED.iter().find(|(old, _)| old == key));
        Malformed {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            key: (!found.key.is_empty()).then(|| found.key.join(".")),
            reason: renamed.map(|(old, new)| format!("`{old}` is called `{new}` now")).unwrap_or_else(|| {
                found.texts.iter().fold(error.message().to_owned(), |reason, text| without(&reason, text))
            }),
        }
    })
}

/// The key and the texts at the position of an error.
struct Found<'t> {
    span: Range<usize>,
    /// The path of the innermost key.
    key: Vec<String>,
    texts: Vec<Cow<'t, str>>,
}

impl<'t> Found<'t> {
    fn search_table(&mut self, path: &mut Vec<String>, table: &DeTable<'t>) {
        for (key, value) in table {
            path.push(key.get_ref().to_string());
            self.compare_span(path, &key.span());
            self.search_value(path, value);
            path.pop();
        }
    }

    fn search_value(&mut self, path: &mut Vec<String>, value: &Spanned<DeValue<'t>>) {
        self.compare_span(path, &value.span());
        match value.get_ref() {
            DeValue::Table(table) => self.search_table(path, table),
            DeValue::Array(values) => values.iter().for_each(|value| self.search_value(path, value)),
            DeValue::String(text) if value.span().start < self.span.end && self.span.start < value.span().end => {
                self.texts.push(text.clone());
            }
            _ => {}
        }
    }

    /// Keeps this key if its span contains the error. The search descends, so the innermost key is kept last.
    fn compare_span(&mut self, path: &[String], span: &Range<usize>) {
        if span.start <= self.span.start && self.span.end <= span.end {
            self.key = path.to_owned();
        }
    }
}

/// Removes every quotation of `text` from an error's reason.
fn without(reason: &str, text: &str) -> String {
    let quoted = reason.replace(&format!("{text:?}"), "\"…\"").replace(&format!("`{text}`"), "`…`");
    if text.len() < TEXT_LENGTH_MIN { quoted } else { quoted.replace(text, "…") }
}

/// Parses an argument that is the URL of an Ethereum node. An error does not repeat the URL.
#[derive(Clone, Copy, Debug)]
pub struct NodeUrl;

impl TypedValueParser for NodeUrl {
    type Value = Url;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&clap::Arg>, value: &OsStr) -> Result<Url, clap::Error> {
        Url::parse(&value.to_string_lossy()).map_err(|error| {
            let name = arg.map(ToString::to_string).unwrap_or_default();
            command.clone().error(ErrorKind::ValueValidation, format!("invalid value for '{name}': {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde::Deserialize;

    use super::*;

    const KEY: &str = "0123456789abcdef";

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read")]
    struct Configuration {
        primary: Primary,
        #[serde(default)]
        keys: Vec<Pair>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read")]
    struct Primary {
        rpc_urls: Vec<Url>,
        chain_id: Option<u64>,
        finality: Option<Finality>,
        listen: Option<std::net::SocketAddr>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read")]
    struct Pair {
        voting: String,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Finality {
        Safe,
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = read::<Configuration>(text).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    }

    #[test]
    fn an_error_names_its_cause_and_place() {
        let unknown = "unknown field `rpc_url`, expected one of `rpc_urls`, `chain_id`, `finality`, `listen`";
        check(
            &format!("[primary]\n  rpc_url = [\"https://eth.example/v3/{KEY}\"]\n"),
            &format!("line 2, column 3, `primary.rpc_url`: {unknown}"),
        );
        check("", "line 1, column 1, missing field `primary`");
        check("[primary]\nchain_id = 1\n", "line 1, column 1, `primary`: missing field `rpc_urls`");
        let keys = "primary.rpc_urls = []\n[[keys]]\nvoting = \"a\"\n[[keys]]\n[[keys]]\n";
        check(keys, "line 4, column 1, `keys`: missing field `voting`");
        let negative = "invalid value: integer `-1`, expected u64";
        check("primary = { chain_id = -1 }", &format!("line 1, column 24, `primary.chain_id`: {negative}"));
        check("a = 'é' 1\n", "line 1, column 9, unexpected key or value, expected newline, `#`");
    }

    #[test]
    fn an_error_does_not_repeat_the_value() {
        let url = format!("https://eth.example/v3/{KEY}");
        let check = |key: &str, value: &str, expected: &str| {
            check(&format!("[primary]\n{key} = {value}\n"), expected);
        };
        let sequence = "line 2, column 12, `primary.rpc_urls`: invalid type: string \"…\", expected a sequence";
        check("rpc_urls", &format!("\"{url}\""), sequence);
        check("rpc_urls", &format!("'''{url}'''"), sequence);
        check("rpc_urls", &format!("\"\\u0068ttps\\\"{KEY}\""), sequence);
        let second = format!("[\"{url}\",\n \"eth.example/v3/{KEY}\"]");
        check("rpc_urls", &second, "line 3, column 2, `primary.rpc_urls`: relative URL without a base: \"…\"");
        let number = "line 2, column 12, `primary.chain_id`: invalid type: string \"…\", expected u64";
        check("chain_id", &format!("\"{url}\""), number);
        let variant = "line 2, column 12, `primary.finality`: unknown variant `…`, expected `safe`";
        check("finality", &format!("\"{url}\""), variant);
        check("finality", "\"a\"", variant);
        let address = "line 2, column 10, `primary.listen`: invalid socket address syntax";
        check("listen", &format!("\"{KEY}\""), address);
        // Not TOML at all.
        check("rpc_urls", &url, "line 2, column 12, string values must be quoted, expected literal string");
        check("rpc_urls", &format!("[\"{url}]"), "line 2, column 54, unclosed array, expected `]`");
    }

    #[test]
    fn an_argument_that_is_no_url_is_not_repeated() {
        #[derive(Debug, clap::Parser)]
        struct Arguments {
            #[arg(long, value_parser = NodeUrl, value_delimiter = ',')]
            rpc_url: Vec<Url>,
        }
        let good = Arguments::try_parse_from(["program", "--rpc-url", "http://a,https://b"]).unwrap();
        assert_eq!(good.rpc_url.len(), 2);
        let wrong = format!("http://a,eth.example/v3/{KEY}");
        let error = Arguments::try_parse_from(["program", "--rpc-url", &wrong]).unwrap_err();
        let said = format!("{error}{error:?}");
        assert!(said.contains("invalid value for '--rpc-url <RPC_URL>': relative URL without a base"), "{said}");
        assert!(error.to_string().contains("Usage") && !said.contains(KEY), "{said}");
    }
}
