//! Imports between crates go one way: each crate lists here which of ours it may use.

use std::path::Path;

/// A crate and the crates of ours that it may depend on (tests may also use `testkit`).
const MAY_USE: &[(&str, &[&str])] = &[
    ("crc64", &[]),
    ("store", &[]),
    ("tree", &["store"]),
    ("quorum", &["store"]),
    ("engine", &["store", "tree"]),
    ("doc", &["store", "tree"]),
    ("script", &["doc"]),
    ("query", &["doc", "script", "store"]),
    ("db", &["doc", "engine", "query", "store", "tree"]),
    ("vcs", &["db", "doc", "engine", "query", "store", "tree"]),
    ("remote", &["db", "doc", "store", "vcs"]),
    ("fronddb", &["db", "doc", "remote", "vcs"]),
    ("server", &["db", "doc", "query", "quorum", "store", "vcs"]),
    ("cli", &["db", "doc", "query", "remote", "script", "server", "vcs"]),
    ("node", &["remote", "server"]),
    ("python", &["remote", "server"]),
    ("testkit", &["store"]),
];

/// Words that only some crates may use: (words, crates that may).
const RESERVED: &[(&[&str], &[&str])] = &[
    (&["std::fs"], &["store", "cli", "remote", "server"]),
    (&["tokio", "std::net"], &["server", "remote", "cli"]),
    (&["frond_db::inside"], &["vcs"]),
];

/// Files that remove a directory of their own, with all in it: `store::io` knows directories one by
/// one.
const SCRATCH: &[&str] = &[
    "crates/vcs/src/salvage.rs",
    "crates/vcs/src/salvage/part.rs",
    "crates/vcs/src/salvage/survey.rs",
];

/// Returns a line for each import that isn't allowed.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for (name, allowed) in MAY_USE {
        let manifest = crate::read(root, &Path::new("crates").join(name).join("Cargo.toml"))?;
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for line in dependencies.lines() {
            let used = line.strip_prefix("frond-").and_then(|rest| rest.split(['.', ' ']).next());
            if let Some(used) = used
                && !allowed.contains(&used)
            {
                faults.push(format!("crates/{name}/Cargo.toml: {name} must not use {used}"));
            }
        }
    }
    for path in crate::tracked(root, ".rs")? {
        let text = path.to_string_lossy();
        let Some((name, inside)) =
            text.strip_prefix("crates/").and_then(|rest| rest.split_once('/'))
        else {
            continue;
        };
        if !inside.starts_with("src/") || inside.ends_with("tests.rs") || name == "testkit" {
            continue;
        }
        let code = crate::read(root, &path)?;
        let code = crate::documentation::of_product(&code);
        for (words, crates) in RESERVED {
            if crates.contains(&name) || SCRATCH.contains(&&*text) {
                continue;
            }
            for word in *words {
                if code
                    .lines()
                    .any(|line| !line.trim_start().starts_with("//") && line.contains(word))
                {
                    faults.push(format!("{text}: {word} belongs to {}", crates.join(", ")));
                }
            }
        }
    }
    Ok(faults)
}
