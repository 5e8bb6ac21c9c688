//! Checks that names in the pages for contributors exist in the code: files, folders, functions.
//!
//! Names are read off the text between backquotes. A path ends in `.rs`, `.md` or `/`; it may leave
//! out `crates/` and `src/`, or begin anywhere below them. For `Type::function` one file must have
//! both. Quotes of several words, and blocks of code, aren't looked at.

use std::path::Path;

const PAGES: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md"];
/// The map that a newcomer reads from end to end.
const MAP: &str = "ARCHITECTURE.md";
const MAP_LINES_MAX: usize = 400;

/// Returns a line for each name that stands for nothing, and for a map that is too long.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let shown = |path: std::path::PathBuf| path.display().to_string();
    let files: Vec<String> = crate::tracked(root, "")?.into_iter().map(shown).collect();
    let sources = crate::tracked(root, ".rs")?;
    let texts: Result<Vec<String>, String> =
        sources.iter().map(|path| crate::read(root, path)).collect();
    let texts = texts?;
    let mut faults = Vec::new();
    for page in PAGES {
        let text = crate::read(root, Path::new(page))?;
        for (line, name) in names(&text) {
            let is_known = match name.split_once("::") {
                Some((owner, item)) => texts.iter().any(|text| has(text, owner, item)),
                None => !is_path(name) || files.iter().any(|file| leads_to(name, file)),
            };
            if !is_known {
                faults.push(format!("{page}:{line}: there is no {name}"));
            }
        }
        let lines = text.lines().count();
        if *page == MAP && MAP_LINES_MAX < lines {
            faults.push(format!("{page}: {lines} lines, more than {MAP_LINES_MAX}"));
        }
    }
    Ok(faults)
}

/// Returns the text between each pair of backquotes, with its line.
fn names(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (position, line) in crate::documentation::outside_code(page) {
        let quoted = line.split('`').skip(1).step_by(2);
        let are_names = quoted.filter(|name| !name.is_empty() && !name.contains([' ', '*', '<']));
        found.extend(are_names.map(|name| (position + 1, name)));
    }
    found
}

/// Whether it is a path below the workspace. `NAME` stands for any.
fn is_path(name: &str) -> bool {
    let is_file = [".rs", ".md"].iter().any(|end| name.ends_with(end));
    (is_file || name.ends_with('/')) && !name.contains("NAME") && name != "target/"
}

/// Whether `file` is what `path` names, or lies below it.
fn leads_to(path: &str, file: &str) -> bool {
    let begins = |file: &str| match path.ends_with('/') {
        true => file.starts_with(path),
        false => file == path,
    };
    let places = file.match_indices('/').map(|(at, _)| &file[at + 1..]);
    let short = file.strip_prefix("crates/").map(|file| file.replacen("/src/", "/", 1));
    begins(file) || places.into_iter().any(begins) || short.is_some_and(|file| begins(&file))
}

/// Whether a source names both a type, trait or module `owner` and an `item` of it.
fn has(text: &str, owner: &str, item: &str) -> bool {
    let is_word = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            !before.ends_with(letter) && !after.starts_with(letter)
        })
    };
    is_word(owner) && is_word(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_is_quoted() {
        let page = "Of `store/io.rs` and `a b`:\n```text\n`no.rs`\n```\nsee `Shared::stall`.\n";
        assert_eq!(names(page), [(1, "store/io.rs"), (5, "Shared::stall")]);
    }

    #[test]
    fn paths_may_leave_out_where_all_code_lies() {
        let file = "crates/store/src/io/system.rs";
        for path in ["store/io/system.rs", "io/system.rs", "system.rs", "store/io/", "io/", file] {
            assert!(is_path(path) && leads_to(path, file), "{path}");
        }
        for path in ["store/system.rs", "o/system.rs", "stem.rs", "store/src/i/", "io/system"] {
            assert!(!leads_to(path, file), "{path}");
        }
        assert!(!is_path("commands/NAME.rs") && !is_path("shop@sale"));
    }

    #[test]
    fn an_item_stands_beside_its_type() {
        let text = "impl Shared {\n    fn stall(&self) {}\n}\n";
        assert!(has(text, "Shared", "stall") && !has(text, "Shared", "stal"));
        assert!(!has(text, "Share", "stall"));
    }
}
