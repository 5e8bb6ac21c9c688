//! `createIndexes` and `dropIndexes`.

use frond_db::catalog::{ID_INDEX_NAME, IndexSpec, UnknownOptions, ambiguous};
use frond_db::{Database, Error};
use frond_doc::{Document, DocumentBuilder, Value, order};
use frond_query::{Code, text};

use crate::commands::reply;
use crate::fields::Fields;
use crate::operations::CurrentOperation;
use crate::request::{Answer, Request};

/// Makes indexes, all or none.
pub fn create(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    let indexes = fields.array("indexes")?.ok_or_else(|| fields.missing("indexes"))?;
    let quorum = check_quorum(&mut fields)?;
    let unknown = match fields.boolean("ignoreUnknownIndexOptions")? {
        true => UnknownOptions::Ignored,
        false => UnknownOptions::Refused,
    };
    fields.finish()?;
    let mut specs = Vec::new();
    for value in indexes.iter() {
        let spec = value.as_document().expect("the table takes documents only");
        let parsed = IndexSpec::parse_with(spec, unknown)?;
        // The library makes a name where there is none; clients are to say one, as in MongoDB.
        if spec.get("name").is_none() {
            let message = format!(
                "Error in specification {} :: caused by :: The 'name' field is a required property \
                 of an index specification",
                text::value(Value::Document(spec))
            );
            return Err(Error::invalid(Code::FailedToParse, message));
        }
        specs.push(parsed);
    }
    if specs.is_empty() {
        let message = "Must specify at least one index to create";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let created = {
        let interrupt = CurrentOperation::new(&request.operation).interrupt();
        request.database()?.create_indexes_unless(collection, &specs, &interrupt)?
    };
    let mut answer = DocumentBuilder::new();
    answer
        .append("numIndexesBefore", reply::number(u64::from(created.before)))
        .append("numIndexesAfter", reply::number(u64::from(created.after)))
        .append("createdCollectionAutomatically", Value::Boolean(created.created_collection));
    if created.before == created.after {
        answer.append("note", Value::String("all indexes already exist"));
        return Ok(answer);
    }
    if u64::from(created.after - created.before) < specs.len() as u64 {
        answer.append("note", Value::String("index already exists"));
    }
    if !created.created_collection {
        answer.append("commitQuorum", quorum.unwrap_or(Value::String("votingMembers")));
    }
    Ok(answer)
}

/// Checks how many members are to be ready before indexes are used: there is one, and it is.
fn check_quorum<'a>(fields: &mut Fields<'a>) -> Result<Option<Value<'a>>, Error> {
    const MEMBERS_MAX: i64 = 50;
    let Some(quorum) = fields.value("commitQuorum") else { return Ok(None) };
    let (code, message) = match (quorum, quorum.as_integer()) {
        (Value::String("votingMembers" | "majority"), _) | (_, Some(0 | 1)) => {
            return Ok(Some(quorum));
        }
        (Value::String(mode), _) => {
            let message =
                format!("No write concern mode named '{mode}' found in replica set configuration");
            (Code::UnknownReplWriteConcern, message)
        }
        (_, Some(2..=MEMBERS_MAX)) => {
            (Code::UnsatisfiableCommitQuorum, "Not enough data-bearing nodes".to_owned())
        }
        (other, None) if !other.is_number() => {
            return Err(fields.wrong_type("commitQuorum", other, "types '[int, string]'"));
        }
        _ => {
            let message = format!(
                "Commit quorum has to be a non-negative number not greater than {MEMBERS_MAX}"
            );
            (Code::FailedToParse, message)
        }
    };
    Err(Error::invalid(code, message))
}

/// Drops indexes by name, by key, by a list of names, or all with `*`.
pub fn drop(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    let index = fields.value("index").ok_or_else(|| fields.missing("index"))?;
    let wrong_type = fields.wrong_type("index", index, "types '[string, object, array]'");
    fields.finish()?;
    let database = request.database()?;
    let names = match index {
        Value::String(name) => vec![name.to_owned()],
        Value::Document(key) => vec![name_of_key(&database, collection, key)?],
        Value::Array(names) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<Vec<String>>>().ok_or(wrong_type)?
        }
        _ => return Err(wrong_type),
    };
    check_exist(&database, collection, &names)?;
    let mut before = None;
    for name in &names {
        let count = database.drop_indexes(collection, name)?;
        before.get_or_insert(count);
    }
    let mut answer = DocumentBuilder::new();
    let before = before.map_or_else(
        || database.list_indexes(collection).map(|indexes| indexes.len() as u64),
        |count| Ok(u64::from(count)),
    )?;
    answer.append("nIndexesWas", reply::number(before));
    if names == ["*"] {
        answer.append("msg", Value::String("non-_id indexes dropped for collection"));
    }
    Ok(answer)
}

/// Checks that all of several names are of indexes that can be dropped, before the first is.
fn check_exist(database: &Database, collection: &str, names: &[String]) -> Result<(), Error> {
    if names.len() < 2 {
        return Ok(());
    }
    let indexes = database.list_indexes(collection)?;
    for name in names {
        if name == ID_INDEX_NAME {
            return Err(Error::invalid(Code::InvalidOptions, "cannot drop _id index"));
        }
        if !indexes.iter().any(|index| index.name == *name) {
            let message = format!("index not found with name [{name}]");
            return Err(Error::invalid(Code::IndexNotFound, message));
        }
    }
    Ok(())
}

fn name_of_key(database: &Database, collection: &str, key: Document<'_>) -> Result<String, Error> {
    let indexes = database.list_indexes(collection)?;
    let is_it = |index: &IndexSpec| order::compare_documents(index.key.view(), key).is_eq();
    let mut found = indexes.into_iter().filter(is_it);
    let first = found.next();
    if let (Some(first), Some(second)) = (&first, found.next()) {
        return Err(ambiguous(Value::Document(key), [&first.name, &second.name]));
    }
    first.map(|index| index.name).ok_or_else(|| {
        let key = text::value(Value::Document(key));
        let message = format!("can't find index with key: {key}");
        Error::invalid(Code::IndexNotFound, message)
    })
}
