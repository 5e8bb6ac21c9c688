//! Goal: `frond bisect` names the first commit that changed something.
//! Method: a history of ten commits in which the sixth adds a document; by filter, and by commands.

use crate::{Directory, frond_with, run_words};

/// Commits `1` to `10`, each with a document more; that of `6` is free of charge.
fn history() -> Directory {
    let directory = Directory::new();
    for number in 1..=10 {
        let price = if number == 6 { 0 } else { number };
        let document = format!("{{\"_id\":{number},\"price\":{price}}}");
        frond_with(&directory, &format!("import -d shop -c items --commit {number}"), &document)
            .ok();
    }
    directory
}

fn bisect(directory: &Directory, words: &[&str]) -> crate::Ran {
    let words: Vec<String> =
        ["bisect", "shop"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    run_words(directory, &words, "")
}

#[test]
fn a_filter_finds_the_first_commit_that_it_counts_otherwise() {
    let directory = history();
    let free = ["-c", "items", "-q", "{\"price\":{\"$lte\":0}}"];
    for range in ["main~9..main", "main~9", "main~9.."] {
        let found = bisect(&directory, &[&[range][..], &free].concat()).ok();
        assert!(
            found.contains("is the first bad commit") && found.contains("\n    6\n"),
            "{found}"
        );
        assert!(found.lines().filter(|line| line.contains(" left)")).count() <= 4, "{found}");
    }
    let json = bisect(&directory, &[&["main~9", "--json"][..], &free].concat()).ok();
    assert!(json.contains("\"message\":\"6\"") && json.lines().count() == 1, "{json}");
    let same = bisect(&directory, &[&["main~3"][..], &free].concat()).fails(1);
    assert!(same.contains("isn't bad, by this test"), "{same}");
    assert!(bisect(&directory, &[&["main"][..], &free].concat()).fails(1).contains("lacks"));
    bisect(&directory, &["main~9"]).fails(2);
    bisect(&directory, &["main~9", "-c", "items", "-q", "{"]).fails(2);
}

#[test]
fn a_command_says_by_its_exit_code() {
    let directory = history();
    let frond = env!("CARGO_BIN_EXE_frond");
    // The directory is free for the command; 125 where it can't decide.
    let script = |skipped: &str| {
        format!(
            "out=$({frond} export -d \"$1\" -c items) || exit 200; \
             case $out in {skipped}) exit 125;; esac; \
             case $out in *'\"price\":0'*) exit 1;; esac"
        )
    };
    let run = |script: &str| bisect(&directory, &["main~9", "--", "sh", "-c", script, "sh", "{}"]);
    let found = run(&script("none")).ok();
    assert!(found.contains("\n    6\n"), "{found}");
    // The fifth can't be tested, and is the last good one.
    let fifth = "*'\"_id\":6'*) ;; *'\"_id\":5'*";
    let output = run(&script(fifth)).fails(1);
    assert!(output.contains("is one of these"), "{output}");
    assert!(run("exit 200").fails(1).contains("exit status: 200"));
    assert!(run("exit 0").fails(1).contains("isn't bad"));
    assert!(
        bisect(&directory, &["main~9", "--", "true"]).fails(2).contains("the command lacks {}")
    );
    bisect(&directory, &["main~9", "--", "./not-there", "{}"]).fails(1);
}
