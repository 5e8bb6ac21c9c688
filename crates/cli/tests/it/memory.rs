//! The static program's memory functions (`crates/cli/native/memory.c`), compared with simple ones.

use std::process::Command;

/// The functions that `memory.c` must have, and not from the system's library.
const OURS: &[&str] = &["memcpy", "memmove", "memcmp", "bcmp"];

#[test]
fn they_move_and_compare_as_simple_ones_do() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("memory");
    let native = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("native");
    let compiled = Command::new("cc")
        .args(["-O2", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-o"])
        .args([&program, &native.join("memory.c"), &native.join("memory_test.c")])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let names = Command::new("nm").arg("--defined-only").arg(&program).output().unwrap();
    let names = String::from_utf8(names.stdout).unwrap();
    for name in OURS {
        assert!(names.lines().any(|line| line.ends_with(&format!(" T {name}"))), "{name}: {names}");
    }
    let tried = Command::new(&program).output().unwrap();
    assert!(
        tried.status.success(),
        "{:?} {}",
        tried.status,
        String::from_utf8_lossy(&tried.stdout)
    );
}
