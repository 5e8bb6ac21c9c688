//! Compressed input, recognised by how it begins: gzip and zstd, of one part or several.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// The first bytes of gzip.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The first bytes of a frame of zstd.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The end of a mark of a frame that is passed over, behind a byte from 0x50 to 0x5f: what lets
/// others read it in parts.
const ZSTD_PASSED_OVER: &[u8] = &[0x2a, 0x4d, 0x18];
/// The number of bytes that identify them.
const MARK_BYTES: usize = 4;

/// Returns a reader of what `reader` gives, decompressed if it is compressed.
///
/// # Errors
/// An error of the reader.
pub fn plain(mut reader: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut begin = Vec::with_capacity(MARK_BYTES);
    reader.by_ref().take(MARK_BYTES as u64).read_to_end(&mut begin)?;
    let is_gzip = begin.starts_with(GZIP);
    let is_zstd = match begin[..] {
        [first, ref rest @ ..] if first & 0xf0 == 0x50 => rest == ZSTD_PASSED_OVER,
        _ => begin == ZSTD,
    };
    let whole = Cursor::new(begin).chain(reader);
    Ok(match (is_gzip, is_zstd) {
        (true, _) => Box::new(MultiGzDecoder::new(whole)),
        (_, true) => Box::new(zstd::stream::read::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}

/// A file's name without the ending that says how it is compressed.
pub fn plain_name(name: &str) -> &str {
    [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("room");
        encoder.finish().expect("room")
    }

    fn read(bytes: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        plain(Cursor::new(bytes))?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn compressed_input_is_decompressed() {
        let zstd = |text: &str| zstd::stream::encode_all(text.as_bytes(), 1).expect("room");
        for (bytes, expected) in [
            (b"".to_vec(), ""),
            (b"{}".to_vec(), "{}"),
            (b"{\"a\":1}".to_vec(), "{\"a\":1}"),
            (gzip("a\nb"), "a\nb"),
            ([gzip("a"), gzip("b")].concat(), "ab"),
            (zstd("a\nb"), "a\nb"),
            ([zstd("a"), zstd("b")].concat(), "ab"),
            ([b"\x5e\x2a\x4d\x18\x02\0\0\0hi", &zstd("a")[..], &zstd("b")].concat(), "ab"),
            (b"Po".to_vec(), "Po"),
        ] {
            assert_eq!(read(bytes).expect("it is whole"), expected);
        }
        let mut cut = gzip(&"long ".repeat(100));
        cut.truncate(20);
        assert!(read(cut).is_err());
    }

    #[test]
    fn names_lose_what_compressed_them() {
        for (name, expected) in
            [("a.csv.gz", "a.csv"), ("a.bson.zst", "a.bson"), ("a.gzip", "a.gzip")]
        {
            assert_eq!(plain_name(name), expected);
        }
    }
}
