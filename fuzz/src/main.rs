//! Coverage-guided fuzzing of everything that reads bytes from outside: `cargo xtask fuzz`.
//!
//! A target takes bytes and returns, whatever they are; a panic, a crash, too much memory or too
//! much time is a finding. Where something was read, what must hold of it is asserted. `FROND_FUZZ`
//! says which target runs. In these builds checksums always hold
//! (`frond_store::field::checksum_holds`).

#![no_main]

mod commands;
mod directory;
mod documents;
mod trees;
mod wire;

use std::sync::LazyLock;

type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("document", documents::document),
    ("json", documents::json),
    ("key", documents::key),
    ("column", documents::column),
    ("pieces", trees::pieces),
    ("tree", trees::tree),
    ("message", wire::message),
    ("frame", wire::frame),
    ("command", commands::command),
    ("directory", directory::directory),
];

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let wanted = std::env::var("FROND_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    found.unwrap_or_else(|| panic!("FROND_FUZZ is none of {}", names.join(", "))).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET)(bytes));
