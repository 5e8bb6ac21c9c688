//! Goal: cells and lines of CSV become the documents that they read as. Method: small texts, and
//! what comes of them.

use super::*;

fn check(text: &str, blanks: EmptyCells, expected: &[&str]) {
    let source = CsvSource::open(text.as_bytes(), Cells::Csv, blanks).unwrap();
    let found: Vec<String> = source
        .map(|record| match record.unwrap().document {
            Ok(Parsed::Whole(document)) => format!("{document:?}"),
            Ok(Parsed::Streamed(_)) => "a stream".to_owned(),
            Err(error) => error,
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn cells_become_what_they_read_as() {
    for (cell, expected) in [
        ("12", Value::Int32(12)),
        ("-7", Value::Int32(-7)),
        ("007", Value::Int32(7)),
        ("3000000000", Value::Int64(3_000_000_000)),
        ("1.5", Value::Double(1.5)),
        ("1e3", Value::Double(1000.0)),
        ("9223372036854775808", Value::Double(9_223_372_036_854_775_808.0)),
        ("", Value::String("")),
        ("Nan", Value::String("Nan")),
        ("-inf", Value::String("-inf")),
        ("1 ", Value::String("1 ")),
        ("true", Value::String("true")),
    ] {
        assert_eq!(guess(cell), expected, "{cell}");
    }
}

#[test]
fn lines_become_documents() {
    check(
        "a,b.c,b.d\n1,x,\"y,\"\"z\"\n",
        EmptyCells::Kept,
        &[r#"{"a": Int32(1), "b": Document({"c": String("x"), "d": String("y,\"z")})}"#],
    );
    check(
        "a,b\n1\n1,2,3\n",
        EmptyCells::Kept,
        &[r#"{"a": Int32(1)}"#, r#"{"a": Int32(1), "b": Int32(2), "field2": Int32(3)}"#],
    );
    check("a,b.c,d\n,,1\n", EmptyCells::Ignored, &[r#"{"d": Int32(1)}"#]);
    check("", EmptyCells::Kept, &[]);
}

#[test]
fn tabs_separate_and_quotes_are_letters() {
    let text = "a\tb\n\"x\t1,5\n";
    let source = CsvSource::open(text.as_bytes(), Cells::Tsv, EmptyCells::Kept).unwrap();
    let found: Vec<Record> = source.map(Result::unwrap).collect();
    let Ok(Parsed::Whole(document)) = &found[0].document else { panic!("a document") };
    assert_eq!(format!("{document:?}"), r#"{"a": String("\"x"), "b": String("1,5")}"#);
    assert_eq!(found.len(), 1);
}

/// A file that never ends a line, as what a decompressor makes of a small one.
#[test]
fn a_line_without_an_end_is_not_read_to_it() {
    let long = || io::repeat(b'x').take(10 * LINE_BYTES_MAX as u64);
    for cells in [Cells::Csv, Cells::Tsv] {
        let failed = CsvSource::open(long(), cells, EmptyCells::Kept).err().expect("refused");
        assert!(failed.to_string().contains("a line of more than 64 MB"), "{failed}");
    }
    let text = "a,b\n1,2\n\"".as_bytes().chain(long());
    let mut source = CsvSource::open(text, Cells::Csv, EmptyCells::Kept).expect("a header");
    assert!(matches!(source.next(), Some(Ok(_))));
    let failed = source.next().expect("more").err().expect("refused");
    assert!(failed.to_string().contains("a line of more than 64 MB"), "{failed}");
    // Many lines are no long one.
    let line = format!("{}\n", "x".repeat(1 << 20));
    let lines = line.repeat((LINE_BYTES_MAX >> 20) + 2);
    let source = CsvSource::open(lines.as_bytes(), Cells::Csv, EmptyCells::Kept).expect("a header");
    assert_eq!(source.filter(Result::is_ok).count(), (LINE_BYTES_MAX >> 20) + 1);
}

#[test]
fn input_that_ends_within_quotes_is_cut_off() {
    let outcome = |text: &str| {
        let source = CsvSource::open(text.as_bytes(), Cells::Csv, EmptyCells::Kept);
        let records: Result<Vec<Record>, Failure> = source.and_then(Iterator::collect);
        records.map(|records| records.len()).map_err(|failure| failure.to_string())
    };
    for (text, expected) in [
        ("a,b\n1,\"x\"", 1),
        ("a,b\n1,\"x\"\"\"\n", 1),
        ("a,b\n1,\"x\n,y\n\"", 1),
        ("a,b\n1,\"\"\n2,", 2),
        ("\u{feff}\"a,\",b\n1,2", 1),
    ] {
        assert_eq!(outcome(text), Ok(expected), "{text}");
    }
    for text in ["a,b\n1,2\n3,\"x\n", "a,b\n1,\"x\"\"", "a\n\"", "\"a", "a\r\n\"x,y\r\n1\r\n"] {
        let error = outcome(text).expect_err(text);
        assert!(error.contains("the input is cut off"), "{text}: {error}");
    }
}

/// Documents before it are read: only the line with the quote isn't.
#[test]
fn a_quote_where_none_may_be_is_reported() {
    let one_at_once = |text: &str| {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let count = self.0.len().min(buffer.len()).min(1);
                self.0.read(&mut buffer[..count])
            }
        }
        let source = CsvSource::open(Slow(text.as_bytes()), Cells::Csv, EmptyCells::Kept)?;
        source.collect::<Result<Vec<Record>, Failure>>().map(|records| records.len())
    };
    for (text, before, place) in [
        ("a,b\n1,2\n3,\"x\"y\n", 1, "line 3, column 6: text follows the closing quote"),
        ("a,b\n1,\"x\" \n", 0, "line 2, column 6: text follows the closing quote"),
        ("a,b\r\n1,äö\"y\r\n", 0, "line 2, column 5: a quote within a cell"),
        ("a,b\n1, \"x, y\"\n", 0, "line 2, column 4: a quote within a cell"),
        ("a,b\n\"1\n2\",\"\"\"\n\"0", 0, "line 4, column 2: text follows the closing quote"),
    ] {
        let source = CsvSource::open(text.as_bytes(), Cells::Csv, EmptyCells::Kept).unwrap();
        let records: Vec<Result<Record, Failure>> = source.collect();
        assert_eq!(records.iter().filter(|record| record.is_ok()).count(), before, "{text}");
        let error = records.into_iter().find_map(Result::err).expect(text).to_string();
        assert!(error.contains(place), "{text}: {error}");
        assert_eq!(one_at_once(text).expect_err(text).to_string(), error, "{text}");
    }
    let header = CsvSource::open("\"a\"b\n".as_bytes(), Cells::Csv, EmptyCells::Kept);
    let error = header.err().expect("refused").to_string();
    assert!(error.contains("line 1, column 4: text follows the closing quote"), "{error}");
}

#[test]
fn headers_that_are_refused() {
    for header in ["a,a", "a,a.b", "a.b,a", "a,,b", "a..b", ".", "x.y,x.y"] {
        assert!(
            CsvSource::open(header.as_bytes(), Cells::Csv, EmptyCells::Kept).is_err(),
            "{header}"
        );
    }
}

/// In time that grows with the columns, not with their square: that took minutes.
#[test]
fn a_header_may_have_very_many_columns() {
    let names: Vec<String> = (0..400_000).map(|column| format!("a.c{column}")).collect();
    let text = format!("{}\n{}\n", names.join(","), "1,".repeat(names.len() - 1) + "1");
    let begun = std::time::Instant::now();
    let mut source = CsvSource::open(text.as_bytes(), Cells::Csv, EmptyCells::Kept).unwrap();
    let record = source.next().unwrap().unwrap();
    assert!(matches!(record.document, Ok(Parsed::Whole(_))));
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
}

#[test]
fn lines_are_reported() {
    let source =
        CsvSource::open(b"a\n1\n\xff\n3\n".as_slice(), Cells::Csv, EmptyCells::Kept).unwrap();
    let records: Vec<Record> = source.map(Result::unwrap).collect();
    let lines: Vec<u64> = records.iter().map(|record| record.line).collect();
    assert_eq!(lines, [2, 3, 4]);
    let error = records[1].document.as_ref().err();
    assert_eq!(error.map(String::as_str), Some("the text is not UTF-8"));
}
