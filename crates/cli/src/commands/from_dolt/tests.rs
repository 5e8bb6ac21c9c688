//! Goal: the answers of Dolt's own server, recorded by `conformance/dolt.py --record`, become the
//! history that they describe. It runs where Dolt isn't installed; the program itself is tried
//! there.

use std::io::{self, Read, Write};

use frond_doc::{DocumentBuf, Value, document};

use super::*;
use crate::backend::Embedded;
use crate::commands::from_dolt::connection::Connection;

/// Pieces as they passed: a mark of the direction, the length in four bytes, the bytes.
const RECORDED: &[u8] = include_bytes!("tests/history.recorded");

/// Returns the bytes that went in one direction.
fn passed(direction: u8) -> Vec<u8> {
    let (mut passed, mut rest) = (Vec::new(), RECORDED);
    while let [mark, low, second, third, high, after @ ..] = rest {
        let bytes = u32::from_le_bytes([*low, *second, *third, *high]) as usize;
        let (piece, left) = after.split_at(bytes);
        if *mark == direction {
            passed.extend_from_slice(piece);
        }
        rest = left;
    }
    passed
}

/// Takes just what was asked when it was recorded.
struct RecordedRequests(io::Cursor<Vec<u8>>);

impl Write for RecordedRequests {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut expected = vec![0; bytes.len()];
        self.0.read_exact(&mut expected)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(bytes), text(&expected), "it asks what wasn't recorded: record it again");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run(backend: &mut Embedded, database: &str, command: &DocumentBuf) -> DocumentBuf {
    (backend as &mut dyn Backend).execute(database, command).expect("it is done")
}

fn found(backend: &mut Embedded, database: &str, collection: &str) -> Vec<DocumentBuf> {
    let find = document! { "find": collection, "sort": &document! { "_id": 1_i32 } };
    let mut documents = Vec::new();
    (backend as &mut dyn Backend)
        .for_each_document(database, &find, &mut |document| {
            documents.push(document.to_buf());
            Ok(())
        })
        .expect("it is found");
    documents
}

#[test]
fn a_recorded_history_is_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut backend = Embedded::open(directory.path(), "").expect("a database");
    let server = Box::new(io::Cursor::new(passed(b'<')));
    let requests = Box::new(RecordedRequests(io::Cursor::new(passed(b'>'))));
    let connection = Connection::begin(server, requests).expect("a login");
    let repository = Repository::open(connection).expect("a repository");
    let brought = bring(repository, &mut backend, "shop", &[]).expect("it is brought");
    assert_eq!((brought.made, brought.branches, brought.tags), (13, 2, 1));
    assert_eq!(brought.left, Vec::<String>::new());

    let log = run(&mut backend, "shop", &document! { "frondLog": 1_i32 });
    let commits: Vec<_> = crate::output::documents_of(log.view(), "commits").collect();
    let text = crate::output::text_of;
    assert_eq!(commits.len(), 12, "one is of sale alone");
    let merges = commits.iter().filter(|commit| {
        commit.get("parents").and_then(|it| it.as_array()).is_some_and(|it| it.iter().count() == 2)
    });
    assert_eq!(merges.count(), 2);
    let typed = commits.iter().find(|commit| text(**commit, "message") == "every type");
    let typed = typed.expect("it is there");
    assert_eq!(text(*typed, "author"), "Bob <bob@example.org>");
    let made = typed.get("authored").or_else(|| typed.get("timestamp"));
    assert_eq!(made, Some(Value::DateTime(1_767_398_400_000)));

    let kinds = found(&mut backend, "shop", "kinds");
    let value = |name| kinds[0].get(name);
    assert_eq!(value("_id"), Some(Value::Int64(i64::MIN)));
    assert_eq!(value("ok"), Some(Value::Boolean(true)));
    assert_eq!(value("words"), Some(Value::String("it's \"ü\" 😀")));
    assert_eq!(value("moment"), Some(Value::DateTime(1_778_051_289_123)));
    assert_eq!(kinds[1].get("area"), Some(Value::Null));

    // The key became another column: b alone, where there were a and b.
    let couples = found(&mut backend, "shop", "couples");
    let ids: Vec<_> = couples.iter().map(|couple| couple.get("_id")).collect();
    assert_eq!(ids, [Some(Value::String("x")), Some(Value::String("z"))]);
    let pairs = found(&mut backend, "shop@v1", "pairs");
    let id = document! { "a": 1_i32, "b": "x" };
    assert_eq!(pairs[0].get("_id"), Some(Value::Document(id.view())));
    assert_eq!(found(&mut backend, "shop@v1", "free").len(), 3, "two of them are equal");
    Box::new(backend).close().expect("it is closed");
}
