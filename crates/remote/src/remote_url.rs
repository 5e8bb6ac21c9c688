//! The forms of a remote's address.
//!
//! | | |
//! |---|---|
//! | `DIRECTORY`, `DIRECTORY#DATABASE` | a data directory, or any other as a plain remote |
//! | `file:///DIRECTORY` | the same |
//! | `http://HOST:PORT/DATABASE`, `https://...` | a running server |
//! | `s3://BUCKET/PREFIX` | a plain remote in a bucket |

use frond_db::Error;

/// A place, by what is to be asked there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RemoteUrl {
    /// A directory, with the database's name behind a `#` perhaps.
    Directory(String),
    /// A running server; the whole address.
    Http(String),
    /// A bucket.
    Bucket {
        /// Its name.
        bucket: String,
        /// The prefix of the names of its objects; may be empty.
        prefix: String,
    },
}

impl RemoteUrl {
    /// Reads a place.
    ///
    /// # Errors
    /// `BadValue` that says what is expected.
    pub fn parse(text: &str) -> Result<RemoteUrl, Error> {
        let wrong = |what: &str| Error::bad_value(format!("remote '{}': {what}", masked(text)));
        let Some((scheme, rest)) = text.split_once("://") else {
            let directory = text.split_once('#').map_or(text, |(directory, _)| directory);
            if directory.is_empty() {
                return Err(wrong("a directory is expected, or DIRECTORY#DATABASE"));
            }
            return Ok(RemoteUrl::Directory(text.to_owned()));
        };
        match scheme {
            "file" if rest.starts_with('/') => Ok(RemoteUrl::Directory(rest.to_owned())),
            "file" => Err(wrong("file:// is followed by an absolute directory")),
            "http" | "https" => {
                let authority = rest.split('/').next().unwrap_or_default();
                if authority.contains('@') {
                    return Err(wrong(
                        "a token stands in a file or in FROND_REMOTE_TOKEN, not here",
                    ));
                }
                if authority.is_empty() || rest.contains(['?', '#']) {
                    return Err(wrong("http(s)://HOST:PORT/DATABASE is expected"));
                }
                Ok(RemoteUrl::Http(text.trim_end_matches('/').to_owned()))
            }
            "s3" => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() || rest.contains(['?', '#', '@']) {
                    return Err(wrong("s3://BUCKET/PREFIX is expected"));
                }
                let prefix = prefix.trim_matches('/').to_owned();
                Ok(RemoteUrl::Bucket { bucket: bucket.to_owned(), prefix })
            }
            _ => Err(wrong("a directory, http://, https:// or s3:// is expected")),
        }
    }
}

/// A URL without the user and password that it may have.
fn masked(text: &str) -> String {
    match text.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1)))
    {
        Some((scheme, rest)) => format!("{scheme}://...@{rest}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<RemoteUrl>) {
        assert_eq!(RemoteUrl::parse(text).ok(), expected, "{text}");
    }

    #[test]
    fn places_are_read() {
        let directory = |text: &str| Some(RemoteUrl::Directory(text.to_owned()));
        let bucket = |bucket: &str, prefix: &str| {
            Some(RemoteUrl::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
        };
        let http = |text: &str| Some(RemoteUrl::Http(text.to_owned()));
        check("/backup/shop", directory("/backup/shop"));
        check("data#shop", directory("data#shop"));
        check("file:///backup/shop", directory("/backup/shop"));
        check("http://127.0.0.1:80/shop/", http("http://127.0.0.1:80/shop"));
        check("https://h/a/b", http("https://h/a/b"));
        check("s3://b", bucket("b", ""));
        check("s3://b/a/c/", bucket("b", "a/c"));
        for wrong in ["", "#x", "file://x", "http://", "http://u:p@h/x", "http://h/x?y", "s3:///x"]
        {
            check(wrong, None);
        }
        check("ftp://h/x", None);
        let message = RemoteUrl::parse("http://user:secret@h/x").unwrap_err().message;
        assert!(!message.contains("secret") && message.contains("@h/x"), "{message}");
    }
}
