//! Links the program so that it is smaller where the system can load that, and a static one with
//! memory functions of its own.

use std::env::var;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Since this version glibc applies relative relocations that are packed, 2 MB of ours.
const PACKED_SINCE: (u32, u32) = (2, 36);
/// What the static program has in place of musl's memory functions.
const MEMORY: &str = "native/memory.c";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={MEMORY}");
    let by_glibc = || glibc_version().is_some_and(|version| PACKED_SINCE <= version);
    // A static program applies its own, by the musl that comes with Rust: since 1.93 it can.
    if is_linux_with("musl") || (is_native_glibc() && by_glibc()) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // Functions of the same code become one. A system's own linker can't, Rust's can: it comes with
    // the compiler, so that two builds have the same.
    if is_linux_with("musl")
        && let Some(linker) = rust_linker()
    {
        println!("cargo::rustc-link-arg-bins=-B{}", linker.display());
        println!("cargo::rustc-link-arg-bins=-fuse-ld=lld");
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
    if is_linux_with("musl") && var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        link_memory_functions();
    }
}

/// Links our own memory functions with the library: before musl's, of which the linker then takes
/// none.
fn link_memory_functions() {
    let mut compiler = cc::Build::new();
    // Or they would become calls of themselves.
    compiler.flag("-fno-builtin").flag_if_supported("-fno-tree-loop-distribute-patterns");
    compiler.file(MEMORY).opt_level(2).compile("frond_memory");
}

/// Returns the directory of the linker that comes with Rust, by the name that C compilers seek.
fn rust_linker() -> Option<PathBuf> {
    let output = Command::new(var("RUSTC").ok()?).args(["--print", "sysroot"]).output().ok()?;
    let root = String::from_utf8(output.stdout).ok()?;
    let host = var("HOST").ok()?;
    let linker = Path::new(root.trim()).join("lib/rustlib").join(host).join("bin/gcc-ld");
    linker.join("ld.lld").exists().then_some(linker)
}

/// Whether the program is built for this machine, with glibc.
fn is_native_glibc() -> bool {
    is_linux_with("gnu") && var("HOST") == var("TARGET")
}

fn is_linux_with(library: &str) -> bool {
    let is_its = var("CARGO_CFG_TARGET_ENV").is_ok_and(|environment| environment == library);
    is_its && var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux")
}

fn glibc_version() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
