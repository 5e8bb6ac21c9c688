//! Reading a configuration file: the part of YAML that mongod's files use, as a flat list of keys.
//!
//! Mappings of scalars, lists of scalars and further mappings. Anchors, aliases and tags are
//! refused, so that a short file can't mean a huge one, and so are keys that stand twice.

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::{Marker, TScalarStyle};

/// Mappings may be nested so deep.
const DEPTH_MAX: usize = 8;

/// A key that has a value.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The names on the way to it, joined by dots.
    pub key: String,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its value.
    pub value: Value,
}

/// A key's value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Nothing: a section whose lines are all comments.
    Nothing,
    /// A scalar, as it is written.
    Text(String),
    /// A list of scalars.
    List(Vec<String>),
}

/// A message about a fault, and the number of its line.
type Fault = (usize, String);

/// Reads a file's text.
///
/// # Errors
/// The line and what is wrong there: no YAML, or more of it than is read.
pub fn read(text: &str) -> Result<Vec<Entry>, Fault> {
    // Some editors begin a file with it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The scanner takes a NUL for the end: what stands behind it would be ignored without a word.
    // A file that was being written at a power cut may hold them.
    if let Some((before, _)) = text.split_once('\0') {
        let line = before.matches('\n').count() + 1;
        return Err((line, "it holds a NUL byte: the file isn't text".to_owned()));
    }
    let mut reader = Reader { parser: Parser::new_from_str(text), entries: Vec::new() };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart | Event::DocumentEnd, _) => {}
            (Event::StreamEnd, _) => return Ok(reader.entries),
            (Event::Scalar(text, TScalarStyle::Plain, ..), _) if is_nothing(&text) => {}
            (Event::MappingStart(..), line) => {
                if !reader.entries.is_empty() {
                    return Err((line, "a second document begins".to_owned()));
                }
                reader.mapping("", 1)?;
            }
            (_, line) => return Err((line, "the file isn't made of KEY: VALUE".to_owned())),
        }
    }
}

struct Reader<'a> {
    parser: Parser<std::str::Chars<'a>>,
    entries: Vec<Entry>,
}

impl Reader<'_> {
    /// The next event, and its line.
    fn next(&mut self) -> Result<(Event, usize), Fault> {
        let line = |marker: &Marker| marker.line().max(1);
        let (event, marker) = self
            .parser
            .next_token()
            .map_err(|error| (line(error.marker()), format!("no YAML: {}", error.info())))?;
        let (anchor, has_tag) = match &event {
            Event::Alias(anchor) => (*anchor, false),
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                (*anchor, tag.is_some())
            }
            _ => (0, false),
        };
        match (anchor, has_tag) {
            (0, false) => Ok((event, line(&marker))),
            (0, true) => Err((line(&marker), "tags aren't read".to_owned())),
            _ => Err((line(&marker), "anchors and aliases aren't read".to_owned())),
        }
    }

    /// Reads a mapping that has begun; `prefix` stands before its keys.
    fn mapping(&mut self, prefix: &str, depth: usize) -> Result<(), Fault> {
        loop {
            let (name, line) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(()),
                (Event::Scalar(name, ..), line) => (name, line),
                (_, line) => return Err((line, "a key is a word".to_owned())),
            };
            let key = format!("{prefix}{name}");
            let value = match self.next()?.0 {
                Event::Scalar(text, TScalarStyle::Plain, ..) if is_nothing(&text) => Value::Nothing,
                Event::Scalar(text, ..) => Value::Text(text),
                Event::SequenceStart(..) => Value::List(self.list(&key)?),
                Event::MappingStart(..) if depth < DEPTH_MAX => {
                    self.mapping(&format!("{key}."), depth + 1)?;
                    continue;
                }
                _ => return Err((line, format!("{key}: a kind of value that isn't supported"))),
            };
            if self.entries.iter().any(|entry| entry.key == key) {
                return Err((line, format!("{key} appears twice")));
            }
            self.entries.push(Entry { key, line, value });
        }
    }

    /// Reads a list that has begun.
    fn list(&mut self, key: &str) -> Result<Vec<String>, Fault> {
        let mut values = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(values),
                (Event::Scalar(text, ..), _) => values.push(text),
                (_, line) => return Err((line, format!("{key}: a list of words, or one word"))),
            }
        }
    }
}

fn is_nothing(text: &str) -> bool {
    matches!(text, "" | "~" | "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match read(text) {
            Ok(entries) => {
                let shown =
                    entries.iter().map(|it| format!("{} {} {:?}", it.line, it.key, it.value));
                shown.collect::<Vec<_>>().join("; ")
            }
            Err((line, what)) => format!("{line}: {what}"),
        }
    }

    #[test]
    fn keys_are_listed_with_their_lines() {
        for (text, expected) in [
            ("", ""),
            ("# nothing\n", ""),
            (
                "net:\n  port: 1\n  bindIp: '::1'\n",
                r#"2 net.port Text("1"); 3 net.bindIp Text("::1")"#,
            ),
            ("net: {port: 1}", r#"1 net.port Text("1")"#),
            ("net.port: 1", r#"1 net.port Text("1")"#),
            (
                "security:\n#  authorization: enabled\nstorage:\n",
                "1 security Nothing; 3 storage Nothing",
            ),
            ("a: [x, y]\nb:\n- z\n", r#"1 a List(["x", "y"]); 2 b List(["z"])"#),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn anything_but_a_plain_mapping_is_refused_with_its_line() {
        for (text, line, what) in [
            ("- a\n", 1, "KEY: VALUE"),
            ("a\n", 1, "KEY: VALUE"),
            ("net:\n  port: 1\n  port: 2\n", 3, "net.port appears twice"),
            ("net: {port: 1}\nnet.port: 2\n", 2, "net.port appears twice"),
            ("a: &x 1\nb: *x\n", 1, "anchors"),
            ("a: !!int 1\n", 1, "tags"),
            ("a: 1\n---\nb: 2\n", 3, "second document"),
            ("a:\n- [1]\n", 2, "a list of words"),
            ("a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}", 1, "isn't supported"),
            ("a: 1\n\0\0\nsecurity:\n  authorization: enabled\n", 2, "NUL"),
            ("\0", 1, "NUL"),
            ("a: \"b\n", 1, "no YAML"),
            ("a:\n\tb: 1\n", 2, "no YAML"),
        ] {
            let shown = shown(text);
            assert!(
                shown.starts_with(&format!("{line}: ")) && shown.contains(what),
                "{text}: {shown}"
            );
        }
    }
}
