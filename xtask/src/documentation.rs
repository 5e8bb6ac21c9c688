//! Checks documentation: comments end where code does, a public function that may fail says with
//! what, an example stands where it is run, and no link between the pages is dead.
//!
//! All of it is read off the text: `pub fn` counts as public, in a private module too, and so do a
//! trait's functions; a function may fail if it returns a `Result`. Implementations of traits don't
//! count, and neither do tests.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The column at which rustfmt ends lines of code; it leaves comments alone.
const COLUMNS: usize = 100;

/// Returns a line for each comment that is too long, each function that doesn't say when it fails
/// and each link that leads nowhere.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for path in crate::tracked(root, ".rs")? {
        let text = crate::read(root, &path)?;
        for (position, line) in text.lines().enumerate() {
            if is_long_comment(line) {
                let place = format!("{}:{}", path.display(), position + 1);
                faults.push(format!("{place}: a comment of more than {COLUMNS} columns"));
            }
        }
        if is_source(&path) {
            let undocumented =
                fallible(of_product(&text)).into_iter().filter(|found| !found.is_documented);
            faults.extend(undocumented.map(|Fallible { line, name, .. }| {
                format!("{}:{line}: {name} may fail: say when, under `# Errors`", path.display())
            }));
            if examples_of(&text) > 0 && !runs_examples(root, &path)? {
                let place = path.display();
                faults.push(format!("{place}: an example that nothing runs: `doctest = false`"));
            }
        }
    }
    faults.extend(dead_links(root)?);
    Ok(faults)
}

/// Whether functions of this file count.
pub fn is_source(path: &Path) -> bool {
    let shown = path.display().to_string();
    let is_test = shown.ends_with("tests.rs") || shown.contains("/tests/");
    shown.starts_with("crates/") && shown.contains("/src/") && !is_test
}

/// Whether rustdoc runs the examples of a source file's crate.
fn runs_examples(root: &Path, source: &Path) -> Result<bool, String> {
    let crate_name = source.iter().nth(1).unwrap_or_default();
    let manifest = Path::new("crates").join(crate_name).join("Cargo.toml");
    Ok(!crate::read(root, &manifest)?.contains("doctest = false"))
}

/// Returns how many examples of a file rustdoc runs: blocks that are Rust, as they are unless they
/// say otherwise, and neither text nor ignored.
pub fn examples_of(code: &str) -> usize {
    let (mut count, mut is_open) = (0, false);
    for line in code.lines().map(str::trim_start) {
        let fence = line.strip_prefix("//! ```").or_else(|| line.strip_prefix("/// ```"));
        let Some(language) = fence else { continue };
        is_open = !is_open;
        let is_rust = language.is_empty() || ["rust", "no_run", "should_panic"].contains(&language);
        count += usize::from(is_open && is_rust);
    }
    count
}

/// Returns the text before a file's own tests, which end it. Tests in a file of their own (`mod
/// tests;`) may be named anywhere.
pub fn of_product(text: &str) -> &str {
    let mut modules = text.match_indices("#[cfg(test)]\nmod ");
    let own = modules.find(|(at, _)| {
        let line = text[*at..].lines().nth(1).unwrap_or_default();
        !line.ends_with(';')
    });
    own.map_or(text, |(at, _)| &text[..at])
}

/// A table's line and what has no space to break at may be longer.
fn is_long_comment(line: &str) -> bool {
    let inner = line.trim_start();
    let is_comment = inner.starts_with("//");
    let text = inner.trim_start_matches(['/', '!']).trim();
    is_comment
        && COLUMNS < line.chars().count()
        && !text.starts_with('|')
        && text.trim_start_matches(['-', '<', '[', '*']).trim().contains(' ')
}

/// A public function that returns a `Result`.
pub struct Fallible {
    line: usize,
    name: String,
    /// Whether its documentation says when it fails.
    pub is_documented: bool,
}

/// The public functions of a file that return a `Result`.
pub fn fallible(code: &str) -> Vec<Fallible> {
    let lines: Vec<&str> = code.lines().collect();
    let (mut found, mut is_trait) = (Vec::new(), false);
    for (at, line) in lines.iter().enumerate() {
        is_trait |= line.starts_with("pub trait ") || line.starts_with("pub(crate) trait ");
        is_trait &= *line != "}";
        let inner = line.trim_start();
        let of_trait = || inner.strip_prefix("fn ").filter(|_| is_trait);
        let Some(rest) = inner.strip_prefix("pub fn ").or_else(of_trait) else { continue };
        let head: String = lines[at..].iter().take(16).copied().collect::<Vec<_>>().join(" ");
        let head = head.split([';', '{']).next().unwrap_or_default();
        // Only the function's own return type counts; one that a parameter returns stands before
        // it.
        let returned = head.rsplit_once(") -> ").map_or("", |(_, returned)| returned);
        if !["Result<", "io::Result<"].iter().any(|result| returned.starts_with(result)) {
            continue;
        }
        let above = lines[..at].iter().rev();
        let mut above = above.take_while(|line| {
            line.trim_start().starts_with("///") || line.trim_start().starts_with("#[")
        });
        found.push(Fallible {
            line: at + 1,
            name: rest.split(['(', '<']).next().unwrap_or_default().to_owned(),
            is_documented: above.any(|line| line.contains("# Errors")),
        });
    }
    found
}

/// A line for each link of a page to a file or a heading that isn't there.
fn dead_links(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    let mut known: HashMap<PathBuf, HashSet<String>> = HashMap::new();
    for path in crate::tracked(root, ".md")? {
        let text = crate::read(root, &path)?;
        for (line, target) in links(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let directory = path.parent().unwrap_or(Path::new(""));
            let to = if file.is_empty() { path.clone() } else { directory.join(file) };
            let is_page = to.extension().is_some_and(|extension| extension == "md");
            let is_there = root.join(&to).exists();
            if is_there && is_page && !heading.is_empty() && !known.contains_key(&to) {
                known.insert(to.clone(), headings(&crate::read(root, &to)?));
            }
            let leads =
                heading.is_empty() || known.get(&to).is_none_or(|all| all.contains(heading));
            if !is_there || !leads {
                faults.push(format!("{}:{line}: the link to {target} is dead", path.display()));
            }
        }
    }
    Ok(faults)
}

/// The links of a page that lead to others of ours, with their lines.
pub fn links(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (position, line) in outside_code(page) {
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !is_elsewhere && !target.is_empty() {
                found.push((position + 1, target));
            }
        }
    }
    found
}

/// Returns the anchors of a page's headings: small letters, no punctuation, hyphens for spaces; the
/// second of a name has `-1` behind it.
fn headings(page: &str) -> HashSet<String> {
    let mut found: HashSet<String> = HashSet::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (_, line) in outside_code(page) {
        let Some(title) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else {
            continue;
        };
        let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
        let name: String = title.trim().to_lowercase().chars().filter(kept).collect();
        let name = name.replace(' ', "-");
        let count = counts.entry(name.clone()).or_default();
        found.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    found
}

/// The lines of a page that aren't in a fenced block of code, with their positions.
pub fn outside_code(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    page.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_ends_where_code_does() {
        let long = "word ".repeat(30);
        for (line, is_long) in [
            (format!("/// {long}"), true),
            (format!("    // {long}"), true),
            (format!("//! | {long} |"), false),
            (format!("    let text = \"{long}\";"), false),
            (format!("/// <https://example.org/{}>", "x".repeat(100)), false),
            ("/// Short.".to_owned(), false),
        ] {
            assert_eq!(is_long_comment(&line), is_long, "{line}");
        }
    }

    #[test]
    fn fallible_functions_document_their_errors() {
        let code = "/// Told.\n///\n/// # Errors\n/// Then.\n#[must_use]\npub fn one() -> Result<(), E> {}\n\
                    /// Not.\npub fn two(\n    a: u8,\n) -> io::Result<u8> {}\n\
                    /// Can't fail.\npub fn three(f: impl Fn() -> Result<(), E>) -> Three {}\n\
                    pub fn four<T>(f: impl Fn() -> Option<T>) -> Result<T> {}\n\
                    pub trait Five {\n    fn six(&self) -> Result<()>;\n}\n\
                    impl Five for u8 {\n    fn six(&self) -> Result<()> {}\n}\n";
        let found = fallible(code);
        let found: Vec<_> =
            found.iter().map(|it| (it.name.as_str(), it.line, it.is_documented)).collect();
        let wanted = [("one", 6, true), ("two", 8, false), ("four", 13, false), ("six", 15, false)];
        assert_eq!(found, wanted);
    }

    #[test]
    fn links_and_headings_are_found() {
        let page = "# A `b`: c\n[x](other.md#what) and [y](#a-b-c), [z](https://example.org)\n\
                    ```\n[no](no.md)\n# no\n```\n## A b c\n";
        assert_eq!(links(page), [(2, "other.md#what"), (2, "#a-b-c")]);
        let names: HashSet<String> = ["a-b-c", "a-b-c-1"].map(str::to_owned).into();
        assert_eq!(headings(page), names);
    }
}
