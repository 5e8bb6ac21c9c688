//! Checks that a request comes from the console's own page, in a browser that reached it by a name
//! that is known.
//!
//! 1. `host` is a loopback name or address, or one of `--console-host`: a page that made its own
//!    name lead here (DNS rebinding) gives itself away by that name.
//! 2. A request that runs something says by `origin` that it comes from a page of this very
//!    address, and carries `x-frond-console` and `application/json`, which a page can send
//!    elsewhere only with permission, and the console gives none. Browsers send `sec-fetch-site` as
//!    well.
//!
//! Cookies alone prove nothing: a browser sends them along whichever page asks.

use std::net::IpAddr;

use hyper::header::{self, AsHeaderName};
use hyper::{HeaderMap, StatusCode, Uri};

/// The header that the console's page sends with what runs something.
const OWN_HEADER: &str = "x-frond-console";

/// The checks of a request before anything else.
pub(super) struct Guard {
    /// Names by which the console is reached, beside those of loopback.
    pub hosts: Vec<String>,
    /// Whether it is reached by TLS.
    pub is_tls: bool,
}

/// The reason why a request is refused.
type Refusal = (StatusCode, String);

impl Guard {
    /// Checks by which name the console was reached.
    ///
    /// # Errors
    /// 421 and the reason.
    pub fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = only(headers, header::HOST);
        let of_uri = uri.authority().map(|authority| authority.as_str());
        if self.is_known(host) && of_uri.is_none_or(|named| self.is_known(Some(named))) {
            return Ok(());
        }
        let why = format!(
            "the console doesn't answer as {:?}: use a loopback address, or name it with \
             --console-host",
            host.unwrap_or_default()
        );
        Err((StatusCode::MISDIRECTED_REQUEST, why))
    }

    fn is_known(&self, named: Option<&str>) -> bool {
        let Some(host) = named.and_then(without_port) else { return false };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
            || self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }

    /// Checks that a request that runs something comes from the console's page.
    ///
    /// # Errors
    /// 403 or 415 and the reason.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = only(headers, header::HOST).unwrap_or_default();
        let scheme = if self.is_tls { "https" } else { "http" };
        let own = format!("{scheme}://{host}");
        let is_own =
            only(headers, header::ORIGIN).is_some_and(|origin| origin.eq_ignore_ascii_case(&own));
        let is_same =
            headers.get("sec-fetch-site").is_none_or(|site| site.as_bytes() == b"same-origin");
        if !is_own || !is_same || !headers.contains_key(OWN_HEADER) {
            let why =
                format!("not from the console's page: origin {own} and {OWN_HEADER} are needed");
            return Err((StatusCode::FORBIDDEN, why));
        }
        let kind = only(headers, header::CONTENT_TYPE).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err((
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "application/json is expected".to_owned(),
            ));
        }
        Ok(())
    }
}

/// The value of a header that stands there once.
fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok()).flatten()
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

    fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).expect("a value");
            map.append(HeaderName::from_static(name), value);
        }
        map
    }

    #[test]
    fn hosts_are_loopback_or_configured() {
        let guard = Guard { hosts: vec!["console.example".to_owned()], is_tls: false };
        for (host, is_known) in [
            ("127.0.0.1:27080", true),
            ("127.9.0.1", true),
            ("[::1]:80", true),
            ("LocalHost:1", true),
            ("console.example:27080", true),
            ("Console.Example", true),
            ("evil.example", false),
            ("console.example.evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("192.168.1.5:27080", false),
            ("localhost:27080@evil.example", false),
            ("localhost:x", false),
            ("", false),
        ] {
            let checked = guard.check_host(&Uri::from_static("/"), &map(&[("host", host)]));
            assert_eq!(checked.is_ok(), is_known, "{host}");
        }
        let twice = map(&[("host", "localhost"), ("host", "evil.example")]);
        assert!(guard.check_host(&Uri::from_static("/"), &twice).is_err());
        assert!(guard.check_host(&Uri::from_static("/"), &map(&[])).is_err());
        let elsewhere = Uri::from_static("http://evil.example/");
        assert!(guard.check_host(&elsewhere, &map(&[("host", "localhost")])).is_err());
    }

    #[test]
    fn only_the_own_page_runs_commands() {
        let good = [
            ("host", "localhost:27080"),
            ("origin", "http://localhost:27080"),
            ("x-frond-console", "1"),
            ("content-type", "application/json; charset=utf-8"),
            ("sec-fetch-site", "same-origin"),
        ];
        let status = |guard: &Guard, headers: &[(&'static str, &str)]| {
            guard.check_origin(&map(headers)).map_or_else(|(status, _)| status.as_u16(), |()| 200)
        };
        let guard = Guard { hosts: Vec::new(), is_tls: false };
        assert_eq!(status(&guard, &good), 200);
        assert_eq!(status(&guard, &good[..4]), 200, "not all browsers tell sec-fetch-site");
        let wrong = [
            ("origin", "http://localhost:3000", 403),
            ("origin", "https://localhost:27080", 403),
            ("origin", "http://127.0.0.1:27080", 403),
            ("origin", "http://evil.example", 403),
            ("origin", "null", 403),
            ("content-type", "text/plain", 415),
            ("content-type", "application/x-www-form-urlencoded", 415),
            ("sec-fetch-site", "same-site", 403),
            ("sec-fetch-site", "cross-site", 403),
        ];
        for (name, value, expected) in wrong {
            let headers = good.map(|header| if header.0 == name { (name, value) } else { header });
            assert_eq!(status(&guard, &headers), expected, "{name}: {value}");
        }
        for position in 0..4 {
            let mut headers = good.to_vec();
            headers.remove(position);
            assert_ne!(status(&guard, &headers), 200, "without {:?}", good[position]);
        }
        let tls = Guard { hosts: Vec::new(), is_tls: true };
        assert_eq!(status(&tls, &good), 403);
        let by_tls = good
            .map(|it| if it.0 == "origin" { ("origin", "https://localhost:27080") } else { it });
        assert_eq!(status(&tls, &by_tls), 200);
    }
}
