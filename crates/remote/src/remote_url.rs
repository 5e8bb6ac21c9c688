//! The forms of a remote's address.
//!
//! | | |
//! |---|---|
//! | `DIRECTORY`, `DIRECTORY#DATABASE` | a data directory, or any other as a plain remote |
//! | `file:///DIRECTORY` | the same |
//! | `http://HOST:PORT/DATABASE`, `https://...` | a running server |
//! | `s3://BUCKET/PREFIX`, `az://CONTAINER/PREFIX`, `gs://BUCKET/PREFIX` | a plain remote in a bucket |

use std::fmt;

use frond_db::Error;

/// What stands where a bucket's address is expected.
pub(crate) const BUCKET_EXPECTED: &str =
    "s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or gs://BUCKET/PREFIX is expected";

/// The protocol that an object store speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Amazon's, which many others speak.
    S3,
    /// Azure's, whose buckets are called containers.
    Azure,
    /// Google's.
    Google,
}

impl Protocol {
    /// All, in the order in which they are documented.
    const ALL: [Protocol; 3] = [Protocol::S3, Protocol::Azure, Protocol::Google];

    /// What an address begins with.
    fn scheme(self) -> &'static str {
        match self {
            Protocol::S3 => "s3",
            Protocol::Azure => "az",
            Protocol::Google => "gs",
        }
    }
}

/// A bucket's address. Shown, it is the same for the same place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketUrl {
    /// How it is reached.
    pub protocol: Protocol,
    /// Its name.
    pub bucket: String,
    /// The prefix of the names of its objects; may be empty.
    pub prefix: String,
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}/{}", self.protocol.scheme(), self.bucket, self.prefix)
    }
}

impl BucketUrl {
    /// Reads a bucket's address.
    ///
    /// # Errors
    /// `BadValue` if it is another one.
    pub fn parse(text: &str) -> Result<BucketUrl, Error> {
        match RemoteUrl::parse(text)? {
            RemoteUrl::Bucket(url) => Ok(url),
            _ => Err(Error::bad_value(format!("{text}: {BUCKET_EXPECTED}"))),
        }
    }

    /// What follows the scheme; `None` if no bucket is named.
    fn of(protocol: Protocol, rest: &str) -> Option<BucketUrl> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() || rest.contains(['?', '#', '@']) {
            return None;
        }
        let (bucket, prefix) = (bucket.to_owned(), prefix.trim_matches('/').to_owned());
        Some(BucketUrl { protocol, bucket, prefix })
    }
}

/// A place, by what is to be asked there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RemoteUrl {
    /// A directory, with the database's name behind a `#` perhaps.
    Directory(String),
    /// A running server; the whole address.
    Http(String),
    /// A bucket.
    Bucket(BucketUrl),
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
            "mongodb" | "mongodb+srv" => Err(wrong(
                "that is for drivers: frond serve --remote-listen HOST:PORT serves databases to be \
                 cloned, as http://HOST:PORT/DATABASE; frond follow copies one of a MongoDB",
            )),
            _ => match Protocol::ALL.into_iter().find(|protocol| protocol.scheme() == scheme) {
                Some(protocol) => BucketUrl::of(protocol, rest)
                    .map(RemoteUrl::Bucket)
                    .ok_or_else(|| wrong(BUCKET_EXPECTED)),
                None => Err(wrong("a directory, http(s)://, s3://, az:// or gs:// is expected")),
            },
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
        let bucket = |protocol, bucket: &str, prefix: &str| {
            let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
            Some(RemoteUrl::Bucket(BucketUrl { protocol, bucket, prefix }))
        };
        let http = |text: &str| Some(RemoteUrl::Http(text.to_owned()));
        check("/backup/shop", directory("/backup/shop"));
        check("data#shop", directory("data#shop"));
        check("file:///backup/shop", directory("/backup/shop"));
        check("http://127.0.0.1:80/shop/", http("http://127.0.0.1:80/shop"));
        check("https://h/a/b", http("https://h/a/b"));
        check("s3://b", bucket(Protocol::S3, "b", ""));
        check("s3://b/a/c/", bucket(Protocol::S3, "b", "a/c"));
        check("az://b/a", bucket(Protocol::Azure, "b", "a"));
        check("gs://b", bucket(Protocol::Google, "b", ""));
        for wrong in ["", "#x", "file://x", "http://", "http://u:p@h/x", "http://h/x?y"] {
            check(wrong, None);
        }
        for wrong in ["s3:///x", "az://", "gs://u@b/x", "azure://b"] {
            check(wrong, None);
        }
        check("ftp://h/x", None);
        for text in ["s3://b/", "az://b/a/c", "gs://b/a"] {
            assert_eq!(BucketUrl::parse(text).expect("a bucket").to_string(), text);
        }
        assert!(BucketUrl::parse("/backup").is_err());
        let message = RemoteUrl::parse("http://user:secret@h/x").unwrap_err().message;
        assert!(!message.contains("secret") && message.contains("@h/x"), "{message}");
    }
}
