//! Counts how the code reads: printed by `cargo xtask figures`, so that one script measures before
//! and after.

use std::path::Path;

use crate::functions::{Function, functions_of};
use crate::{documentation, walls};

const SCREEN_LINES: usize = 60;
/// The crates whose assertions count: data rest on them.
const STORING: [&str; 5] = ["store", "tree", "engine", "db", "vcs"];

pub fn print(root: &Path) -> Result<(), String> {
    let (mut lines, mut longest) = (Vec::new(), (0, String::new()));
    let (mut functions, mut assertions) = ([0; STORING.len()], [0; STORING.len()]);
    let (mut fallible, mut with_errors, mut examples, mut above) = (0, 0, 0, 0);
    for path in crate::tracked(root, ".rs")? {
        if !documentation::is_source(&path) {
            continue;
        }
        let shown = path.display().to_string();
        let text = crate::read(root, &path)?;
        let code = documentation::of_product(&text);
        lines.push(code.lines().count());
        for Function { name, lines, .. } in functions_of(code) {
            if lines > longest.0 {
                longest = (lines, format!("{shown}: {name}"));
            }
            above += usize::from(lines > SCREEN_LINES);
        }
        let of_crate = |name: &&str| shown.starts_with(&format!("crates/{name}/"));
        if let Some(crate_at) = STORING.iter().position(of_crate) {
            let asserting = |line: &&str| {
                line.trim_start().starts_with("assert")
                    || line.trim_start().starts_with("debug_assert")
            };
            functions[crate_at] += functions_of(code).len();
            assertions[crate_at] += code.lines().filter(asserting).count();
        }
        let found = documentation::fallible(code);
        fallible += found.len();
        with_errors += found.iter().filter(|found| found.is_documented).count();
        examples += documentation::examples_of(code);
    }
    lines.sort_unstable();
    let at = |share: usize| lines.get(lines.len() * share / 100).copied().unwrap_or_default();
    println!("files: {}, lines: median {}, p90 {}", lines.len(), at(50), at(90));
    println!("longest function: {} lines, {}", longest.0, longest.1);
    println!("functions of more than {SCREEN_LINES} lines: {above}");
    println!("`# Errors` on public functions that may fail: {with_errors} of {fallible}");
    println!("examples in documentation that run: {examples}");
    let shares =
        STORING.iter().zip(assertions).zip(functions).map(|((name, count), functions)| {
            format!("{name} {}", count * 1_000 / functions.max(1))
        });
    println!("assertions a thousand functions: {}", shares.collect::<Vec<_>>().join(", "));
    walls::print(root)
}
