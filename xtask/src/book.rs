//! `cargo xtask book`: the documentation as a book, by mdBook where it is installed.
//!
//! docs/SUMMARY.md lists the pages; some lie outside of docs/. mdBook takes pages of one directory
//! only, so they are put together under target/book/src as they lie in the repository, and with
//! them the files that they link to. `tidy` checks that the list has every page of docs/.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The list of pages.
const SUMMARY: &str = "docs/SUMMARY.md";
/// Folders of docs/ whose pages are no part of the book.
const APART: &[&str] = &["docs/decisions", "docs/notes"];
/// The directory in which the book is put together; docs/book.toml names it.
const SOURCE: &str = "target/book/src";
const BOOK: &str = "target/book/html/index.html";

/// Returns a line for each page that the list lacks, or names twice.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let summary = crate::read(root, Path::new(SUMMARY))?;
    let listed = pages(&summary);
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for page in &listed {
        if !seen.insert(page) {
            faults.push(format!("{SUMMARY}: {} is there twice", page.display()));
        }
    }
    for page in crate::tracked(root, ".md")? {
        let is_apart = APART.iter().any(|folder| page.starts_with(folder));
        let is_listed = is_apart || page == Path::new(SUMMARY) || seen.contains(&page);
        if page.starts_with("docs") && !is_listed {
            faults.push(format!("{SUMMARY}: {} is missing", page.display()));
        }
        if is_apart && seen.contains(&page) {
            faults.push(format!("{SUMMARY}: {} is no page for users", page.display()));
        }
    }
    for folder in APART {
        let list = Path::new(folder).join("README.md");
        let text = crate::read(root, &list)?;
        let listed: BTreeSet<PathBuf> = crate::documentation::links(&text)
            .into_iter()
            .map(|(_, target)| plain(&Path::new(folder).join(target)))
            .collect();
        for page in crate::tracked(root, ".md")? {
            if page.starts_with(folder) && page != list && !listed.contains(&page) {
                faults.push(format!("{}: {} is missing", list.display(), page.display()));
            }
        }
    }
    Ok(faults)
}

/// Puts the book together, and has mdBook make it.
pub fn build(root: &Path) -> Result<(), String> {
    let summary = crate::read(root, Path::new(SUMMARY))?;
    let source = root.join(SOURCE);
    if source.exists() {
        fs::remove_dir_all(&source).map_err(|error| format!("{SOURCE}: {error}"))?;
    }
    let listed = pages(&summary);
    let mut beside = BTreeSet::new();
    for page in &listed {
        let text = crate::read(root, page)?;
        let directory = page.parent().unwrap_or(Path::new(""));
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (number, target) in crate::documentation::links(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let to = plain(&directory.join(file));
            if file.is_empty() {
                continue;
            }
            let Some(shown) = shown_as(file, &to, &listed) else {
                if !listed.contains(&to) && root.join(&to).is_file() {
                    beside.insert(to);
                }
                continue;
            };
            let mark = if heading.is_empty() { "" } else { "#" };
            let line = &mut lines[number - 1];
            *line = line.replace(&format!("]({target})"), &format!("]({shown}{mark}{heading})"));
        }
        write(&source.join(page), &(lines.join("\n") + "\n"))?;
    }
    for file in &beside {
        let bytes = fs::read(root.join(file)).map_err(|error| error.to_string())?;
        let to = source.join(file);
        make_parent(&to)?;
        fs::write(&to, bytes).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    write(&source.join("SUMMARY.md"), &moved(&summary))?;
    println!("book: {} pages in {SOURCE}", listed.len());
    match Command::new("mdbook").args(["build", "docs"]).current_dir(root).status() {
        Ok(status) if status.success() => println!("book: {BOOK}"),
        Ok(status) => return Err(format!("mdbook build docs: {status}")),
        Err(error) => println!("not run: mdbook ({error}); cargo install mdbook"),
    }
    Ok(())
}

/// Returns the book's form of a link to `file`, which lies at `to`, if it differs: mdBook makes an
/// `index.html` of a README, and its own of the list.
fn shown_as(file: &str, to: &Path, listed: &[PathBuf]) -> Option<String> {
    let whole = match listed.iter().any(|page| *page == to.join("README.md")) {
        true => format!("{}/README.md", file.trim_end_matches('/')),
        false => file.to_owned(),
    };
    if to == Path::new(SUMMARY) {
        return Some(format!("{}toc.html", "../".repeat(whole.matches("../").count())));
    }
    let is_listed = whole != file || listed.iter().any(|page| page == to);
    let directory = whole.strip_suffix("README.md").filter(|_| is_listed)?;
    Some(format!("{directory}index.html"))
}

/// The pages of a list, as they lie in the repository.
fn pages(summary: &str) -> Vec<PathBuf> {
    let links = crate::documentation::links(summary);
    links.into_iter().map(|(_, target)| plain(&Path::new("docs").join(target))).collect()
}

/// The list, as it stands where the pages are put together.
fn moved(summary: &str) -> String {
    let mut text = summary.to_owned();
    for (_, target) in crate::documentation::links(summary) {
        let page = plain(&Path::new("docs").join(target));
        text = text.replace(&format!("]({target})"), &format!("](./{})", page.display()));
    }
    text
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    make_parent(path)?;
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn make_parent(path: &Path) -> Result<(), String> {
    let parent = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_moved() {
        let summary = "- [A](a.md)\n  - [B](../b/README.md)\n";
        assert_eq!(pages(summary), [Path::new("docs/a.md"), Path::new("b/README.md")]);
        let listed = [PathBuf::from("docs/notes/README.md"), PathBuf::from("docs/a.md")];
        let shown = |file: &str, to: &str| shown_as(file, Path::new(to), &listed);
        assert_eq!(shown("notes/", "docs/notes/").as_deref(), Some("notes/index.html"));
        assert_eq!(
            shown("notes/README.md", "docs/notes/README.md").as_deref(),
            Some("notes/index.html")
        );
        assert_eq!(shown("docs/SUMMARY.md", SUMMARY).as_deref(), Some("toc.html"));
        assert_eq!(shown("a.md", "docs/a.md"), None);
        assert_eq!(moved(summary), "- [A](./docs/a.md)\n  - [B](./b/README.md)\n");
    }
}
