//! Goal: what is imported comes out again as it went in, and what can't be is told by its line.
//! Method: files in each format through `frond import` and `frond export` on a data directory.

use crate::{Directory, frond, frond_with};

const IMPORT: &str = "import -d shop -c items";
const EXPORT: &str = "export -d shop -c items";

fn round_trip(input: &str, import: &str, export: &str) -> String {
    let directory = Directory::new();
    frond_with(&directory, &format!("{IMPORT} {import}"), input).ok();
    frond(&directory, &format!("{EXPORT} {export}")).ok()
}

#[test]
fn json_lines_and_arrays() {
    let lines = "{\"_id\":1,\"a\":\"x\"}\n{\"_id\":2,\"b\":[1,{\"c\":null}]}\n";
    assert_eq!(round_trip(lines, "", ""), lines);
    let array = "[{\"_id\":1,\"a\":\"x\"},\n{\"_id\":2,\"b\":[1,{\"c\":null}]}\n]\n";
    assert_eq!(round_trip(lines, "", "--format array"), array);
    assert_eq!(round_trip(array, "", ""), lines);
    assert_eq!(round_trip("", "--format json", ""), "");
    assert_eq!(round_trip("[]", "", "--format array"), "[]\n");
}

/// Larger than MongoDB's 16 MB, and than what the import holds of a document.
#[test]
fn a_document_of_any_size() {
    let words = "a word or two ".repeat(80);
    let mut line = "{\"_id\":7,\"sections\":[".to_owned();
    for section in 0..18_000 {
        let comma = if section > 0 { "," } else { "" };
        line += &format!("{comma}{{\"title\":\"{section} {{\",\"body\":\"{words}\"}}");
    }
    line += "],\"d\":{\"$date\":\"2020-01-01T00:00:00Z\"}}\n";
    assert!(17 << 20 < line.len());
    let lines = format!("{{\"_id\":1}}\n{line}{{\"_id\":8}}\n");
    let directory = Directory::new();
    frond_with(&directory, &format!("{IMPORT} --commit first"), &lines).ok();
    assert!(frond(&directory, EXPORT).ok() == lines);
    assert!(frond(&directory, "export -d shop@main -c items --query {\"_id\":7}").ok() == line);
    let again = frond_with(&directory, IMPORT, &line).fails(1);
    assert!(again.contains("line 1") && again.contains("duplicate key"), "{again}");
    let broken = frond_with(&directory, IMPORT, &line[..line.len() - 20]).fails(1);
    assert!(broken.contains("line 1"), "{broken}");
}

#[test]
fn every_type_survives_canonical_json() {
    let line = concat!(
        r#"{"_id":{"$oid":"5f1a2b3c4d5e6f7081920a0b"},"int":{"$numberInt":"1"},"#,
        r#""long":{"$numberLong":"5"},"double":{"$numberDouble":"1.0"},"#,
        r#""decimal":{"$numberDecimal":"1.10"},"date":{"$date":{"$numberLong":"-5"}},"#,
        r#""binary":{"$binary":{"base64":"AQID","subType":"00"}},"#,
        r#""regex":{"$regularExpression":{"pattern":"^a","options":"i"}},"#,
        r#""timestamp":{"$timestamp":{"t":1,"i":2}},"min":{"$minKey":1},"max":{"$maxKey":1}}"#,
        "\n"
    );
    assert_eq!(round_trip(line, "", "--canonical"), line);
}

#[test]
fn csv_both_ways() {
    let csv = "_id,name,address.city,price\n1,\"lamp, small\",Wien,30\n2,desk,,2.5\n";
    let lines = concat!(
        "{\"_id\":1,\"name\":\"lamp, small\",\"address\":{\"city\":\"Wien\"},\"price\":30}\n",
        "{\"_id\":2,\"name\":\"desk\",\"address\":{\"city\":\"\"},\"price\":2.5}\n"
    );
    assert_eq!(round_trip(csv, "--format csv", ""), lines);
    let back = "--format csv --fields _id,name,address.city,price";
    assert_eq!(round_trip(csv, "--format csv", back), csv);
    let without_blanks = round_trip(csv, "--format csv --ignore-blanks", "");
    assert!(without_blanks.contains("{\"_id\":2,\"name\":\"desk\",\"price\":2.5}"));
}

#[test]
fn formats_are_known_by_name_or_content() {
    let directory = Directory::new();
    directory.file("a.csv", "_id\n7\n");
    directory.file("b.json", "[{\"_id\":8}]");
    frond(&directory, &format!("{IMPORT} a.csv")).ok();
    frond(&directory, &format!("{IMPORT} b.json")).ok();
    assert_eq!(frond(&directory, EXPORT).ok(), "{\"_id\":7}\n{\"_id\":8}\n");
    let error = frond_with(&directory, IMPORT, "a,b\n1,2\n").fails(2);
    assert!(error.contains("--format"), "{error}");
    let error = frond(&directory, &format!("{IMPORT} missing.json")).fails(1);
    assert!(error.contains("missing.json: no such file"), "{error}");
}

#[test]
fn queries_fields_and_files() {
    let directory = Directory::new();
    let lines: String = (0..500).map(|id| format!("{{\"_id\":{id},\"a\":{}}}\n", id % 5)).collect();
    frond_with(&directory, &format!("{IMPORT} --batch 7"), &lines).ok();
    let out = frond(&directory, &format!("{EXPORT} --out all.jsonl"));
    assert_eq!((out.code, out.out.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(directory.path().join("all.jsonl")).unwrap(), lines);
    let some = frond(&directory, &format!("{EXPORT} --query {{\"a\":3}} --fields _id")).ok();
    assert_eq!(some.lines().count(), 100);
    assert!(some.starts_with("{\"_id\":3}\n{\"_id\":8}\n"), "{some}");
    frond(&directory, &format!("{EXPORT} --query {{a")).fails(2);
}

#[test]
fn errors_name_lines_and_the_rest_is_imported() {
    let input = "{\"_id\":1}\n{\"_id\":1,\"again\":true}\n{\"a\"\n{\"_id\":2}\nxyz\n{\"_id\":3}\n";
    let directory = Directory::new();
    let ran = frond_with(&directory, &format!("{IMPORT} --commit all"), input);
    assert_eq!(ran.code, 1);
    for line in ["line 2: E11000", "line 3:", "line 5: expected an object"] {
        assert!(ran.err.contains(line), "{line}: {}", ran.err);
    }
    assert!(ran.err.contains("3 documents could not be imported"), "{}", ran.err);
    assert!(ran.err.contains("no version was recorded"), "{}", ran.err);
    assert!(ran.err.contains("--mode upsert replaces"), "{}", ran.err);
    assert_eq!(frond(&directory, EXPORT).ok(), "{\"_id\":1}\n{\"_id\":2}\n{\"_id\":3}\n");

    let directory = Directory::new();
    let ran = frond_with(&directory, &format!("{IMPORT} --stop-on-error"), input);
    assert_eq!(ran.code, 1);
    assert_eq!(frond(&directory, EXPORT).ok(), "{\"_id\":1}\n");
}

#[test]
fn modes() {
    let directory = Directory::new();
    let first = "{\"_id\":1,\"a\":1}\n{\"_id\":2,\"a\":2}\n{\"_id\":3,\"a\":3}\n";
    frond_with(&directory, IMPORT, first).ok();
    let second = "{\"_id\":2,\"a\":2}\n{\"_id\":3,\"a\":30}\n{\"_id\":4,\"a\":4}\n";
    let out = frond_with(&directory, &format!("{IMPORT} --mode upsert"), second).ok();
    assert!(out.contains("1 inserted, 1 replaced, 1 unchanged, 0 removed"), "{out}");
    let all =
        "{\"_id\":1,\"a\":1}\n{\"_id\":2,\"a\":2}\n{\"_id\":3,\"a\":30}\n{\"_id\":4,\"a\":4}\n";
    assert_eq!(frond(&directory, EXPORT).ok(), all);

    let out = frond_with(&directory, &format!("{IMPORT} --mode replace-all"), first).ok();
    assert!(out.contains("0 inserted, 1 replaced, 2 unchanged, 1 removed"), "{out}");
    assert_eq!(frond(&directory, EXPORT).ok(), first);
    let error = frond_with(&directory, &format!("{IMPORT} --mode replace-all"), "{\"a\":1}");
    assert!(error.fails(1).contains("nothing was removed"));
    assert_eq!(frond(&directory, EXPORT).ok(), first);

    frond_with(&directory, &format!("{IMPORT} --drop"), "{\"_id\":9}").ok();
    assert_eq!(frond(&directory, EXPORT).ok(), "{\"_id\":9}\n");
}

/// Goal: an import that replaces takes what one that inserts takes.
#[test]
fn names_that_begin_with_a_dollar_are_imported_in_every_mode() {
    let lines = "{\"_id\":1,\"$a\":1,\"b\":{\"$c\":2}}\n{\"_id\":2,\"x\":{\"$y\":[1]}}\n";
    for mode in ["insert", "upsert", "replace-all"] {
        let directory = Directory::new();
        frond_with(&directory, &format!("import -d shop -c items --mode {mode}"), lines).ok();
        assert_eq!(frond(&directory, "export -d shop -c items").ok(), lines, "{mode}");
    }
    // What is there is replaced, too; only the order of its fields is another, and that is shown.
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", lines).ok();
    let other = "{\"_id\":1,\"b\":{\"$c\":2},\"$a\":1}\n";
    frond_with(&directory, "import -d shop -c items --mode upsert", other).ok();
    let diff = frond(&directory, "diff shop").ok();
    assert!(diff.contains("other order of fields: [\"_id\",\"$a\",\"b\"] → "), "{diff}");
}
