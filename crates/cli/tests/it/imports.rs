//! Goal: imported data can be exported unchanged, and lines that can't be imported are reported by
//! number. Method: files in each format through `frond import` and `frond export` on a data
//! directory.

mod parquet;

use crate::{Directory, frond, frond_with};

const IMPORT: &str = "import -d shop -c items";
const EXPORT: &str = "export -d shop -c items";

fn round_trip(input: &str, import: &str, export: &str) -> String {
    let directory = Directory::new();
    frond_with(&directory, &format!("{IMPORT} {import}"), input).ok();
    frond(&directory, &format!("{EXPORT} {export}")).ok()
}

/// A file's name says what it holds, as it does for an import.
#[test]
fn an_export_goes_by_the_name_of_its_file() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c cups", "{\"_id\":7,\"ml\":250}\n{\"_id\":8}").ok();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    frond(&directory, "export -d shop -c cups -f _id,ml -o cups.CSV").ok();
    assert_eq!(read("cups.CSV"), "_id,ml\n7,250\n8,\n");
    frond(&directory, "export -d shop -c cups -o cups.parquet").ok();
    let again = frond(&directory, "import cups.parquet -d shop -c mugs").ok();
    assert!(again.contains("imported 2 documents"), "{again}");
    frond(&directory, "export -d shop -c cups --format json -o cups.csv").ok();
    assert_eq!(read("cups.csv"), "{\"_id\":7,\"ml\":250}\n{\"_id\":8}\n");
    let printed = frond(&directory, "export -d shop -c cups -q {\"_id\":8} -o -").ok();
    assert_eq!(printed, "{\"_id\":8}\n");
    for (name, advice) in [
        ("cups.csv", "--fields"),
        ("cups.jsonl.zst", "frond export -d shop -c cups | zstd > FILE.zst"),
        ("cups.tsv", "tsv isn't written"),
    ] {
        let error = frond(&directory, &format!("export -d shop -c cups -o {name}")).fails(2);
        assert!(error.contains(advice), "{name}: {error}");
    }
}

/// As `frond export ... >&-`: the runtime opens the null device in its place.
#[test]
fn an_export_to_a_closed_output_fails() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items", "{\"_id\":1}").ok();
    for (redirection, code) in [(">&-", 1), ("> /dev/null", 0), ("> out", 0)] {
        let frond = env!("CARGO_BIN_EXE_frond");
        let line = format!("exec '{frond}' export -d shop -c items {redirection}");
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", &line]).current_dir(directory.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{redirection}: {output:?}");
    }
}

/// A file without a document is imported, and there is nothing to be recorded.
#[test]
fn nothing_is_imported_and_committed() {
    let directory = Directory::new();
    let output = frond_with(&directory, "import -d shop -c items --commit none", "").ok();
    assert!(output.contains("nothing to commit"), "{output}");
}

/// Longer than any message, and so than what drivers read.
#[test]
fn a_bson_document_of_any_length_is_imported() {
    let directory = Directory::new();
    let long = "x".repeat(20 << 20);
    let document = frond_doc::document! { "_id": 1_i32, "long": long.as_str(), "end": 2_i32 };
    let after = frond_doc::document! { "_id": 2_i32 };
    let path = directory.path().join("dump.bson");
    std::fs::write(&path, [document.as_bytes(), after.as_bytes()].concat()).unwrap();
    frond(&directory, "import -d shop -c items dump.bson").ok();
    let out = frond(&directory, "export -d shop -c items").ok();
    assert_eq!(
        out.len(),
        format!("{{\"_id\":1,\"long\":\"{long}\",\"end\":2}}\n{{\"_id\":2}}\n").len()
    );
}

#[test]
fn json_lines_and_arrays() {
    let lines = "{\"_id\":1,\"a\":\"x\"}\n{\"_id\":2,\"b\":[1,{\"c\":null}]}\n";
    assert_eq!(round_trip(lines, "", ""), lines);
    let array = "[{\"_id\":1,\"a\":\"x\"},\n{\"_id\":2,\"b\":[1,{\"c\":null}]}\n]\n";
    assert_eq!(round_trip(lines, "", "--format array"), array);
    assert_eq!(round_trip(array, "", ""), lines);
    // An empty file makes no database: here there is one.
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c others", "{\"_id\":1}").ok();
    for (given, format, expected) in [("", "json", ""), ("[]", "array", "[]\n")] {
        frond_with(&directory, IMPORT, given).ok();
        let out = frond(&directory, &format!("{EXPORT} --format {format}")).ok();
        assert_eq!(out, expected);
    }
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

/// As mongoexport does: what reads CSV knows no extended JSON. Within a document it stays JSON.
#[test]
fn decimals_are_plain_numbers_in_csv() {
    let line = concat!(
        r#"{"_id":1,"price":{"$numberDecimal":"30.50"},"far":{"$numberDecimal":"1E+3"},"#,
        r#""none":{"$numberDecimal":"NaN"},"in":{"price":{"$numberDecimal":"2.0"}}}"#,
        "\n"
    );
    let written = round_trip(line, "", "--format csv --fields _id,price,far,none,in");
    let row = r#"1,30.50,1E+3,NaN,"{""price"":{""$numberDecimal"":""2.0""}}""#;
    assert_eq!(written, format!("_id,price,far,none,in\n{row}\n"));
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
    // The existing document is replaced, too; only the order of its fields differs, and the diff
    // shows it.
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", lines).ok();
    let other = "{\"_id\":1,\"b\":{\"$c\":2},\"$a\":1}\n";
    frond_with(&directory, "import -d shop -c items --mode upsert", other).ok();
    let diff = frond(&directory, "diff shop").ok();
    assert!(diff.contains("other order of fields: [\"_id\",\"$a\",\"b\"] → "), "{diff}");
}

/// The bytes of a document: its fields are ints and strings.
fn bson(fields: &[(&str, Result<i32, &str>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        body.push(if value.is_ok() { 0x10 } else { 0x02 });
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        match value {
            Ok(number) => body.extend_from_slice(&number.to_le_bytes()),
            Err(text) => {
                body.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
                body.extend_from_slice(text.as_bytes());
                body.push(0);
            }
        }
    }
    body.push(0);
    let length = (body.len() as i32 + 4).to_le_bytes();
    [&length[..], &body].concat()
}

const ITEMS: &str = r#"{"options":{"validationLevel":"moderate","validator":{"price":{"$gt":0}}},
    "indexes":[{"v":2,"key":{"_id":1},"name":"_id_"},
               {"v":2,"key":{"price":{"$numberInt":"-1"}},"name":"by price","ns":"store.items"}],
    "uuid":"1f","collectionName":"items"}"#;
const CHEAP: &str = r#"{"options":{"viewOn":"items","pipeline":[{"$match":{"price":{"$lt":50}}}]},
    "indexes":[],"collectionName":"cheap"}"#;

/// Writes the files that `dump` makes of two databases.
fn dump(directory: &Directory) {
    for name in ["dump/store", "dump/other", "dump/admin"] {
        std::fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    let items =
        [bson(&[("_id", Ok(1)), ("price", Ok(30))]), bson(&[("_id", Ok(2)), ("price", Ok(240))])];
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.path().join("dump").join(name), bytes).unwrap();
    };
    write("store/items.bson", &items.concat());
    write("store/items.metadata.json", ITEMS.as_bytes());
    write("store/cheap.metadata.json", CHEAP.as_bytes());
    write("other/odd%2Fname.bson", &bson(&[("_id", Err("x"))]));
    write("other/odd%2Fname.metadata.json", br#"{"options":{},"indexes":[]}"#);
    write("admin/system.version.bson", b"");
    write("oplog.bson", &bson(&[("ts", Ok(1))]));
    write("prelude.json", br#"{"ServerVersion":"8.0.0"}"#);
}

#[test]
fn a_dump_comes_with_options_indexes_and_views() {
    let directory = Directory::new();
    dump(&directory);
    let ran = frond(&directory, "import --dump dump --commit moved");
    assert!(ran.err.contains("admin.system.version is left out"), "{ran:?}");
    let out = ran.ok();
    for expected in ["1 document into other.odd/name", "2 documents into store.items"] {
        assert!(out.contains(expected), "{out}");
    }
    assert!(out.contains("made the view store.cheap") && out.matches("] moved").count() == 2);
    let diff = frond(&directory, "diff store NOTHING HEAD").ok();
    assert!(diff.contains("+ index by price"), "{diff}");
    let cheap = frond(&directory, "export -d store -c cheap").ok();
    assert_eq!(cheap, "{\"_id\":1,\"price\":30}\n");
    let refused = frond_with(&directory, "import -d store -c items", "{\"_id\":3,\"price\":-1}");
    assert!(refused.fails(1).contains("validation"));
    let again = frond(&directory, "import --dump dump").fails(1);
    assert!(again.contains("3 documents could not be imported"), "{again}");
    frond(&directory, "import --dump dump --drop").ok();
    let one = frond(&directory, "import --dump dump/store -d shop -c items").ok();
    assert!(one.contains("2 documents into shop.items") && !one.contains("cheap"), "{one}");
    for line in ["import --dump dump -d nothing", "import --dump ."] {
        frond(&directory, line).fails(1);
    }
    frond(&directory, "import --dump dump items.json").fails(2);
}

/// The index that keeps them so comes with each way of moving a collection.
#[test]
fn ids_stay_unique_by_their_collation_wherever_they_are_moved() {
    let directory = Directory::new();
    let store = directory.path().join("dump/store");
    std::fs::create_dir_all(&store).unwrap();
    let collation = r#""collation":{"locale":"en","strength":2}"#;
    let words = format!(
        r#"{{"options":{{{collation}}},"collectionName":"words",
            "indexes":[{{"v":2,"key":{{"_id":1}},"name":"_id_",{collation}}}]}}"#
    );
    std::fs::write(store.join("words.metadata.json"), words).unwrap();
    let documents = [bson(&[("_id", Err("a"))]), bson(&[("_id", Err("b"))])];
    std::fs::write(store.join("words.bson"), documents.concat()).unwrap();
    let output = frond(&directory, "import --dump dump --data world --commit moved").ok();
    assert!(output.contains("2 documents into store.words"), "{output}");
    frond(&directory, "backup place --data world").ok();
    frond(&directory, "restore --backup place --data restored").ok();
    frond(&directory, "clone world#store store --data cloned").ok();
    for data in ["world", "restored", "cloned"] {
        let import = format!("import -d store -c words --data {data}");
        let output = frond_with(&directory, &import, "{\"_id\":\"A\"}\n{\"_id\":\"c\"}\n").fails(1);
        assert!(output.contains("E11000") && output.contains("collation"), "{data}: {output}");
        let upsert = format!("{import} --mode upsert");
        frond_with(&directory, &upsert, "{\"_id\":\"B\",\"n\":1}\n").fails(1);
        let all = frond(&directory, &format!("export -d store -c words --data {data}")).ok();
        assert_eq!(all, "{\"_id\":\"a\"}\n{\"_id\":\"b\"}\n{\"_id\":\"c\"}\n", "{data}");
        frond(&directory, &format!("fsck --data {data}")).ok();
    }
}

/// As mongodump writes it: the metadata under the series' name, the documents under its buckets'.
#[test]
fn time_series_of_a_dump_are_points() {
    let directory = Directory::new();
    std::fs::create_dir_all(directory.path().join("dump/store")).unwrap();
    let metadata = r#"{"options":{"timeseries":{"timeField":"t","metaField":"m","granularity":"seconds",
        "bucketMaxSpanSeconds":{"$numberInt":"3600"}}},"indexes":[{"v":2,"key":{"m":1,"t":1},"name":"m_1_t_1"},
        {"v":2,"key":{"v":1},"name":"v_1"}],"collectionName":"points","type":"timeseries"}"#;
    directory.file("dump/store/points.metadata.json", metadata);
    let bucket = frond_doc::extended_json::parse(
        r#"{"_id": {"$oid": "60bfdf53764018491c583714"}, "control": {"version": 1}, "meta": "a", "data": {
            "t": {"0": {"$date": 1}, "1": {"$date": 2}}, "_id": {"0": 1, "1": 2}, "v": {"0": 5, "1": 6}}}"#,
    );
    let path = directory.path().join("dump/store/system.buckets.points.bson");
    std::fs::write(path, bucket.unwrap().as_bytes()).unwrap();
    frond(&directory, "import --dump dump --commit moved").ok();
    let out = frond(&directory, "export -d store -c points").ok();
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(out.contains(r#""m":"a","v":6"#), "{out}");
    // Existing points stay; they can't be distinguished from others.
    frond(&directory, "import --dump dump").fails(1);
    frond(&directory, "import --dump dump --mode upsert").ok();
    assert_eq!(frond(&directory, "export -d store -c points").ok(), out);
    let error = frond(&directory, "import --dump dump --mode replace-all").fails(2);
    assert!(error.contains("store.points is a time series"), "{error}");
    let one = frond(&directory, "import --dump dump/store -d other -c points").ok();
    assert!(one.contains("1 document into other.system.buckets.points"), "{one}");
}

/// A prelude, then blocks of two collections that alternate; the checksums are the documents'.
#[test]
fn an_archive_is_read_block_by_block() {
    let directory = Directory::new();
    let (one, two) =
        (bson(&[("_id", Ok(1)), ("price", Ok(30))]), bson(&[("_id", Ok(2)), ("price", Ok(9))]));
    let end = [0xff; 4];
    let header = |collection: &str| {
        bson(&[("db", Err("store")), ("collection", Err(collection)), ("EOF", Ok(0))])
    };
    // `EOF: 1` and `CRC` as a long: the last field is put in by hand.
    let over = |collection: &str, checksum: u64| {
        let mut bytes =
            bson(&[("db", Err("store")), ("collection", Err(collection)), ("EOF", Ok(1))]);
        bytes.pop();
        bytes.push(0x12);
        bytes.extend_from_slice(b"CRC\0");
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.push(0);
        let length = (bytes.len() as i32).to_le_bytes();
        bytes[..4].copy_from_slice(&length);
        [&bytes[..], &end].concat()
    };
    let metadata = |collection: &str, metadata: &str| {
        bson(&[("db", Err("store")), ("collection", Err(collection)), ("metadata", Err(metadata))])
    };
    let archive = |checksum: u64| {
        [
            &0x8199_e26d_u32.to_le_bytes()[..],
            &bson(&[("version", Err("0.1"))]),
            &metadata("items", ITEMS),
            &metadata("cheap", CHEAP),
            &metadata("empty", ""),
            &end,
            &header("items"),
            &one,
            &end,
            &over("empty", 0),
            &header("items"),
            &two,
            &end,
            &over("items", checksum),
            &over("cheap", 0),
        ]
        .concat()
    };
    let crc = crc64(&[one.clone(), two.clone()].concat());
    std::fs::write(directory.path().join("a.archive"), archive(crc)).unwrap();
    std::fs::write(directory.path().join("wrong.archive"), archive(crc ^ 1)).unwrap();
    let out = frond(&directory, "import --dump a.archive -d shop").ok();
    assert!(out.contains("2 documents into shop.items"), "{out}");
    assert!(
        out.contains("0 documents into shop.empty") && out.contains("view shop.cheap"),
        "{out}"
    );
    let exported = frond(&directory, "export -d shop -c cheap").ok();
    assert_eq!(exported.lines().count(), 2);
    let wrong = frond(&directory, "import --dump wrong.archive -d other").fails(1);
    assert!(wrong.contains("checksum of store.items"), "{wrong}");
    frond_with(&directory, "import --dump - -d x", "no archive").fails(1);
}

/// Bit by bit, as its definition has it: CRC-64/XZ.
fn crc64(bytes: &[u8]) -> u64 {
    let mut value = u64::MAX;
    for byte in bytes {
        value ^= u64::from(*byte);
        for _ in 0..8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xc96c_5795_d787_0f42 } else { value >> 1 };
        }
    }
    !value
}
