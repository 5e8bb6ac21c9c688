//! Values of the options of `serve`, read from what a person writes.

use frond_doc::{DocumentBuf, extended_json};

/// With less, what isn't in the budget (the program, a few answers) is most of what is taken.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// Reads the budget of memory.
pub(super) fn parse_memory(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes < MEMORY_BYTES_MIN => Err("at least 16MB".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Reads a parameter; returns what it says of commands for tests.
pub(super) fn parse_parameter(text: &str) -> Result<bool, String> {
    match text.split_once('=') {
        Some(("enableTestCommands", "1" | "true")) => Ok(true),
        Some(("enableTestCommands", "0" | "false")) => Ok(false),
        Some(("enableTestCommands", _)) => Err("it is 0 or 1".to_owned()),
        Some((name, _)) => Err(format!("there is no parameter {name}, only enableTestCommands")),
        None => Err("not NAME=VALUE".to_owned()),
    }
}

/// Reads a query, in MongoDB's extended JSON.
pub(super) fn parse_filter(text: &str) -> Result<DocumentBuf, String> {
    extended_json::parse(text).map_err(|error| error.to_string())
}

/// Reads a number of bytes, `64MB` or the like; units are binary, as everywhere where memory is
/// meant.
///
/// # Errors
/// Says what of it is no size.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match text[digits.len()..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        unit => return Err(format!("unknown unit {unit:?}: B, KB, MB or GB")),
    };
    let count: u64 = digits.parse().map_err(|_| "not a number of bytes".to_owned())?;
    count.checked_mul(1 << shift).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_memory;

    #[test]
    fn sizes_of_memory_are_read() {
        let cases = [
            ("268435456", Some(256 << 20)),
            ("256MB", Some(256 << 20)),
            ("256 mib", Some(256 << 20)),
            ("1G", Some(1 << 30)),
            ("65536K", Some(64 << 20)),
            ("15MB", None),
            ("MB", None),
            ("1.5GB", None),
            ("-1GB", None),
            ("64 parsecs", None),
            ("99999999999GB", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_memory(text).ok(), expected, "{text}");
        }
    }
}
