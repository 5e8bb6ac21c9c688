//! Shapes and how they stand to each other, and what is no shape. The facts are those of the
//! manual: closed regions, great circles as edges, the smaller side as the inside.

use frond_doc::{DocumentBuf, extended_json};

use super::parse;
use crate::filter::Filter;

fn json(text: &str) -> DocumentBuf {
    let text = text.replace('\'', "\"");
    extended_json::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn point(x: f64, y: f64) -> String {
    format!("{{'type': 'Point', 'coordinates': [{x:?}, {y:?}]}}")
}

fn shape(kind: &str, coordinates: &str) -> String {
    format!("{{'type': '{kind}', 'coordinates': {coordinates}}}")
}

const SQUARE: &str = "[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]";
const RING: &str =
    "[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]";

/// Whether `{p: {operator: argument}}` finds a document whose `p` is `stored`.
fn check(operator: &str, argument: &str, stored: &str, expected: bool) {
    let filter = json(&format!("{{'p': {{'{operator}': {argument}}}}}"));
    let filter = Filter::parse(filter.view()).unwrap_or_else(|error| panic!("{argument}: {error}"));
    let document = json(&format!("{{'p': {stored}}}"));
    assert_eq!(filter.matches(document.view()), expected, "{operator} {argument} {stored}");
}

#[test]
fn within_polygons() {
    let within = |coordinates: &str, stored: &str, expected: bool| {
        let kind = if coordinates.starts_with("[[[[") { "MultiPolygon" } else { "Polygon" };
        let argument = format!("{{'$geometry': {}}}", shape(kind, coordinates));
        check("$geoWithin", &argument, stored, expected);
    };
    for (x, y, in_square, in_ring) in [
        (5.0, 5.0, true, false),
        (2.0, 2.0, true, true),
        (0.0, 0.0, true, true),
        (5.0, 0.0, true, true),
        (4.0, 5.0, true, true),
        // The edge between two points of one latitude bulges towards the pole.
        (5.0, 10.02, true, true),
        (5.0, 10.05, false, false),
        (10.1, 5.0, false, false),
        (-175.0, -5.0, false, false),
        (-170.0, 5.0, false, false),
    ] {
        within(SQUARE, &point(x, y), in_square);
        within(RING, &point(x, y), in_ring);
        within(SQUARE, &format!("[{x:?}, {y:?}]"), in_square);
    }
    let reversed = "[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]";
    within(reversed, &point(5.0, 5.0), true);
    within(reversed, &point(15.0, 5.0), false);
    let over_the_date_line = "[[[170, -10], [-170, -10], [-170, 10], [170, 10], [170, -10]]]";
    within(over_the_date_line, &point(180.0, 0.0), true);
    within(over_the_date_line, &point(-175.0, 5.0), true);
    within(over_the_date_line, &point(160.0, 0.0), false);
    let around_the_pole = "[[[0, 70], [90, 70], [180, 70], [-90, 70], [0, 70]]]";
    within(around_the_pole, &point(45.0, 89.0), true);
    within(around_the_pole, &point(45.0, 60.0), false);
    within(SQUARE, &shape("LineString", "[[1, 1], [9, 9]]"), true);
    within(SQUARE, &shape("LineString", "[[1, 1], [11, 9]]"), false);
    within(RING, &shape("LineString", "[[1, 1], [9, 9]]"), false);
    within(SQUARE, &shape("Polygon", "[[[1, 1], [2, 1], [2, 2], [1, 1]]]"), true);
    within(SQUARE, &shape("Polygon", SQUARE), true);
    within(RING, &shape("Polygon", SQUARE), false);
    within(SQUARE, &shape("Polygon", RING), true);
    within(SQUARE, &shape("MultiPoint", "[[1, 1], [2, 2]]"), true);
    within(SQUARE, &shape("MultiPoint", "[[1, 1], [12, 2]]"), false);
    let two = "[[[[0, 0], [1, 0], [1, 1], [0, 0]]], [[[5, 5], [6, 5], [6, 6], [5, 5]]]]";
    within(two, &point(5.9, 5.5), true);
    within(two, &point(3.0, 3.0), false);
    let collection = format!(
        "{{'type': 'GeometryCollection', 'geometries': [{}, {}]}}",
        point(1.0, 1.0),
        point(2.0, 2.0)
    );
    within(SQUARE, &collection, true);
    within(SQUARE, "[[20, 20], [5, 5]]", true);
    for no_place in ["5", "'x'", "null", "[]", "{}", "{'type': 'Blob'}", "[200, 5]", "['a', 1]"] {
        within(SQUARE, no_place, false);
    }
}

#[test]
fn strict_winding_makes_polygons_larger_than_a_hemisphere() {
    let strict = |coordinates: &str, x: f64, y: f64, expected: bool| {
        let crs =
            "{'type': 'name', 'properties': {'name': 'urn:x-mongodb:crs:strictwinding:EPSG:4326'}}";
        let argument = format!(
            "{{'$geometry': {{'type': 'Polygon', 'crs': {crs}, 'coordinates': {coordinates}}}}}"
        );
        check("$geoWithin", &argument, &point(x, y), expected);
    };
    let reversed = "[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]";
    strict(SQUARE, 5.0, 5.0, true);
    strict(SQUARE, 50.0, 5.0, false);
    strict(reversed, 5.0, 5.0, false);
    strict(reversed, 50.0, 5.0, true);
    strict(reversed, -170.0, -80.0, true);
}

#[test]
fn within_areas_and_caps() {
    for (argument, stored, expected) in [
        ("{'$box': [[0, 0], [2, 2]]}", "[1, 1]".to_owned(), true),
        ("{'$box': [[0, 0], [2, 2]]}", point(2.0, 2.0), true),
        ("{'$box': [[0, 0], [2, 2]]}", "{'x': 3, 'y': 1}".to_owned(), false),
        ("{'$box': [[0, 0], [2000, 2000]]}", "[1000, 1000]".to_owned(), true),
        ("{'$box': [[0, 0], [2, 2]]}", shape("LineString", "[[1, 1], [1, 2]]"), false),
        ("{'$center': [[0, 0], 5]}", "[3, 4]".to_owned(), true),
        ("{'$center': [[0, 0], 5]}", "[4, 4]".to_owned(), false),
        ("{'$polygon': [[0, 0], [3, 6], [6, 0]]}", "[3, 3]".to_owned(), true),
        ("{'$polygon': [[0, 0], [3, 6], [6, 0]]}", "[1, 5]".to_owned(), false),
        ("{'$centerSphere': [[0, 89], 0.0177]}", "[180, 89.99]".to_owned(), true),
        ("{'$centerSphere': [[0, 89], 0.01]}", "[180, 89]".to_owned(), false),
        ("{'$centerSphere': [[0, 0], 0.2]}", shape("LineString", "[[1, 1], [5, 5]]"), true),
        ("{'$centerSphere': [[0, 0], 0.2]}", shape("LineString", "[[1, 1], [50, 5]]"), false),
    ] {
        check("$geoWithin", argument, &stored, expected);
        check("$within", argument, &stored, expected);
    }
}

#[test]
fn intersections() {
    let shapes = [
        point(5.0, 5.0),
        point(0.0, 5.0),
        point(20.0, 5.0),
        shape("LineString", "[[-5, 5], [15, 5]]"),
        shape("LineString", "[[20, 0], [20, 10]]"),
        shape("Polygon", "[[[9, 9], [12, 9], [12, 12], [9, 9]]]"),
        shape("Polygon", "[[[4.5, 4.5], [5.5, 4.5], [5.5, 5.5], [4.5, 4.5]]]"),
        shape("Polygon", "[[[-20, -20], [30, -20], [30, 30], [-20, 30], [-20, -20]]]"),
    ];
    let expected = [
        (SQUARE, [true, true, false, true, false, true, true, true]),
        (RING, [false, true, false, true, false, true, false, true]),
    ];
    for (coordinates, expected) in expected {
        let polygon = shape("Polygon", coordinates);
        for (shape, expected) in shapes.iter().zip(expected) {
            check("$geoIntersects", &format!("{{'$geometry': {polygon}}}"), shape, expected);
            check("$geoIntersects", &format!("{{'$geometry': {shape}}}"), &polygon, expected);
        }
    }
    let line = format!("{{'$geometry': {}}}", shape("LineString", "[[0, 0], [10, 0]]"));
    check("$geoIntersects", &line, &point(5.0, 0.0), true);
    check("$geoIntersects", &line, &point(5.0, 0.001), false);
    check("$geoIntersects", &line, &shape("LineString", "[[5, -1], [5, 1]]"), true);
    check("$geoIntersects", &line, "[3, 0]", true);
}

#[test]
fn wrong_shapes_are_refused() {
    for (geometry, message) in [
        (
            "{'type': 'Point', 'coordinates': [200, 0]}",
            "longitude/latitude is out of bounds, lng: 200 lat: 0",
        ),
        ("{'type': 'Point', 'coordinates': ['a', 0]}", "Point must only contain numeric elements"),
        ("{'type': 'Point'}", "Point must be an array or object"),
        ("{'type': 'LineString', 'coordinates': [[1, 1]]}", "must have at least 2 vertices"),
        (
            "{'type': 'LineString', 'coordinates': [[1, 1], [1, 1]]}",
            "must have at least 2 vertices",
        ),
        (
            "{'type': 'Polygon', 'coordinates': [[[0, 0], [1, 0], [1, 1]]]}",
            "Loop is not closed: [ [ 0, 0 ], [ 1, 0 ], [ 1, 1 ] ]",
        ),
        (
            "{'type': 'Polygon', 'coordinates': [[[0, 0], [1, 0], [0, 0]]]}",
            "at least 3 different vertices",
        ),
        ("{'type': 'Polygon', 'coordinates': []}", "Polygon has no loops."),
        ("{'type': 'Polygon', 'coordinates': [[]]}", "Loop has no vertices"),
        (
            "{'type': 'Polygon', 'coordinates': [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}",
            "Edges 0 and 2 cross",
        ),
        (
            "{'type': 'Polygon', 'coordinates': [[[0, 0], [4, 0], [2, 2], [4, 4], [0, 4], [2, 2], [0, 0]]]}",
            "Duplicate vertices: 2 and 5",
        ),
        (
            "{'type': 'Polygon', 'coordinates': [[[0, 0], [1, 0], [1, 1], [0, 0]], [[5, 5], [6, 5], [6, 6], [5, 5]]]}",
            "secondary loops must be holes",
        ),
        ("{'type': 'GeometryCollection', 'geometries': []}", "must have at least 1 element"),
        ("{'type': 'MultiPoint', 'coordinates': []}", "must have at least 1 element"),
        ("{'type': 'Circle', 'coordinates': [1, 1]}", "Unknown GeoJSON type"),
    ] {
        let fault = parse::stored(json(&format!("{{'p': {geometry}}}")).get("p").expect("there"));
        let fault = fault.expect_err(geometry);
        assert!(fault.contains(message), "{geometry}: {fault}");
    }
    for (filter, message) in [
        ("{'p': {'$geoWithin': 5}}", "$geoWithin needs an object"),
        ("{'p': {'$geoWithin': {}}}", "$geoWithin must be provided with a geometry"),
        ("{'p': {'$geoWithin': {'$circle': [1, 2]}}}", "unknown geo specifier: $circle"),
        (
            "{'p': {'$geoWithin': {'$geometry': {'type': 'Point', 'coordinates': [1, 1]}}}}",
            "not supported with provided geometry",
        ),
        (
            "{'p': {'$geoIntersects': {'$box': [[1, 1], [2, 2]]}}}",
            "not supported with provided geometry",
        ),
        (
            "{'p': {'$geoWithin': {'$center': [[1, 1], -5]}}}",
            "radius must be a non-negative number",
        ),
        ("{'p': {'$geoWithin': {'$center': [[1, 1], 5, 6]}}}", "Only 2 fields allowed"),
        ("{'p': {'$geoWithin': {'$polygon': [[1, 1], [2, 2]]}}}", "at least 3 points"),
        (
            "{'p': {'$near': {'$geometry': {'type': 'Point', 'coordinates': [1, 99]}}}}",
            "out of bounds",
        ),
        ("{'p': {'$near': [1, 1], '$maxDistance': -1}}", "$maxDistance must be non-negative"),
        ("{'p': {'$near': [1, 1], '$maxDistance': 'x'}}", "$maxDistance must be a number"),
        ("{'$or': [{'p': {'$near': [1, 1]}}]}", "geo $near must be top-level expr"),
        ("{'p': {'$near': [1, 1]}, 'q': {'$near': [1, 1]}}", "Too many geoNear expressions"),
        ("{'p': {'$maxDistance': 1}}", "needs a $near"),
        (
            "{'p': {'$near': {'type': 'LineString', 'coordinates': [[1, 1], [2, 2]]}}}",
            "invalid argument in geo near query: type",
        ),
        (
            "{'p': {'$near': {'$geometry': {'type': 'Point', 'coordinates': [1, 9]}}, '$maxDistance': 5}}",
            "geo near accepts just one argument when querying for a GeoJSON point. Extra field \
             found: $maxDistance: 5",
        ),
    ] {
        let error = Filter::parse(json(filter).view()).expect_err(filter);
        assert_eq!(error.code.number(), 2, "{filter}");
        assert!(error.message.contains(message), "{filter}: {error}");
    }
}

#[test]
fn distances() {
    let place = "{'$geometry': {'type': 'Point', 'coordinates': [0, 0]}";
    for (condition, stored, expected) in [
        (format!("{{'$near': {place}}}}}"), point(1.0, 0.0), Some(111_318.845)),
        (format!("{{'$near': {place}, '$maxDistance': 111000}}}}"), point(1.0, 0.0), None),
        (format!("{{'$near': {place}, '$minDistance': 112000}}}}"), point(1.0, 0.0), None),
        (format!("{{'$nearSphere': {place}}}}}"), "[1, 0]".to_owned(), Some(111_318.845)),
        ("{'$nearSphere': [0, 0]}".to_owned(), point(1.0, 0.0), Some(0.017_453_293)),
        ("{'$near': [0, 0]}".to_owned(), "[3, 4]".to_owned(), Some(5.0)),
        (
            "{'$near': {'type': 'Point', 'coordinates': [0, 0]}, '$maxDistance': 112000}"
                .to_owned(),
            point(1.0, 0.0),
            Some(111_318.845),
        ),
        (
            "{'$nearSphere': {'type': 'Point', 'coordinates': [0, 0]}, '$maxDistance': 111000}"
                .to_owned(),
            point(1.0, 0.0),
            None,
        ),
        ("{'$near': [0, 0], '$maxDistance': 4}".to_owned(), "[3, 4]".to_owned(), None),
        ("{'$near': [0, 0, 4]}".to_owned(), "[3, 4]".to_owned(), None),
        (
            format!("{{'$near': {place}}}}}"),
            shape("Polygon", "[[[-1, -1], [1, -1], [0, 1], [-1, -1]]]"),
            Some(0.0),
        ),
        (
            format!("{{'$near': {place}}}}}"),
            shape("LineString", "[[1, -1], [1, 1]]"),
            Some(111_318.845),
        ),
    ] {
        let filter = Filter::parse(json(&format!("{{'p': {condition}}}")).view());
        let filter = filter.unwrap_or_else(|error| panic!("{condition}: {error}"));
        let (path, near) = filter.near().expect(&condition);
        let document = json(&format!("{{'p': {stored}}}"));
        let found = near.distance(document.get(path).expect("there"));
        let is_near = match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() <= expected * 1e-6,
            (None, None) => true,
            _ => false,
        };
        assert!(is_near, "{condition} {stored}: {found:?}");
        assert_eq!(filter.matches(document.view()), expected.is_some(), "{condition} {stored}");
    }
}
