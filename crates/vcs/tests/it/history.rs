//! Commits as people want them, the log and its filters, tags, blame, the history of a document.

use frond_db::AggregateRequest;
use frond_doc::{DocumentBuf, Value, ValueBuf, document};
use frond_testkit::SimClock;
use frond_vcs::Repository;
use frond_vcs::{
    CollectionChange, CommitRequest, DiffDetail, DiffRequest, LogRequest, RefChangeInfo,
};

use super::*;

fn id(number: i32) -> ValueBuf {
    ValueBuf::from(Value::Int32(number))
}

fn commit(database: &Repository, message: &str, author: &str) -> String {
    database.commit(message, author).expect("something changed").id.to_string()
}

fn messages(database: &Repository, request: LogRequest) -> Vec<String> {
    let log = database.log_of(request).expect("the request is right");
    log.map(|commit| commit.expect("a commit").message).collect()
}

fn stages(database: &Repository, collection: Option<&str>, pipeline: &str) -> Vec<DocumentBuf> {
    let pipeline = crate::support::value(pipeline);
    let request = AggregateRequest {
        pipeline,
        variables: None,
        collation: None,
        hint: None,
        in_memory_only: false,
        interrupt: Default::default(),
    };
    let cursor = database.aggregate(collection, &request).expect("the pipeline is right");
    cursor.collect::<Result<Vec<_>, _>>().expect("every row can be read")
}

/// main: one, two; side (from one): three; a merge; five.
fn history() -> (Frond, Repository) {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32, "a": 1_i32, "b": 1_i32 }]);
    commit(&main, "one", "Ada");
    main.create_branch("side", None).expect("a good name");
    put(&main, "things", &document! { "_id": 1_i32, "a": 2_i32, "b": 1_i32 }).expect("written");
    commit(&main, "two", "Bob");
    let side = shop(&frond, "side");
    insert(&side, "others", &[document! { "_id": 7_i32 }]);
    put(&side, "things", &document! { "_id": 1_i32, "a": 1_i32, "b": 3_i32 }).expect("written");
    commit(&side, "three", "Ada");
    merge(&main, "side").expect("merges");
    insert(&main, "others", &[document! { "_id": 8_i32 }]);
    commit(&main, "five", "Carl");
    (frond, main)
}

#[test]
fn commits_are_amended_and_may_be_empty() {
    let frond = new();
    let main = shop(&frond, "");
    let empty = CommitRequest {
        message: Some("begin".to_owned()),
        allow_empty: true,
        ..CommitRequest::default()
    };
    let first = main.commit_as(&empty).expect("allowed");
    assert_eq!(first.author, "frond");
    assert!(main.commit("again", "Ada").is_err());
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    let imported = CommitRequest {
        message: Some("things".to_owned()),
        author: Some("Ada".to_owned()),
        committer: Some("Bob".to_owned()),
        time_millis: Some(5),
        ..CommitRequest::default()
    };
    let second = main.commit_as(&imported).expect("something changed");
    assert_eq!((second.committer.as_str(), second.authored_millis), ("Bob", 5));
    assert!(second.timestamp_millis >= first.timestamp_millis);
    insert(&main, "things", &[document! { "_id": 2_i32 }]);
    let amend = CommitRequest { amend: true, ..CommitRequest::default() };
    let amended = main.commit_as(&amend).expect("there is a commit");
    assert_eq!((amended.message.as_str(), amended.author.as_str()), ("things", "Ada"));
    assert_eq!((amended.parents, amended.authored_millis), (second.parents, 5));
    assert_eq!(messages(&main, LogRequest::default()), ["things", "begin"]);
    assert_eq!(all(&shop(&frond, "main~0"), "things").len(), 2);
    // The commit that was amended is there still, and comes back.
    main.undo(None, None).expect("amending can be undone");
    assert_eq!(main.status().expect("a status").head, Some(second.id));
    assert_eq!(main.status().expect("a status").collections[0].added, 1);
}

#[test]
fn a_commit_may_say_what_it_has_merged() {
    let (frond, main) = history();
    let side = shop(&frond, "side").status().expect("a status").head.expect("it has a commit");
    let head = main.status().expect("a status").head.expect("it has a commit");
    let merge = |versions: &[&str]| CommitRequest {
        message: Some("merged elsewhere".to_owned()),
        merges: versions.iter().map(|version| (*version).to_owned()).collect(),
        ..CommitRequest::default()
    };
    // Nothing changed here, but the history. HEAD and what is named twice are one parent.
    let made = main.commit_as(&merge(&["side", "HEAD", "side"])).expect("a merge");
    assert_eq!(made.parents, [head, side]);
    assert_eq!(messages(&main, LogRequest { limit: Some(1), ..LogRequest::default() }).len(), 1);
    assert!(main.commit_as(&merge(&["nowhere"])).is_err());
    assert!(main.commit_as(&merge(&["HEAD"])).is_err(), "it merges nothing");
    assert_eq!(main.status().expect("a status").head, Some(made.id));
}

#[test]
fn the_log_is_filtered_and_paged() {
    let (frond, main) = history();
    let all = messages(&main, LogRequest::default());
    assert_eq!(all.len(), 5);
    let of = |range: &str| LogRequest { range: Some(range.to_owned()), ..LogRequest::default() };
    assert_eq!(messages(&main, of("side..main")).len(), 3);
    assert_eq!(messages(&main, of("main..side")), Vec::<String>::new());
    assert_eq!(messages(&shop(&frond, "side"), of("main..")), Vec::<String>::new());
    assert_eq!(messages(&main, of("HEAD~2")), ["two", "one"]);
    assert_eq!(messages(&main, of("side")), ["three", "one"]);
    assert_eq!(messages(&main, of("side...main")), messages(&main, of("side..main")));
    let mut parted = messages(&main, of("main~2...side"));
    parted.sort_unstable();
    assert_eq!(parted, ["three", "two"]);
    assert!(main.log_of(of("nowhere..main")).is_err());
    let by = |author: &str| LogRequest { author: Some(author.to_owned()), ..LogRequest::default() };
    assert_eq!(messages(&main, by("aDa")), ["three", "one"]);
    let first = LogRequest { first_parent: true, ..LogRequest::default() };
    assert_eq!(messages(&main, first), ["five", "Merge side into main", "two", "one"]);
    let things = |document| LogRequest {
        collection: Some("things".to_owned()),
        document,
        ..LogRequest::default()
    };
    assert_eq!(messages(&main, things(Some(id(1)))).len(), 4, "the merge changed it too");
    assert_eq!(messages(&main, things(Some(id(9)))), Vec::<String>::new());
    // Pages of every size give the whole.
    for size in 1..6 {
        let (mut collected, mut after) = (Vec::new(), None);
        loop {
            let request =
                LogRequest { limit: Some(size), after: after.clone(), ..LogRequest::default() };
            let page: Vec<_> =
                main.log_of(request).and_then(Iterator::collect).expect("a page of commits");
            let Some(last) = page.last() else { break };
            after = Some(last.id.to_string());
            collected.extend(page.into_iter().map(|commit| commit.message));
        }
        assert_eq!(collected, all, "pages of {size}");
    }
}

#[test]
fn tags_name_versions() {
    let (frond, main) = history();
    let tag = main.create_tag("v1", Some("main~1"), None, false).expect("a good tag");
    assert_eq!(tag.message, None);
    main.create_tag("v2", None, Some(("release", "Ada")), false).expect("a good tag");
    assert_eq!(all(&shop(&frond, "v1"), "others").len(), 1);
    assert_eq!(all(&shop(&frond, "v2"), "others").len(), 2);
    assert!(shop(&frond, "v1").is_read_only());
    let names: Vec<String> =
        main.list_tags().expect("tags").into_iter().map(|tag| tag.name).collect();
    assert_eq!(names, ["v1", "v2"]);
    assert!(main.create_tag("v1", None, None, false).is_err(), "it exists");
    assert!(main.create_tag("side", None, None, true).is_err(), "a branch is called so");
    assert!(main.create_branch("v1", None).is_err(), "a tag is called so");
    let head = main.log(Some(1), None).expect("a log")[0].id.to_string();
    for letters in [4, 8, head.len() - 1] {
        let name = &head[..letters];
        let refused =
            main.create_tag(name, Some("main~1"), None, true).expect_err("it is a commit's");
        assert!(refused.message.contains("commit's id"), "{}", refused.message);
        shop(&frond, name);
    }
    main.create_tag(&head[..3], None, None, false).expect("too short to name a commit");
    main.create_tag("v1", None, None, true).expect("moved by force");
    assert_eq!(all(&shop(&frond, "v1"), "others").len(), 2);
    main.delete_tag("v1").expect("it was there");
    assert!(main.delete_tag("v1").is_err());
    assert!(Repository::open(&frond, "shop@v1").is_err());
}

#[test]
fn blame_shows_where_each_field_comes_from() {
    let (_frond, main) = history();
    let blame = main.blame("things", &id(1)).expect("the document is there");
    let origins: Vec<(String, String)> = blame
        .fields
        .into_iter()
        .map(|field| (field.path, field.commit.expect("committed").message))
        .collect();
    let expected = [("_id", "one"), ("a", "two"), ("b", "three")];
    assert_eq!(origins, expected.map(|(path, commit)| (path.to_owned(), commit.to_owned())));
    put(&main, "things", &document! { "_id": 1_i32, "a": 2_i32, "b": 4_i32 }).expect("written");
    let blame = main.blame("things", &id(1)).expect("the document is there");
    assert!(blame.is_dirty && blame.fields[2].commit.is_none() && blame.fields[1].commit.is_some());
    assert!(main.blame("things", &id(5)).is_err());
}

#[test]
fn a_document_has_a_history() {
    let (_frond, main) = history();
    remove(&main, "things", 1);
    let versions: Vec<_> = main
        .document_history("things", &id(1), LogRequest::default())
        .and_then(Iterator::collect)
        .expect("a history");
    assert_eq!(versions.len(), 5);
    assert_eq!(versions[0].change, CollectionChange::Removed);
    assert!(versions[0].commit.is_none() && versions[1].commit.is_some());
    assert_eq!(versions[4].change, CollectionChange::Added);
    let b = |position: usize| {
        let document: &Option<DocumentBuf> = &versions[position].document;
        document.as_ref().and_then(|document| document.get("b")?.as_integer())
    };
    assert_eq!((b(0), b(1), b(4)), (None, Some(3), Some(1)));
}

#[test]
fn pipelines_begin_with_history() {
    let (frond, main) = history();
    index(&main, "things", document! { "a": 1_i32 }, false);
    put(&main, "things", &document! { "_id": 1_i32, "a": 9_i32, "b": 3_i32 }).expect("written");
    let rows = stages(&main, Some("things"), "[{'$diff': {}}]");
    let kinds: Vec<_> = rows.iter().map(|row| row.get("kind").unwrap().as_str().unwrap()).collect();
    assert_eq!(kinds, ["index", "document"]);
    let changed = stages(
        &main,
        None,
        "[{'$diff': {'from': 'main~3', 'to': 'main', 'whole': false}},
          {'$match': {'kind': 'document'}},
          {'$group': {'_id': '$collection', 'count': {'$sum': 1}}}, {'$sort': {'_id': 1}}]",
    );
    assert_eq!(
        crate::support::texts(&changed),
        "[{'_id':'others','count':2},{'_id':'things','count':1}]"
    );
    let authors = stages(
        &main,
        None,
        "[{'$log': {}}, {'$group': {'_id': '$author', 'count': {'$sum': 1}}},
          {'$sort': {'_id': 1}}]",
    );
    assert_eq!(
        crate::support::texts(&authors),
        "[{'_id':'Ada','count':2},{'_id':'Bob','count':1},{'_id':'Carl','count':1},\
         {'_id':'frond','count':1}]"
    );
    let values = stages(
        &main,
        Some("things"),
        "[{'$history': {'_id': 1}}, {'$project': {'_id': 0, 'a': '$document.a'}}]",
    );
    assert_eq!(crate::support::texts(&values), "[{'a':9},{'a':2},{'a':1},{'a':2},{'a':1}]");
    let fields = stages(&main, Some("things"), "[{'$blame': {'_id': 1}}, {'$count': 'n'}]");
    assert_eq!(crate::support::texts(&fields), "[{'n':3}]");
    // The other version of each changed document, joined.
    let joined = stages(
        &main,
        Some("things"),
        "[{'$diff': {}}, {'$match': {'kind': 'document'}},
          {'$lookup': {'from': {'db': 'shop@side', 'coll': 'things'}, 'localField': '_id',
                       'foreignField': '_id', 'as': 'side'}},
          {'$project': {'_id': 0, 'now': '$after.a', 'side': '$side.a'}}]",
    );
    assert_eq!(crate::support::texts(&joined), "[{'now':9,'side':[1]}]");
    let union = stages(
        &main,
        Some("others"),
        "[{'$unionWith': {'db': 'shop@side', 'coll': 'others'}}, {'$count': 'n'}]",
    );
    assert_eq!(crate::support::texts(&union), "[{'n':3}]");
    // History within other stages' pipelines, of other versions too.
    let logs = stages(
        &main,
        None,
        "[{'$log': {'limit': 1}},
          {'$unionWith': {'db': 'shop@side', 'pipeline': [{'$log': {'limit': 1}}]}},
          {'$unionWith': {'coll': 'things', 'pipeline': [{'$history': {'_id': 1}}, {'$count': 'n'}]}},
          {'$project': {'_id': 0, 'message': 1, 'n': 1}}]",
    );
    assert_eq!(crate::support::texts(&logs), "[{'message':'five'},{'message':'three'},{'n':5}]");
    let blamed = stages(
        &main,
        Some("things"),
        "[{'$lookup': {'from': 'things', 'as': 'blame',
                       'pipeline': [{'$blame': {'_id': 1}}, {'$match': {'path': 'a'}}]}},
          {'$project': {'_id': 0, 'n': {'$size': '$blame'}}}]",
    );
    assert_eq!(crate::support::texts(&blamed), "[{'n':1}]");
    for wrong in [
        "[{'$facet': {'a': [{'$log': {}}]}}]",
        "[{'$unionWith': {'pipeline': [{'$match': {}}, {'$log': {}}]}}]",
        "[{'$lookup': {'from': 'things', 'localField': 'a', 'foreignField': 'a', 'as': 'x',
                       'pipeline': [{'$log': {}}]}}]",
        "[{'$diff': {'nothing': 1}}]",
        "[{'$diff': {'from': 5}}]",
        "[{'$diff': {'collection': 'others'}}]",
        "[{'$history': {}}]",
        "[{'$match': {}}, {'$diff': {}}]",
        "[{'$diff': {}}, {'$documents': []}]",
        "[{'$log': {'range': 'nowhere'}}]",
    ] {
        let pipeline = crate::support::value(wrong);
        let request = AggregateRequest {
            pipeline,
            variables: None,
            collation: None,
            hint: None,
            in_memory_only: false,
            interrupt: Default::default(),
        };
        assert!(main.aggregate(Some("things"), &request).is_err(), "{wrong}");
    }
    drop(frond);
}

/// The messages of the commits that changed how often `text` occurs.
fn with_text(database: &Repository, request: LogRequest, text: &str) -> Vec<String> {
    let log = database.log_of_text(request, text).expect("the request is right");
    log.map(|commit| commit.expect("a commit").message).collect()
}

#[test]
fn commits_are_found_by_what_they_changed() {
    let (_frond, main) = history();
    let all = LogRequest::default;
    assert_eq!(with_text(&main, all(), "\"b\":1"), ["three", "one"]);
    assert_eq!(with_text(&main, all(), "\"b\":3"), ["three"]);
    assert_eq!(with_text(&main, all(), "_id"), ["five", "three", "one"]);
    assert_eq!(with_text(&main, all(), "nowhere"), Vec::<String>::new());
    let page = LogRequest { skip: 1, limit: Some(1), ..all() };
    assert_eq!(with_text(&main, page, "_id"), ["three"]);
    let others = LogRequest { collection: Some("others".to_owned()), ..all() };
    assert_eq!(with_text(&main, others, "\"b\":3"), Vec::<String>::new());
    let rows = stages(&main, None, r#"[{"$log": {"text": "\"b\":3"}}]"#);
    assert_eq!(rows.len(), 1);
}

#[test]
fn a_diff_begins_where_two_branches_parted() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    commit(&main, "base", "Ada");
    main.create_branch("side", None).expect("a good name");
    insert(&main, "things", &[document! { "_id": 2_i32 }]);
    commit(&main, "ours", "Ada");
    let side = shop(&frond, "side");
    insert(&side, "things", &[document! { "_id": 3_i32 }]);
    commit(&side, "theirs", "Ada");
    let counts = |range: &str| {
        let diff = main.diff(Some(range), None).expect("both are there");
        (diff[0].added.len(), diff[0].removed.len())
    };
    assert_eq!(counts("main..side"), (1, 1));
    assert_eq!(counts("main...side"), (1, 0));
    assert_eq!(counts("...side"), (1, 0));
    assert!(main.diff(Some("main...nowhere"), None).is_err());
    assert!(main.diff(Some("main...side"), Some("main")).is_err(), "a range has its right side");
}

/// Commits of the first four days of 1970, one a day; the third on a branch that was merged.
#[test]
fn a_date_names_the_last_commit_by_then() {
    const DAY: i64 = 86_400_000;
    let frond = new();
    let main = shop(&frond, "");
    let dated = |database: &Repository, day: i64| {
        let request = CommitRequest {
            message: Some(format!("day {day}")),
            time_millis: Some((day - 1) * DAY + 500),
            allow_empty: true,
            ..CommitRequest::default()
        };
        database.commit_as(&request).expect("allowed").id
    };
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    let first = dated(&main, 1);
    main.create_branch("side", None).expect("a good name");
    insert(&main, "things", &[document! { "_id": 2_i32 }]);
    let second = dated(&main, 2);
    let side = shop(&frond, "side");
    insert(&side, "things", &[document! { "_id": 3_i32 }]);
    let third = dated(&side, 3);
    merge(&main, "side").expect("merges");
    let named = |database: &Repository, revision: &str| {
        let request = LogRequest {
            range: Some(revision.to_owned()),
            limit: Some(1),
            ..LogRequest::default()
        };
        let log = database.log_of(request).ok()?;
        Some(log.map(|commit| commit.expect("a commit").id).next().expect("the first"))
    };
    for (revision, expected) in [
        ("main@{1970-01-01T00:00:00Z}", Some(first)),
        ("main@{1970-01-01T00:00:00.499Z}", None),
        ("main@{1970-01-02}", Some(first)),
        ("@{1970-01-03}", Some(second)),
        ("HEAD@{1970-01-04}", Some(second)),
        ("side@{1970-01-04}", Some(third)),
        ("side@{1970-01-04}~1", Some(first)),
        ("main@{now}^2", Some(third)),
        ("side@{yesterday}", Some(third)),
        ("main@{1}", None),
    ] {
        assert_eq!(named(&main, revision), expected, "{revision}");
    }
    assert_eq!(named(&side, "@{yesterday}"), Some(third));
    // As names of databases.
    for (version, count) in [
        ("{commit by 1970-01-02}", 1),
        ("{commit by 1970-01-03}", 2),
        ("side@{commit by 1970-01-03}", 1),
        ("side@{1970-01-03}~0", 1),
        ("side@{commit by yesterday}", 2),
    ] {
        assert_eq!(all(&shop(&frond, version), "things").len(), count, "{version}");
    }
    assert!(Repository::open(&frond, "shop@{commit by 1969-12-31}").is_err());
    // A branch may have a name that looks like a part of a date.
    main.create_branch("{yesterday}", Some("side")).expect("a good name");
    assert_eq!(all(&shop(&frond, "{yesterday}"), "things").len(), 2);
    let name = frond_db::DatabaseName::parse("shop@{yesterday}").expect("a name");
    let naming = frond_vcs::naming_branch(&frond, &name).expect("it can be read");
    assert_eq!(naming.as_deref(), Some("{yesterday}"));
    for (version, branch) in
        [("{now}", "main"), ("{now}~1", "main"), ("side@{now}", "side"), ("side@{now}~1", "side")]
    {
        let name = frond_db::DatabaseName::parse(&format!("shop@{version}")).expect("a name");
        let naming = frond_vcs::naming_branch(&frond, &name).expect("it can be read");
        assert_eq!(naming.as_deref(), Some(branch), "{version}");
    }
}

/// A commit that a reset took away, a branch that got the name of an earlier one, and, once the
/// reflog is forgotten, the dates of commits again.
#[test]
fn a_date_goes_by_where_a_branch_stood_then() {
    let clock = SimClock::new();
    let machine = frond_testkit::machine::machine(&SimDisk::new(1), &clock, 1);
    let frond = frond_vcs::open_on(&machine, FrondOptions::default()).expect("the disk works");
    let main = shop(&frond, "");
    let commit_next = |database: &Repository, id: i32| {
        clock.step(3_600_000_000);
        insert(database, "things", &[document! { "_id": id }]);
        database.commit("another", "Ada").expect("something changed").id
    };
    let first = commit_next(&main, 1); // Five hours ago, in the end.
    main.create_branch("aside", None).expect("a good name");
    let astray = commit_next(&shop(&frond, "aside"), 20);
    main.delete_branch("aside", true).expect("forced");
    main.create_branch("side", None).expect("a good name");
    let second = commit_next(&main, 2);
    clock.step(3_600_000_000);
    main.reset(Some("main~1"), true).expect("known");
    let on_side = commit_next(&shop(&frond, "side"), 30);
    main.rename_branch("side", "aside").expect("a free name");
    clock.step(3_600_000_000);
    let now = |minutes: i64| format!("@{{{minutes} minutes ago}}");
    let named = |revision: &str| {
        let range = Some(revision.to_owned());
        let log = main.log_of(LogRequest { range, limit: Some(1), ..LogRequest::default() });
        log.ok().and_then(|mut log| log.next()).map(|commit| commit.expect("a commit").id)
    };
    for (start, minutes, expected) in [
        ("main", 330, None),
        ("main", 270, Some(first)),
        ("main", 150, Some(second)),
        ("HEAD", 150, Some(second)),
        ("", 150, Some(second)),
        ("main", 90, Some(first)),
        ("aside", 210, Some(first)),
        ("aside", 90, Some(first)),
        ("aside", 30, Some(on_side)),
    ] {
        let revision = format!("{start}{}", now(minutes));
        assert_eq!(named(&revision), expected, "{revision}");
    }
    assert_eq!(named(&format!("main{}~1", now(150))), Some(first));
    assert_eq!(named("main@{commit by 150 minutes ago}"), Some(first), "the same for ever");
    assert_ne!(astray, on_side);
    main.expire_reflog(i64::MAX).expect("forgotten");
    assert_eq!(named(&format!("main{}", now(150))), Some(first), "of what main has now");
    assert_eq!(named(&format!("aside{}", now(30))), Some(on_side));
}

#[test]
fn a_diff_that_is_too_large_names_the_stage() {
    let frond = new();
    let main = shop(&frond, "");
    let long = "x".repeat(1_000);
    insert(&main, "things", &[document! { "_id": 1_i32, "long": &long }]);
    main.commit("first", "").unwrap();
    put(&main, "things", &document! { "_id": 1_i32, "long": &long, "a": 1_i32 }).unwrap();
    insert(&main, "things", &[document! { "_id": 2_i32, "long": &long }]);
    assert_eq!(main.diff_within(None, None, 2_000).unwrap()[0].added.len(), 1);
    let error = main.diff_within(None, None, 500).unwrap_err();
    assert!(error.message.contains("$diff") && error.code.number() == 10334, "{error}");
}

#[test]
fn a_diff_of_one_document_reads_its_paths_only() {
    let frond = new();
    let main = shop(&frond, "");
    let many: Vec<DocumentBuf> =
        (0..20_000).map(|number: i32| document! { "_id": number, "a": number }).collect();
    insert(&main, "things", &many);
    commit(&main, "many", "Ada");
    for number in 0..20_000 {
        if number % 3 == 0 {
            put(&main, "things", &document! { "_id": number, "a": -1_i32 }).expect("written");
        }
    }
    commit(&main, "changed", "Ada");
    let request = DiffRequest {
        from: Some("main~1".to_owned()),
        collection: Some("things".to_owned()),
        document: Some(id(3)),
        ..DiffRequest::default()
    };
    let before = frond.counters().1.chunks_read;
    let rows: Vec<_> = main.diff_rows(&request).and_then(Iterator::collect).expect("a small diff");
    assert!(matches!(&rows[..], [row] if row.field_changes().len() == 1));
    assert!(matches!(rows[0].detail, DiffDetail::Document { .. }));
    let read = frond.counters().1.chunks_read - before;
    assert!(read < 60, "{read} chunks");
}

fn whys(changes: &[RefChangeInfo]) -> Vec<&str> {
    changes.iter().map(|change| change.why.as_str()).collect()
}

#[test]
fn changes_of_refs_can_be_undone() {
    let (_frond, main) = history();
    let head = |database: &Repository| database.status().expect("a status").head;
    let start = head(&main);
    let everything = |database: &Repository| (all(database, "things"), all(database, "others"));
    let content = everything(&main);
    // A hard reset with changes that were not committed.
    insert(&main, "others", &[document! { "_id": 99_i32 }]);
    let dirty = everything(&main);
    main.reset(Some("main~2"), true).expect("there is such a commit");
    assert_ne!(everything(&main), dirty);
    main.undo(None, None).expect("a reset can be undone");
    assert_eq!((head(&main), everything(&main)), (start, dirty.clone()));
    // Undoing again goes back further: the commit `five`, whose changes stay.
    main.undo(None, None).expect("a commit can be undone");
    assert_eq!(everything(&main), dirty);
    assert_ne!(head(&main), start);
    // Then the merge, with its content; and what was not committed is set aside with it.
    let undone = main.undo(None, None).expect("a merge can be undone");
    assert!(undone.change.why.starts_with("merge"), "{}", undone.change.why);
    assert_eq!(all(&main, "others").len(), 0);
    // Naming an undoing takes it back.
    let changes = main.reflog(Some("main")).expect("a reflog");
    for change in &changes[..3] {
        assert!(change.undid.is_some(), "{:?}", whys(&changes));
        main.undo(None, Some(change.change)).expect("an undoing can be undone");
    }
    assert_eq!(main.undo(None, Some(7_777_777)).unwrap_err().code.name(), "NoSuchKey");
    main.reset(Some(&start.expect("a commit").to_string()), true).expect("known");
    assert_eq!(everything(&main), content);
}

#[test]
fn dropped_collections_branches_and_databases_come_back() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32, "a": 1_i32 }]);
    index(&main, "things", document! { "a": 1_i32 }, true);
    commit(&main, "one", "Ada");
    main.create_branch("side", None).expect("a good name");
    main.create_tag("v1", None, Some(("tagged", "Ada")), false).expect("a good tag");
    let side = shop(&frond, "side");
    insert(&side, "things", &[document! { "_id": 2_i32, "a": 2_i32 }]);
    insert(&main, "fresh", &[document! { "_id": 5_i32 }]);

    // Collections: one that HEAD has and one that was never committed.
    for collection in ["things", "fresh"] {
        let before = all(&main, collection);
        assert!(main.drop_collection(collection).expect("dropped"));
        assert!(all(&main, collection).is_empty());
        main.undo(None, None).expect("it comes back");
        assert_eq!(all(&main, collection), before);
    }
    assert_eq!(find(&main, "things", Some(document! { "a": 1_i32 }), Some("a_1")).len(), 1);
    assert!(put(&main, "things", &document! { "_id": 3_i32, "a": 1_i32 }).is_err(), "unique");
    main.drop_collection("fresh").expect("dropped");
    insert(&main, "fresh", &[document! { "_id": 6_i32 }]);
    assert_eq!(main.undo(None, None).unwrap_err().code.name(), "NamespaceExists");

    // A branch with changes that were not committed.
    main.delete_branch("side", true).expect("forced");
    assert!(Repository::open(&frond, "shop@side").is_err());
    main.undo(Some("side"), None).expect("the branch comes back");
    assert_eq!(all(&shop(&frond, "side"), "things").len(), 2);

    // The database, after its directory was opened again.
    main.drop_database().expect("dropped");
    assert!(!main.exists().expect("known"));
    drop((main, side));
    frond.close().expect("closes");
    drop(frond);
    let frond = open(&disk);
    let main = shop(&frond, "");
    insert(&main, "other", &[document! { "_id": 1_i32 }]);
    assert_eq!(main.undrop("shop").unwrap_err().code.name(), "NamespaceExists");
    let back = Repository::open(&frond, "back").expect("a good name");
    let restored = back.undrop("shop").expect("it was dropped");
    assert_eq!(restored.branches.len(), 2);
    assert_eq!(all(&back, "things").len(), 1);
    let back_side = Repository::open(&frond, "back@side").expect("a branch");
    assert_eq!(all(&back_side, "things").len(), 2);
    assert_eq!(all(&Repository::open(&frond, "back@v1").expect("a tag"), "things").len(), 1);
    assert_eq!(messages(&back, LogRequest::default()), ["one"]);
    assert!(back.undrop("shop").is_err(), "it came back");
    frond.engine().check().expect("whole");
    // Expired states are forgotten.
    main.drop_database().expect("dropped");
    assert_eq!(main.dropped_databases().expect("known").len(), 1);
    assert_eq!(main.expire_dropped(i64::MAX).expect("forgotten"), 1);
    assert!(main.undrop("shop").is_err());
    assert!(back.expire_reflog(i64::MAX).expect("forgotten") > 0);
    assert!(back.reflog(None).expect("empty").is_empty());
}

#[test]
fn protected_branches_only_move_forward() {
    use frond_vcs::BranchPolicy;
    let (frond, main) = history();
    main.set_branch_policy("main", BranchPolicy { protected: true, ..BranchPolicy::default() })
        .expect("the branch is there");
    assert!(main.reset(Some("main~1"), false).is_err());
    assert!(main.reset(None, true).is_ok(), "HEAD is no step back");
    assert!(main.undo(None, None).is_ok(), "that reset moved nothing");
    assert!(main.undo(None, None).is_err());
    let amend = CommitRequest { amend: true, ..CommitRequest::default() };
    assert!(main.commit_as(&amend).is_err());
    insert(&main, "others", &[document! { "_id": 50_i32 }]);
    assert!(main.commit("more", "Ada").is_ok());
    main.create_branch("soon", None).expect("a good name");
    main.set_branch_policy(
        "soon",
        BranchPolicy { expires_millis: Some(1), ..BranchPolicy::default() },
    )
    .expect("the branch is there");
    assert_eq!(main.remove_expired_branches().expect("removed"), ["soon"]);
    assert!(Repository::open(&frond, "shop@soon").is_err());
    assert!(main.branch_policy("soon").is_err());
}
