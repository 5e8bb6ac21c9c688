//! Helpers for tests of versions that write JSON.

use frond_doc::{DocumentBuf, ValueBuf, extended_json};

/// Reads a document; quotes may be single ones.
pub fn json(text: &str) -> DocumentBuf {
    extended_json::parse(&text.replace('\'', "\"")).expect("the test's JSON is right")
}

/// Reads any value.
pub fn value(text: &str) -> ValueBuf {
    json(&format!("{{'v': {text}}}")).get("v").expect("it is there").to_buf()
}

/// Writes a document as relaxed JSON without spaces, with single quotes.
pub fn text(document: &DocumentBuf) -> String {
    let mut out = String::new();
    extended_json::write(document.view(), extended_json::Form::Relaxed, &mut out);
    out.replace('"', "'").replace(": ", ":").replace(", ", ",")
}

/// Writes documents as `text` does, as an array.
pub fn texts(documents: &[DocumentBuf]) -> String {
    format!("[{}]", documents.iter().map(text).collect::<Vec<_>>().join(","))
}

/// Runs a pipeline to its end.
pub fn aggregate(
    database: &frond_db::Database,
    collection: Option<&str>,
    pipeline: &str,
) -> Result<Vec<DocumentBuf>, frond_db::Error> {
    let request = frond_db::AggregateRequest {
        pipeline: value(pipeline),
        variables: None,
        collation: None,
        hint: None,
        in_memory_only: false,
        interrupt: Default::default(),
    };
    database.aggregate(collection, &request)?.collect()
}
