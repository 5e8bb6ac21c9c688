//! Files and functions stay short, and nothing in them was left open.

use std::path::Path;

use crate::documentation;
use crate::functions::{Function, functions_of};

const FILE_LINES_MAX: usize = 800;
/// The lines that a screen shows. Tests may be tables of cases.
const FUNCTION_LINES_MAX: usize = 60;
/// Words that don't stand in committed code, each split here so that this file passes.
const BANNED: &[(&str, &str)] = &[
    (concat!("todo", "!("), "finish it, or refuse it with a clear error"),
    (concat!("unimplemented", "!("), "finish it, or refuse it with a clear error"),
    (concat!("TO", "DO"), "write an issue's number or do it"),
    (concat!("FIX", "ME"), "mend it"),
    (concat!("#[ig", "nore"), "assert today's answer instead"),
    (concat!("dbg", "!("), "left over from debugging"),
];

/// Returns a line for each file or function that is too long and each banned word.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for path in crate::tracked(root, ".rs")? {
        let text = crate::read(root, &path)?;
        let count = text.lines().count();
        if count > FILE_LINES_MAX {
            faults.push(format!("{}: {count} lines: look for the second idea", path.display()));
        }
        if documentation::is_source(&path) {
            for Function { name, line, lines } in functions_of(documentation::of_product(&text)) {
                if lines > FUNCTION_LINES_MAX {
                    let place = format!("{}:{line}", path.display());
                    faults.push(format!("{place}: {name} has {lines} lines: name a part of it"));
                }
            }
        }
        for (position, line) in text.lines().enumerate() {
            for (word, advice) in BANNED {
                if line.contains(word) {
                    faults.push(format!("{}:{}: {word} - {advice}", path.display(), position + 1));
                }
            }
        }
        if !text.starts_with("//!") && path.starts_with("crates") {
            faults.push(format!("{}: no head that says what the file is", path.display()));
        }
    }
    Ok(faults)
}
