//! Goal: a patch has the same effect elsewhere, or its conflicts are reported; an incomplete patch
//! is refused and changes nothing. Method: two data directories without a commit in common.

use frond_doc::document;

use crate::{Directory, frond, frond_with, run_words};

const ITEMS: &str = concat!(
    "{\"_id\":1,\"name\":\"lamp\",\"price\":30}\n",
    "{\"_id\":2,\"name\":\"desk\",\"price\":240}\n",
    "{\"_id\":3,\"name\":\"chair\",\"price\":90}\n"
);

/// `shop` with a commit `first`, and `store`, elsewhere, with the same documents and one more.
fn two() -> Directory {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", ITEMS).ok();
    let more = format!("{ITEMS}{{\"_id\":9,\"name\":\"bed\"}}\n");
    frond_with(&directory, "import -d store -c items --commit theirs --data other", &more).ok();
    directory
}

/// Lamps are cheaper, desks gone, sofas new; and there are people.
fn change(directory: &Directory) {
    let changed = concat!(
        "{\"_id\":1,\"name\":\"lamp\",\"price\":25}\n",
        "{\"_id\":3,\"name\":\"chair\",\"price\":90}\n",
        "{\"_id\":4,\"name\":\"sofa\",\"price\":{\"$numberLong\":\"700\"}}\n"
    );
    frond_with(directory, "import -d shop -c items --mode replace-all", changed).ok();
    frond_with(directory, "import -d shop -c people", "{\"_id\":\"ada\"}").ok();
    frond(directory, "commit shop -m cheaper --author Bob").ok();
    frond(directory, "format-patch shop -o cheaper.patch").ok();
}

fn store(directory: &Directory, what: &str) -> String {
    frond(directory, &format!("{what} --data other")).ok()
}

#[test]
fn a_patch_applies_elsewhere() {
    let directory = two();
    change(&directory);
    let check = frond(&directory, "apply store cheaper.patch --check").ok();
    assert!(check.contains("cheaper") && check.contains("Bob"), "{check}");
    let applied = store(&directory, "apply store cheaper.patch");
    assert!(applied.contains("[main ") && applied.contains("] cheaper"), "{applied}");
    let expected = concat!(
        "{\"_id\":1,\"name\":\"lamp\",\"price\":25}\n",
        "{\"_id\":3,\"name\":\"chair\",\"price\":90}\n",
        "{\"_id\":4,\"name\":\"sofa\",\"price\":700}\n",
        "{\"_id\":9,\"name\":\"bed\"}\n"
    );
    assert_eq!(store(&directory, "export -d store -c items"), expected);
    assert_eq!(store(&directory, "export -d store -c people"), "{\"_id\":\"ada\"}\n");
    let canonical = store(&directory, "export -d store -c items --canonical");
    assert!(canonical.contains("{\"$numberLong\":\"700\"}"), "{canonical}");
    let log = store(&directory, "log store -1");
    assert!(log.contains("Author: Bob") && log.contains("cheaper"), "{log}");
    assert_eq!(store(&directory, "branch store").lines().count(), 1);
    assert!(store(&directory, "status store").contains("Nothing to commit"));
    // A second time there is nothing left to do, and nothing is left behind.
    let again = frond(&directory, "apply store cheaper.patch --data other").fails(1);
    assert!(again.contains("nothing to apply: main has it already"), "{again}");
    assert_eq!(store(&directory, "branch store").lines().count(), 1);
    assert_eq!(store(&directory, "export -d store -c items"), expected);
}

#[test]
fn a_value_too_large_for_a_row_is_shown_by_its_size_and_applied() {
    let directory = Directory::new();
    let documents = |letter: &str| {
        let of = |id: i32, bytes: usize| {
            format!("{{\"_id\":{id},\"text\":\"{}\"}}\n", letter.repeat(bytes))
        };
        of(1, 5_000_000) + &of(2, 9_000_000)
    };
    frond_with(&directory, "import -d shop -c items --commit first", &documents("a")).ok();
    let elsewhere = "import -d store -c items --commit theirs --data other";
    frond_with(&directory, elsewhere, &documents("a")).ok();
    frond_with(&directory, "import -d shop -c items --mode upsert", &documents("b")).ok();
    let (cut, size) = ("~ text: \"aaa", "~ text: (9.0 MB) → (9.0 MB)");
    let diff = frond(&directory, "diff shop").ok();
    assert!(diff.contains(cut) && diff.contains(size), "{diff}");
    frond(&directory, "commit shop -m other").ok();
    for line in ["show shop", "history shop items 2"] {
        let line = frond(&directory, line).ok();
        assert!(line.contains(size), "{line}");
    }
    frond(&directory, "format-patch shop -o other.patch").ok();
    store(&directory, "apply store other.patch");
    assert!(store(&directory, "export -d store -c items") == documents("b"), "all of it came");
}

#[test]
fn a_conflicting_patch_waits_as_a_merge_does() {
    let directory = two();
    let ours = "{\"_id\":1,\"name\":\"lamp\",\"price\":40}";
    frond_with(&directory, "import -d store -c items --mode upsert --data other", ours).ok();
    frond(&directory, "commit store -m dearer --data other").ok();
    change(&directory);
    let ran = frond(&directory, "apply store cheaper.patch --data other");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("items: 1 conflict"), "{ran:?}");
    let conflicts = store(&directory, "conflicts store");
    for side in ["base    30", "ours    40", "theirs  25"] {
        assert!(conflicts.contains(side), "{conflicts}");
    }
    // By the document's id, which isn't the conflict's.
    let error = frond(&directory, "resolve store 1 --theirs --data other").fails(1);
    assert!(error.contains("frond conflicts DATABASE lists them"), "{error}");
    store(&directory, "resolve store --all --theirs");
    store(&directory, "merge store --continue");
    assert!(store(&directory, "export -d store -c items").contains("\"lamp\",\"price\":25"));
    assert!(store(&directory, "log store --oneline -1").contains("cheaper"));
}

/// Indexes come along; unique keys may change hands, and be what a patch makes unique.
#[test]
fn unique_keys_change_hands() {
    let directory = two();
    std::fs::create_dir_all(directory.path().join("dump")).unwrap();
    let metadata =
        r#"{"options":{},"indexes":[{"v":2,"key":{"name":1},"name":"names","unique":true}]}"#;
    directory.file("dump/items.metadata.json", metadata);
    frond(&directory, "import --dump dump -d shop").ok();
    let swapped = concat!(
        "{\"_id\":1,\"name\":\"x\",\"price\":30}\n",
        "{\"_id\":2,\"name\":\"lamp\",\"price\":240}\n",
        "{\"_id\":1,\"name\":\"desk\",\"price\":30}\n"
    );
    frond_with(&directory, "import -d shop -c items --mode upsert --batch 1", swapped).ok();
    frond(&directory, "commit shop -m swapped").ok();
    frond(&directory, "format-patch shop main~1..main -m exchanged -o swapped.patch").ok();
    store(&directory, "apply store swapped.patch");
    let names = store(&directory, "export -d store -c items --format csv --fields name");
    assert_eq!(names, "name\ndesk\nlamp\nchair\nbed\n");
    assert!(store(&directory, "diff store main~1 main").contains("+ index names"));
    let twice = "{\"_id\":10,\"name\":\"bed\"}";
    let refused = frond_with(&directory, "import -d store -c items --data other", twice).fails(1);
    assert!(refused.contains("duplicate key"), "{refused}");
}

#[test]
fn incomplete_patches_are_refused() {
    let directory = two();
    change(&directory);
    let patch = std::fs::read_to_string(directory.path().join("cheaper.patch")).unwrap();
    let lines: Vec<&str> = patch.lines().collect();
    let without = |left_out: usize| {
        let kept = lines.iter().enumerate().filter(|(position, _)| *position != left_out);
        kept.map(|(_, line)| format!("{line}\n")).collect::<String>()
    };
    let wrong = [
        (String::new(), "is incomplete"),
        ("{}\n".to_owned(), "not a patch"),
        ("nonsense\n".to_owned(), "line 1"),
        (without(0), "not a patch"),
        (without(1), "is incomplete"),
        (without(lines.len() - 1), "is incomplete"),
        (patch.replace("{\"frondPatch\":{\"$numberInt\":\"1\"}", "{\"frondPatch\":2"), "version 2"),
        (patch.replace("\"kind\":\"document\"", "\"kind\":\"planet\""), "planet"),
        (patch.replace("\"change\":\"modified\"", "\"change\":\"added\""), "is incomplete"),
        (format!("{patch}{{}}\n"), "follows the end"),
        (patch.replace("sofa", "sofi"), "was changed"),
        (patch.replace("Bob", "Rob"), "was changed"),
    ];
    for (text, expected) in wrong {
        let error = frond_with(&directory, "apply store --data other", &text).fails(1);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = frond_with(&directory, "apply nothing --data other", &patch).fails(1);
    assert!(error.contains("doesn't exist"), "{error}");
    assert_eq!(store(&directory, "log store --oneline").lines().count(), 1);
    assert!(frond(&directory, "format-patch shop main..main").fails(1).contains("nothing differs"));
}

#[test]
fn a_document_that_reads_as_another_comes_as_it_was() {
    let directory = two();
    let wrapper = document! { "$numberInt": "5" };
    let odd = document! { "_id": 7_i32, "type": &wrapper };
    std::fs::write(directory.path().join("odd.bson"), odd.as_bytes()).unwrap();
    frond(&directory, "import -d shop -c items odd.bson").ok();
    frond(&directory, "commit shop -m odd").ok();
    // How lines end is no change.
    let patch = frond(&directory, "format-patch shop").ok().replace('\n', "\r\n");
    frond_with(&directory, "apply store --data other", &patch).ok();
    let stored = store(&directory, "export -d store -c items");
    assert!(stored.contains("{\"$numberInt\":\"5\"}}"), "{stored}");
}

#[test]
fn an_id_that_is_no_number_and_an_empty_message_apply() {
    let directory = two();
    let odd = "{\"_id\":{\"$numberDouble\":\"NaN\"},\"n\":1}\n";
    frond_with(&directory, "import -d shop -c items", odd).ok();
    frond(&directory, "commit shop -m odd").ok();
    // It may be empty, as a commit's that a driver makes.
    let words = ["format-patch", "shop", "main~1..main", "-m", ""].map(str::to_owned);
    let patch = run_words(&directory, &words, "").ok();
    frond_with(&directory, "apply store --data other", &patch).ok();
    let stored = store(&directory, "export -d store -c items");
    assert!(stored.contains("NaN"), "{stored}");
    let missing = patch.replace("\"message\":", "\"text\":");
    let error = frond_with(&directory, "apply store --data other", &missing).fails(1);
    assert!(error.contains("its message is missing"), "{error}");
}
