//! Stored formats have a document each, which records the hash of the code that it describes.
//!
//! A document under docs/format/ ends with lines
//! `Code: crates/store/src/pack/format.rs 0123abcd...`. When the module changes, `tidy` fails until
//! a developer has read the document again and recorded the new hash with `cargo xtask bless`. The
//! hash is FNV-1a over the module without its comments and blank lines: a reminder, not a proof.

use std::path::{Path, PathBuf};

const MARK: &str = "Code: ";

/// Returns a line for each format module that changed without its document.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for document in crate::tracked(root, ".md")? {
        if !document.starts_with("docs/format") {
            continue;
        }
        for line in crate::read(root, &document)?.lines() {
            if let Some((module, recorded)) = recorded(line)
                && hash(root, &module)? != recorded
            {
                faults.push(format!(
                    "{}: {} has changed: read the document again, then cargo xtask bless",
                    document.display(),
                    module.display()
                ));
            }
        }
    }
    Ok(faults)
}

/// Records the present hash of each format module in its document.
pub fn bless(root: &Path) -> Result<(), String> {
    for document in crate::tracked(root, ".md")? {
        if !document.starts_with("docs/format") {
            continue;
        }
        let text = crate::read(root, &document)?;
        let mut blessed = String::with_capacity(text.len());
        for line in text.lines() {
            match recorded(line) {
                Some((module, _)) => {
                    let hash = hash(root, &module)?;
                    blessed.push_str(&format!("{MARK}{} {hash}\n", module.display()));
                }
                None => blessed.push_str(&format!("{line}\n")),
            }
        }
        if blessed != text {
            std::fs::write(root.join(&document), blessed).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn recorded(line: &str) -> Option<(PathBuf, String)> {
    let mut words = line.strip_prefix(MARK)?.split_whitespace();
    let module = words.next()?;
    Some((PathBuf::from(module), words.next().unwrap_or_default().to_owned()))
}

fn hash(root: &Path, module: &Path) -> Result<String, String> {
    let text = crate::read(root, module)?;
    let code =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in code.flat_map(str::bytes) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    Ok(format!("{hash:016x}"))
}
