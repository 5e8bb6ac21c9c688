//! A search by a text index, as MongoDB shows it.
//!
//! `TEXT_MATCH` checks what words can't decide (negations, phrases) in the documents that are
//! found. Below it is `TEXT_OR` where scores are asked for, else `FETCH`; below these the `IXSCAN`:
//! one for all terms, where MongoDB has one for each and an `OR`.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::index::FieldKind;
use frond_query::metadata::MetadataKind;

use super::stage::Stage;
use super::{Done, details, index_details};
use crate::collection::FindRequest;
use crate::collection::plan::{Access, AccessPath, Source};
use crate::schema::Collection;

/// The stages of `path`, if it searches by a text index.
pub(super) fn stage(
    collection: &Collection,
    access: &Access,
    path: &AccessPath,
    request: &FindRequest,
    done: Done,
) -> Option<Stage> {
    let filter = access.filter.as_ref()?;
    let matcher = filter.text_matcher()?;
    let Source::Index(position) = path.source else { return None };
    let index = &collection.indexes[position];
    index.shape.text()?;
    let search = request.filter.as_ref().map_or(Document::empty(), DocumentBuf::view);
    let scan = Stage::leaf("IXSCAN", index_details(&index.spec, path, "forward"), done.keys)
        .counting("keysExamined", done.keys);
    let rest = without_text(search);
    let fields = [("filter", Value::from(&rest))];
    let fields = if rest.view().is_empty() { &fields[..0] } else { &fields[..] };
    let is_scored = filter.metadata().contains(MetadataKind::TextScore);
    let name = if is_scored { "TEXT_OR" } else { "FETCH" };
    let fetched = Stage::over(name, details(fields), scan)
        .returning(done.returned)
        .counting("docsExamined", done.documents);
    let before = index.shape.fields().iter().take_while(|field| field.kind != FieldKind::Text);
    let mut prefix = DocumentBuilder::new();
    for field in before {
        let value = search.get(&field.path);
        let equal = value.map(|value| match value {
            Value::Document(operator) => operator.get("$eq").unwrap_or(value),
            _ => value,
        });
        prefix.append(&field.path, equal.unwrap_or(Value::Null));
    }
    let (prefix, parsed) = (prefix.build(), matcher.parsed());
    let description = details(&[
        ("indexPrefix", Value::from(&prefix)),
        ("indexName", Value::String(&index.spec.name)),
        ("parsedTextQuery", Value::from(&parsed)),
        ("textIndexVersion", Value::Int32(3)),
    ]);
    Some(Stage::over("TEXT_MATCH", description, fetched))
}

/// Returns the other conditions of a filter.
fn without_text(filter: Document<'_>) -> DocumentBuf {
    let mut rest = DocumentBuilder::new();
    for (name, value) in filter.iter().filter(|(name, _)| *name != "$text") {
        rest.append(name, value);
    }
    rest.build()
}
