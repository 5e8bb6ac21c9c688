//! Messages to people besides a command's result: all of them go to standard error through here.

use std::fmt;
use std::io::{self, Write};

/// Writes a line to standard error. One that can't be written is dropped: a command doesn't fail,
/// or stop in its middle, because its notices have no reader.
pub fn print(notice: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{notice}");
}
