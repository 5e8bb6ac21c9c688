//! `validate`: reads a whole collection, and compares its indexes with it.
//!
//! Every chunk that is read is compared with its hash by the store, so damaged bytes end in an
//! error. Beyond that each document must be BSON with an `_id`, and each index must have the
//! entries of all documents, and no others. `frond fsck` checks the data directory as a whole.

use frond_db::catalog::ID_INDEX_NAME;
use frond_db::{Checked, CheckedIndex, Error};
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::reply;
use crate::operations::CurrentOperation;
use crate::request::{Answer, Request};

/// Runs a `validate`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    fields.refuse_all(&["repair", "fixMultikey"])?;
    // PyMongo sends `scandata`, as servers of long ago wanted.
    fields.boolean("scandata")?;
    let background = fields.boolean("background")?;
    let metadata = fields.boolean("metadata")?;
    let (full, counts) = (fields.boolean("full")?, fields.boolean("enforceFastCount")?);
    let conforms = fields.boolean("checkBSONConformance")?;
    fields.finish()?;
    let message = if background && (full || counts) {
        "Running the validate command with both { background: true } and { full: true } or \
         { enforceFastCount: true } is not supported."
    } else if metadata && (background || full || counts || conforms) {
        "Running the validate command with { metadata: true } is not supported with any other \
         options"
    } else {
        ""
    };
    if !message.is_empty() {
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    let database = request.database()?;
    let interrupt = CurrentOperation::new(&request.operation).interrupt();
    let checked = database.check_collection(collection, &interrupt)?;
    let mut answer = DocumentBuilder::new();
    answer
        .append("ns", Value::String(&request.namespace(collection)))
        .append("nInvalidDocuments", reply::number(checked.invalid))
        .append("nNonCompliantDocuments", Value::Int32(0))
        .append("nrecords", reply::number(checked.documents));
    append_indexes(&mut answer, &checked);
    answer
        .append("valid", Value::Boolean(checked.is_valid()))
        .append("repaired", Value::Boolean(false));
    answer.begin_array("warnings").end();
    answer.begin_array("errors");
    for error in checked.errors() {
        answer.push(Value::String(&error));
    }
    answer.end();
    append_entries(&mut answer, "extraIndexEntries", &checked.indexes, |index| index.extra);
    append_entries(&mut answer, "missingIndexEntries", &checked.indexes, |index| index.missing);
    answer.begin_array("corruptRecords").end();
    Ok(answer)
}

/// Appends how many indexes there are, their keys, and whether each is valid.
fn append_indexes(answer: &mut DocumentBuilder, checked: &Checked) {
    // A collated collection has an index of `_id` beside its documents.
    let (of_ids, others): (Vec<&CheckedIndex>, Vec<&CheckedIndex>) =
        checked.indexes.iter().partition(|index| index.name == ID_INDEX_NAME);
    answer.append("nIndexes", reply::number(others.len() as u64 + 1));
    answer.begin_document("keysPerIndex").append(ID_INDEX_NAME, reply::number(checked.documents));
    for index in &others {
        answer.append(&index.name, reply::number(index.keys));
    }
    answer.end();
    answer.begin_document("indexDetails");
    let is_id_valid = checked.invalid == 0 && of_ids.iter().all(|index| index.is_valid());
    answer.begin_document(ID_INDEX_NAME).append("valid", Value::Boolean(is_id_valid)).end();
    for index in &others {
        answer.begin_document(&index.name).append("valid", Value::Boolean(index.is_valid())).end();
    }
    answer.end();
}

/// Which indexes have entries that are wrong, and how many: MongoDB lists each entry.
fn append_entries(
    answer: &mut DocumentBuilder,
    name: &str,
    indexes: &[CheckedIndex],
    count: fn(&CheckedIndex) -> u64,
) {
    answer.begin_array(name);
    for index in indexes.iter().filter(|index| 0 < count(index)) {
        answer.push_begin_document();
        answer.append("indexName", Value::String(&index.name));
        answer.append("count", reply::number(count(index))).end();
    }
    answer.end();
}
