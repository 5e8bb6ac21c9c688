//! Values, dates and sizes as text for people.

use frond_doc::extended_json::{self, Form};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};
use jiff::Timestamp;

pub use crate::plain_text::plain;

/// The fields of every answer besides its own.
const OF_EVERY_ANSWER: [&str; 3] = ["ok", "$clusterTime", "operationTime"];

/// A value as one line of relaxed extended JSON, for files and other programs.
pub fn json(value: Value<'_>) -> String {
    let mut text = String::new();
    extended_json::write_value(value, Form::Relaxed, &mut text);
    text
}

/// A value as one line of JSON for people: what could steer a terminal is escaped.
pub fn shown_json(value: Value<'_>) -> String {
    plain(&json(value))
}

/// As [`shown_json`], of at most `columns` characters, cut with an ellipsis.
pub fn short_json(value: Value<'_>, columns: usize) -> String {
    cut(&shown_json(value), columns)
}

/// `text` cut to `columns` characters, with an ellipsis for the rest.
pub fn cut(text: &str, columns: usize) -> String {
    match text.char_indices().nth(columns) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
            format!("{kept}…")
        }
    }
}

/// `Sat Nov 21 02:46:10 2026 +0000`, as git writes dates.
pub fn date(millis: i64) -> String {
    match Timestamp::from_millisecond(millis) {
        Ok(time) => time.strftime("%a %b %-d %H:%M:%S %Y +0000").to_string(),
        Err(_) => format!("{millis} ms after 1970"),
    }
}

/// `2026-11-21 02:46`, for lists.
pub fn day_and_time(millis: i64) -> String {
    match Timestamp::from_millisecond(millis) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => moment(millis),
    }
}

/// A moment, to the millisecond, as ISO 8601 has it.
pub fn moment(millis: i64) -> String {
    match Timestamp::from_millisecond(millis) {
        Ok(moment) => moment.to_string(),
        Err(_) => millis.to_string(),
    }
}

/// The date of an answer's field `timestamp`.
pub fn date_of(document: Document<'_>) -> String {
    match document.get("timestamp") {
        Some(Value::DateTime(millis)) => date(millis),
        _ => String::new(),
    }
}

/// A count with its noun: `1 document`, `2,100 documents`.
pub fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// A number with commas between its thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `812 B`, `14.2 KB`, `3.1 MB`: decimal units.
pub fn bytes(count: u64) -> String {
    let count_float = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} KB", count_float / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count_float / 1e6),
        _ => format!("{:.2} GB", count_float / 1e9),
    }
}

/// A count as a value of a document.
pub fn count_value(count: u64) -> Value<'static> {
    Value::Int64(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Appends an array of strings.
pub fn append_texts(document: &mut DocumentBuilder, name: &str, texts: &[String]) {
    document.begin_array(name);
    for text in texts {
        document.push(Value::String(text));
    }
    document.end();
}

/// The string field `name` of an answer; empty where it has none.
pub fn text_of<'a>(document: Document<'a>, name: &str) -> &'a str {
    document.get(name).and_then(|value| value.as_str()).unwrap_or("")
}

/// The whole number in field `name` of an answer; 0 where it has none.
pub fn count_of(document: Document<'_>, name: &str) -> u64 {
    let number = document.get(name).and_then(|value| value.as_integer());
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

/// The documents in the array field `name` of an answer.
pub fn documents_of<'a>(
    document: Document<'a>,
    name: &str,
) -> impl Iterator<Item = Document<'a>> + use<'a> {
    array_of(document, name).iter().filter_map(|value| value.as_document())
}

/// The array field `name` of an answer; an empty one where it has none.
pub fn array_of<'a>(document: Document<'a>, name: &str) -> Array<'a> {
    let empty = Array::from_validated(Document::empty().as_bytes());
    document.get(name).and_then(|value| value.as_array()).unwrap_or(empty)
}

/// An answer without its `ok`, as one line of relaxed JSON: what `--json` prints.
pub fn answer_json(answer: &DocumentBuf) -> String {
    let mut builder = DocumentBuilder::new();
    for (name, value) in answer.iter().filter(|(name, _)| !OF_EVERY_ANSWER.contains(name)) {
        builder.append(name, value);
    }
    let mut text = String::new();
    extended_json::write(builder.build().view(), Form::Relaxed, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes() {
        assert_eq!(counted(1, "document"), "1 document");
        assert_eq!(counted(0, "document"), "0 documents");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(14_230), "14.2 KB");
        assert_eq!(bytes(3_100_000), "3.1 MB");
    }

    #[test]
    fn text_of_others_is_harmless() {
        assert_eq!(plain("a\x1b[31mb\nc"), "a\\u{1b}[31mb\nc");
        assert_eq!(cut("straße", 4), "str…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(date(1_795_229_170_000), "Sat Nov 21 02:46:10 2026 +0000");
    }
}
