//! Files stay short, and nothing in them was left open or belongs to one machine.

use std::path::Path;

const FILE_LINES_MAX: usize = 800;
/// Words that don't stand in committed code, each split here so that this file passes.
const BANNED: &[(&str, &str)] = &[
    (concat!("todo", "!("), "finish it, or refuse it with a clear error"),
    (concat!("unimplemented", "!("), "finish it, or refuse it with a clear error"),
    (concat!("TO", "DO"), "write an issue's number or do it"),
    (concat!("FIX", "ME"), "mend it"),
    (concat!("#[ig", "nore"), "assert today's answer instead"),
    (concat!("dbg", "!("), "left over from debugging"),
];

/// Returns a line for each file that is too long and each banned word.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for path in crate::tracked(root, ".rs")? {
        let text = crate::read(root, &path)?;
        let count = text.lines().count();
        if count > FILE_LINES_MAX {
            faults.push(format!("{}: {count} lines: look for the second idea", path.display()));
        }
        for (position, line) in text.lines().enumerate() {
            for (word, advice) in BANNED {
                if line.contains(word) {
                    faults.push(format!("{}:{}: {word} - {advice}", path.display(), position + 1));
                }
            }
        }
        if !text.starts_with("//!") && path.starts_with("crates") {
            faults.push(format!("{}: no head that tells what the file is", path.display()));
        }
    }
    Ok(faults)
}
