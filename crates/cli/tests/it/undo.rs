//! Goal: the commits of one author are undone, and nothing else. Method: two authors in turns; then
//! one of them changes what the other has made.

use crate::{Directory, frond, frond_with, run_words};

/// Commits a document by an author.
fn put(directory: &Directory, author: &str, document: &str) {
    let line = format!("import -d shop -c items --mode upsert --author {author} --commit {author}");
    frond_with(directory, &line, document).ok();
}

fn items(directory: &Directory) -> String {
    frond(directory, "export -d shop -c items").ok()
}

#[test]
fn one_authors_commits_are_taken_back() {
    let directory = Directory::new();
    put(&directory, "ada", "{\"_id\":1,\"n\":1}\n{\"_id\":2,\"n\":1}");
    put(&directory, "agent", "{\"_id\":1,\"n\":2}");
    put(&directory, "ada", "{\"_id\":3,\"n\":1}");
    put(&directory, "agent", "{\"_id\":1,\"n\":3,\"more\":1}\n{\"_id\":4,\"n\":1}");
    put(&directory, "ada", "{\"_id\":2,\"n\":5}");
    let undo = "undo shop --user agent --since 2000-01-01";
    let out = frond(&directory, undo).ok();
    assert_eq!(out.lines().filter(|line| line.starts_with("[main ")).count(), 2, "{out}");
    assert_eq!(
        items(&directory),
        "{\"_id\":1,\"n\":1}\n{\"_id\":2,\"n\":5}\n{\"_id\":3,\"n\":1}\n"
    );
    let error = frond(&directory, undo).fails(1);
    assert!(error.contains("no commit by agent since 2000-01-01"), "{error}");
    frond(&directory, "undo shop --user agent").fails(2);
    frond(&directory, "undo shop --since yesterday").fails(2);
    frond(&directory, "undo shop --user agent --since 2000-01-01 --change 1").fails(2);
}

#[test]
fn later_changes_are_resolved_and_the_same_command_continues() {
    let directory = Directory::new();
    put(&directory, "ada", "{\"_id\":1,\"n\":1}\n{\"_id\":2,\"n\":1}");
    put(&directory, "agent", "{\"_id\":2,\"n\":2}");
    put(&directory, "agent", "{\"_id\":1,\"n\":2}");
    put(&directory, "ada", "{\"_id\":1,\"n\":3}");
    let undo = "undo shop --user agent --since yesterday";
    let ran = frond(&directory, undo);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("and then run this command again"), "{ran:?}");
    frond(&directory, "resolve shop --all --ours").ok();
    frond(&directory, "merge shop --continue --author ada").ok();
    frond(&directory, undo).ok();
    assert_eq!(items(&directory), "{\"_id\":1,\"n\":3}\n{\"_id\":2,\"n\":1}\n");
}

/// A change that was taken back by hand, or never had an effect, keeps no other change from being
/// taken back.
#[test]
fn an_undo_skips_what_is_gone_already() {
    let directory = Directory::new();
    put(&directory, "ada", "{\"_id\":1,\"n\":1}");
    put(&directory, "mallory", "{\"_id\":\"bad 1\"}");
    put(&directory, "mallory", "{\"_id\":\"bad 2\"}");
    let whole = "import -d shop -c items --mode replace-all --author ada --commit ada";
    frond_with(&directory, whole, "{\"_id\":1,\"n\":1}\n{\"_id\":\"bad 1\"}").ok();
    let out = frond(&directory, "undo shop --user mallory --since yesterday").ok();
    assert!(out.contains("nothing to revert"), "{out}");
    assert_eq!(items(&directory), "{\"_id\":1,\"n\":1}\n");
}

/// A message that looks like a revert's is none, and a revert of a revert lets the commit count.
#[test]
fn no_message_hides_a_commit() {
    let directory = Directory::new();
    put(&directory, "ada", "{\"_id\":1}");
    put(&directory, "mallory", "{\"_id\":\"bad\"}");
    let id = |directory: &Directory| {
        let log = frond(directory, "log shop -1 --json").ok();
        let (_, after) = log.split_once("\"commitId\":\"").expect(&log);
        after.split('"').next().expect("an id").to_owned()
    };
    let bad = id(&directory);
    let document = "{\"_id\":\"worse\"}";
    let line = "import -d shop -c items --mode upsert --author mallory --commit";
    let message = format!("This undoes what commit {bad} did.");
    let words: Vec<String> = line.split(' ').chain([&*message]).map(str::to_owned).collect();
    run_words(&directory, &words, document).ok();
    frond(&directory, &format!("revert shop {bad} --author mallory")).ok();
    frond(&directory, &format!("revert shop {} --author mallory", id(&directory))).ok();
    frond(&directory, "undo shop --user mallory --since yesterday --author ops").ok();
    assert_eq!(items(&directory), "{\"_id\":1}\n");
    let error = frond(&directory, "undo shop --user mallory --since yesterday").fails(1);
    assert!(error.contains("no commit by mallory since yesterday"), "{error}");
}

/// A change of another author comes back when the revert of it is taken back.
#[test]
fn an_authors_revert_is_taken_back() {
    let directory = Directory::new();
    put(&directory, "ada", "{\"_id\":1}");
    put(&directory, "ada", "{\"_id\":2}");
    frond(&directory, "revert shop main --author mallory").ok();
    assert_eq!(items(&directory), "{\"_id\":1}\n");
    frond(&directory, "undo shop --user mallory --since yesterday --author ops").ok();
    assert_eq!(items(&directory), "{\"_id\":1}\n{\"_id\":2}\n");
}
