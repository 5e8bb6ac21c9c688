//! Tokens, one a line, with what each allows.
//!
//! A file of tokens:
//!
//! ```text
//! # TOKEN [read | write | backup]
//! 5f0c9c3e2f6b4a0e8d11  read
//! 0a3a7a5f6d0b4e65a9c2
//! ```
//!
//! `read` allows to clone and fetch, `write` also to push, and `backup`, or nothing, allows
//! everything.

use frond_db::Error;
use frond_store::{Chunk, ChunkHash, ChunkKind};

/// A shorter token could be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// A longer one wouldn't fit into a header.
const TOKEN_BYTES_MAX: usize = 1_024;

/// The rights of a token. Each includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Allowed {
    /// To clone and fetch.
    Read,
    /// To push.
    Write,
    /// To copy the whole data directory.
    Backup,
}

/// The tokens of a server. They are kept and compared as hashes, so that the time of a comparison
/// reveals nothing about them.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<(ChunkHash, Allowed)>);

fn hash(token: &str) -> ChunkHash {
    Chunk::new(ChunkKind::Blob, &[], token.as_bytes()).hash()
}

impl Tokens {
    /// Reads the text of a file of tokens.
    ///
    /// # Errors
    /// `BadValue` that names the line.
    pub fn parse(text: &str) -> Result<Tokens, Error> {
        let mut tokens = Vec::new();
        for (position, line) in text.lines().enumerate() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(token) = words.next() else { continue };
            let wrong = |what: &str| {
                let message = format!("line {} of the tokens: {what}", position + 1);
                Error::bad_value(message)
            };
            if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
                return Err(wrong("a token has 16 to 1024 characters"));
            }
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(wrong("a token has letters, digits and signs of ASCII"));
            }
            let allowed = match words.next() {
                Some("read") => Allowed::Read,
                Some("write") => Allowed::Write,
                None | Some("backup") => Allowed::Backup,
                Some(_) => return Err(wrong("read, write or backup is expected")),
            };
            if words.next().is_some() {
                return Err(wrong("there is a token and a word on a line"));
            }
            tokens.push((hash(token), allowed));
        }
        if tokens.is_empty() {
            return Err(Error::bad_value("the file of tokens holds none"));
        }
        Ok(Tokens(tokens))
    }

    /// Whether there are none: then every client may clone and push, as by MongoDB's protocol, but
    /// none may copy the whole data directory.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rights that the value of an `authorization` header gives.
    pub(crate) fn allowed(&self, authorization: Option<&str>) -> Option<Allowed> {
        if self.is_empty() {
            return Some(Allowed::Write);
        }
        let hash = hash(authorization?.strip_prefix("Bearer ")?);
        let known = self.0.iter().filter(|(known, _)| *known == hash);
        known.map(|(_, allowed)| *allowed).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_allow_what_stands_beside_them() {
        let text =
            "# ours\n0123456789abcdef read # Bob\n\n0123456789abcdeg write\n0123456789abcdeh\n";
        let tokens = Tokens::parse(text).expect("a good file");
        let allowed = |token: &str| tokens.allowed(Some(&format!("Bearer {token}")));
        assert_eq!(allowed("0123456789abcdef"), Some(Allowed::Read));
        assert_eq!(allowed("0123456789abcdeg"), Some(Allowed::Write));
        assert_eq!(allowed("0123456789abcdeh"), Some(Allowed::Backup));
        assert_eq!(allowed("0123456789abcdei"), None);
        assert_eq!(tokens.allowed(None), None);
        assert_eq!(tokens.allowed(Some("0123456789abcdef")), None);
        assert_eq!(Tokens::default().allowed(None), Some(Allowed::Write));
        for wrong in ["", "# none", "short", "0123456789abcdef all", "0123456789abcdef read x"] {
            assert!(Tokens::parse(wrong).is_err(), "{wrong}");
        }
    }
}
