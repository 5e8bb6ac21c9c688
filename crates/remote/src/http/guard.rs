//! Refuses all requests that come from a web page in a browser.
//!
//! A page that a user visits can have the browser send requests to this machine, and by changing
//! where its own name leads to (DNS rebinding) it can read the answers. So
//! 1. each request carries the header [`PROTOCOL_HEADER`]: a browser sends such a header to another
//!    origin only after asking, which nothing here answers;
//! 2. a request that names a page (`origin`, `sec-fetch-site`) is refused, whatever else it
//!    carries;
//! 3. without tokens, `host` must be a loopback name or address, or one that was configured: a page
//!    that made its own name lead here gives itself away by that name. Where hosts are configured,
//!    tokens or not, it must be one of these or of loopback.

use std::net::IpAddr;

use hyper::{HeaderMap, StatusCode, Uri, header};

use crate::http::protocol::{PROTOCOL_HEADER, PROTOCOL_VERSION};

/// Headers by which a browser shows that a page sent a request.
const OF_PAGES: [&str; 2] = ["origin", "sec-fetch-site"];

/// The names of this server, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Names by which clients reach it, beside those of loopback.
    pub hosts: Vec<String>,
    /// Whether a token says who sends a request.
    pub has_tokens: bool,
}

impl Guard {
    /// Checks a request's head; says why it is refused.
    ///
    /// # Errors
    /// The status and the words to answer with.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        if let Some(name) = OF_PAGES.iter().find(|name| headers.contains_key(**name)) {
            let message = format!("web pages may not use this server (the request has '{name}')");
            return Err((StatusCode::FORBIDDEN, message));
        }
        if !self.has_tokens || !self.hosts.is_empty() {
            self.check_host(uri, headers)?;
        }
        let version = headers.get(PROTOCOL_HEADER).and_then(|version| version.to_str().ok());
        if version != Some(PROTOCOL_VERSION) {
            let message = format!("the header {PROTOCOL_HEADER}: {PROTOCOL_VERSION} is expected");
            return Err((StatusCode::BAD_REQUEST, message));
        }
        Ok(())
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        let mut named = headers.get_all(header::HOST).iter();
        let (first, second) = (named.next(), named.next());
        let host = first.and_then(|host| host.to_str().ok());
        let of_uri = uri.authority().map(|authority| authority.as_str());
        let is_known = |name: Option<&str>| name.is_some_and(|name| self.is_ours(name));
        if second.is_none() && is_known(host) && of_uri.is_none_or(|name| is_known(Some(name))) {
            return Ok(());
        }
        let message = format!(
            "this server isn't known as {:?}: use a loopback address, or name it with --remote-host",
            host.unwrap_or_default()
        );
        Err((StatusCode::MISDIRECTED_REQUEST, message))
    }

    /// Whether `HOST` or `HOST:PORT` leads to this machine alone, or was configured.
    fn is_ours(&self, named: &str) -> bool {
        let Some(host) = without_port(named) else { return false };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
            || self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }
}

/// The host of `HOST` or `HOST:PORT`; `None` if there is more to it.
fn without_port(named: &str) -> Option<&str> {
    let end_of_address = named.find(']').map_or(0, |end| end + 1);
    match named[end_of_address..].rsplit_once(':') {
        Some((before, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(&named[..end_of_address + before.len()])
        }
        Some(_) => None,
        None => Some(named),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn check(guard: &Guard, uri: &str, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).expect("a value");
            map.append(HeaderName::from_static(name), value);
        }
        let result = guard.check(&uri.parse().expect("a URI"), &map);
        result.map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn hosts_are_loopback_or_configured() {
        let open = Guard::default();
        let named = Guard { hosts: vec!["shop.example".to_owned()], has_tokens: true };
        let tokens = Guard { hosts: Vec::new(), has_tokens: true };
        for (host, of_open, of_named) in [
            ("127.0.0.1:4224", 200, 200),
            ("127.9.0.1", 200, 200),
            ("[::1]:80", 200, 200),
            ("LocalHost:1", 200, 200),
            ("evil.example", 421, 421),
            ("evil.example:4224", 421, 421),
            ("shop.example:4224", 421, 200),
            ("localhost.evil.example", 421, 421),
            ("127.0.0.1.evil.example", 421, 421),
            ("192.168.1.5:4224", 421, 421),
            ("localhost:4224@evil.example", 421, 421),
            ("", 421, 421),
        ] {
            let headers = [("host", host), ("frond-protocol", "0")];
            assert_eq!(check(&open, "/v0/db/x", &headers), of_open, "{host}");
            assert_eq!(check(&named, "/v0/db/x", &headers), of_named, "{host}");
            assert_eq!(check(&tokens, "/v0/db/x", &headers), 200, "{host}");
        }
        let twice = [("host", "localhost"), ("host", "evil.example"), ("frond-protocol", "0")];
        assert_eq!(check(&open, "/", &twice), 421);
        assert_eq!(check(&open, "/", &[("frond-protocol", "0")]), 421);
        let headers = [("host", "localhost"), ("frond-protocol", "0")];
        assert_eq!(check(&open, "http://evil.example/v0/db/x", &headers), 421);
    }

    #[test]
    fn pages_are_refused_with_tokens_too() {
        for guard in [Guard::default(), Guard { hosts: Vec::new(), has_tokens: true }] {
            let good = [("host", "localhost"), ("frond-protocol", "0")];
            assert_eq!(check(&guard, "/", &good), 200);
            assert_eq!(check(&guard, "/", &good[..1]), 400);
            for of_page in [
                ("origin", "http://evil.example"),
                ("origin", "null"),
                ("origin", "http://localhost"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "none"),
            ] {
                let headers = [good[0], good[1], of_page];
                assert_eq!(check(&guard, "/", &headers), 403, "{of_page:?}");
            }
        }
    }
}
