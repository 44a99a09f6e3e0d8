//! The `[traces]` section of every program's configuration.

use serde::{Deserialize, Serialize};
use url::{Position, Url};

/// The default ratio: one payment in a hundred.
const RATIO: f64 = 0.01;

/// The collector, and the ratio of payments that are traced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSettings {
    /// A collector's port for OTLP over gRPC, usually 4317.
    pub endpoint: Collector,
    /// The ratio of payments that are traced. Programs with the same ratio trace the same payments.
    #[serde(default)]
    pub ratio: Ratio,
}

/// An `http` or `https` address. With `https`, the system's certificates authenticate the collector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Url")]
pub struct Collector(Url);

/// The ratio of traced payments, from 0 (none) to 1 (all).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64")]
pub struct Ratio(f64);

/// Why a setting is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// Not the address of an HTTP/2 server. Only scheme, host and port are kept, since the rest may be a secret.
    #[error("{0} is not a collector; give an http or https URL with a host and no user, path or query")]
    Collector(String),
    /// The ratio is not between 0 and 1.
    #[error("{0} is not a ratio; give a number from 0 (no payment is traced) to 1 (all are)")]
    Ratio(f64),
}

impl TryFrom<Url> for Collector {
    type Error = SettingsError;
    fn try_from(url: Url) -> Result<Self, SettingsError> {
        let is_plain = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        // The address may be logged, so it must contain no password.
        let is_open = url.username().is_empty() && url.password().is_none();
        if matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain && is_open {
            Ok(Self(url))
        } else {
            let place = &url[Position::BeforeHost..Position::BeforePath];
            let place = if url.has_host() { format!("//{place}") } else { "…".into() };
            Err(SettingsError::Collector(format!("{}:{place}", url.scheme())))
        }
    }
}

impl Collector {
    /// The collector's address.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.0
    }
}

impl TryFrom<f64> for Ratio {
    type Error = SettingsError;
    fn try_from(ratio: f64) -> Result<Self, SettingsError> {
        if (0.0..=1.0).contains(&ratio) { Ok(Self(ratio)) } else { Err(SettingsError::Ratio(ratio)) }
    }
}

impl Ratio {
    /// The ratio as a number from 0 to 1.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A ratio is never NaN.
impl Eq for Ratio {}

impl Default for Ratio {
    fn default() -> Self {
        Self(RATIO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_program::configuration;

    fn read(text: &str) -> Result<TraceSettings, String> {
        configuration::read(text).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        let settings = read("endpoint = \"http://localhost:4317\"\nratio = 1\n").unwrap();
        assert_eq!((settings.endpoint.url().port(), settings.ratio.get()), (Some(4317), 1.0));
        assert_eq!(read(&toml::to_string(&settings).unwrap()).unwrap(), settings);
        assert_eq!(read("endpoint = \"https://collector.example:4317/\"\n").unwrap().ratio.get(), RATIO);
        assert_eq!(read("endpoint = \"http://[::1]:4317\"\nratio = 0.0\n").unwrap().ratio.get(), 0.0);
    }

    #[test]
    fn wrong_settings_are_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("ratio = 0.5\n", "missing field `endpoint`");
        check("endpoint = \"http://localhost:4317\"\nsampler = 1\n", "unknown field `sampler`");
        for (endpoint, named) in [
            ("grpc://a:1", "grpc://a:1"),
            ("http://a:1/v1/traces", "http://a:1"),
            ("http://user:secret@a:1", "http://a:1"),
            ("http://a/?x=secret", "http://a"),
            ("file:///secret", "file:…"),
            ("a:1", "a:…"),
        ] {
            let error = Collector::try_from(Url::parse(endpoint).unwrap()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{named} is not a collector;")), "{error}");
            check(&format!("endpoint = \"{endpoint}\"\n"), "is not a collector");
        }
        for ratio in ["1.01", "-0.1", "nan", "inf"] {
            check(&format!("endpoint = \"http://a:1\"\nratio = {ratio}\n"), "is not a ratio");
        }
    }
}
