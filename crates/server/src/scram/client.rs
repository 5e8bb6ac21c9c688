//! The messages of a SCRAM login, seen from the client.

use frond_db::Error;
use frond_doc::extended_json::base64;

use super::exchange::Refused;
use super::{Credentials, ITERATIONS_MAX, ITERATIONS_MIN, Mechanism, random_bytes};

const NONCE_BYTES: usize = 24;
/// `n,,` in base64: no channel is bound.
const BINDING: &str = "c=biws";

/// A login that begins.
pub struct Login {
    mechanism: Mechanism,
    prepared: String,
    bare: String,
    nonce: String,
}

/// The client's last message, and the expected last one of the server.
pub struct Proof {
    /// The message.
    pub message: String,
    /// The server's last message, if it knows the user's password as well.
    pub expected: String,
}

impl Login {
    /// Begins a login: returns what goes on, and the first message.
    ///
    /// # Errors
    /// As [`Mechanism::prepare`] and [`random_bytes`].
    pub fn begin(
        mechanism: Mechanism,
        user: &str,
        password: &str,
    ) -> Result<(Login, String), Error> {
        let prepared = mechanism.prepare(user, password)?;
        let nonce = base64::encode(&random_bytes(NONCE_BYTES)?);
        let bare = format!("n={},r={nonce}", user.replace('=', "=3D").replace(',', "=2C"));
        let message = format!("n,,{bare}");
        Ok((Login { mechanism, prepared, bare, nonce }, message))
    }

    /// Answers the server's first message.
    ///
    /// # Errors
    /// [`Refused`] if it is none, or asks for so few or many iterations that it can't be meant
    /// well.
    pub fn prove(&self, server_first: &[u8]) -> Result<Proof, Refused> {
        let text = std::str::from_utf8(server_first).map_err(|_| Refused)?;
        let mut parts = text.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name));
        let nonce = part("r=").filter(|nonce| nonce.starts_with(&self.nonce)).ok_or(Refused)?;
        let salt = part("s=").and_then(base64::decode).ok_or(Refused)?;
        let iterations = part("i=").and_then(|count| count.parse().ok()).ok_or(Refused)?;
        if !(ITERATIONS_MIN.min(4_096)..=ITERATIONS_MAX).contains(&iterations) {
            return Err(Refused);
        }
        let mechanism = self.mechanism;
        let client_key = mechanism.client_key(&self.prepared, &salt, iterations);
        let credentials = Credentials::derive(mechanism, &self.prepared, salt, iterations);
        let without_proof = format!("{BINDING},r={nonce}");
        let signed = format!("{},{text},{without_proof}", self.bare);
        let signature = mechanism.sign(&credentials.stored_key, signed.as_bytes());
        let proof = client_key.iter().zip(&signature).map(|(left, right)| left ^ right);
        let proof = base64::encode(&proof.collect::<Vec<u8>>());
        let expected = mechanism.sign(&credentials.server_key, signed.as_bytes());
        Ok(Proof {
            message: format!("{without_proof},p={proof}"),
            expected: format!("v={}", base64::encode(&expected)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scram::{ClientFirst, Exchange};

    #[test]
    fn client_and_server_agree_if_the_password_is_right() {
        for mechanism in Mechanism::ALL {
            for (user, password, is_right) in
                [("ann", "secret", true), ("a,n=n", "\u{2168}", true), ("ann", "Secret", false)]
            {
                let known = if is_right { password } else { "secret" };
                let prepared = mechanism.prepare(user, known).expect("allowed");
                let credentials = Credentials::new(mechanism, &prepared).expect("random bytes");
                let (login, first) = Login::begin(mechanism, user, password).expect("begins");
                let first = ClientFirst::parse(first.as_bytes()).expect("a first message");
                assert_eq!(first.user, user);
                let (exchange, answer) =
                    Exchange::begin(&first, mechanism, credentials).expect("random bytes");
                let proof = login.prove(answer.as_bytes()).expect("an answer");
                let last = exchange.finish(proof.message.as_bytes());
                assert_eq!(last, if is_right { Ok(proof.expected) } else { Err(Refused) });
            }
        }
    }

    #[test]
    fn servers_that_are_none_are_refused() {
        let (login, _) = Login::begin(Mechanism::Sha256, "ann", "secret").expect("begins");
        for wrong in ["", "r=x,s=AAAA,i=15000", "e=other-error", "r=,s=AAAA,i=15000"] {
            assert!(login.prove(wrong.as_bytes()).is_err(), "{wrong}");
        }
        for iterations in ["1", "99999999999", "x"] {
            let answer = format!("r={}x,s=AAAA,i={iterations}", login.nonce);
            assert!(login.prove(answer.as_bytes()).is_err(), "{answer}");
        }
    }
}
