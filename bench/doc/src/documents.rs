//! The documents that are measured: the eight shapes of DocBench's client side.

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

/// A document and the path that is asked for.
pub struct Case {
    /// As the table calls it.
    pub name: &'static str,
    /// The document.
    pub document: DocumentBuf,
    /// The path, dotted.
    pub path: String,
    /// All paths to leaves.
    pub paths: Vec<String>,
}

/// `field_001`.
pub fn field_name(position: usize) -> String {
    format!("field_{position:03}")
}

fn field_value(position: usize) -> String {
    format!("value_{position}_padding_to_ensure_reasonable_field_size")
}

/// `{_id, field_001: ..., field_N: ...}`.
pub fn flat(id: i32, field_count: usize) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(id));
    for position in 1..=field_count {
        builder.append(&field_name(position), Value::String(&field_value(position)));
    }
    builder.build()
}

/// As deep as `depth` says; each level has ten fields and the next level behind them.
fn nested(depth: usize) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(1));
    for level in 1..=depth {
        for position in 1..=10 {
            builder.append(&field_name(position), Value::String(&field_value(position)));
        }
        builder.begin_document(&format!("level_{level}"));
    }
    builder.append("target", Value::String("found_at_the_deepest_level_of_the_document"));
    for _ in 0..depth {
        builder.end();
    }
    builder.build()
}

/// The eight shapes.
pub fn cases() -> Vec<Case> {
    let flat_cases = [
        ("1/100", 1, 100),
        ("50/100", 50, 100),
        ("100/100", 100, 100),
        ("500/500", 500, 500),
        ("1000/1000", 1000, 1000),
    ]
    .map(|(name, position, count)| Case {
        name,
        document: flat(1, count),
        path: field_name(position),
        paths: (1..=count).map(field_name).collect(),
    });
    let nested_cases = [("depth 1", 1), ("depth 3", 3), ("depth 5", 5)].map(|(name, depth)| {
        let levels: Vec<String> = (1..=depth).map(|level| format!("level_{level}")).collect();
        let path = format!("{}.target", levels.join("."));
        let mut paths = vec![path.clone()];
        for level in 0..depth {
            let parents = &levels[..level];
            paths.extend((1..=10).map(|position| {
                let name = field_name(position);
                parents.iter().chain([&name]).cloned().collect::<Vec<_>>().join(".")
            }));
        }
        Case { name, document: nested(depth), path, paths }
    });
    flat_cases.into_iter().chain(nested_cases).collect()
}
