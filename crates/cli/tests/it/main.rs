//! The built `frond` command, run as a person would run it.
//!
//! - [`bisect`]: the first bad commit is found;
//! - [`book`]: the pages of the book that show commands, run;
//! - [`follow`]: a copy follows its source, through a proxy that knows what MongoDB knows;
//! - [`held_in_sets`]: writes of a set that is silent keep no thread, and are done once;
//! - [`hooks`]: what runs before and after commits, merges and pushes;
//! - [`imports`]: files in three formats go in and come out again; what is wrong is reported by
//!   line;
//! - [`versions`]: commits, branches, diffs, merges and conflicts on a data directory;
//! - [`serving`]: the same on a running server, and the lock between the two;
//! - [`shell`]: mongosh is started on a server, with our script;
//! - [`tour`]: the tour ends well, and leaves a database that can be used;
//! - [`undo`]: one author's commits, taken back;
//! - [`walkthrough`]: docs/walkthrough.md, run;
//! - [`patches`]: what differs is written to a file, and applied elsewhere;
//! - [`remotes`]: docs/remotes.md, run with a server;
//! - [`mcp`]: an agent's session, by the protocol's messages;
//! - [`output_forms`]: output as JSON, manual pages, completions;
//! - `scripts`: clients' JavaScript has processes of its own;
//! - [`maintenance`]: damage is found;
//! - `memory`: the static program's memory functions.

mod begun_sets;
mod bisect;
mod book;
mod follow;
mod held_in_sets;
mod hooks;
mod imports;
mod long_history;
mod maintenance;
mod mcp;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memory;
mod output_forms;
mod passwords;
mod patches;
mod remotes;
#[cfg(target_os = "linux")]
mod scripts;
mod serving;
mod shell;
mod tour;
mod undo;
mod versions;
mod walkthrough;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed when dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Directory {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("frond-cli-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The result of a run of the command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The output of a run that must have ended well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// The errors of a run that must have failed with `code`.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        self.err
    }
}

/// The command, in `directory`, without what the environment says about authors and colours.
pub(crate) fn command(directory: &Directory, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frond"));
    command.args(line.split_whitespace()).current_dir(directory.path());
    command.env("FROND_AUTHOR", "Ada <ada@example.org>").env("RUST_BACKTRACE", "0");
    command
}

/// Runs `frond LINE` in `directory`, with `input` on standard input. Words are cut at white space.
pub(crate) fn frond_with(directory: &Directory, line: &str, input: &str) -> Ran {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    run_words(directory, &words, input)
}

/// Runs `frond` with `words` in `directory`, with `input` on standard input.
pub(crate) fn run_words(directory: &Directory, words: &[String], input: &str) -> Ran {
    let mut child = command(directory, "")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that fails early doesn't read its input: that is its right.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `frond LINE` in `directory`.
pub(crate) fn frond(directory: &Directory, line: &str) -> Ran {
    frond_with(directory, line, "")
}

#[test]
fn wrong_arguments_are_usage_errors() {
    let directory = Directory::new();
    for line in [
        "",
        "frobnicate",
        "import -d shop",
        "import -d shop -c items --format xml",
        "import -d shop -c items --batch 0",
        "export -d shop -c items --format csv",
        "log shop --data a --uri b",
        "merge shop",
        "merge shop sale --abort",
        "resolve shop 1",
        "resolve shop 1 --ours --theirs",
        "branch shop sale --delete old",
        "reset shop --hard --soft",
        "diff shop a b --json --stat",
        "log shop --uri ada@localhost",
    ] {
        let ran = frond(&directory, line);
        assert_eq!(ran.code, 2, "frond {line}: {ran:?}");
        assert!(!ran.err.is_empty(), "frond {line}");
    }
    let files = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(files, 0, "a usage error makes no data directory");
}

#[test]
fn words_of_git_are_answered() {
    let directory = Directory::new();
    for (line, expected) in [
        ("checkout sale", "shop@sale"),
        ("mongosh", "frond shell"),
        ("comit shop", "'commit'"),
        ("logg shop", "'log'"),
        ("diff shop --statt", "'--stat'"),
        ("branch shop --move new", "--move BRANCH NAME"),
        ("blame shop items", "items ID, or items/ID"),
        ("cherry-pick shop a..b", "frond log shop a..b"),
    ] {
        let error = frond(&directory, line).fails(2);
        assert!(error.contains(expected), "{line}: {error}");
    }
    // Where it is known what was meant, nothing that is only spelt like it is suggested.
    for (line, expected) in [
        ("switch sale", "shop@sale"),
        ("stash", "shop@later"),
        ("branch shop -a", "frond fetch"),
        ("log shop --all", "main...sale"),
        ("log shop --format=%h", "--oneline"),
        ("merge shop sale --no-commit", "--dry-run"),
        ("restore shop items --source v1", "--from VERSION"),
        ("-v", "--version"),
        ("merge shop sale --fast", ""),
    ] {
        let error = frond(&directory, line).fails(2);
        assert!(error.contains(expected) && !error.contains("tip:"), "{line}: {error}");
    }
}

#[test]
fn habits_of_git_do_what_they_do_there() {
    let directory = Directory::new();
    let one = "{\"_id\": 1, \"price\": 30}";
    frond_with(&directory, "import -d shop -c items --commit first", one).ok();
    frond(&directory, "branch shop sale").ok();
    let listed = frond(&directory, "branch shop").ok();
    for line in ["branch shop --list", "branch shop -l", "branch shop -v"] {
        assert_eq!(frond(&directory, line).ok(), listed, "{line}");
    }
    frond(&directory, "tag shop -a v1 -m sold").ok();
    assert_eq!(frond(&directory, "tag shop -l").ok(), frond(&directory, "tag shop").ok());
    assert_eq!(frond(&directory, "--data frond-data ls").ok(), frond(&directory, "ls").ok());
    assert_eq!(
        frond(&directory, "blame shop items/1").ok(),
        frond(&directory, "blame shop items 1").ok()
    );
    assert_eq!(
        frond(&directory, "history shop items/1").ok(),
        frond(&directory, "history shop items 1").ok()
    );
    let moved = frond(&directory, "branch shop -m sale spring").ok();
    assert!(moved.contains("renamed to spring") && moved.contains("shop@spring"), "{moved}");
    let moved = frond(&directory, "branch shop@spring --move summer").ok();
    assert!(moved.contains("renamed to summer"), "{moved}");
    let words = ["commit", "shop@summer", "--allow-empty", "-m", "one", "-m", "two"];
    run_words(&directory, &words.map(str::to_owned), "").ok();
    let shown = frond(&directory, "show shop@summer").ok();
    assert!(shown.contains("    one\n    \n    two\n"), "{shown}");
    frond(&directory, "branch shop --delete summer").fails(1);
    assert_eq!(frond(&directory, "branch shop -D summer").ok(), "deleted branch summer\n");
}

#[test]
fn a_merge_can_be_tried() {
    let directory = Directory::new();
    let put = |database: &str, document: &str| {
        let line = format!("import -d {database} -c items --mode upsert --commit {database}");
        frond_with(&directory, &line, document).ok();
    };
    put("shop", "{\"_id\": 1, \"price\": 30}");
    frond(&directory, "branch shop sale").ok();
    put("shop@sale", "{\"_id\": 1, \"price\": 15}");
    let preview = frond(&directory, "merge shop sale --dry-run").ok();
    assert!(preview.starts_with("would move main forward to "), "{preview}");
    put("shop", "{\"_id\": 2, \"price\": 5}");
    let before = frond(&directory, "log shop").ok();
    let preview = frond(&directory, "merge shop sale -n").ok();
    assert_eq!(preview, "would merge into main without conflicts\n");
    put("shop", "{\"_id\": 1, \"price\": 40}");
    let preview = frond(&directory, "merge shop sale --dry-run");
    assert_eq!((preview.code, preview.err.as_str()), (1, ""), "{preview:?}");
    assert_eq!(preview.out, "would conflict:\n  items: 1 conflict\n");
    assert!(frond(&directory, "log shop").ok().ends_with(&before));
    assert_eq!(frond(&directory, "conflicts shop").ok(), "no conflicts\n");
    let error = frond(&directory, "merge shop --abort").fails(1);
    assert!(error.contains("no merge, pick, revert or rebase of main is in progress"), "{error}");
    let words = ["log", "shop", "main@{3 days ago}"].map(str::to_owned);
    let error = run_words(&directory, &words, "").fails(1);
    assert!(error.contains("main of shop has no commit by then"), "{error}");
}

#[test]
fn errors_say_where_to_look_for_what_there_is() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\": 1}").ok();
    for (line, hint) in [
        ("tag shop --delete v2", "frond tag DATABASE lists the tags"),
        ("branch shop --delete new", "frond branch DATABASE lists the branches"),
        ("restore shop nope", "frond ls DATABASE lists the collections"),
        ("restore shop items/1", "a document is items --id 1"),
        ("merge shop nope", "frond branch DATABASE lists the branches, frond tag"),
        ("log shop nope", "frond branch DATABASE lists the branches, frond tag"),
        ("log shop items/1", "documents stand behind --"),
        ("branch typo --delete new", "frond branch DATABASE --delete BRANCH deletes one"),
        ("branch typo new", "frond ls lists databases"),
    ] {
        let ran = frond(&directory, line);
        assert!(ran.code > 0 && ran.err.contains(hint), "{line}: {ran:?}");
    }
    let error = frond(&directory, "clone http://127.0.0.1:9 copy").fails(1);
    assert_eq!(error.matches("http://127.0.0.1:9").count(), 1, "{error}");
    // The one that only shells call isn't suggested.
    let error = frond(&directory, "nope").fails(2);
    assert!(error.contains("'nope'") && !error.contains("complete"), "{error}");
    assert!(frond(&directory, "complet").fails(2).contains("'completions'"));
    let shown = frond(&directory, "show shop@{now}").ok();
    assert!(shown.contains("items") && shown.contains("  + {\"_id\":1}\n"), "{shown}");
    let error = frond_with(&directory, "erase shop items --id 1", "shp\n").fails(1);
    assert!(error.contains("nothing was erased"), "{error}");
    frond(&directory, "undo shop").ok();
    for line in ["tag shop v1", "reset shop"] {
        let error = frond(&directory, line).fails(1);
        assert_eq!(error, "frond: main of shop has no commit yet\n", "{line}");
    }
}

#[test]
fn version_and_help() {
    let directory = Directory::new();
    assert_eq!(frond(&directory, "--version").ok(), "frond 0.1.0\n");
    assert!(frond(&directory, "help import").ok().contains("--mode upsert"));
}

#[test]
fn a_missing_directory_is_reported_and_not_made() {
    let directory = Directory::new();
    let error = frond(&directory, "log shop").fails(1);
    assert!(error.contains("there is no data directory ./frond-data"), "{error}");
    for line in ["fsck", "doctor", "backup gone", "remote shop"] {
        let error = frond(&directory, line).fails(1);
        assert!(error.contains("name one with --data"), "{line}: {error}");
    }
    assert!(!directory.path().join("frond-data").exists());
}

#[test]
fn a_database_that_is_not_there_is_an_error() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items", "{\"_id\": 1}").ok();
    assert!(frond(&directory, "log shop").err.contains("no commits yet"));
    for line in [
        "log nope",
        "log shop@nope",
        "status nope",
        "show nope",
        "diff nope",
        "history nope items 1",
        "blame nope items 1",
        "branch nope",
        "tag nope",
        "conflicts nope",
        "reflog nope",
        "policy nope",
        "remote nope",
        "commit nope -m x",
    ] {
        let error = frond(&directory, line).fails(1);
        assert!(error.contains("nope"), "{line}: {error}");
    }
    let error = frond(&directory, "blame shop items 9").fails(1);
    assert!(error.contains("no document with _id 9 in shop.items"), "{error}");
    frond(&directory, "commit shop -m first").ok();
    let error = frond(&directory, "status shop@main~0").fails(1);
    assert!(error.contains("has no working state: name a branch"), "{error}");
}

#[test]
fn a_place_that_is_missing_is_reported_and_not_made() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\": 1}").ok();
    frond(&directory, "remote shop add origin gone --data frond-data").ok();
    for line in [
        "clone gone shop --data mine",
        "fetch shop",
        "pull shop",
        "backup gone --list",
        "backup gone --remove monday",
        "backup gone --data missing",
        "restore --backup gone --data restored",
        "gc --place gone",
    ] {
        let error = frond(&directory, line).fails(1);
        assert!(error.contains("there is no "), "{line}: {error}");
    }
    let files = std::fs::read_dir(directory.path()).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["frond-data"]);
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let directory = Directory::new();
    let documents = directory.file("things.jsonl", "{\"_id\": 1}\n");
    for line in ["log shop", "status shop", "fsck", "doctor", "gc", "export -d shop -c things"] {
        let error = frond(&directory, &format!("{line} --data .")).fails(1);
        assert!(error.contains(". is not a data directory of Frond"), "{line}: {error}");
    }
    let import = format!("import -d shop -c things {documents} --data .");
    for line in [&import, "serve --listen 127.0.0.1:0 --data ."] {
        let error = frond(&directory, line).fails(1);
        assert!(error.contains("not empty (it holds things.jsonl)"), "{line}: {error}");
    }
    for line in [&import.replace("--data .", "--data things.jsonl"), "log shop --data things.jsonl"]
    {
        let error = frond(&directory, line).fails(1);
        assert!(error.contains("things.jsonl is a file"), "{line}: {error}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    // A new one may stand on a file system of its own.
    std::fs::create_dir_all(directory.path().join("new/lost+found")).unwrap();
    frond(&directory, &import.replace("--data .", "--data new")).ok();
    assert!(frond(&directory, "status shop --data new").ok().contains("things"));
}

#[test]
fn more_memory_than_the_machine_has_is_refused() {
    let directory = Directory::new();
    for option in [
        "--cache 17592186044416",
        "--cache 18446744073709551615",
        "--memory 18446744073709551615",
        "--memory 4611686018427387904",
    ] {
        let error = frond(&directory, &format!("serve --listen 127.0.0.1:0 {option}")).fails(2);
        assert!(error.contains("more than this machine has"), "{option}: {error}");
    }
}

/// It would be taken for what this restore brings.
#[test]
fn leftovers_of_a_killed_restore_do_no_harm() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\": 1}").ok();
    frond(&directory, "backup backups").ok();
    frond_with(&directory, "import -d mine -c items --data part", "{\"_id\": 1}").ok();
    frond_with(&directory, "import -d other -c items --data part/.salvage", "{\"_id\": 2}").ok();
    frond(&directory, "restore --backup backups --database shop --data part").ok();
    assert!(!directory.path().join("part/.salvage").exists());
    assert!(frond(&directory, "log shop --data part").ok().contains("first"));
}

#[test]
fn errors_say_what_is_missing_and_how_it_is_given() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c things", "{\"_id\": 1}").ok();
    for (line, what) in [
        ("push shop", "`frond remote shop add origin PLACE`"),
        ("serve --listen 27017", "it isn't HOST:PORT"),
    ] {
        let error = frond(&directory, line).fails(1);
        assert!(error.contains(what), "{line}: {error}");
    }
    for (line, what) in [
        ("export -d shop -c thinks", "exported 0 documents: shop has no collection thinks\n"),
        ("export -d shop -c things --query {\"_id\":2}", "exported 0 documents\n"),
    ] {
        assert_eq!(frond(&directory, line).err, what);
    }
    for line in ["export -d ship -c things", "export -d ship -c things --out things.jsonl"] {
        let error = frond(&directory, line).fails(1);
        assert!(error.contains("database ship doesn't exist yet"), "{line}: {error}");
    }
    assert!(!directory.path().join("things.jsonl").exists());
}

#[test]
fn an_export_whose_reader_is_gone_is_not_complete() {
    let directory = Directory::new();
    let lines: String = (0..20_000).map(|id| format!("{{\"_id\": {id}}}\n")).collect();
    let documents = directory.file("things.jsonl", &lines);
    frond(&directory, &format!("import -d shop -c things {documents}")).ok();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_frond"))
        .args(["export", "-d", "shop", "-c", "things"])
        .current_dir(directory.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("not complete") && !error.contains("exported"), "{error}");
    // A reader that takes only a part of a list has seen enough.
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_frond"))
        .args(["status", "shop"])
        .current_dir(directory.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// An export into a file is there whole or not at all, and a failure leaves what was there.
#[test]
fn an_export_that_fails_leaves_the_file() {
    let directory = Directory::new();
    let lines: String = (0..100).map(|id| format!("{{\"_id\":{id}}}\n")).collect();
    let documents = directory.file("things.jsonl", &lines);
    frond(&directory, &format!("import -d shop -c things {documents}")).ok();
    let out = directory.file("out.jsonl", "what was there\n");
    let export = format!("export -d shop -c things -o {out}");
    frond(&directory, &format!("{export} --query {{\"$bad\":1}}")).fails(1);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "what was there\n");
    frond(&directory, &export).ok();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), lines);
    for format in ["json", "array", "csv --fields _id"] {
        let full = format!("export -d shop -c things --format {format} -o /dev/full");
        let output = frond(&directory, &full).fails(1);
        assert!(output.contains("no space left") && !output.contains("exported"), "{output}");
    }
    let output = frond(&directory, "export -d shop -c things -o nowhere/out.jsonl").fails(1);
    assert!(output.contains("no such file or directory"), "{output}");
    let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(names.len(), 3, "{names:?}");
}
