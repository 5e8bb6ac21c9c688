//! `validate`: reads a whole collection and checks what comes.
//!
//! Every chunk that is read is compared with its hash by the store, so damaged bytes end in an
//! error. Beyond that each document must be BSON with an `_id`, and as many must come as are
//! counted. `frond fsck` checks the data directory as a whole.

use bytes::Bytes;
use frond_db::FindRequest;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::commands::reply;
use crate::request::{Answer, Request};

/// Runs a `validate`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    fields.refuse_all(&["repair", "fixMultikey"])?;
    fields.ignore(&["full", "background", "metadata", "checkBSONConformance", "enforceFastCount"]);
    fields.finish()?;
    let database = request.database()?;
    let indexes = database.list_indexes(collection)?;
    let (mut documents, mut invalid) = (0_u64, 0_u64);
    for document in database.find(collection, &FindRequest::default())? {
        request.operation.check()?;
        let document = document?;
        let is_valid = document.get("_id").is_some()
            && DocumentBuf::validated(Bytes::copy_from_slice(document.as_bytes())).is_ok();
        documents += 1;
        invalid += u64::from(!is_valid);
    }
    let mut errors = Vec::new();
    if invalid > 0 {
        errors.push(format!("{invalid} documents are not BSON or have no _id"));
    }
    let mut answer = DocumentBuilder::new();
    answer
        .append("ns", Value::String(&request.namespace(collection)))
        .append("nInvalidDocuments", reply::number(invalid))
        .append("nNonCompliantDocuments", Value::Int32(0))
        .append("nrecords", reply::number(documents))
        .append("nIndexes", reply::number(indexes.len() as u64))
        .append("valid", Value::Boolean(errors.is_empty()))
        .append("repaired", Value::Boolean(false));
    answer.begin_array("warnings").end();
    answer.begin_array("errors");
    for error in &errors {
        answer.push(Value::String(error));
    }
    answer.end();
    Ok(answer)
}
