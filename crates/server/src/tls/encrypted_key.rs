//! Keys that a password encrypts: what PEM files call `ENCRYPTED PRIVATE KEY`, which is PKCS #8's
//! EncryptedPrivateKeyInfo (RFC 5958, section 3) by PBES2 (RFC 8018, section 6.2).
//!
//! 1. PBKDF2 makes a key of the password, by a salt and a number of rounds.
//! 2. AES or triple DES, chained (CBC), decrypts: these are what OpenSSL's commands write. Scrypt
//!    and PBES1 are refused by name.
//! 3. A wrong password makes wrong padding, or what isn't a key as long as it says.
//!
//! The older way of encryption, whose files begin with `Proc-Type: 4,ENCRYPTED`, is refused with
//! the command that converts them.

use std::num::NonZeroU32;

use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use data_encoding::{Encoding, Specification};
use ring::pbkdf2::{self, Algorithm};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::der::{INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, take, take_tagged};

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// The mark of the older way.
const OLD_MARK: &str = "Proc-Type: 4,ENCRYPTED";

/// The rounds from which a file is refused: some seconds of work.
const ROUNDS_MAX: u64 = 10_000_000;

/// Object identifiers, as DER has them.
mod identifier {
    pub const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
    pub const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
    pub const SCRYPT: &[u8] = &[0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11];
    pub const HMAC_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 7];
    pub const HMAC_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 9];
    pub const HMAC_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 10];
    pub const HMAC_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 11];
    pub const AES_128_CBC: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 2];
    pub const AES_192_CBC: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 22];
    pub const AES_256_CBC: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42];
    pub const TRIPLE_DES_CBC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 3, 7];
}

/// The reason why an encrypted key can't be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncryptedKeyError {
    /// There is no password.
    #[error(
        "its key is encrypted, and needs a password: --tls-certificate-key-file-password, or \
         net.tls.certificateKeyFilePassword"
    )]
    NoPassword,
    /// The password is another's.
    #[error("the password isn't that of its key")]
    WrongPassword,
    /// It isn't what it says.
    #[error("its encrypted key is damaged")]
    Damaged,
    /// It is encrypted otherwise.
    #[error("its key is encrypted by {0}: openssl pkcs8 -topk8 -v2 aes-256-cbc encrypts it anew")]
    Unsupported(&'static str),
}

/// The key of a PEM file, if it is an encrypted one.
///
/// # Errors
/// See [`EncryptedKeyError`].
pub(super) fn decrypt(
    pem: &str,
    password: Option<&str>,
) -> Result<Option<PrivateKeyDer<'static>>, EncryptedKeyError> {
    if pem.contains(OLD_MARK) {
        return Err(EncryptedKeyError::Unsupported("OpenSSL's older way"));
    }
    let Some((_, body)) = pem.split_once(BEGIN) else { return Ok(None) };
    let password = password.ok_or(EncryptedKeyError::NoPassword)?;
    let (body, _) = body.split_once(END).ok_or(EncryptedKeyError::Damaged)?;
    let bytes = base64()
        .and_then(|base64| base64.decode(body.as_bytes()).ok())
        .ok_or(EncryptedKeyError::Damaged)?;
    let key = EncryptedKey::read(&bytes)?.decrypt(password)?;
    Ok(Some(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key))))
}

/// Base 64 with the ends of lines in it.
fn base64() -> Option<Encoding> {
    let mut specification: Specification = data_encoding::BASE64.specification();
    specification.ignore.push_str(" \t\r\n");
    specification.encoding().ok()
}

/// What is written of an encrypted key.
struct EncryptedKey<'a> {
    salt: &'a [u8],
    rounds: NonZeroU32,
    algorithm: Algorithm,
    cipher: Cipher,
    vector: &'a [u8],
    data: &'a [u8],
}

#[derive(Clone, Copy)]
enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
}

impl Cipher {
    fn key_bytes(self) -> usize {
        match self {
            Cipher::Aes128 => 16,
            Cipher::Aes192 | Cipher::TripleDes => 24,
            Cipher::Aes256 => 32,
        }
    }

    /// Decrypts `data`; `None` if its padding is wrong, or the vector has another length.
    fn decrypt(self, key: &[u8], vector: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        match self {
            Cipher::Aes128 => decrypt_chain::<Decryptor<aes::Aes128>>(key, vector, data),
            Cipher::Aes192 => decrypt_chain::<Decryptor<aes::Aes192>>(key, vector, data),
            Cipher::Aes256 => decrypt_chain::<Decryptor<aes::Aes256>>(key, vector, data),
            Cipher::TripleDes => decrypt_chain::<Decryptor<des::TdesEde3>>(key, vector, data),
        }
    }
}

fn decrypt_chain<D: KeyIvInit + BlockModeDecrypt>(
    key: &[u8],
    vector: &[u8],
    data: &[u8],
) -> Option<Vec<u8>> {
    D::new_from_slices(key, vector).ok()?.decrypt_padded_vec::<Pkcs7>(data).ok()
}

impl<'a> EncryptedKey<'a> {
    /// Reads EncryptedPrivateKeyInfo.
    fn read(mut bytes: &'a [u8]) -> Result<EncryptedKey<'a>, EncryptedKeyError> {
        let mut whole = sequence(&mut bytes)?;
        let mut scheme = sequence(&mut whole)?;
        let data = tagged(&mut whole, OCTET_STRING)?;
        if tagged(&mut scheme, OBJECT_IDENTIFIER)? != identifier::PBES2 {
            return Err(EncryptedKeyError::Unsupported("another scheme than PBES2"));
        }
        let mut parts = sequence(&mut scheme)?;
        let (mut derivation, mut encryption) = (sequence(&mut parts)?, sequence(&mut parts)?);
        match tagged(&mut derivation, OBJECT_IDENTIFIER)? {
            identifier::PBKDF2 => {}
            identifier::SCRYPT => return Err(EncryptedKeyError::Unsupported("scrypt")),
            _ => return Err(EncryptedKeyError::Unsupported("another function than PBKDF2")),
        }
        let mut derivation = sequence(&mut derivation)?;
        let salt = tagged(&mut derivation, OCTET_STRING)?;
        let rounds = rounds(tagged(&mut derivation, INTEGER)?)?;
        // The length of the key follows from the cipher.
        if derivation.first() == Some(&INTEGER) {
            tagged(&mut derivation, INTEGER)?;
        }
        let algorithm = match derivation.is_empty() {
            true => pbkdf2::PBKDF2_HMAC_SHA1,
            false => algorithm(sequence(&mut derivation)?)?,
        };
        let cipher = cipher(tagged(&mut encryption, OBJECT_IDENTIFIER)?)?;
        let vector = tagged(&mut encryption, OCTET_STRING)?;
        Ok(EncryptedKey { salt, rounds, algorithm, cipher, vector, data })
    }

    fn decrypt(&self, password: &str) -> Result<Vec<u8>, EncryptedKeyError> {
        let mut key = vec![0; self.cipher.key_bytes()];
        pbkdf2::derive(self.algorithm, self.rounds, self.salt, password.as_bytes(), &mut key);
        let decrypted = self.cipher.decrypt(&key, self.vector, self.data);
        let decrypted = decrypted.ok_or(EncryptedKeyError::WrongPassword)?;
        // By chance the padding of a wrong one is right.
        let mut rest = decrypted.as_slice();
        match take(&mut rest) {
            Some((SEQUENCE, _)) if rest.is_empty() => Ok(decrypted),
            _ => Err(EncryptedKeyError::WrongPassword),
        }
    }
}

fn rounds(integer: &[u8]) -> Result<NonZeroU32, EncryptedKeyError> {
    let digits = integer.strip_prefix(&[0]).unwrap_or(integer);
    if digits.is_empty() || 4 < digits.len() {
        return Err(EncryptedKeyError::Damaged);
    }
    let rounds = digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match u32::try_from(rounds).ok().and_then(NonZeroU32::new) {
        Some(count) if rounds <= ROUNDS_MAX => Ok(count),
        Some(_) => Err(EncryptedKeyError::Unsupported("more than ten million rounds")),
        None => Err(EncryptedKeyError::Damaged),
    }
}

fn algorithm(mut identified: &[u8]) -> Result<Algorithm, EncryptedKeyError> {
    Ok(match tagged(&mut identified, OBJECT_IDENTIFIER)? {
        identifier::HMAC_SHA1 => pbkdf2::PBKDF2_HMAC_SHA1,
        identifier::HMAC_SHA256 => pbkdf2::PBKDF2_HMAC_SHA256,
        identifier::HMAC_SHA384 => pbkdf2::PBKDF2_HMAC_SHA384,
        identifier::HMAC_SHA512 => pbkdf2::PBKDF2_HMAC_SHA512,
        _ => return Err(EncryptedKeyError::Unsupported("another hash than SHA-1 or SHA-2")),
    })
}

fn cipher(identifier: &[u8]) -> Result<Cipher, EncryptedKeyError> {
    Ok(match identifier {
        identifier::AES_128_CBC => Cipher::Aes128,
        identifier::AES_192_CBC => Cipher::Aes192,
        identifier::AES_256_CBC => Cipher::Aes256,
        identifier::TRIPLE_DES_CBC => Cipher::TripleDes,
        _ => {
            let what = "another cipher than AES or triple DES, chained";
            return Err(EncryptedKeyError::Unsupported(what));
        }
    })
}

fn sequence<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], EncryptedKeyError> {
    tagged(rest, SEQUENCE)
}

fn tagged<'a>(rest: &mut &'a [u8], tag: u8) -> Result<&'a [u8], EncryptedKeyError> {
    take_tagged(rest, tag).ok_or(EncryptedKeyError::Damaged)
}

#[cfg(test)]
mod tests;
