//! From BSON to shapes: GeoJSON and legacy pairs, with MongoDB's refusals.
//!
//! Errors are returned as text; the caller adds the code (a filter 2, an index 16755).

use frond_doc::{Array, Document, Value};

use super::planar::Position;
use super::polygon::{Inside, Loop, Polygon};
use super::sphere::Point;
use super::{Geometry, Part};
use crate::number::any_type::Number;
use crate::text;

/// The reason why a shape is invalid.
pub(crate) type Fault = String;

/// Parts of one object at most: a bound for what one query may cost.
const CORNERS_MAX: usize = 200_000;

/// Whether this says that it is GeoJSON.
pub(crate) fn is_geojson(document: Document<'_>) -> bool {
    matches!(document.get("type"), Some(Value::String(_)))
}

/// Reads what a document may hold at a place: GeoJSON, or a legacy pair, after whose two numbers
/// more may follow.
pub(crate) fn stored(value: Value<'_>) -> Result<Geometry, Fault> {
    match value {
        Value::Document(document) if is_geojson(document) => geojson(document),
        Value::Document(document) => pair(document.iter().map(|(_, value)| value), true),
        Value::Array(array) => pair(array.iter(), true),
        _ => Err(format!("geo element must be an array or object: {}", text::value(value))),
    }
    .map_err(|fault| shortened(&fault))
}

/// Reads a point of a query: `[x, y]`, `{x: 1, y: 2}` or a GeoJSON point.
pub(crate) fn query_point(value: Value<'_>) -> Result<Geometry, Fault> {
    match value {
        Value::Array(array) => pair(array.iter(), false),
        Value::Document(document)
            if document.iter().next().is_some_and(|(_, first)| first.is_number()) =>
        {
            pair(document.iter().map(|(_, value)| value), false)
        }
        Value::Document(document) => point(document).map(|part| Geometry::Sphere(vec![part])),
        _ => Err("Point must be an array or object".to_owned()),
    }
}

/// Reads a legacy pair.
fn pair<'a>(values: impl Iterator<Item = Value<'a>>, allows_more: bool) -> Result<Geometry, Fault> {
    position(values, allows_more).map(Geometry::Flat)
}

/// Reads a pair of numbers in an array or document, nothing after them.
pub(crate) fn flat_point(value: Option<Value<'_>>) -> Result<Position, Fault> {
    match value {
        Some(Value::Array(array)) => position(array.iter(), false),
        Some(Value::Document(document)) => position(document.iter().map(|(_, value)| value), false),
        _ => Err("Point must be an array or object".to_owned()),
    }
}

fn position<'a>(
    mut values: impl Iterator<Item = Value<'a>>,
    allows_more: bool,
) -> Result<Position, Fault> {
    let mut number = || {
        let number = values.next().and_then(Number::of).map(Number::double);
        number.ok_or_else(|| "Point must only contain numeric elements".to_owned())
    };
    let (x, y) = (number()?, number()?);
    if !allows_more && values.next().is_some() {
        return Err("Point must only contain two numeric elements".to_owned());
    }
    if !x.is_finite() || !y.is_finite() {
        return Err("Point coordinates must be finite numbers".to_owned());
    }
    Ok(Position { x, y })
}

/// Reads a GeoJSON object.
pub(crate) fn geojson(document: Document<'_>) -> Result<Geometry, Fault> {
    let mut parts = Vec::new();
    match document.get("type").and_then(|kind| kind.as_str()) {
        Some("GeometryCollection") => {
            let Some(Value::Array(geometries)) = document.get("geometries") else {
                return Err("GeometryCollection geometries must be an array".to_owned());
            };
            for (position, geometry) in geometries.iter().enumerate() {
                let Value::Document(geometry) = geometry else {
                    return Err(format!("Element {position} of \"geometries\" is not an object"));
                };
                if geometry.get("type") == Some(Value::String("GeometryCollection")) {
                    let shown = text::value(Value::Document(geometry));
                    return Err(format!("GeometryCollections cannot be nested: {shown}"));
                }
                simple(geometry, &mut parts)?;
            }
            if parts.is_empty() {
                return Err("GeometryCollection geometries must have at least 1 element".to_owned());
            }
        }
        _ => simple(document, &mut parts)?,
    }
    if parts.iter().map(|part| part.corners().len()).sum::<usize>() > CORNERS_MAX {
        return Err(format!("a geometry has at most {CORNERS_MAX} points"));
    }
    Ok(Geometry::Sphere(parts))
}

/// Reads all but collections.
fn simple(document: Document<'_>, parts: &mut Vec<Part>) -> Result<(), Fault> {
    let coordinates = document.get("coordinates");
    let several = |name: &str, array: Option<Value<'_>>| match array {
        Some(Value::Array(array)) if array.is_empty() => {
            Err(format!("{name} coordinates must have at least 1 element"))
        }
        Some(Value::Array(array)) => Ok(array.to_buf_values()),
        _ => Err(format!("{name} coordinates must be an array")),
    };
    let kind = document.get("type").and_then(|kind| kind.as_str());
    match kind {
        Some("Point") => parts.push(point(document)?),
        Some("LineString") => {
            check_reference(document, false)?;
            parts.push(line(coordinates)?);
        }
        Some("Polygon") => match check_reference(document, true)? {
            Inside::Smaller => parts.push(Part::Polygon(Box::new(polygon(coordinates)?))),
            Inside::Left => parts.push(Part::Polygon(Box::new(big_polygon(coordinates)?))),
        },
        Some("MultiPoint") => {
            check_reference(document, false)?;
            let Some(Value::Array(array)) = coordinates else {
                return Err("GeoJSON coordinates must be an array of coordinates".to_owned());
            };
            if array.is_empty() {
                return Err("MultiPoint coordinates must have at least 1 element".to_owned());
            }
            for value in array.iter() {
                let at = coordinate(value)?;
                parts.push(Part::Point(at.to_sphere(), at));
            }
        }
        Some("MultiLineString") => {
            check_reference(document, false)?;
            for value in several("MultiLineString", coordinates)? {
                parts.push(line(Some(value.as_value()))?);
            }
        }
        Some("MultiPolygon") => {
            check_reference(document, false)?;
            for value in several("MultiPolygon", coordinates)? {
                parts.push(Part::Polygon(Box::new(polygon(Some(value.as_value()))?)));
            }
        }
        _ => {
            return Err(format!(
                "Unknown GeoJSON type: {}",
                text::value(Value::Document(document))
            ));
        }
    }
    Ok(())
}

/// The values of an array, each by itself.
trait Values {
    fn to_buf_values(&self) -> Vec<frond_doc::ValueBuf>;
}

impl Values for Array<'_> {
    fn to_buf_values(&self) -> Vec<frond_doc::ValueBuf> {
        self.iter().map(|value| value.to_buf()).collect()
    }
}

/// Reads a GeoJSON point.
fn point(document: Document<'_>) -> Result<Part, Fault> {
    check_reference(document, false)?;
    let at = match document.get("coordinates") {
        Some(Value::Array(array)) => position(array.iter(), true)?,
        Some(Value::Document(inner)) => position(inner.iter().map(|(_, value)| value), true)?,
        _ => return Err("Point must be an array or object".to_owned()),
    };
    check_bounds(at)?;
    Ok(Part::Point(at.to_sphere(), at))
}

fn check_bounds(at: Position) -> Result<(), Fault> {
    if at.is_on_earth() {
        return Ok(());
    }
    Err(format!("longitude/latitude is out of bounds, lng: {} lat: {}", at.x, at.y))
}

/// Reads `[longitude, latitude, ...]`.
fn coordinate(value: Value<'_>) -> Result<Position, Fault> {
    let Value::Array(array) = value else {
        return Err("GeoJSON coordinates must be an array".to_owned());
    };
    let at = position(array.iter(), true)?;
    check_bounds(at)?;
    Ok(at)
}

/// Reads `[[longitude, latitude], ...]`, points that repeat the one before left out.
fn coordinates_of(value: Option<Value<'_>>) -> Result<Vec<Point>, Fault> {
    let Some(Value::Array(array)) = value else {
        return Err("GeoJSON coordinates must be an array of coordinates".to_owned());
    };
    let mut points: Vec<Point> = Vec::new();
    for value in array.iter() {
        points.push(coordinate(value)?.to_sphere());
    }
    Ok(points)
}

fn line(value: Option<Value<'_>>) -> Result<Part, Fault> {
    let shown = || text::value(value.unwrap_or(Value::Null));
    let mut points = coordinates_of(value)?;
    points.dedup();
    if points.len() < 2 {
        return Err(format!("GeoJSON LineString must have at least 2 vertices: {}", shown()));
    }
    let opposite = points.windows(2).position(|pair| {
        pair[0].distance(pair[1]) > std::f64::consts::PI - super::sphere::TOLERANCE
    });
    if let Some(first) = opposite {
        let why = format!("Vertices {first} and {} are identical or antipodal", first + 1);
        return Err(format!("GeoJSON LineString is not valid: {why} {}", shown()));
    }
    Ok(Part::Line(points))
}

/// Reads one ring.
fn ring(value: Value<'_>, inside: Inside) -> Result<Loop, Fault> {
    let shown = || text::value(value);
    let mut points = coordinates_of(Some(value))?;
    match (points.first(), points.last()) {
        (Some(first), Some(last)) if first == last => {}
        (None, _) | (_, None) => return Err(format!("Loop has no vertices: {}", shown())),
        _ => return Err(format!("Loop is not closed: {}", shown())),
    }
    points.dedup();
    points.pop();
    if points.len() < 3 {
        return Err(format!("Loop must have at least 3 different vertices: {}", shown()));
    }
    let made = Loop::new(points, inside);
    match made.fault() {
        Some(fault) => Err(format!("Loop is not valid: {} {fault}", shown())),
        None => Ok(made),
    }
}

fn polygon(value: Option<Value<'_>>) -> Result<Polygon, Fault> {
    let Some(Value::Array(rings)) = value else {
        return Err("Polygon coordinates must be an array".to_owned());
    };
    let mut made: Option<Polygon> = None;
    let shown = || text::value(Value::Array(rings));
    for value in rings.iter() {
        let next = ring(value, Inside::Smaller)?;
        let Some(polygon) = &mut made else {
            made = Some(Polygon { outer: next, holes: Vec::new() });
            continue;
        };
        let hole = Polygon { outer: next, holes: Vec::new() };
        let outer = Polygon { outer: polygon.outer.clone(), holes: Vec::new() };
        if !outer.covers_polygon(&hole) {
            return Err(format!(
                "Secondary loops not contained by first exterior loop - secondary loops must be \
                 holes: {} first loop: {}",
                text::value(value),
                text::value(rings.get(0).unwrap_or(Value::Null))
            ));
        }
        for (number, other) in polygon.holes.iter().enumerate() {
            let other = Polygon { outer: other.clone(), holes: Vec::new() };
            if other.covers_polygon(&hole) || hole.covers_polygon(&other) {
                return Err(format!("Polygon interior loops cannot be nested: {}", shown()));
            }
            if hole.outer.corners().iter().any(|corner| other.outer.holds(*corner))
                && !hole.outer.corners().iter().all(|corner| !other.outer.holds(*corner))
            {
                let (first, second) = (number + 1, polygon.holes.len() + 1);
                return Err(format!(
                    "Polygon isn't valid: Loop {first} crosses loop {second} {}",
                    shown()
                ));
            }
        }
        polygon.holes.push(hole.outer);
    }
    made.ok_or_else(|| "Polygon has no loops.".to_owned())
}

fn big_polygon(value: Option<Value<'_>>) -> Result<Polygon, Fault> {
    let Some(Value::Array(rings)) = value else {
        return Err("Coordinates of polygon must be an array".to_owned());
    };
    let mut values = rings.iter();
    match (values.next(), values.next()) {
        (Some(only), None) => Ok(Polygon { outer: ring(only, Inside::Left)?, holes: Vec::new() }),
        _ => {
            let shown = text::value(Value::Array(rings));
            Err(format!("Only one simple loop is allowed in a big polygon: {shown}"))
        }
    }
}

/// Checks `crs`, and returns what a polygon's inside is by it.
fn check_reference(document: Document<'_>, may_be_strict: bool) -> Result<Inside, Fault> {
    let Some(reference) = document.get("crs") else { return Ok(Inside::Smaller) };
    let Value::Document(reference) = reference else {
        return Err("GeoJSON CRS must be an object".to_owned());
    };
    if reference.get("type") != Some(Value::String("name")) {
        return Err("GeoJSON CRS must have field \"type\": \"name\"".to_owned());
    }
    let Some(Value::Document(properties)) = reference.get("properties") else {
        return Err("CRS must have field \"properties\" which is an object".to_owned());
    };
    match properties.get("name") {
        Some(Value::String("urn:ogc:def:crs:OGC:1.3:CRS84" | "EPSG:4326")) => Ok(Inside::Smaller),
        Some(Value::String("urn:x-mongodb:crs:strictwinding:EPSG:4326")) if may_be_strict => {
            Ok(Inside::Left)
        }
        Some(Value::String("urn:x-mongodb:crs:strictwinding:EPSG:4326")) => {
            Err("Strict winding order is only supported by polygon".to_owned())
        }
        Some(Value::String(name)) => Err(format!("Unknown CRS name: {name}")),
        _ => Err("In CRS, \"properties.name\" must be a string".to_owned()),
    }
}

/// Messages quote what they are about; that may be long.
fn shortened(fault: &str) -> Fault {
    fault.chars().take(2_000).collect()
}
