//! Small files that are read whole: settings, tokens, texts that the user wrote.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Far more than a person writes into such a file.
const BYTES_MAX: u64 = 1 << 20;

/// The text of the file `path`.
///
/// # Errors
/// An error of the system; [`ErrorKind::InvalidData`] for what isn't UTF-8, or doesn't end.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut text)?;
    if BYTES_MAX < text.len() as u64 {
        let what = format!("more than {BYTES_MAX} bytes: this is another kind of file");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "the text is not UTF-8");
    String::from_utf8(text).map_err(not_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = read(Path::new("/dev/zero")).expect_err("it never ends");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(read(Path::new("/dev/null")).expect("an empty file"), "");
    }
}
