//! COMPATIBILITY.md: its tables are printed by the server's example of that name, from the tables
//! that the parsers use, and stand in the page between `<!-- table: name -->` and `<!-- end -->`.

use std::path::Path;
use std::process::Command;

const PAGE: &str = "COMPATIBILITY.md";
/// Builds the example.
const BUILD: &[&str] =
    &["build", "--quiet", "--profile", "checked", "--workspace", "--example", "compatibility"];
const END: &str = "<!-- end -->";

/// Writes the tables into the page.
pub fn write(root: &Path) -> Result<(), String> {
    let page = rewritten(root)?;
    std::fs::write(root.join(PAGE), page).map_err(|error| format!("{PAGE}: {error}"))
}

/// A line if the page isn't what would be written.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let fault = format!("{PAGE}: its tables are not those of the code: cargo xtask compatibility");
    let is_current = rewritten(root)? == crate::read(root, Path::new(PAGE))?;
    Ok(if is_current { Vec::new() } else { vec![fault] })
}

fn rewritten(root: &Path) -> Result<String, String> {
    let page = crate::read(root, Path::new(PAGE))?;
    let printed = printed(root)?;
    let mut out = String::new();
    let mut written = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let name = line.strip_prefix("<!-- table: ").and_then(|rest| rest.strip_suffix(" -->"));
        let Some(name) = name else { continue };
        let table = printed.iter().find(|(printed, _)| printed == name);
        let (name, table) = table.ok_or_else(|| format!("{PAGE}: there is no table '{name}'"))?;
        out.push_str(table);
        if !lines.any(|line| line == END) {
            return Err(format!("{PAGE}: the table '{name}' has no end"));
        }
        out.push_str(END);
        out.push('\n');
        written.push(name);
    }
    match printed.iter().find(|(name, _)| !written.contains(&name)) {
        Some((name, _)) => Err(format!("{PAGE}: the table '{name}' is missing")),
        None => Ok(out),
    }
}

/// The name of each table, and its lines.
fn printed(root: &Path) -> Result<Vec<(String, String)>, String> {
    // Chosen as the tests are, so that what is built for either serves the other.
    crate::run(root, "cargo", BUILD)?;
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let example = root.join(target).join("checked/examples/compatibility");
    let output = Command::new(&example)
        .output()
        .map_err(|error| format!("{}: {error}", example.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    let mut tables: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix("== "), tables.last_mut()) {
            (Some(name), _) => tables.push((name.to_owned(), String::new())),
            (None, Some((_, table))) => {
                table.push_str(line);
                table.push('\n');
            }
            (None, None) => return Err(format!("a line before the first table: {line}")),
        }
    }
    Ok(tables)
}
