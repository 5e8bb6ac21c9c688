//! Base64: with the standard alphabet and padding, as most have it, or with that of addresses.
//!
//! Text to be decoded may leave its padding out, and the surplus bits of its last letter may be
//! anything: MongoDB and its tools take both.

use std::sync::LazyLock;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD, Encoding};

static STANDARD: LazyLock<Encoding> = LazyLock::new(|| forgiving(&BASE64_NOPAD));
static OF_ADDRESSES: LazyLock<Encoding> = LazyLock::new(|| forgiving(&BASE64URL_NOPAD));

fn forgiving(encoding: &Encoding) -> Encoding {
    let mut specification = encoding.specification();
    specification.check_trailing_bits = false;
    specification.encoding().expect("a known encoding that checks less is one")
}

/// `bytes` in base64.
pub fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// `bytes` in base64 of addresses, which has `-` and `_` for `+` and `/`, and no padding.
pub fn encode_for_address(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// Appends `bytes` in base64.
pub(super) fn append(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + BASE64.encode_len(bytes.len()), 0);
    BASE64.encode_mut(bytes, &mut out[start..]);
}

/// Decodes base64; the padding may be left out. `None` for any other character or length.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let unpadded = unpadded(text);
    if unpadded.len() < text.len() && !text.len().is_multiple_of(4) {
        return None;
    }
    STANDARD.decode(unpadded.as_bytes()).ok()
}

/// Decodes base64 of addresses; one or two `=` at its end are ignored. `None` for any other
/// character or length.
pub fn decode_of_address(text: &str) -> Option<Vec<u8>> {
    OF_ADDRESSES.decode(unpadded(text).as_bytes()).ok()
}

fn unpadded(text: &str) -> &str {
    text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (&[0xff, 0xfe, 0xfb], "//77"),
        ] {
            assert_eq!(encode(bytes), text);
            let mut appended = b"x".to_vec();
            append(bytes, &mut appended);
            assert_eq!(appended, format!("x{text}").into_bytes());
            assert_eq!(decode(text).as_deref(), Some(bytes));
            let unpadded = text.trim_end_matches('=');
            assert_eq!(decode(unpadded).as_deref(), Some(bytes));
            let in_address = unpadded.replace('/', "_");
            assert_eq!(encode_for_address(bytes), in_address);
            assert_eq!(decode_of_address(&in_address).as_deref(), Some(bytes));
        }
        for text in ["Z", "Zg=", "Z===", "Zm9v=", "Z g=", "Zg-=", "=", "=="] {
            assert_eq!(decode(text), None, "{text}");
        }
        for text in ["Z", "Z===", "Z+==", "Z/"] {
            assert_eq!(decode_of_address(text), None, "{text}");
        }
    }

    /// The last letter of `Zh` has four surplus bits, one of which is set.
    #[test]
    fn bits_that_count_for_nothing_may_be_set() {
        assert_eq!(decode("Zh==").as_deref(), Some(&b"f"[..]));
        assert_eq!(decode("Zm9=").as_deref(), Some(&b"fo"[..]));
        assert_eq!(decode_of_address("Zh").as_deref(), Some(&b"f"[..]));
    }
}
