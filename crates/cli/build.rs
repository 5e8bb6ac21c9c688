//! Links the program so that it is smaller where the system can load that.

use std::env::var;
use std::process::Command;

/// Since this version glibc applies relative relocations that are packed, 2 MB of ours.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let by_glibc = || glibc_version().is_some_and(|version| PACKED_SINCE <= version);
    // A static program applies its own, by the musl that comes with Rust: since 1.93 it can.
    if is_linux_with("musl") || (is_native_glibc() && by_glibc()) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
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
