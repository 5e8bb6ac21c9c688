//! Goal: the commands of versions do on a data directory what their help says.
//! Method: a small shop, taken from its first commit to a merge with a conflict.

use crate::{Directory, frond, frond_with};

/// A shop with two items and one commit.
fn shop() -> Directory {
    let directory = Directory::new();
    let items =
        "{\"_id\":1,\"name\":\"lamp\",\"price\":30}\n{\"_id\":2,\"name\":\"desk\",\"price\":240}\n";
    let out = frond_with(&directory, "import -d shop -c items --commit first", items).ok();
    assert!(out.contains("imported 2 documents into shop.items"), "{out}");
    assert!(out.contains("[main ") && out.contains("] first"), "{out}");
    directory
}

fn upsert(directory: &Directory, database: &str, document: &str) {
    let line = format!("import -d {database} -c items --mode upsert");
    frond_with(directory, &line, document).ok();
}

fn items(directory: &Directory, database: &str) -> String {
    frond(directory, &format!("export -d {database} -c items")).ok()
}

#[test]
fn status_diff_commit_log() {
    let directory = shop();
    let status = frond(&directory, "status shop").ok();
    assert!(status.contains("On branch main"), "{status}");
    assert!(status.contains("Nothing to commit"), "{status}");
    assert!(frond(&directory, "commit shop -m again").fails(1).contains("nothing to commit"));

    upsert(&directory, "shop", "{\"_id\":1,\"name\":\"lamp\",\"price\":25,\"new\":true}");
    upsert(&directory, "shop", "{\"_id\":3,\"name\":\"chair\"}");
    let status = frond(&directory, "status shop").ok();
    assert!(status.contains("modified        items  (1 added, 1 modified)"), "{status}");
    let expected = concat!(
        "items\n",
        "  + {\"_id\":3,\"name\":\"chair\"}\n",
        "  ~ 1\n",
        "      ~ price: 30 → 25\n",
        "      + new: true\n"
    );
    assert_eq!(frond(&directory, "diff shop").ok(), expected);
    frond(&directory, "commit shop -m second --author Bob").ok();
    assert_eq!(frond(&directory, "diff shop main~1 main").ok(), expected);
    assert_eq!(frond(&directory, "diff shop").ok(), "");
    let stat = frond(&directory, "diff shop main~1 main --stat").ok();
    assert_eq!(stat, " items | 1 added, 1 modified\n 1 collection, 2 documents\n");
    let json = frond(&directory, "diff shop main~1 main --json").ok();
    assert!(json.starts_with("{\"collections\":[{\"collection\":\"items\""), "{json}");

    let log = frond(&directory, "log shop").ok();
    assert!(log.starts_with("commit "), "{log}");
    assert!(
        log.contains("Author: Bob\n") && log.contains("Author: Ada <ada@example.org>"),
        "{log}"
    );
    let short = frond(&directory, "log shop --oneline").ok();
    let messages: Vec<&str> = short.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(messages, ["second", "first"]);
    let of_desk = frond(&directory, "log shop --oneline --collection items --id 2").ok();
    assert_eq!(of_desk.lines().count(), 1, "{of_desk}");
}

#[test]
fn branches_and_old_versions() {
    let directory = shop();
    assert!(frond(&directory, "branch shop sale").ok().contains("shop@sale"));
    upsert(&directory, "shop@sale", "{\"_id\":2,\"name\":\"desk\",\"price\":120}");
    assert!(items(&directory, "shop@sale").contains("120"));
    assert!(items(&directory, "shop").contains("240"));
    frond(&directory, "commit shop@sale -m half").ok();
    assert!(items(&directory, "shop@sale~1").contains("240"));
    let id = frond(&directory, "log shop@sale --oneline -n 1").ok();
    let id = id.split(' ').next().unwrap();
    assert!(items(&directory, &format!("shop@{id}")).contains("120"));
    let read_only =
        frond_with(&directory, "import -d shop@main~0 -c items", "{\"_id\":9}").fails(1);
    assert!(!read_only.is_empty());

    let branches = frond(&directory, "branch shop").ok();
    let names: Vec<&str> = branches.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["main", "sale"]);
    frond(&directory, "branch shop --delete sale").fails(1);
    assert!(frond(&directory, "branch shop --delete sale --force").ok().contains("deleted"));
    frond(&directory, "export -d shop@sale -c items").fails(1);
}

#[test]
fn merges() {
    let directory = shop();
    frond(&directory, "branch shop sale").ok();
    upsert(&directory, "shop@sale", "{\"_id\":2,\"name\":\"desk\",\"price\":120}");
    frond(&directory, "commit shop@sale -m half").ok();
    assert!(frond(&directory, "merge shop sale").ok().contains("moved forward"));
    assert!(frond(&directory, "merge shop sale").ok().contains("nothing to merge"));

    upsert(&directory, "shop", "{\"_id\":2,\"name\":\"table\",\"price\":120}");
    frond(&directory, "commit shop -m renamed").ok();
    upsert(&directory, "shop@sale", "{\"_id\":2,\"name\":\"desk\",\"price\":99}");
    frond(&directory, "commit shop@sale -m cheaper").ok();
    frond(&directory, "merge shop sale --ff-only").fails(1);
    assert!(frond(&directory, "merge shop sale -m together").ok().contains("together"));
    assert!(items(&directory, "shop").contains("{\"_id\":2,\"name\":\"table\",\"price\":99}"));
    assert!(frond(&directory, "log shop").ok().contains("Merge:  "));
}

/// A shop whose branches disagree about the price of the desk, and whose merge waits.
fn in_conflict() -> Directory {
    let directory = shop();
    frond(&directory, "branch shop sale").ok();
    for (database, price) in [("shop@sale", 120), ("shop", 250)] {
        let desk = format!("{{\"_id\":2,\"name\":\"desk\",\"price\":{price}}}");
        upsert(&directory, database, &desk);
        frond(&directory, &format!("commit {database} -m price")).ok();
    }
    let ran = frond(&directory, "merge shop sale -m together");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("items: 1 conflict"), "{ran:?}");
    directory
}

fn conflict_id(directory: &Directory) -> String {
    let conflicts = frond(directory, "conflicts shop").ok();
    for part in ["items 2", "price", "base    240", "ours    250", "theirs  120"] {
        assert!(conflicts.contains(part), "{part}: {conflicts}");
    }
    conflicts.split(' ').next().unwrap().to_owned()
}

#[test]
fn conflicts_are_kept_listed_and_resolved() {
    for (how, price) in [
        ("--ours", Some(250)),
        ("--theirs", Some(120)),
        ("--value {\"_id\":2,\"price\":200}", Some(200)),
        ("--remove", None),
    ] {
        let directory = in_conflict();
        let status = frond(&directory, "status shop").ok();
        assert!(status.contains("Merging ") && status.contains("items: 1 conflict"), "{status}");
        frond(&directory, "merge shop --continue").fails(1);
        let id = conflict_id(&directory);
        let out = frond(&directory, &format!("resolve shop {id} {how}")).ok();
        assert!(out.contains("no conflicts are left"), "{out}");
        frond(&directory, "merge shop --continue -m decided").ok();
        let desk = items(&directory, "shop");
        match price {
            Some(price) => assert!(desk.contains(&format!("\"price\":{price}")), "{how}: {desk}"),
            None => assert_eq!(desk.lines().count(), 1, "{desk}"),
        }
        assert_eq!(frond(&directory, "conflicts shop").ok(), "no conflicts\n");
    }
}

#[test]
fn a_merge_can_be_given_up() {
    let directory = in_conflict();
    assert!(frond(&directory, "merge shop --abort").ok().contains("gave the merge up"));
    assert!(items(&directory, "shop").contains("250"));
    assert!(frond(&directory, "status shop").ok().contains("Nothing to commit"));
}

#[test]
fn resets() {
    let directory = shop();
    upsert(&directory, "shop", "{\"_id\":3}");
    frond(&directory, "commit shop -m third").ok();
    assert!(frond(&directory, "reset shop main~1").ok().contains("its working state stays"));
    assert!(items(&directory, "shop").contains("{\"_id\":3}"));
    assert!(frond(&directory, "status shop").ok().contains("(1 added)"));
    frond(&directory, "reset shop --hard").ok();
    assert!(!items(&directory, "shop").contains("{\"_id\":3}"));
    frond(&directory, "reset shop nowhere").fails(1);
}
