//! The console's files: as they were written, built into the program. There is no build step.
//!
//! A file is identified by the hash of its content (`etag`), so that a browser asks again each time
//! and mostly hears that nothing has changed. It is compressed once, when a browser first takes it
//! so.

use std::io::Write;
use std::sync::OnceLock;

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use ring::digest;

use super::{Answer, text};

/// A file as it was written.
struct File {
    path: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(File {
            path: concat!("/", $name),
            kind: kind($name),
            content: include_bytes!(concat!("../../console/", $name)),
        }),*]
    };
}

/// All files; `/` is the first.
const FILES: &[File] = files![
    "index.html",
    "icon.svg",
    "style.css",
    "main.js",
    "api.js",
    "dom.js",
    "values.js",
    "editor.js",
    "screens/aggregate.js",
    "screens/collections.js",
    "screens/diff.js",
    "screens/document.js",
    "screens/documents.js",
    "screens/driver_code.js",
    "screens/explain.js",
    "screens/fields.js",
    "screens/indexes.js",
    "screens/log.js",
    "screens/merge.js",
    "screens/metrics.js",
    "screens/proposals.js",
    "screens/settings.js",
    "screens/start.js",
    "screens/upkeep.js",
    "screens/users.js",
];

const fn kind(name: &str) -> &'static str {
    match name.as_bytes() {
        [.., b'.', b'j', b's'] => "text/javascript; charset=utf-8",
        [.., b'.', b'c', b's', b's'] => "text/css; charset=utf-8",
        [.., b'.', b's', b'v', b'g'] => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    }
}

/// The files, as they are sent.
pub(super) struct Pages(Vec<Page>);

struct Page {
    file: &'static File,
    tag: String,
    compressed: OnceLock<Bytes>,
}

impl Default for Pages {
    fn default() -> Pages {
        let pages = FILES.iter().map(|file| {
            let hash = digest::digest(&digest::SHA256, file.content);
            let tag = format!("\"{}\"", BASE64URL_NOPAD.encode(&hash.as_ref()[..18]));
            Page { file, tag, compressed: OnceLock::new() }
        });
        Pages(pages.collect())
    }
}

impl Pages {
    /// Answers a request for the file at `path`.
    pub fn answer(&self, path: &str, headers: &HeaderMap) -> Answer {
        let path = if path == "/" { FILES[0].path } else { path };
        let Some(page) = self.0.iter().find(|page| page.file.path == path) else {
            return text(StatusCode::NOT_FOUND, "there is no such file");
        };
        let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
        let is_known = known.is_some_and(|known| {
            known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == page.tag)
        });
        let mut answer = Response::new(Full::default());
        let fields = answer.headers_mut();
        // The weak form: compressed or not, it is the same file.
        if let Ok(tag) = HeaderValue::from_str(&format!("W/{}", page.tag)) {
            fields.insert(header::ETAG, tag);
        }
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if is_known {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            return answer;
        }
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.file.kind));
        let compressed = takes_gzip(headers).then(|| page.compressed()).flatten();
        *answer.body_mut() = match compressed {
            Some(bytes) => {
                let gzip = HeaderValue::from_static("gzip");
                answer.headers_mut().insert(header::CONTENT_ENCODING, gzip);
                Full::new(bytes)
            }
            None => Full::new(Bytes::from_static(page.file.content)),
        };
        answer
    }
}

impl Page {
    fn compressed(&self) -> Option<Bytes> {
        if let Some(bytes) = self.compressed.get() {
            return Some(bytes.clone());
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(self.file.content).ok()?;
        let bytes = Bytes::from(encoder.finish().ok()?);
        Some(self.compressed.get_or_init(|| bytes).clone())
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut ways = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    ways.any(|way| {
        let (name, weight) = way.split_once(';').unwrap_or((way, ""));
        name.trim() == "gzip" && !["q=0", "q=0.0"].contains(&weight.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most bytes of the first screen, compressed, and of all files.
    const ALL_BYTES_MAX: usize = 400 << 10;
    const FIRST_BYTES_MAX: usize = 60 << 10;

    #[test]
    fn files_are_small() {
        let pages = Pages::default();
        let bytes = |page: &Page| page.compressed().expect("it can be compressed").len();
        let all: usize = pages.0.iter().map(bytes).sum();
        assert!(all <= ALL_BYTES_MAX, "{all}");
        // Files that aren't below screens/ are loaded at once.
        let is_first = |page: &&Page| !page.file.path.starts_with("/screens/");
        let first: usize = pages.0.iter().filter(is_first).map(bytes).sum();
        assert!(first <= FIRST_BYTES_MAX, "{first}");
    }

    #[test]
    fn files_name_nothing_elsewhere_and_put_no_markup_together() {
        for file in FILES {
            let text = std::str::from_utf8(file.content).expect("UTF-8");
            let namespaces = text.replace("http://www.w3.org/2000/svg", "");
            for banned in ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML"] {
                assert!(!namespaces.contains(banned), "{} has {banned}", file.path);
            }
            for banned in ["eval(", "document.write", "style=\"", "<script>", "new Function"] {
                assert!(!text.contains(banned), "{} has {banned}", file.path);
            }
        }
    }

    #[test]
    fn a_file_is_sent_once() {
        let pages = Pages::default();
        let mut headers = HeaderMap::new();
        let plain = pages.answer("/", &headers);
        assert_eq!(plain.status(), 200);
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br, gzip;q=0.5"));
        let compressed = pages.answer("/index.html", &headers);
        assert_eq!(compressed.headers()[header::CONTENT_ENCODING], "gzip");
        headers.insert(header::IF_NONE_MATCH, compressed.headers()[header::ETAG].clone());
        assert_eq!(pages.answer("/", &headers).status(), 304);
        assert_eq!(pages.answer("/style.css", &headers).status(), 200);
        assert_eq!(pages.answer("/../Cargo.toml", &headers).status(), 404);
    }
}
