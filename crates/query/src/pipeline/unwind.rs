//! `$unwind`: one document for each element of an array.

use std::sync::Arc;

use frond_doc::path::Path;
use frond_doc::raw::RawElements;
use frond_doc::{DocumentBuf, Value, ValueBuf};

use super::division::Division;
use super::parse::{StageParser, one};
use super::set_path::{add_on_way, set_path};
use super::stage::{Context, Stage};
use super::{Documents, Resources};
use crate::error::QueryError;
use crate::expression::{failure, parse_path};
use crate::large::NeededPaths;

/// The elements between two checks whether to stop.
const CHECK_COUNT: usize = 256;

/// `$unwind`
#[derive(Debug)]
struct Unwind {
    path: Path,
    /// The field that gets the element's position.
    position_path: Option<Vec<String>>,
    /// Whether documents come through that have nothing to unwind.
    preserves: bool,
}

impl Stage for Unwind {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let resources = context.resources.clone();
        Ok(Box::new(input.flat_map(move |document| match document {
            Ok(document) => self.unwind(document, &resources),
            Err(error) => Box::new(std::iter::once(Err(error))),
        })))
    }

    fn needed_paths(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        add_on_way(&mut needed, self.path.parts().iter().map(AsRef::as_ref));
        if let Some(path) = &self.position_path {
            add_on_way(&mut needed, path.iter().map(String::as_str));
        }
        needed
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Each
    }

    fn keeps(&self, path: &str) -> bool {
        let outer = path.split('.').next();
        let position = self.position_path.as_ref().and_then(|path| path.first());
        outer != self.path.parts().first().map(AsRef::as_ref)
            && outer != position.map(String::as_str)
    }
}

impl Unwind {
    fn unwind(
        self: &Arc<Self>,
        document: DocumentBuf,
        resources: &Resources,
    ) -> Documents<'static> {
        let value = self.path.get(document.view());
        match value {
            Some(Value::Array(array)) if !array.is_empty() => {}
            // A value that is no array stands for itself.
            Some(Value::Null | Value::Undefined | Value::Array(_)) | None if !self.preserves => {
                return Box::new(std::iter::empty());
            }
            Some(Value::Array(_)) => {
                let without = set_path(document.view(), self.path.parts(), None);
                return Box::new(std::iter::once(Ok(self.at(without, None))));
            }
            _ => return Box::new(std::iter::once(Ok(self.at(document, None)))),
        }
        let stage = Arc::clone(self);
        // Each output document copies its element; the array is copied once, and read where the
        // last one ended.
        let array = value.map(ValueBuf::from);
        let resources = resources.clone();
        let (mut position, mut offset) = (0_usize, 0_usize);
        Box::new(std::iter::from_fn(move || {
            let array = array.as_ref()?.as_value().as_array()?;
            let bytes = array.as_bytes();
            let mut elements = RawElements::new(bytes.get(offset..)?);
            let element = elements.next()?.decode()?;
            // The next walk passes over four bytes, as over a length.
            offset = bytes.len() - elements.rest().len() - size_of::<i32>();
            let place = position;
            position += 1;
            if place.is_multiple_of(CHECK_COUNT)
                && let Err(error) = resources.check()
            {
                return Some(Err(error));
            }
            let made = set_path(document.view(), stage.path.parts(), Some(element));
            Some(Ok(stage.at(made, i64::try_from(place).ok())))
        }))
    }

    /// Adds the position, where it is asked for.
    fn at(&self, document: DocumentBuf, position: Option<i64>) -> DocumentBuf {
        let Some(parts) = &self.position_path else { return document };
        let value = position.map_or(Value::Null, Value::Int64);
        set_path(document.view(), parts, Some(value))
    }
}

/// The options of `$unwind`, checked for their types.
struct Options<'v> {
    path: Option<&'v str>,
    position_path: Option<&'v str>,
    preserves: bool,
}

fn options(argument: Value<'_>) -> Result<Options<'_>, QueryError> {
    let mut options = Options { path: None, position_path: None, preserves: false };
    let document = match argument {
        Value::String(path) => return Ok(Options { path: Some(path), ..options }),
        Value::Document(document) => document,
        other => {
            let name = other.element_type().alias();
            let message = format!(
                "expected either a string or an object as specification for $unwind stage, \
                 got {name}"
            );
            return Err(failure(15981, message));
        }
    };
    for (name, value) in document.iter() {
        let found = value.element_type().alias();
        match (name, value) {
            ("path", Value::String(path)) => options.path = Some(path),
            ("path", _) => {
                let message =
                    format!("expected a string as the path for $unwind stage, got {found}");
                return Err(failure(28808, message));
            }
            ("preserveNullAndEmptyArrays", Value::Boolean(preserves)) => {
                options.preserves = preserves;
            }
            ("preserveNullAndEmptyArrays", _) => {
                let message = format!(
                    "expected a boolean for the preserveNullAndEmptyArrays option to $unwind \
                     stage, got {found}"
                );
                return Err(failure(28809, message));
            }
            ("includeArrayIndex", Value::String(path)) if !path.is_empty() => {
                options.position_path = Some(path);
            }
            ("includeArrayIndex", _) => {
                let message = format!(
                    "expected a non-empty string for the includeArrayIndex  option to $unwind \
                     stage, got {found}"
                );
                return Err(failure(28810, message));
            }
            _ => {
                let message = format!("unrecognized option to $unwind stage: {name}");
                return Err(failure(28811, message));
            }
        }
    }
    Ok(options)
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let options = options(argument)?;
    let path = options.path.filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| failure(28812, "no path specified to $unwind stage"))?;
    let Some(path) = path.strip_prefix('$') else {
        let message = format!("path option to $unwind stage should be prefixed with a '$': {path}");
        return Err(failure(28818, message));
    };
    if path.contains('\0') {
        return Err(failure(16419, "field path must not contain embedded null characters"));
    }
    parse_path(path)?;
    if let Some(position_path) = options.position_path.filter(|path| path.starts_with('$')) {
        let message = format!(
            "includeArrayIndex option to $unwind stage should not be prefixed with a '$': \
             {position_path}"
        );
        return Err(failure(28822, message));
    }
    one(Unwind {
        path: Path::new(path),
        position_path: options.position_path.map(parse_path).transpose()?,
        preserves: options.preserves,
    })
}
