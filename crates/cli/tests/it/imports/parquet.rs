//! Goal: documents go into Parquet and come back; files that others have written are read, and
//! damaged ones refused.
//! Method: `frond export` and `frond import` on a data directory; `pyarrow.parquet`, which pyarrow
//! 26 has written, has three rows of each kind of column.

use frond_doc::{DocumentBuilder, Value};

use crate::{Directory, frond, frond_with};

const EXPORT: &str = "export -d shop -c items";
const BY_PYARROW: &[u8] = include_bytes!("pyarrow.parquet");

/// Returns `lines` after a round trip through a file of Parquet.
fn round_trip(lines: &str, options: &str) -> String {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items", lines).ok();
    frond(&directory, &format!("{EXPORT} --format parquet -o x.parquet {options}")).ok();
    frond(&directory, "import -d shop -c back x.parquet --ignore-blanks").ok();
    frond(&directory, "export -d shop -c back --canonical").ok()
}

#[test]
fn values_of_every_type_come_back() {
    let documents = [
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a4b"},"text":"é","int":{"$numberInt":"1"}}"#,
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a4c"},"long":{"$numberLong":"9007199254740993"},"double":{"$numberDouble":"-0.0"}}"#,
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a4d"},"double":{"$numberDouble":"NaN"},"bool":true,"date":{"$date":{"$numberLong":"-1"}}}"#,
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a4e"},"decimal":{"$numberDecimal":"1.50"},"uuid":{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}},"bytes":{"$binary":{"base64":"AAE=","subType":"00"}}}"#,
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a4f"},"nested":{"deep":{"decimal":{"$numberDecimal":"-1E+3"}}},"list":[[],[{"$numberInt":"1"}],[{"$numberInt":"2"},{"$numberInt":"3"}]]}"#,
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a50"},"rows":[{"a":{"$numberInt":"1"}},{"b":["x","y"]},{"a":{"$numberInt":"2"},"b":[]}],"empty":{}}"#,
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a51"},"mixed":{"$numberInt":"1"},"other":{"$timestamp":{"t":1,"i":2}}}"#,
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a52"},"mixed":[{"$regularExpression":{"pattern":"a","options":"i"}}]}"#,
        r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a53"},"mixed":"text"}"#,
    ];
    let lines = documents.join("\n") + "\n";
    assert_eq!(round_trip(&lines, "--canonical"), lines);
}

/// More rows than a group has, and more levels of lists than one.
#[test]
fn many_rows_come_back() {
    let list = |n: u64| (0..n % 4).map(|i| format!("[{}]", i * n)).collect::<Vec<_>>().join(",");
    let line = |n: u64| {
        format!("{{\"_id\":{n},\"even\":{},\"all\":[{}]}}\n", n.is_multiple_of(2), list(n))
    };
    let lines: String = (0..101_000).map(line).collect();
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items", &lines).ok();
    frond(&directory, &format!("{EXPORT} --format parquet -o x.parquet")).ok();
    frond(&directory, "import -d shop -c back x.parquet").ok();
    assert!(frond(&directory, "export -d shop -c back").ok() == lines);
}

/// Longer than any message; documents that wait are read back whatever their length.
#[test]
fn a_document_of_any_length_is_written() {
    let directory = Directory::new();
    let long = "x".repeat(20 << 20);
    let documents = [long.as_str(), "y"]
        .map(|text| frond_doc::document! { "_id": text.len() as i64, "a": text });
    let documents: Vec<u8> = documents.iter().flat_map(|it| it.as_bytes().to_vec()).collect();
    std::fs::write(directory.path().join("x.bson"), documents).unwrap();
    frond(&directory, "import -d shop -c items x.bson").ok();
    frond(&directory, &format!("{EXPORT} --format parquet -o x.parquet")).ok();
    // A row that is longer than a message isn't taken, and the others are.
    let output = frond(&directory, "import -d shop -c back x.parquet").fails(1);
    assert!(output.contains("at most 16777216"), "{output}");
    assert_eq!(frond(&directory, "export -d shop -c back").ok(), "{\"_id\":1,\"a\":\"y\"}\n");
}

#[test]
fn numbers_share_a_column_unless_types_are_to_stay() {
    let lines = "{\"_id\":1,\"n\":1}\n{\"_id\":2,\"n\":2.5}\n";
    let ids = |relaxed: &str| {
        let back = round_trip(lines, relaxed);
        back.lines().map(|line| line.split_once("\"n\":").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let two_and_half = "{\"$numberDouble\":\"2.5\"}}";
    assert_eq!(ids(""), ["{\"$numberDouble\":\"1.0\"}}", two_and_half]);
    assert_eq!(ids("--canonical"), ["{\"$numberInt\":\"1\"}}", two_and_half]);
}

#[test]
fn files_written_by_pyarrow_are_read() {
    let directory = Directory::new();
    std::fs::write(directory.path().join("x.PARQUET"), BY_PYARROW).unwrap();
    frond(&directory, "import -d shop -c items x.PARQUET --ignore-blanks").ok();
    // Under another name, by how it begins.
    std::fs::write(directory.path().join("x.pq"), BY_PYARROW).unwrap();
    frond(&directory, "import -d shop -c others x.pq --ignore-blanks").ok();
    let expected = [
        r#"{"_id":1,"ns":{"$date":"2020-01-01T01:02:03.456Z"},"us":{"$date":"2020-01-01T01:02:03.456Z"},"day":{"$date":"2020-01-01T00:00:00Z"},"time":"01:02:03.000004","decimal":{"$numberDecimal":"123.45"},"list":[1,null,3],"lists":[[1],[2,3]],"struct":{"a":1,"b":{"c":"x"}},"structs":[{"a":1},{"a":2}],"map":{"k":1,"l":2},"pairs":[{"key":1,"value":1}],"u64":{"$numberDecimal":"18446744073709551615"},"float":1.5,"bytes":{"$binary":{"base64":"AAE=","subType":"00"}},"word":"x","bool":true}"#,
        r#"{"_id":2,"decimal":{"$numberDecimal":"-0.01"},"list":[],"lists":[[]],"struct":{},"structs":[],"map":{},"pairs":[],"u64":1,"float":-0.25,"bytes":{"$binary":{"base64":"","subType":"00"}},"word":"y","bool":false}"#,
        r#"{"_id":3,"ns":{"$date":{"$numberLong":"-315619200000"}},"us":{"$date":{"$numberLong":"-315619200000"}}}"#,
    ];
    assert_eq!(frond(&directory, EXPORT).ok(), expected.join("\n") + "\n");
}

/// It is reported, and never by a panic.
#[test]
fn a_damaged_file_is_refused() {
    let directory = Directory::new();
    let path = directory.path().join("x.parquet");
    for cut in [0, 3, 8, BY_PYARROW.len() / 2, BY_PYARROW.len() - 1] {
        std::fs::write(&path, &BY_PYARROW[..cut]).unwrap();
        let output = frond(&directory, "import -d shop -c items x.parquet");
        let output = output.fails(1);
        assert!(output.contains("Parquet"), "{cut}: {output}");
    }
    for byte in (4..BY_PYARROW.len()).step_by(97) {
        let mut bytes = BY_PYARROW.to_vec();
        bytes[byte] ^= 0x40;
        std::fs::write(&path, bytes).unwrap();
        let output = frond(&directory, "import -d shop -c items x.parquet --mode upsert");
        assert!(output.code <= 1 && !output.err.contains("panicked"), "{byte}: {output:?}");
    }
}

#[test]
fn a_pipe_is_refused_and_so_are_fields_of_one_name() {
    let directory = Directory::new();
    let output = frond_with(&directory, "import -d shop -c items --format parquet", "x").fails(2);
    assert!(output.contains("name a file"), "{output}");
    let mut twice = DocumentBuilder::new();
    twice.append("_id", Value::Int32(1)).append("a", Value::Null).append("a", Value::Null);
    std::fs::write(directory.path().join("x.bson"), twice.build().as_bytes()).unwrap();
    frond(&directory, "import -d shop -c items x.bson").ok();
    let output = frond(&directory, &format!("{EXPORT} --format parquet")).fails(1);
    assert!(output.contains("two fields of one name"), "{output}");
}
