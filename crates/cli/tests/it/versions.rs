//! Goal: the version commands do what their help says, on a data directory. Method: a small shop,
//! taken from its first commit to a merge with a conflict.

use frond_db::{ChangeRetention, Durability, FrondOptions, RetentionBegins};
use frond_doc::document;

use crate::{Directory, frond, frond_with, run_words};

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
        "  ~ 1\n",
        "      ~ price: 30 → 25\n",
        "      + new: true\n",
        "  + {\"_id\":3,\"name\":\"chair\"}\n"
    );
    assert_eq!(frond(&directory, "diff shop").ok(), expected);
    frond(&directory, "commit shop -m second --author Bob").ok();
    assert_eq!(frond(&directory, "diff shop main~1 main").ok(), expected);
    assert_eq!(frond(&directory, "diff shop").ok(), "");
    let stat = frond(&directory, "diff shop main~1 main --stat").ok();
    assert_eq!(stat, " items | 1 added, 1 modified\n 1 collection, 2 documents\n");
    let json = frond(&directory, "diff shop main~1 main --json").ok();
    assert!(json.starts_with("{\"_id\":1,\"collection\":\"items\""), "{json}");
    assert_eq!(json.lines().count(), 2, "{json}");
    let one = frond(&directory, "diff shop main~1 main -c items --id 3").ok();
    assert_eq!(one, "items\n  + {\"_id\":3,\"name\":\"chair\"}\n");
    assert_eq!(frond(&directory, "diff shop main~1 main -- items/3").ok(), one);

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
    assert_eq!(frond(&directory, "log shop --oneline -- items/2").ok(), of_desk);
    assert_eq!(frond(&directory, "log shop --oneline -- items").ok(), short);
}

#[test]
fn branches_and_old_versions() {
    let directory = shop();
    let made = frond(&directory, "branch shop 5%").ok();
    assert!(made.ends_with(" use it as database shop@5%25, in a URI shop%405%2525\n"), "{made}");
    let made = frond(&directory, "branch shop v1/x.y").ok();
    assert!(made.ends_with(" shop@v1%2Fx%2Ey, in a URI shop%40v1%252Fx%252Ey\n"), "{made}");
    frond(&directory, "branch shop --delete v1/x.y").ok();
    frond(&directory, "commit shop@5%25 -m same --allow-empty").ok();
    frond(&directory, "branch shop --delete 5% --force").ok();
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
fn databases_collections_and_branches_are_listed() {
    let directory = shop();
    frond_with(&directory, "import -d world -c towns", "{\"_id\":1}").ok();
    let databases = frond(&directory, "ls").ok();
    let names: Vec<&str> = databases.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["shop", "world"]);
    assert!(databases.lines().all(|line| line.ends_with('B')), "{databases}");
    frond_with(&directory, "import -d shop -c customers", "{\"_id\":1}").ok();
    let collections = frond(&directory, "ls shop").ok();
    let lines: Vec<Vec<&str>> =
        collections.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines, [["customers", "1", "document"], ["items", "2", "documents"]]);
    let committed = frond(&directory, "ls shop@main~0 --json").ok();
    assert_eq!(committed, "{\"name\":\"items\",\"type\":\"collection\",\"documents\":2}\n");
    assert!(frond(&directory, "ls nope").fails(1).contains("nope"));

    frond(&directory, "branch shop sale").ok();
    for (database, message) in [("shop@sale", "a"), ("shop@sale", "b"), ("shop", "c")] {
        frond(&directory, &format!("commit {database} -m {message} --allow-empty")).ok();
    }
    let branches = frond(&directory, "branch shop").ok();
    let lines: Vec<&str> = branches.lines().collect();
    assert!(lines[0].starts_with("main ") && !lines[0].contains("ahead"), "{branches}");
    assert!(lines[1].ends_with("  2 ahead  1 behind"), "{branches}");
    // Its date: the day at least is today's, or yesterday's.
    assert!(lines[1].contains(":") && lines[1].contains("  20"), "{branches}");
}

#[test]
fn colours_are_as_asked_for() {
    let directory = shop();
    for (line, is_coloured) in [
        ("log shop --color always", true),
        ("--color always log shop", true),
        ("log shop", false),
        ("log shop --color never --no-pager", false),
    ] {
        let log = frond(&directory, line).ok();
        assert_eq!(log.contains("\u{1b}[33m"), is_coloured, "{line}: {log}");
    }
    frond(&directory, "log shop --color blue").fails(2);
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
    assert!(frond(&directory, "merge shop --abort").ok().contains("gave up the merge"));
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

#[test]
fn the_log_is_narrowed_and_drawn() {
    let directory = shop();
    frond(&directory, "branch shop sale").ok();
    upsert(&directory, "shop@sale", "{\"_id\":2,\"name\":\"desk\",\"price\":120}");
    frond(&directory, "commit shop@sale -m half --author Bob --date 2001-02-03").ok();
    upsert(&directory, "shop", "{\"_id\":1,\"name\":\"lamp\",\"price\":31}");
    frond(&directory, "commit shop -m dearer").ok();
    frond(&directory, "merge shop sale -m together").ok();
    let short = |line: &str| -> Vec<String> {
        let out = frond(&directory, line).ok();
        out.lines().filter_map(|line| line.split(' ').next_back().map(str::to_owned)).collect()
    };
    assert_eq!(short("log shop sale..main --oneline"), ["together", "dearer"]);
    assert_eq!(short("log shop --oneline --author bob"), ["half"]);
    assert_eq!(short("log shop --oneline --skip 1 -n 1").len(), 1);
    assert_eq!(short("log shop --oneline --since 2999-01-01").len(), 0);
    assert_eq!(short("log shop --oneline --grep TOGE"), ["together"]);
    frond(&directory, "log shop --since tomorrow").fails(2);
    assert_eq!(short("log shop --oneline --since yesterday").len(), 4);
    assert_eq!(short("log shop --oneline -2"), ["together", "dearer"]);
    assert_eq!(short("--color never --no-pager log shop --oneline -2"), ["together", "dearer"]);
    assert_eq!(short("log shop --oneline -S :120"), ["half"]);
    assert_eq!(short("log shop --oneline -S lamp -1"), ["first"]);
    assert_eq!(short("log shop main~1...sale --oneline").len(), 2);
    let graph = frond(&directory, "log shop --graph").ok();
    let lines: Vec<&str> = graph.lines().collect();
    assert!(lines[0].starts_with("* ") && lines[1] == "|\\", "{graph}");
    assert!(graph.contains("|/"), "{graph}");
    let page = frond(&directory, "log shop -n 2 --json").ok();
    let next = page.split("\"next\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!(short(&format!("log shop --oneline --after {next}")).len(), 2);
    assert!(frond(&directory, "log shop").ok().contains("Made:   Sat Feb 3 00:00:00 2001"));
    let shown = frond(&directory, "show shop sale").ok();
    assert!(shown.contains("half") && shown.contains("~ price: 240 → 120"), "{shown}");
    let diff = frond(&directory, "diff shop main~1...sale").ok();
    assert_eq!(diff, "items\n  ~ 2\n      ~ price: 240 → 120\n");
    assert_eq!(frond(&directory, "diff shop main~2..sale").ok(), diff);
    assert_eq!(frond(&directory, "diff shop main@{now} main").ok(), "");
    assert!(items(&directory, "shop@{now}").contains("120"));
    frond(&directory, "export -d shop@{1970-01-01} -c items").fails(1);
    let stat = frond(&directory, "show shop main~2 --stat").ok();
    assert!(stat.contains(" items | 2 added\n"), "{stat}");
}

#[test]
fn fields_documents_and_tags_have_histories() {
    let directory = shop();
    upsert(&directory, "shop", "{\"_id\":1,\"name\":\"lamp\",\"price\":25}");
    frond(&directory, "commit shop -m cheaper --author Bob").ok();
    upsert(&directory, "shop", "{\"_id\":1,\"name\":\"lamp\",\"price\":26}");
    let history = frond(&directory, "history shop items 1").ok();
    assert!(history.starts_with("not committed yet\n  ~ price: 25 → 26\n"), "{history}");
    assert!(history.contains("cheaper\n  ~ price: 30 → 25\n"), "{history}");
    assert_eq!(frond(&directory, "history shop items 1 --json").ok().lines().count(), 3);
    frond(&directory, "history shop items 99").fails(1);
    let blame = frond(&directory, "blame shop items 1").ok();
    let lines: Vec<&str> = blame.lines().collect();
    assert!(lines[1].contains("Ada") && lines[1].contains("name"), "{blame}");
    assert!(lines[2].starts_with("not yet") && lines[2].contains("price"), "{blame}");
    frond(&directory, "tag shop v1 main~1").ok();
    frond(&directory, "tag shop v2 -m released").ok();
    assert!(items(&directory, "shop@v1").contains("\"price\":30"));
    let tags = frond(&directory, "tag shop").ok();
    assert!(tags.starts_with("v1 ") && tags.contains("released"), "{tags}");
    frond(&directory, "tag shop v1").fails(1);
    frond(&directory, "tag shop --delete v1").ok();
    frond(&directory, "export -d shop@v1 -c items").fails(1);
    let status = frond(&directory, "status shop --documents 5").ok();
    assert!(status.contains("      ~ 1\n"), "{status}");
}

#[test]
fn every_change_of_a_ref_can_be_undone() {
    let directory = shop();
    upsert(&directory, "shop", "{\"_id\":3}");
    frond(&directory, "commit shop -m third").ok();
    frond(&directory, "reset shop main~1 --hard").ok();
    assert!(frond(&directory, "undo shop").ok().contains("undone: reset: moving to main~1"));
    assert!(items(&directory, "shop").contains("{\"_id\":3}"));
    assert!(frond(&directory, "undo shop").ok().contains("undone: commit: third"));
    assert!(frond(&directory, "status shop").ok().contains("(1 added)"));
    let reflog = frond(&directory, "reflog shop").ok();
    let newest = reflog.lines().next().unwrap();
    assert!(newest.contains("undo: commit: third"), "{reflog}");
    let number = newest.split(' ').next().unwrap();
    frond(&directory, &format!("undo shop --change {number}")).ok();
    assert!(frond(&directory, "log shop --oneline").ok().contains("third"));
    frond(&directory, "branch shop gone").ok();
    frond(&directory, "branch shop --delete gone --force").ok();
    frond(&directory, "undo shop --branch gone").ok();
    assert!(items(&directory, "shop@gone").contains("{\"_id\":3}"));
    frond(&directory, "tag shop v1 main~1 -m opened").ok();
    frond(&directory, "tag shop v1 main --force").ok();
    frond(&directory, "tag shop --delete v1").ok();
    assert!(frond(&directory, "undo shop --branch v1").ok().contains("undone: tag: deleted"));
    assert!(items(&directory, "shop@v1").contains("{\"_id\":3}"));
    assert!(frond(&directory, "undo shop --branch v1").ok().contains("undone: tag: moved to main"));
    assert!(!items(&directory, "shop@v1").contains("{\"_id\":3}"));
    assert!(frond(&directory, "tag shop").ok().contains("opened"));
    frond(&directory, "undo shop --branch v1").fails(1);
    frond(&directory, "branch shop main --protect").ok();
    assert!(frond(&directory, "branch shop").ok().contains("  protected"));
    assert!(frond(&directory, "reset shop main~1").fails(1).contains("protected"));
    frond(&directory, "branch shop main --unprotect").ok();
    frond(&directory, "commit shop --amend -m thirdly").ok();
    assert!(frond(&directory, "log shop --oneline").ok().contains("thirdly"));
}

#[test]
fn a_log_shows_what_names_its_commits_and_what_they_changed() {
    let directory = shop();
    frond(&directory, "tag shop v1").ok();
    frond(&directory, "branch shop sale").ok();
    upsert(&directory, "shop", "{\"_id\":3,\"name\":\"chair\"}");
    frond(&directory, "commit shop -m second").ok();
    let log = frond(&directory, "log shop --oneline --decorate").ok();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].ends_with(" (main) second"), "{log}");
    assert!(lines[1].ends_with(" (sale, tag: v1) first"), "{log}");
    assert!(!frond(&directory, "log shop").ok().contains("(main)"), "not where nobody looks");
    let log = frond(&directory, "log shop -p --decorate").ok();
    assert!(
        log.contains("(main)\nAuthor") && log.contains("    second\n\nitems\n  + {\"_id\":3"),
        "{log}"
    );
    let log = frond(&directory, "log shop --stat -n 1").ok();
    assert!(log.ends_with("    second\n\n items | 1 added\n 1 collection, 1 document\n"), "{log}");
}

#[test]
fn a_waiting_merge_is_ended_by_its_own_command() {
    let directory = shop();
    upsert(&directory, "shop", "{\"_id\":1,\"name\":\"lamp\",\"price\":25}");
    frond(&directory, "commit shop -m cheaper").ok();
    upsert(&directory, "shop", "{\"_id\":1,\"name\":\"lamp\",\"price\":20}");
    frond(&directory, "commit shop -m cheapest").ok();
    frond(&directory, "revert shop main~1").fails(1);
    let status = frond(&directory, "status shop").ok();
    assert!(status.contains("items: 1 conflict") && status.contains("--abort"), "{status}");
    assert!(!status.contains("frond commit") && !status.contains("Nothing to"), "{status}");
    frond(&directory, "revert shop --abort").ok();
    assert!(frond(&directory, "status shop").ok().contains("Nothing to commit"));
    frond(&directory, "revert shop main~1").fails(1);
    frond(&directory, "resolve shop --all --ours").ok();
    frond(&directory, "revert shop --continue -m as-it-was").ok();
    assert!(frond(&directory, "log shop --oneline").ok().contains("as-it-was"));
    frond(&directory, "revert shop").fails(2);
}

/// What was done last are writes that no change of the branch has: undoing the commit before them
/// would leave them, and lose sight of what they replaced.
#[test]
fn an_undo_leaves_no_later_write_behind() {
    let directory = shop();
    upsert(&directory, "shop", "{\"_id\":3}");
    frond(&directory, "commit shop -m third").ok();
    frond_with(&directory, "import -d shop -c items --mode replace-all", "{\"_id\":99}").ok();
    let error = frond(&directory, "undo shop").fails(1);
    assert!(error.contains("nothing is undone") && error.contains("(commit: third)"), "{error}");
    assert!(frond(&directory, "log shop --oneline").ok().contains("third"));
    let number = error.split("--change ").nth(1).unwrap().split(' ').next().unwrap();
    frond(&directory, "restore shop items").ok();
    assert!(items(&directory, "shop").contains("{\"_id\":3}"));
    // A restore is a change of the branch, and the newest.
    assert!(frond(&directory, "undo shop").ok().contains("undone: restore"));
    frond(&directory, &format!("undo shop --change {number}")).ok();
    assert!(!frond(&directory, "log shop --oneline").ok().contains("third"));
    assert!(items(&directory, "shop").contains("{\"_id\":99}"));
}

/// What users of other tools type first.
#[test]
fn guesses_are_answered() {
    let directory = shop();
    for (line, code, advice) in [
        ("drop shop", 2, "db.dropDatabase()"),
        ("tags shop", 2, "frond tag DATABASE lists them"),
        ("log", 2, "the database stands first"),
        ("log -d shop", 2, "the database stands first"),
        ("export shop items", 2, "frond export -d shop -c items"),
        ("import --file x.json -d shop -c items", 2, "frond import items.json -d shop -c items"),
        ("merge shop sale main", 2, "frond merge shop@sale main"),
        ("ls --port 1", 2, "--uri HOST:PORT"),
        ("ls --uri 27018", 2, "use 127.0.0.1:27018"),
        ("serve --daemon", 2, "systemd"),
        ("diff shop.items", 1, "a collection is named apart from its database"),
        ("clone mongodb://127.0.0.1/shop copy", 1, "--remote-listen"),
        ("diff shop yesterday", 1, "main@{yesterday}"),
        ("log gone", 1, "frond reflog DATABASE --dropped"),
        (
            "serve --listen 127.0.0.1:0 --pid-file none/pid",
            1,
            "none/pid: no such file or directory\n",
        ),
    ] {
        let error = frond(&directory, line).fails(code);
        assert!(error.contains(advice) && !error.contains("os error"), "{line}: {error}");
        assert!(!error.contains("similar"), "{line}: {error}");
    }
    frond(&directory, "tag shop v1").ok();
    assert!(frond(&directory, "tag shop v1").fails(1).contains("--force moves it"));
    for (since, count) in [("last monday", 1), ("an hour ago", 1), ("now", 0)] {
        let words = ["log", "shop", "--since", since].map(str::to_owned);
        let log = run_words(&directory, &words, "").ok();
        assert_eq!(log.matches("first").count(), count, "{since}: {log}");
    }
}

#[test]
fn errors_say_where_to_look() {
    let directory = shop();
    let error = frond(&directory, "log shopp").fails(1);
    assert!(error.contains("shopp doesn't exist yet; frond ls lists databases"), "{error}");
    let error = frond(&directory, "branch -d shop sale").fails(1);
    assert!(error.contains("frond branch DATABASE --delete BRANCH"), "{error}");
    let error = frond(&directory, "serve --port 1").fails(2);
    assert!(error.contains("frond mongod takes mongod's options"), "{error}");
    let words = ["ls", "--uri", "http://127.0.0.1:27017"].map(str::to_owned);
    let error = run_words(&directory, &words, "").fails(2);
    assert!(error.contains("http:// doesn't name a database server"), "{error}");
}

#[test]
fn commands_leave_the_log_that_moments_are_read_from() {
    let directory = Directory::new();
    let open = || {
        let (seconds, bytes) = (3_600, 1 << 30);
        let mut options = FrondOptions::default();
        options.engine.changes =
            ChangeRetention { begins: RetentionBegins::AtOnce, seconds, bytes };
        frond_vcs::open(&directory.path().join("kept"), options).unwrap()
    };
    let opened = open();
    let insert = |id: i32| {
        let shop = opened.database("shop").unwrap();
        shop.insert("items", &[document! { "_id": id }], true, Durability::Synced).unwrap();
        opened.operation_time().0
    };
    let (then, _) = (insert(1), insert(2));
    drop(opened);
    for line in ["log shop", "commit shop -m all", "fsck", "gc", "backup backups", "status shop"] {
        frond(&directory, &format!("{line} --data kept")).ok();
        frond_with(&directory, "import -d shop -c more --data kept", "{\"a\":1}").ok();
    }
    let name = format!("shop@{{Timestamp({},{})}}", then >> 32, then as u32);
    let opened = open();
    let items = opened.database(&name).unwrap().count("items", &Default::default());
    assert_eq!(items.unwrap(), 1);
}

#[test]
fn no_data_directory_is_made_among_files_of_others() {
    let directory = Directory::new();
    directory.file("letter.txt", "Dear");
    let Err(error) = frond_vcs::open(directory.path(), FrondOptions::default()) else {
        panic!("a data directory lies beside a letter")
    };
    assert!(error.message.contains("letter.txt"), "{}", error.message);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was added");
    std::fs::remove_file(directory.path().join("letter.txt")).unwrap();
    drop(frond_vcs::open(directory.path(), FrondOptions::default()).unwrap());
    directory.file("letter.txt", "Dear");
    frond_vcs::open(directory.path(), FrondOptions::default()).expect("it is a data directory");
}
