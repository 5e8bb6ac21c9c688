//! Base64 with the standard alphabet and padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `bytes` in base64.
pub fn encode(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    append(bytes, &mut encoded);
    encoded
}

/// Appends `bytes` in base64.
pub(super) fn append(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for position in 0..4 {
            if position <= chunk.len() {
                let sextet = group >> (18 - 6 * position) & 0x3f;
                out.push(char::from(ALPHABET[sextet as usize]));
            } else {
                out.push('=');
            }
        }
    }
}

/// Decodes base64; the padding may be left out. `None` for any other character or length.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let unpadded = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    if unpadded.len() < text.len() && !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(unpadded.len() * 3 / 4);
    for chunk in unpadded.as_bytes().chunks(4) {
        if chunk.len() == 1 {
            return None;
        }
        let mut group = 0_u32;
        for character in chunk {
            group = group << 6 | sextet(*character)?;
        }
        let group = group << (6 * (4 - chunk.len()));
        bytes.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}

fn sextet(character: u8) -> Option<u32> {
    Some(u32::from(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
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
            assert_eq!(decode(text).as_deref(), Some(bytes));
            assert_eq!(decode(text.trim_end_matches('=')).as_deref(), Some(bytes));
        }
        for text in ["Z", "Zg=", "Z===", "Zm9v=", "Z g=", "Zg-="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
