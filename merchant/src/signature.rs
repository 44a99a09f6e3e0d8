//! Signatures of webhooks by Standard Webhooks (<https://www.standardwebhooks.com>), version 1: HMAC-SHA256 of
//! `id.timestamp.body`.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use zeroize::Zeroizing;

const PREFIX: &str = "whsec_";
/// The length of a new secret. The standard requires 24 to 64 bytes.
const LENGTH: usize = 32;
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// The secret that the shop and this service share. `Debug` does not show it.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// A new random secret.
    #[must_use]
    pub fn random() -> Self {
        Self(Zeroizing::new(rand::random::<[u8; LENGTH]>().to_vec()))
    }

    /// Parses `whsec_` and base64.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(STANDARD.decode(text.trim().strip_prefix(PREFIX)?).ok()?);
        LENGTHS.contains(&bytes.len()).then_some(Self(bytes))
    }

    /// The secret as `whsec_` and base64, for the shop's configuration.
    #[must_use]
    pub fn expose(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(&*self.0)))
    }

    /// The header `webhook-signature` of a message that is sent at `timestamp`, in seconds since 1970.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: u64, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_has_its_published_signature() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_is_read_as_it_is_written_and_never_shown() {
        let secret = Secret::random();
        let text = secret.expose();
        assert_eq!(Secret::parse(&text).unwrap().sign("a", 1, "b"), secret.sign("a", 1, "b"));
        assert_ne!(Secret::random().sign("a", 1, "b"), secret.sign("a", 1, "b"));
        assert!(!format!("{secret:?}").contains(&text[6..]));
        for wrong in ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_!", "whsec_MfKQ9r8G"] {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
    }
}
