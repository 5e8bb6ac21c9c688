//! SCRAM (RFC 5802, RFC 7677): a login in which neither side shows the other its password.
//!
//! The server keeps, for a user and a mechanism, what it needs to check a proof: [`Credentials`],
//! from which the password can't be found but by trying. The messages, `C` from the client and `S`
//! from the server:
//!
//! ```text
//! C: n,,n=user,r=CLIENT                        [`ClientFirst::parse`]
//! S: r=CLIENTSERVER,s=SALT,i=ITERATIONS        [`Exchange::begin`]
//! C: c=biws,r=CLIENTSERVER,p=PROOF
//! S: v=SIGNATURE                               [`Exchange::finish`]
//! ```
//!
//! The proof is the client's key, which only the password gives, XOR a signature of all messages;
//! the server XORs that out again, and the hash of what is left must be the stored key. As MongoDB
//! does it, `SCRAM-SHA-1` takes for a password the MD5 of `user:mongo:password` in hexadecimal
//! digits, and names of users are not prepared.

mod client;
mod exchange;

use std::num::NonZeroU32;

use data_encoding::HEXLOWER;
use frond_db::Error;
use frond_doc::extended_json::base64;
use frond_doc::{Document, DocumentBuilder, Value};
use frond_query::Code;
use md5::{Digest, Md5};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};

pub use client::Login;
pub use exchange::{ClientFirst, Exchange, Refused};

/// The mechanism by which a router logs in for a user: SCRAM-SHA-256 of the user's name, with the
/// router's key in the password's place. Only servers with such a key take it.
pub const OF_ROUTERS: &str = "FROND-ROUTER";

/// The least number of iterations in documents that come from elsewhere: fewer are refused.
const ITERATIONS_MIN: u32 = 5_000;
/// The greatest number of iterations: more would let one document stop the server.
const ITERATIONS_MAX: u32 = 10_000_000;

/// A kind of SCRAM.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mechanism {
    /// `SCRAM-SHA-1`
    Sha1,
    /// `SCRAM-SHA-256`
    Sha256,
}

/// The facts about a password that a server stores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// The number of times the password was hashed.
    pub iterations: u32,
    /// The salt.
    pub salt: Vec<u8>,
    /// The hash of the key by which the client proves itself.
    pub stored_key: Vec<u8>,
    /// The key by which the server proves itself.
    pub server_key: Vec<u8>,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 2] = [Mechanism::Sha1, Mechanism::Sha256];

    /// Its name in commands and documents.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    /// The mechanism of this name.
    pub fn named(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// Returns how often new passwords are hashed.
    pub fn iterations(self) -> u32 {
        match self {
            Mechanism::Sha1 => 10_000,
            Mechanism::Sha256 => 15_000,
        }
    }

    /// Returns how long a salt is: with its counter it fills a block of the hash.
    pub fn salt_bytes(self) -> usize {
        self.key_bytes() - 4
    }

    fn key_bytes(self) -> usize {
        self.digest().output_len()
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Mechanism::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::Sha256 => &digest::SHA256,
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        digest::digest(self.digest(), bytes).as_ref().to_vec()
    }

    fn sign(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Mechanism::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::Sha256 => hmac::HMAC_SHA256,
        };
        hmac::sign(&hmac::Key::new(algorithm, key), bytes).as_ref().to_vec()
    }

    /// The password, salted and hashed.
    fn salted(self, prepared: &str, salt: &[u8], iterations: u32) -> Vec<u8> {
        let algorithm = match self {
            Mechanism::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Mechanism::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        };
        let times = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
        let mut salted = vec![0; self.key_bytes()];
        pbkdf2::derive(algorithm, times, salt, prepared.as_bytes(), &mut salted);
        salted
    }

    /// The key by which a client proves itself.
    fn client_key(self, prepared: &str, salt: &[u8], iterations: u32) -> Vec<u8> {
        self.sign(&self.salted(prepared, salt, iterations), b"Client Key")
    }

    /// The password as the mechanism hashes it.
    ///
    /// # Errors
    /// `BadValue` if SASLprep (RFC 4013) forbids it.
    pub fn prepare(self, user: &str, password: &str) -> Result<String, Error> {
        match self {
            Mechanism::Sha1 => Ok(md5_password(user, password)),
            Mechanism::Sha256 => match stringprep::saslprep(password) {
                Ok(prepared) => Ok(prepared.into_owned()),
                Err(_) => {
                    let message = "the password holds characters that SASLprep (RFC 4013) forbids";
                    Err(Error::invalid(Code::BadValue, message))
                }
            },
        }
    }
}

/// Returns the hash that MongoDB's clients use for `SCRAM-SHA-1` instead of the password.
fn md5_password(user: &str, password: &str) -> String {
    HEXLOWER.encode(&Md5::digest(format!("{user}:mongo:{password}").as_bytes()))
}

/// Random bytes that no attacker can guess.
///
/// # Errors
/// `InternalError` if the system has none.
pub fn random_bytes(count: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; count];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::internal("the system gives no random bytes"))?;
    Ok(bytes)
}

impl Credentials {
    /// New credentials for a password as [`Mechanism::prepare`] gives it.
    ///
    /// # Errors
    /// As [`random_bytes`].
    pub fn new(mechanism: Mechanism, prepared: &str) -> Result<Credentials, Error> {
        let salt = random_bytes(mechanism.salt_bytes())?;
        Ok(Credentials::derive(mechanism, prepared, salt, mechanism.iterations()))
    }

    /// The credentials of a password, a salt and a number of iterations (0 counts as 1).
    pub fn derive(
        mechanism: Mechanism,
        prepared: &str,
        salt: Vec<u8>,
        iterations: u32,
    ) -> Credentials {
        let salted = mechanism.salted(prepared, &salt, iterations);
        let client_key = mechanism.sign(&salted, b"Client Key");
        Credentials {
            iterations,
            salt,
            stored_key: mechanism.hash(&client_key),
            server_key: mechanism.sign(&salted, b"Server Key"),
        }
    }

    /// The credentials of a user who doesn't exist: always the same for a name, as those of other
    /// users are, and no password is right.
    pub fn of_unknown_user(mechanism: Mechanism, secret: &[u8], name: &str) -> Credentials {
        let part = |part: &str| {
            let key = Mechanism::Sha256.sign(secret, mechanism.name().as_bytes());
            Mechanism::Sha256.sign(&key, format!("{part}\0{name}").as_bytes())
        };
        let cut = |mut bytes: Vec<u8>, count: usize| {
            bytes.truncate(count);
            bytes
        };
        Credentials {
            iterations: mechanism.iterations(),
            salt: cut(part("salt"), mechanism.salt_bytes()),
            stored_key: cut(part("stored key"), mechanism.key_bytes()),
            server_key: cut(part("server key"), mechanism.key_bytes()),
        }
    }

    /// Appends them as MongoDB stores them.
    pub fn append(&self, builder: &mut DocumentBuilder, mechanism: Mechanism) {
        let iterations = i32::try_from(self.iterations).unwrap_or(i32::MAX);
        builder
            .begin_document(mechanism.name())
            .append("iterationCount", Value::Int32(iterations))
            .append("salt", Value::String(&base64::encode(&self.salt)))
            .append("storedKey", Value::String(&base64::encode(&self.stored_key)))
            .append("serverKey", Value::String(&base64::encode(&self.server_key)))
            .end();
    }

    /// Reads them as MongoDB stores them; `None` if they are none of this mechanism.
    pub fn read(document: Document<'_>, mechanism: Mechanism) -> Option<Credentials> {
        let bytes = |name: &str| base64::decode(document.get(name)?.as_str()?);
        let key = |name: &str| bytes(name).filter(|key| key.len() == mechanism.key_bytes());
        let iterations = u32::try_from(document.get("iterationCount")?.as_integer()?).ok()?;
        (ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations).then_some(())?;
        Some(Credentials {
            iterations,
            salt: bytes("salt").filter(|salt| !salt.is_empty())?,
            stored_key: key("storedKey")?,
            server_key: key("serverKey")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_they_were_written() {
        for mechanism in Mechanism::ALL {
            assert_eq!(Mechanism::named(mechanism.name()), Some(mechanism));
            let new = Credentials::new(mechanism, "secret").expect("random bytes");
            assert_eq!(new.salt.len(), if mechanism == Mechanism::Sha1 { 16 } else { 28 });
            let mut builder = DocumentBuilder::new();
            new.append(&mut builder, mechanism);
            let document = builder.build();
            let stored = document.get(mechanism.name()).and_then(|value| value.as_document());
            let stored = stored.expect("appended");
            assert_eq!(Credentials::read(stored, mechanism).as_ref(), Some(&new));
            let other = Mechanism::ALL.into_iter().find(|other| *other != mechanism);
            assert_eq!(Credentials::read(stored, other.expect("there are two")), None);
        }
    }

    #[test]
    fn an_unknown_user_always_gets_the_same_salt() {
        for mechanism in Mechanism::ALL {
            let ann = Credentials::of_unknown_user(mechanism, &[1; 32], "ann@shop");
            assert_eq!(ann, Credentials::of_unknown_user(mechanism, &[1; 32], "ann@shop"));
            assert_ne!(
                ann.salt,
                Credentials::of_unknown_user(mechanism, &[1; 32], "bob@shop").salt
            );
            assert_ne!(
                ann.salt,
                Credentials::of_unknown_user(mechanism, &[2; 32], "ann@shop").salt
            );
            assert_eq!(ann.salt.len(), mechanism.salt_bytes());
            assert_eq!(ann.stored_key.len(), mechanism.key_bytes());
            assert_eq!(ann.iterations, mechanism.iterations());
        }
    }

    /// The examples of RFC 4013, section 3, and MongoDB's pair of names for one password.
    #[test]
    fn passwords_are_prepared() {
        for (password, expected) in [
            ("I\u{ad}X", Some("IX")),
            ("user", Some("user")),
            ("USER", Some("USER")),
            ("\u{aa}", Some("a")),
            ("\u{2168}", Some("IX")),
            ("\u{7}", None),
            ("\u{627}1", None),
        ] {
            let prepared = Mechanism::Sha256.prepare("ann", password).ok();
            assert_eq!(prepared.as_deref(), expected, "{password:?}");
        }
        // The digest of `user:mongo:pencil`, worked out by another program.
        let expected = "1c33006ec1ffd90f9cadcbcc0e118200";
        assert_eq!(Mechanism::Sha1.prepare("user", "pencil").expect("any"), expected);
    }
}
