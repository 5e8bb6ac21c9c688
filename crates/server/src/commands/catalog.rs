//! `listCollections` and `listIndexes`.

use frond_db::Error;
use frond_db::catalog::CollectionInfo;
use frond_doc::document::EMPTY;
use frond_doc::{Array, Binary, DocumentBuf, DocumentBuilder, Value, document};
use frond_query::{Code, Filter};

use crate::access::Action;
use crate::authorization::VersionScope;
use crate::commands::{reply, set_configuration, users};
use crate::common_fields::UUID_SUBTYPE;
use crate::request::{Answer, Request};

/// The collection as whose documents views are read.
/// The collection that shows a database's views.
pub(crate) const VIEWS: &str = "system.views";

/// Runs a `listCollections`.
pub fn list_collections(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let filter = fields.document("filter")?.map(Filter::parse_test).transpose()?;
    let names_only = fields.boolean("nameOnly")?;
    let cursor = fields.document("cursor")?;
    let size = reply::cursor_batch_size("listCollections.cursor", cursor)?;
    let only_own = fields.boolean("authorizedCollections")?;
    fields.finish()?;
    let is_read_only;
    let collections = {
        let database = request.database()?;
        is_read_only = database.is_read_only();
        database.list_collections()?
    };
    let user_rights = request.rights.as_ref().map(|rights| request.authorization(rights));
    let mut documents = Vec::new();
    for collection in &collections {
        if let (Some(user_rights), true) = (&user_rights, only_own) {
            let name = Some(collection.name.as_str());
            if !user_rights.may(Action::Find, request.database_name, VersionScope::Open, name)? {
                continue;
            }
        }
        let document = describe(collection, is_read_only);
        if filter.as_ref().is_some_and(|filter| !filter.matches(document.view())) {
            continue;
        }
        documents.push(match names_only {
            true => document! { "name": &collection.name, "type": kind(collection) },
            false => document,
        });
    }
    documents.extend(listed_system(request, names_only, &filter)?);
    reply::listing(request, request.namespace("$cmd.listCollections"), documents, size)
}

/// The views of a database as the documents of its collection `system.views`; `None` of any other
/// collection.
///
/// # Errors
/// As [`Database::list_collections`](frond_db::Database::list_collections).
pub fn views_of(
    request: &Request<'_>,
    collection: Option<&str>,
) -> Result<Option<Vec<DocumentBuf>>, Error> {
    if collection != Some(VIEWS) {
        return Ok(None);
    }
    let collections = request.database()?.list_collections()?;
    let views = collections.iter().filter(|collection| collection.is_view());
    let described = views.map(|view| {
        let mut document = DocumentBuilder::new();
        document.append("_id", Value::String(&request.namespace(&view.name)));
        document.append("viewOn", view.options.get("viewOn").unwrap_or(Value::Null));
        // A view of no stages has an empty pipeline all the same.
        let stages = view.options.get("pipeline");
        document.append("pipeline", stages.unwrap_or(Value::Array(Array::from_validated(&EMPTY))));
        if let Some(collation) = view.options.get("collation") {
            document.append("collation", collation);
        }
        document.build()
    });
    Ok(Some(described.collect()))
}

/// The collections of users, roles, views and the set's configuration, which tools read as they do
/// others: where there are any, and for clients that may read them.
fn listed_system(
    request: &Request<'_>,
    names_only: bool,
    filter: &Option<Filter>,
) -> Result<Vec<DocumentBuf>, Error> {
    let mut listed = Vec::new();
    let of_set = set_configuration::COLLECTION;
    for name in [of_set, "system.roles", "system.users", "system.version", VIEWS] {
        let documents = match name {
            _ if name == of_set => set_configuration::documents_of(request, Some(name)),
            VIEWS => views_of(request, Some(name))?,
            _ => users::documents_of(request, Some(name))?,
        };
        if documents.is_none_or(|documents| documents.is_empty()) {
            continue;
        }
        if let Some(rights) = &request.rights {
            let user_rights = request.authorization(rights);
            if !user_rights.may(
                Action::Find,
                request.database_name,
                VersionScope::Open,
                Some(name),
            )? {
                continue;
            }
        }
        let document = match names_only {
            true => document! { "name": name, "type": "collection" },
            false => {
                let (options, info) = (document! {}, document! { "readOnly": true });
                document! { "name": name, "type": "collection", "options": &options, "info": &info }
            }
        };
        if filter.as_ref().is_none_or(|filter| filter.matches(document.view())) {
            listed.push(document);
        }
    }
    Ok(listed)
}

/// Returns the type that lists give a collection.
fn kind(collection: &CollectionInfo) -> &'static str {
    match (collection.is_view(), collection.is_series()) {
        (true, _) => "view",
        (false, true) => "timeseries",
        (false, false) => "collection",
    }
}

fn describe(collection: &CollectionInfo, is_read_only: bool) -> DocumentBuf {
    let mut document = DocumentBuilder::new();
    document
        .append("name", Value::String(&collection.name))
        .append("type", Value::String(kind(collection)))
        .append("options", Value::from(&collection.options));
    if kind(collection) == "view" {
        document.begin_document("info").append("readOnly", Value::Boolean(true)).end();
        return document.build();
    }
    document.begin_document("info").append("readOnly", Value::Boolean(is_read_only));
    if collection.is_series() {
        // MongoDB has a view of buckets there, without a number of its own.
        document.end();
        return document.build();
    }
    let uuid = Binary { subtype: UUID_SUBTYPE, bytes: &collection.uuid };
    document.append("uuid", Value::Binary(uuid)).end();
    if collection.options.get("clusteredIndex").is_some() {
        // In MongoDB such a collection has no index of `_id`: it is one.
        return document.build();
    }
    document
        .begin_document("idIndex")
        .append("v", Value::Int32(2))
        .append("key", Value::Document(document! { "_id": 1_i32 }.view()))
        .append("name", Value::String("_id_"));
    if let Some(collation) = collection.options.get("collation") {
        document.append("collation", collation);
    }
    document.end();
    document.build()
}

/// Runs a `listIndexes`.
pub fn list_indexes(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    let cursor = fields.document("cursor")?;
    let size = reply::cursor_batch_size("listIndexes.cursor", cursor)?;
    let shows_uuids = fields.boolean("includeBuildUUIDs")?;
    let shows_builds = fields.boolean("includeIndexBuildInfo")?;
    fields.finish()?;
    if shows_uuids && shows_builds {
        let message = "Cannot set both includeBuildUUIDs and includeIndexBuildInfo to true";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    let mut documents = request.database()?.describe_indexes(collection)?;
    if shows_builds {
        // An index that is being built isn't there yet.
        documents = documents.iter().map(|spec| document! { "spec": spec }).collect();
    }
    reply::listing(request, request.namespace(collection), documents, size)
}
