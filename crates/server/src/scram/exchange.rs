//! The messages of a SCRAM login, seen from the server.

use frond_db::Error;
use frond_doc::extended_json::base64;
use subtle::ConstantTimeEq;

use super::{Credentials, Mechanism, random_bytes};

/// The greatest length of messages: no client needs longer ones, which hold a name, a nonce and a
/// proof.
const MESSAGE_BYTES_MAX: usize = 4 << 10;
/// The number of random bytes that the server adds to the client's nonce.
const NONCE_BYTES: usize = 24;

/// A message is wrong, or a proof: clients don't learn which, nor whose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// The first message of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientFirst {
    /// The user who logs in.
    pub user: String,
    /// The part before the message: `n,,`.
    header: String,
    /// The message without it.
    bare: String,
    nonce: String,
}

/// A login between the server's first message and the client's last.
pub struct Exchange {
    mechanism: Mechanism,
    credentials: Credentials,
    header: String,
    nonce: String,
    /// Both first messages, and the comma between them.
    begun: String,
}

impl ClientFirst {
    /// Reads the first message: `n,,n=user,r=nonce`.
    ///
    /// # Errors
    /// [`Refused`] if it is none, asks for channel binding or for another user's rights.
    pub fn parse(message: &[u8]) -> Result<ClientFirst, Refused> {
        let text = text_of(message)?;
        // `n` and `y`: the client binds no channel.
        let rest = text.strip_prefix(['n', 'y']).and_then(|rest| rest.strip_prefix(','));
        let (authorized, bare) = rest.and_then(|rest| rest.split_once(',')).ok_or(Refused)?;
        let mut parts = bare.split(',');
        let user = unescape(attribute(parts.next(), "n=")?)?;
        let nonce = attribute(parts.next(), "r=")?.to_owned();
        let is_nonce = nonce.bytes().all(|byte| byte.is_ascii_graphic());
        if user.is_empty() || nonce.is_empty() || !is_nonce {
            return Err(Refused);
        }
        if let Some(name) = authorized.strip_prefix("a=") {
            if unescape(name)? != user {
                return Err(Refused);
            }
        } else if !authorized.is_empty() {
            return Err(Refused);
        }
        let header = text[..text.len() - bare.len()].to_owned();
        Ok(ClientFirst { user, header, bare: bare.to_owned(), nonce })
    }
}

impl Exchange {
    /// Answers a first message: returns what goes on, and the server's first message.
    ///
    /// # Errors
    /// As [`random_bytes`].
    pub fn begin(
        first: &ClientFirst,
        mechanism: Mechanism,
        credentials: Credentials,
    ) -> Result<(Exchange, String), Error> {
        let own = base64::encode(&random_bytes(NONCE_BYTES)?);
        Ok(Exchange::begin_with(first, mechanism, credentials, &own))
    }

    /// The same, with the server's part of the nonce.
    fn begin_with(
        first: &ClientFirst,
        mechanism: Mechanism,
        credentials: Credentials,
        own: &str,
    ) -> (Exchange, String) {
        let nonce = format!("{}{own}", first.nonce);
        let salt = base64::encode(&credentials.salt);
        let message = format!("r={nonce},s={salt},i={}", credentials.iterations);
        let begun = format!("{},{message}", first.bare);
        let exchange =
            Exchange { mechanism, credentials, header: first.header.clone(), nonce, begun };
        (exchange, message)
    }

    /// Checks the client's last message: returns the server's, if the client has proved itself.
    ///
    /// # Errors
    /// [`Refused`] if it hasn't. The time that takes doesn't show how much of the proof is right.
    pub fn finish(&self, message: &[u8]) -> Result<String, Refused> {
        let text = text_of(message)?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(Refused)?;
        let encoded = proof;
        let proof = base64::decode(encoded).ok_or(Refused)?;
        if base64::encode(&proof) != encoded {
            return Err(Refused);
        }
        let mut parts = without_proof.split(',');
        let binding = attribute(parts.next(), "c=")?;
        let nonce = attribute(parts.next(), "r=")?;
        let signed = format!("{},{without_proof}", self.begun);
        let signature = self.mechanism.sign(&self.credentials.stored_key, signed.as_bytes());
        if proof.len() != signature.len() {
            return Err(Refused);
        }
        let key: Vec<u8> = proof.iter().zip(&signature).map(|(left, right)| left ^ right).collect();
        let is_proved = self.mechanism.hash(&key).ct_eq(&self.credentials.stored_key);
        let is_bound = binding == base64::encode(self.header.as_bytes());
        if !bool::from(is_proved) || !is_bound || nonce != self.nonce {
            return Err(Refused);
        }
        let signature = self.mechanism.sign(&self.credentials.server_key, signed.as_bytes());
        Ok(format!("v={}", base64::encode(&signature)))
    }
}

fn text_of(message: &[u8]) -> Result<&str, Refused> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(Refused);
    }
    std::str::from_utf8(message).map_err(|_| Refused)
}

fn attribute<'a>(part: Option<&'a str>, name: &str) -> Result<&'a str, Refused> {
    part.and_then(|part| part.strip_prefix(name)).ok_or(Refused)
}

/// A name in which `=2C` stands for a comma and `=3D` for an equals sign.
fn unescape(name: &str) -> Result<String, Refused> {
    let mut parts = name.split('=');
    let mut unescaped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (_, Some(rest)) => ('=', rest),
            _ => return Err(Refused),
        };
        unescaped.push(character);
        unescaped.push_str(rest);
    }
    Ok(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Example {
        mechanism: Mechanism,
        salt: &'static str,
        client_first: &'static str,
        own_nonce: &'static str,
        server_first: &'static str,
        client_final: &'static str,
        server_final: &'static str,
    }

    /// RFC 5802, section 5: the password is "pencil", and no MD5 is made of it.
    const OF_SHA_1: Example = Example {
        mechanism: Mechanism::Sha1,
        salt: "QSXCR+Q6sek8bf92",
        client_first: "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        own_nonce: "3rfcNHYJY1ZVvWVs7j",
        server_first: "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        client_final: "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,\
                       p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        server_final: "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    };

    /// RFC 7677, section 3.
    const OF_SHA_256: Example = Example {
        mechanism: Mechanism::Sha256,
        salt: "W22ZaJ0SNY7soEsUEjb6gQ==",
        client_first: "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        own_nonce: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        server_first: "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                       s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        client_final: "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                       p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        server_final: "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    };

    fn begin(example: &Example) -> (Exchange, String) {
        let salt = base64::decode(example.salt).expect("base64");
        let credentials = Credentials::derive(example.mechanism, "pencil", salt, 4096);
        let first = ClientFirst::parse(example.client_first.as_bytes()).expect("a first message");
        assert_eq!(first.user, "user");
        Exchange::begin_with(&first, example.mechanism, credentials, example.own_nonce)
    }

    #[test]
    fn the_examples_of_the_rfcs() {
        for example in [OF_SHA_1, OF_SHA_256] {
            let (exchange, server_first) = begin(&example);
            assert_eq!(server_first, example.server_first);
            let server_final = exchange.finish(example.client_final.as_bytes());
            assert_eq!(server_final.as_deref(), Ok(example.server_final));
        }
    }

    #[test]
    fn every_changed_byte_of_the_last_message_is_refused() {
        for example in [OF_SHA_1, OF_SHA_256] {
            let (exchange, _) = begin(&example);
            let message = example.client_final.as_bytes();
            for position in 0..message.len() {
                for change in [0x01, 0x20, 0x80] {
                    let mut changed = message.to_vec();
                    changed[position] ^= change;
                    assert_eq!(exchange.finish(&changed), Err(Refused), "byte {position}");
                }
                assert_eq!(exchange.finish(&message[..position]), Err(Refused));
            }
        }
    }

    #[test]
    fn first_messages() {
        for (message, expected) in [
            ("n,,n=user,r=abc", Some("user")),
            ("y,,n=user,r=abc", Some("user")),
            ("n,a=user,n=user,r=abc", Some("user")),
            ("n,,n=a=2Cb=3Dc,r=abc", Some("a,b=c")),
            ("n,,n=user,r=abc,x=more", Some("user")),
            ("n,a=other,n=user,r=abc", None),
            ("p=tls-unique,,n=user,r=abc", None),
            ("n,,m=x,n=user,r=abc", None),
            ("n,,n=,r=abc", None),
            ("n,,n=user,r=", None),
            ("n,,n=us=er,r=abc", None),
            ("n,,n=user", None),
            ("n=user,r=abc", None),
            ("", None),
        ] {
            let parsed = ClientFirst::parse(message.as_bytes()).ok();
            assert_eq!(parsed.map(|first| first.user).as_deref(), expected, "{message}");
        }
        let long = format!("n,,n=user,r={}", "a".repeat(MESSAGE_BYTES_MAX));
        assert_eq!(ClientFirst::parse(long.as_bytes()), Err(Refused));
        assert_eq!(ClientFirst::parse(b"n,,n=\xff,r=abc"), Err(Refused));
    }
}
