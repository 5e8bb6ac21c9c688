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
/// The first bytes of what isn't read here, and the commands that decompress it.
const OTHERS: [(&[u8], &str, &str); 3] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "xz -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    // Behind it stand a digit and the digits of pi.
    (b"BZh", "bzip2", "bzip2 -dc"),
];
const BZIP2_BLOCK: &[u8] = b"1AY";
/// The number of bytes that identify them.
const MARK_BYTES: usize = 7;

/// Returns a reader of what `reader` gives, decompressed if it is compressed.
///
/// # Errors
/// An error of the reader; `InvalidData` if it is compressed in another way.
pub fn plain(mut reader: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut begin = Vec::with_capacity(MARK_BYTES);
    reader.by_ref().take(MARK_BYTES as u64).read_to_end(&mut begin)?;
    let is_gzip = begin.starts_with(GZIP);
    let is_zstd = match begin[..] {
        [first, ref rest @ ..] if first & 0xf0 == 0x50 => rest.starts_with(ZSTD_PASSED_OVER),
        _ => begin.starts_with(ZSTD),
    };
    if let Some((name, command)) = other_compression(&begin) {
        let what = format!("it is compressed with {name}: pipe in what {command} makes of it");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let whole = Cursor::new(begin).chain(reader);
    Ok(match (is_gzip, is_zstd) {
        (true, _) => Box::new(MultiGzDecoder::new(whole)),
        (_, true) => Box::new(zstd::stream::read::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}

/// What compresses as `begin` begins, and the command that decompresses it.
fn other_compression(begin: &[u8]) -> Option<(&'static str, &'static str)> {
    let (mark, name, command) = *OTHERS.iter().find(|(mark, _, _)| begin.starts_with(mark))?;
    let is_text = name == "bzip2" && !begin[mark.len()..].ends_with(BZIP2_BLOCK);
    (!is_text).then_some((name, command))
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

    /// A user who is told that it is no JSON looks for the fault in the file.
    #[test]
    fn other_compressions_are_named() {
        for (bytes, expected) in [
            (&b"\xfd7zXZ\0\0\x04"[..], "xz -dc"),
            (b"PK\x03\x04\x14\0", "unzip -p"),
            (b"BZh91AY&SY", "bzip2 -dc"),
        ] {
            let error = read(bytes.to_vec()).expect_err("not read here");
            assert!(error.to_string().contains(expected), "{error}");
        }
        for text in ["BZh,name\n1,a\n", "BZh", "PK,name\n"] {
            assert_eq!(read(text.into()).expect("plain text"), text);
        }
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
