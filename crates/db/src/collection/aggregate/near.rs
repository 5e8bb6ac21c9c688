//! Which index a `$geoNear` asks.

use frond_query::Code;
use frond_query::index::FieldKind;
use frond_query::pipeline::GeoNear;

use crate::error::Error;
use crate::schema::Collection;

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
