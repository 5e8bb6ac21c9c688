//! The search of a `$geoNear`, and the index it uses.

use frond_doc::ValueBuf;
use frond_query::Code;
use frond_query::expression::Variables;
use frond_query::index::FieldKind;
use frond_query::pipeline::{Documents, GeoNear, Input};

use super::{Stages, stream};
use crate::catalog::Catalog;
use crate::collection::nearest;
use crate::collection::search::Search;
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

/// The documents of a collection that a leading `$geoNear` finds, the nearest first; `wanted`
/// is how many of them are read at most, if that is known.
pub(super) fn near_input(
    database: &Database,
    reader: &Reader<'static>,
    collection: &str,
    (near, hint, wanted): (GeoNear, Option<&ValueBuf>, Option<u64>),
    variables: &Variables,
    context: &Stages,
) -> Result<Input<'static>, Error> {
    let catalog = Catalog::of(reader, database);
    let collection = &catalog.behind_bare_views(collection)?;
    if catalog.view(collection)?.is_some() {
        let message = "$geoNear is only valid as the first stage in a pipeline";
        return Err(Error::invalid(Code::Location(40602), message));
    }
    let found = catalog.compared(collection)?;
    let path = geo_path(found.as_deref(), &near, &database.namespace(collection))?;
    let filter = near.filter(&path, variables);
    let is_made = catalog.is_made(collection)?;
    let searched = match found.filter(|_| wanted.is_some() && !is_made) {
        None => None,
        found => Search::of(&filter, hint).access(database.frond(), reader, found)?,
    };
    let nearest = match searched {
        Some((found, access)) => {
            let by = (&filter, hint);
            nearest::find(database, reader, (&found, &access), by, wanted, &context.interrupt)?
        }
        None => None,
    };
    let places: Documents<'static> = match nearest {
        Some(nearest) => Box::new(nearest.found.into_iter().map(|found| Ok(found.document))),
        None => {
            let search = Search::of(&filter, hint);
            stream(database, reader, collection, search, None, context)?.input.into_documents()
        }
    };
    Ok(near.run(&path, places, &context.resources).into())
}

/// The path whose index a `$geoNear` asks: the one that it names, or the only one.
pub(in crate::collection) fn geo_path(
    collection: Option<&Collection>,
    near: &GeoNear,
    namespace: &str,
) -> Result<String, Error> {
    if let Some(key) = near.key() {
        return Ok(key.to_owned());
    }
    let indexes = collection.map_or(&[][..], |collection| &collection.indexes);
    let fields = indexes.iter().flat_map(|index| index.shape.fields());
    let of_kind = |kind: FieldKind| {
        let fields = fields.clone().filter(move |field| field.kind == kind);
        let mut paths: Vec<&str> = fields.map(|field| field.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    };
    // As in MongoDB a 2d index is asked first, whether it suits or not.
    let planes = of_kind(FieldKind::Plane);
    let (kind, paths) = match planes.is_empty() {
        true => ("2dsphere", of_kind(FieldKind::Sphere)),
        false => ("2d", planes),
    };
    match (&paths[..], collection) {
        ([path], _) => Ok((*path).to_owned()),
        // Nothing is found in it.
        ([], None) => Ok("_id".to_owned()),
        ([], Some(_)) => {
            let message = "$geoNear requires a 2d or 2dsphere index, but none were found";
            Err(Error::invalid(Code::IndexNotFound, message))
        }
        _ => {
            let message = format!(
                "There is more than one {kind} index on {namespace}; unsure which to use for $geoNear"
            );
            Err(Error::invalid(Code::IndexNotFound, message))
        }
    }
}
