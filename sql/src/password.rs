//! Passwords of roles: SCRAM-SHA-256 verifiers, as `pg_authid.rolpassword` has them.
//!
//! Only the verifier of a password is stored, `SCRAM-SHA-256$iterations:salt$stored key:server
//! key`: a reader of it can check a password, but not log in with it.
//!
//! Source: RFC 5802 and RFC 7677, and PostgreSQL's `pg_be_scram_build_secret` (auth-scram.c).

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SecureRandom;
use ring::{digest, hmac, pbkdf2, rand};

use crate::error::{Error, Result};

/// Method, with which a verifier begins.
const METHOD: &str = "SCRAM-SHA-256";
/// Iterations of new verifiers, as in PostgreSQL.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4_096).expect("it is not zero");
/// Bytes of a new salt, as in PostgreSQL.
const SALT_BYTES: usize = 16;
/// Bytes of a key.
const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;

/// The parts of a verifier.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordVerifier {
    /// Iterations of the hash of the password.
    pub iterations: usize,
    /// The salt of the hash.
    pub salt: Vec<u8>,
    /// The hash of the client's key, which a login is checked by.
    pub stored_key: Vec<u8>,
    /// The server's key, by which it proves that it knows the verifier.
    pub server_key: Vec<u8>,
}

impl PasswordVerifier {
    /// Parses a stored verifier; `None` if it is none.
    pub fn parse(text: &str) -> Option<PasswordVerifier> {
        let rest = text.strip_prefix(METHOD)?.strip_prefix('$')?;
        let (hash, keys) = rest.split_once('$')?;
        let ((iterations, salt), (stored, server)) = (hash.split_once(':')?, keys.split_once(':')?);
        let decode = |text: &str| STANDARD.decode(text).ok();
        let verifier = PasswordVerifier {
            iterations: iterations.parse().ok().filter(|count| *count > 0)?,
            salt: decode(salt)?,
            stored_key: decode(stored)?,
            server_key: decode(server)?,
        };
        let has_keys =
            verifier.stored_key.len() == KEY_BYTES && verifier.server_key.len() == KEY_BYTES;
        has_keys.then_some(verifier)
    }

    /// Returns the text that is stored.
    fn text(&self) -> String {
        let [salt, stored, server] =
            [&self.salt, &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        format!("{METHOD}${}:{salt}${stored}:{server}", self.iterations)
    }
}

/// Returns the stored text of a password: its verifier. A text that is a verifier is stored as it
/// is.
///
/// # Errors
///
/// 0A000 for an MD5 hash; XX000 if there is no randomness.
pub fn stored_password(password: &str) -> Result<String> {
    if PasswordVerifier::parse(password).is_some() {
        return Ok(password.to_owned());
    }
    let is_md5 = password.len() == 35
        && password
            .strip_prefix("md5")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_md5 {
        bail!(FEATURE_NOT_SUPPORTED: "passwords as MD5 hashes are not supported";
            hint "Give the password itself, or its SCRAM-SHA-256 verifier.");
    }
    let mut salt = [0; SALT_BYTES];
    let random = rand::SystemRandom::new();
    random.fill(&mut salt).map_err(|_| err!(INTERNAL_ERROR: "could not generate random salt"))?;
    Ok(verifier_of(password, &salt).text())
}

fn verifier_of(password: &str, salt: &[u8]) -> PasswordVerifier {
    // As in PostgreSQL, a text that cannot be normalized is taken as it is.
    let normal = stringprep::saslprep(password).unwrap_or(password.into());
    let mut salted = [0; KEY_BYTES];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, salt, normal.as_bytes(), &mut salted);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
    let client_key = hmac::sign(&key, b"Client Key");
    PasswordVerifier {
        iterations: ITERATIONS.get() as usize,
        salt: salt.to_vec(),
        stored_key: digest::digest(&digest::SHA256, client_key.as_ref()).as_ref().to_vec(),
        server_key: hmac::sign(&key, b"Server Key").as_ref().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by PostgreSQL 15: the password is `secret`.
    const OF_POSTGRES: &str = "SCRAM-SHA-256$4096:";

    #[test]
    fn verifiers_round_trip() {
        let stored = stored_password("secret").unwrap();
        assert!(stored.starts_with(OF_POSTGRES));
        let verifier = PasswordVerifier::parse(&stored).unwrap();
        assert!(verifier == verifier_of("secret", &verifier.salt));
        assert!(verifier != verifier_of("Secret", &verifier.salt));
        assert_eq!(stored_password(&stored).unwrap(), stored);
        assert_ne!(stored_password("secret").unwrap(), stored);
    }

    #[test]
    fn other_texts_are_passwords() {
        for text in
            ["", "SCRAM-SHA-256", "SCRAM-SHA-256$4096:a$b:c", "SCRAM-SHA-256$0:AA==$AA==:AA=="]
        {
            assert!(PasswordVerifier::parse(text).is_none(), "{text}");
            assert!(stored_password(text).unwrap().starts_with(OF_POSTGRES));
        }
        let md5 = format!("md5{}", "0".repeat(32));
        assert_eq!(stored_password(&md5).unwrap_err().sqlstate, "0A000");
    }
}
