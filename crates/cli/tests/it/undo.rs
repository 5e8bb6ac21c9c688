//! Goal: the commits of one author are undone, and nothing else. Method: two authors in turns; then
//! one of them changes what the other has made.

use frond_doc::document;
use frond_server::Client;

use crate::serving::Server;
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

/// Of a merge that an author concludes, what it decided is taken back: how a conflict ended, and
/// what was written meanwhile. What others brought by it stays, and a merge that decided nothing is
/// nothing to take back.
#[test]
fn decisions_of_a_merge_are_taken_back() {
    let directory = Directory::new();
    let import = |name: &str, how: &str, documents: &str| {
        let line = format!("import -d {name} -c items {how}");
        frond_with(&directory, &line, documents).ok();
    };
    let by_ada = "--mode upsert --author ada --commit ada";
    put(&directory, "ada", "{\"_id\":1,\"n\":1}\n{\"_id\":2,\"n\":1}\n{\"_id\":3,\"n\":1}");
    frond(&directory, "branch shop work").ok();
    import("shop@work", by_ada, "{\"_id\":1,\"n\":7}\n{\"_id\":4,\"n\":1}");
    import("shop", by_ada, "{\"_id\":1,\"n\":5}");
    frond(&directory, "merge shop work --author agent").fails(1);
    frond(&directory, "resolve shop --all --remove").ok();
    import("shop", "--mode replace-all", "{\"_id\":3,\"n\":1}\n{\"_id\":4,\"n\":1}");
    frond(&directory, "merge shop --continue --author agent").ok();
    assert_eq!(items(&directory), "{\"_id\":3,\"n\":1}\n{\"_id\":4,\"n\":1}\n");
    let undo = "undo shop --user agent --since yesterday --author ops";
    let out = frond(&directory, undo).ok();
    assert_eq!(out.lines().filter(|line| line.starts_with("[main ")).count(), 1, "{out}");
    let all =
        "{\"_id\":1,\"n\":5}\n{\"_id\":2,\"n\":1}\n{\"_id\":3,\"n\":1}\n{\"_id\":4,\"n\":1}\n";
    assert_eq!(items(&directory), all);
    import("shop@work", by_ada, "{\"_id\":9}");
    frond(&directory, "merge shop work --author agent").ok();
    let error = frond(&directory, undo).fails(1);
    assert!(error.contains("no commit by agent since yesterday"), "{error}");
    assert_eq!(items(&directory), format!("{all}{{\"_id\":9}}\n"));
}

/// A merge whose collections were decided about is named, and all else is taken back.
#[test]
fn a_merge_that_cant_be_taken_apart_is_named() {
    let directory = Directory::new();
    put(&directory, "ada", "{\"_id\":1}");
    frond(&directory, "branch shop work").ok();
    let work = "import -d shop@work -c items --author ada --commit ada";
    frond_with(&directory, work, "{\"_id\":2}").ok();
    let server = Server::start(&directory);
    let mut client = Client::connect(&server.address).unwrap();
    client.command("shop", document! { "drop": "items" }.view()).unwrap();
    drop(client);
    server.stop();
    frond(&directory, "commit shop -m gone --author ada").ok();
    frond(&directory, "merge shop work --author agent").fails(1);
    frond(&directory, "resolve shop --all --theirs").ok();
    frond(&directory, "merge shop --continue --author agent").ok();
    put(&directory, "agent", "{\"_id\":3}");
    let undo = "undo shop --user agent --since yesterday --author ops";
    for _ in 0..2 {
        let error = frond(&directory, undo).fails(1);
        assert!(error.contains("not taken back: merge"), "{error}");
        assert_eq!(items(&directory), "{\"_id\":1}\n{\"_id\":2}\n");
    }
}
