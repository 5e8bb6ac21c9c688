//! What can be counted of how the code reads: printed by `cargo xtask figures`, so that before and
//! after are told by one script.

use std::path::Path;

use crate::walls;

pub fn print(root: &Path) -> Result<(), String> {
    let (mut lines, mut longest, mut functions, mut assertions) =
        (Vec::new(), (0, String::new()), 0, 0);
    let (mut fallible, mut with_errors, mut examples) = (0, 0, 0);
    for path in crate::tracked(root, ".rs")? {
        let shown = path.display().to_string();
        if !shown.starts_with("crates/") || !shown.contains("/src/") || shown.ends_with("tests.rs")
        {
            continue;
        }
        let text = crate::read(root, &path)?;
        let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        lines.push(code.lines().count());
        for (name, length) in functions_of(code) {
            if length > longest.0 {
                longest = (length, format!("{shown}: {name}"));
            }
            functions += usize::from(shown.starts_with("crates/db/"));
        }
        if shown.starts_with("crates/db/") {
            let asserting = |line: &&str| {
                line.trim_start().starts_with("assert")
                    || line.trim_start().starts_with("debug_assert")
            };
            assertions += code.lines().filter(asserting).count();
        }
        let (all, told) = results(code);
        fallible += all;
        with_errors += told;
        examples += code.lines().filter(|line| is_example(line.trim_start())).count();
    }
    lines.sort_unstable();
    let at = |share: usize| lines.get(lines.len() * share / 100).copied().unwrap_or_default();
    println!("files: {}, lines: median {}, p90 {}", lines.len(), at(50), at(90));
    println!("longest function: {} lines, {}", longest.0, longest.1);
    println!("`# Errors` on public functions that may fail: {with_errors} of {fallible}");
    println!("examples in documentation that run: {examples}");
    println!("assertions a thousand functions in db: {}", assertions * 1_000 / functions.max(1));
    for found in walls::survey(root)? {
        let rings: Vec<usize> = found.rings.iter().map(Vec::len).collect();
        println!(
            "{}: {} files, {} imports of higher rooms, rings of more than six: {rings:?}",
            found.name,
            found.files,
            found.upward.len()
        );
    }
    Ok(())
}

/// Names and lengths of functions, by their indentation as rustfmt leaves it.
fn functions_of(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = code.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let inner = line.trim_start();
        let Some((_, rest)) = inner.split_once("fn ").filter(|(before, _)| is_declaration(before))
        else {
            continue;
        };
        let indent = line.len() - inner.len();
        let close = |line: &&str| line.len() == indent + 1 && line.ends_with('}');
        let ends = lines[at..].iter().position(close);
        if let Some(length) = ends {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            found.push((name.to_owned(), length + 1));
        }
    }
    found
}

fn is_declaration(before: &str) -> bool {
    before.split_whitespace().all(|word| {
        word.starts_with("pub")
            || ["const", "async", "unsafe"].contains(&word)
            || word.ends_with(')')
    })
}

/// How many public functions return a `Result`, and how many of them say when they fail.
fn results(code: &str) -> (usize, usize) {
    let lines: Vec<&str> = code.lines().collect();
    let (mut all, mut told) = (0, 0);
    for (at, line) in lines.iter().enumerate() {
        if !line.trim_start().starts_with("pub fn ") {
            continue;
        }
        let head: String = lines[at..].iter().take(12).copied().collect::<Vec<_>>().join(" ");
        let head = head.split([';', '{']).next().unwrap_or_default();
        if !head.contains("-> Result<") && !head.contains("-> io::Result<") {
            continue;
        }
        all += 1;
        let above = lines[..at].iter().rev();
        let mut above = above.take_while(|line| {
            line.trim_start().starts_with("///") || line.trim_start().starts_with("#[")
        });
        told += usize::from(above.any(|line| line.contains("# Errors")));
    }
    (all, told)
}

/// Whether a line opens an example that rustdoc runs.
fn is_example(line: &str) -> bool {
    let Some(fence) = line.strip_prefix("//! ```").or_else(|| line.strip_prefix("/// ```")) else {
        return false;
    };
    fence.starts_with("rust") || fence.starts_with("no_run")
}
