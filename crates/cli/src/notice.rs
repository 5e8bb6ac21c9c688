//! Messages to people besides a command's result: all of them go to standard error through here.

use std::fmt;
use std::io::{self, Write};

use frond_doc::DocumentBuf;
use frond_doc::extended_json::{self, Form};

use crate::plain_text::plain;

/// Writes a line to standard error, with what could steer a terminal escaped: notices quote names
/// that others chose, such as those in a dump. One that can't be written is dropped: a command
/// doesn't fail, or stop in its middle, because its notices have no reader.
pub fn print(notice: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", plain(&notice.to_string()));
}

/// As [`print`], a document as a line of JSON, for programs.
pub fn print_json(document: &DocumentBuf) {
    let mut text = String::new();
    extended_json::write(document.view(), Form::Relaxed, &mut text);
    let _ = writeln!(io::stderr().lock(), "{text}");
}
