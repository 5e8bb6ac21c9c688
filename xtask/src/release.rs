//! `cargo xtask release`: builds the program so that one commit gives the same bytes wherever its
//! source and cargo's registry lie.
//!
//! Paths get into a program in two ways: panics in code that a build script has generated name its
//! file, and so do the assertions of C code (`__FILE__`), QuickJS's among them, which is compiled
//! from a copy in the build's own directory. Both compilers replace the start of such paths if they
//! are told to. Cargo can't: a directory's name doesn't stand in `.cargo/config.toml`, and
//! `trim-paths` isn't stable.
//!
//! The time gets in by C code that says when it was built (`__DATE__`, `__TIME__`: mimalloc's). The
//! compiler takes the commit's time for it, by the variable that has become usual for that
//! (<https://reproducible-builds.org/specs/source-date-epoch/>).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::{command, succeeded};

/// Where the program lies: other flags than those of `cargo build` mean other files.
const TARGET: &str = "target/reproducible";
const PROGRAM: &[&str] = &["build", "--locked", "--package", "frond-cli", "--target-dir", TARGET];
/// Between the flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\x1f";
/// The variable that says the time which is compiled in, in seconds since 1970.
const DATE: &str = "SOURCE_DATE_EPOCH";

/// Builds the program, in the profile `release` unless `arguments` (of `cargo build`) name another.
///
/// # Errors
/// If there is no home of cargo, or the build fails.
pub fn build(root: &Path, arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let mut arguments: Vec<String> = arguments.collect();
    if !arguments.iter().any(|word| word == "--profile" || word.starts_with("--profile=")) {
        arguments.push("--release".to_owned());
    }
    let words: Vec<&str> =
        PROGRAM.iter().copied().chain(arguments.iter().map(String::as_str)).collect();
    let mut cargo = command(root, "cargo", &words);
    cargo.envs(environment(root, &cargo_home()?, |name| std::env::var_os(name)));
    if std::env::var_os(DATE).is_none() {
        cargo.env(DATE, date_of_commit(root));
    }
    let line = format!("cargo {}", words.join(" "));
    println!("== {line}");
    succeeded(&line, cargo.status().map_err(|error| error.to_string())?)?;
    println!("the program is below {TARGET}");
    Ok(())
}

/// The variables that have the compilers of Rust and C write `/frond` for `root` and `/cargo` for
/// cargo's home. What the environment gives already stays, in front.
fn environment(
    root: &Path,
    cargo_home: &Path,
    given: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, OsString)> {
    let replaced = [(root, "/frond"), (cargo_home, "/cargo")];
    let flags = |flag: &str, separator: &str, mut text: OsString| {
        for (path, name) in replaced {
            if !text.is_empty() {
                text.push(separator);
            }
            text.extend([OsStr::new(flag), path.as_os_str(), OsStr::new("="), OsStr::new(name)]);
        }
        text
    };
    let of_rust = given("CARGO_ENCODED_RUSTFLAGS").unwrap_or_else(|| {
        let words = given("RUSTFLAGS").unwrap_or_default();
        let words = words.to_string_lossy();
        words.split_whitespace().collect::<Vec<_>>().join(SEPARATOR).into()
    });
    let of_c = |name| flags("-ffile-prefix-map=", " ", given(name).unwrap_or_default());
    vec![
        ("CARGO_ENCODED_RUSTFLAGS", flags("--remap-path-prefix=", SEPARATOR, of_rust)),
        ("CFLAGS", of_c("CFLAGS")),
        ("CXXFLAGS", of_c("CXXFLAGS")),
    ]
}

/// The time of the commit; 1970 where there is a source without one.
fn date_of_commit(root: &Path) -> String {
    let shown = command(root, "git", &["log", "-1", "--format=%ct"]).output();
    let shown = shown.ok().filter(|shown| shown.status.success());
    let date = shown.and_then(|shown| String::from_utf8(shown.stdout).ok());
    date.map(|date| date.trim().to_owned())
        .filter(|date| !date.is_empty())
        .unwrap_or("0".to_owned())
}

fn cargo_home() -> Result<PathBuf, String> {
    let of_home = || std::env::home_dir().map(|home| home.join(".cargo"));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(of_home);
    home.ok_or_else(|| "neither CARGO_HOME nor HOME says where cargo's registry is".to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// A program whose build script generates a file with a panic, and compiles C with an
    /// assertion and the time.
    const FILES: &[(&str, &str)] = &[
        (
            "Cargo.toml",
            "[package]\nname = \"small\"\nversion = \"1.0.0\"\nedition = \"2024\"\n[workspace]\n\
             [profile.release]\nstrip = true\n",
        ),
        (
            "build.rs",
            r##"
            use std::{env, fs, process::Command};
            fn main() {
                let out = env::var("OUT_DIR").unwrap();
                let code = "pub fn fail(at: usize) -> u8 { [1, 2, 3][at] }";
                fs::write(format!("{out}/generated.rs"), code).unwrap();
                let c = "#include <assert.h>\nconst char *built(void) { return __DATE__ __TIME__; }\n\
                         int whole(int it) { assert(it > 0); return it + built()[0]; }";
                fs::write(format!("{out}/whole.c"), c).unwrap();
                let flags = env::var("CFLAGS").unwrap_or_default();
                let mut cc = Command::new("cc");
                cc.args(flags.split_whitespace()).args(["-O1", "-c", "-o"]);
                cc.args([format!("{out}/whole.o"), format!("{out}/whole.c")]);
                assert!(cc.status().unwrap().success());
                println!("cargo::rustc-link-arg={out}/whole.o");
            }"##,
        ),
        (
            "src/main.rs",
            r##"
            include!(concat!(env!("OUT_DIR"), "/generated.rs"));
            unsafe extern "C" { fn whole(it: i32) -> i32; }
            fn main() {
                let count = std::env::args().count();
                println!("{}", fail(count) as i32 + unsafe { whole(count as i32) });
            }"##,
        ),
    ];

    fn build_small(directory: &Path, with_flags: bool) -> Vec<u8> {
        for (name, content) in FILES {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().expect("below the directory")).expect("a directory");
            fs::write(path, content).expect("a file");
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "--offline", "--quiet"]).current_dir(directory);
        let given = ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CFLAGS", "CARGO_TARGET_DIR", DATE];
        for name in given {
            cargo.env_remove(name);
        }
        if with_flags {
            let home = cargo_home().expect("a home of cargo");
            cargo.envs(environment(directory, &home, |_| None)).env(DATE, "1000000000");
        }
        assert!(cargo.status().expect("cargo runs").success());
        fs::read(directory.join("target/release/small")).expect("the program")
    }

    #[test]
    fn a_program_built_in_two_directories_is_the_same() {
        let directory = std::env::temp_dir().join(format!("frond-release-{}", std::process::id()));
        let built = ["one", "another/directory"].map(|name| {
            let plain = build_small(&directory.join("plain").join(name), false);
            (plain, build_small(&directory.join("replaced").join(name), true))
        });
        fs::remove_dir_all(&directory).expect("it can be removed");
        let [(plain, replaced), (other_plain, other_replaced)] = built;
        assert!(plain != other_plain, "nothing of the directory is in it: this shows nothing");
        assert!(replaced == other_replaced, "the flags don't make it the same");
    }

    #[test]
    fn flags_that_are_given_stay() {
        let given = |name: &str| match name {
            "RUSTFLAGS" => Some("-C  opt-level=1".into()),
            "CFLAGS" => Some("-g".into()),
            _ => None,
        };
        let flags = environment(Path::new("/a b"), Path::new("/c"), given);
        let expected = [
            (
                "CARGO_ENCODED_RUSTFLAGS",
                "-C\x1fopt-level=1\x1f--remap-path-prefix=/a b=/frond\x1f\
                 --remap-path-prefix=/c=/cargo",
            ),
            ("CFLAGS", "-g -ffile-prefix-map=/a b=/frond -ffile-prefix-map=/c=/cargo"),
            ("CXXFLAGS", "-ffile-prefix-map=/a b=/frond -ffile-prefix-map=/c=/cargo"),
        ];
        assert_eq!(flags, expected.map(|(name, value)| (name, value.into())));
    }
}
