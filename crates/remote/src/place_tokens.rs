//! The tokens that a running server sends to the places that it fetches from and pushes to.
//!
//! A client names the place, so a token must only go where the server's operator said: each line of
//! the file is a place and its token, and a token is for that place and what lies below it. That of
//! `https://h/a` is sent to `https://h/a/shop`, never to `https://h/ab`, `http://h/a` or
//! `https://h:1/a`.

use std::fmt;

use frond_db::Error;

/// Places and their tokens. `Debug` shows no token.
#[derive(Clone, Default)]
pub struct PlaceTokens(Vec<(String, String)>);

impl fmt::Debug for PlaceTokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(place, _)| place)).finish()
    }
}

impl PlaceTokens {
    /// Reads a file's text: a place and a token a line; `#` begins a comment.
    ///
    /// # Errors
    /// `BadValue` with the number of the line that is wrong, never with what stands there.
    pub fn parse(text: &str) -> Result<PlaceTokens, Error> {
        let mut tokens = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let mut words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
            let Some(place) = words.next() else { continue };
            let is_http = place.starts_with("http://") || place.starts_with("https://");
            match (words.next(), words.next()) {
                (Some(token), None) if is_http => {
                    tokens.push((place.trim_end_matches('/').to_owned(), token.to_owned()));
                }
                _ => {
                    let message =
                        format!("line {number}: http(s)://PLACE and its TOKEN are expected");
                    return Err(Error::bad_value(message));
                }
            }
        }
        Ok(PlaceTokens(tokens))
    }

    /// The token for `url`: that of the longest place it lies below.
    pub fn of(&self, url: &str) -> Option<&str> {
        let lies_below = |place: &str| {
            url.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self.0.iter().filter(|(place, _)| lies_below(place));
        found.max_by_key(|(place, _)| place.len()).map(|(_, token)| &token[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_its_place_only() {
        let text =
            "# ours\nhttps://h/a/ one\nhttps://h/a/shop two # the shop\n\nhttp://i:80 three\n";
        let tokens = PlaceTokens::parse(text).unwrap();
        for (url, expected) in [
            ("https://h/a/shop", Some("two")),
            ("https://h/a/shops", Some("one")),
            ("https://h/a", Some("one")),
            ("https://h/ab", None),
            ("http://h/a/shop", None),
            ("https://h.evil/a/shop", None),
            ("http://i:80/x", Some("three")),
            ("http://i:8080/x", None),
        ] {
            assert_eq!(tokens.of(url), expected, "{url}");
        }
        assert!(!format!("{tokens:?}").contains("two"));
        for wrong in ["https://h", "/dir token", "https://h a b"] {
            assert!(PlaceTokens::parse(wrong).is_err(), "{wrong}");
        }
    }
}
