//! Goal: what one author committed is taken back, and nothing else.
//! Method: two authors in turns; then one of them changes what the other has made.

use crate::{Directory, frond, frond_with};

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
    assert!(error.contains("agent has committed nothing since 2000-01-01"), "{error}");
    frond(&directory, "undo shop --user agent").fails(2);
    frond(&directory, "undo shop --since yesterday").fails(2);
    frond(&directory, "undo shop --user agent --since 2000-01-01 --change 1").fails(2);
}

#[test]
fn what_others_changed_since_is_decided_and_the_same_command_goes_on() {
    let directory = Directory::new();
    put(&directory, "ada", "{\"_id\":1,\"n\":1}\n{\"_id\":2,\"n\":1}");
    put(&directory, "agent", "{\"_id\":2,\"n\":2}");
    put(&directory, "agent", "{\"_id\":1,\"n\":2}");
    put(&directory, "ada", "{\"_id\":1,\"n\":3}");
    let undo = "undo shop --user agent --since yesterday";
    let ran = frond(&directory, undo);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("and then this command again"), "{ran:?}");
    frond(&directory, "resolve shop --all --ours").ok();
    frond(&directory, "merge shop --continue --author ada").ok();
    frond(&directory, undo).ok();
    assert_eq!(items(&directory), "{\"_id\":1,\"n\":3}\n{\"_id\":2,\"n\":1}\n");
}
