//! `$near` and `$nearSphere`: from where distances are measured, in which unit, and how far.
//!
//! Three forms: a GeoJSON point (metres on the sphere), a legacy pair with `$nearSphere` (radians),
//! and a legacy pair with `$near` (units of the plane). `$minDistance` and `$maxDistance` stand
//! beside a `$geometry`, inside, and otherwise beside the operator; a legacy pair may have the
//! greatest distance as its third number.

use bytes::Bytes;
use frond_doc::path::Path;
use frond_doc::{Document, Value, ValueBuf, key};

use super::grid::Grid;
use super::parse::{self, Fault};
use super::planar::{self, Position};
use super::sphere::{EARTH_RADIUS_METRES, Point};
use super::{Geometry, Part, cells};
use crate::number::any_type::Number;

/// The factor by which a ring is wider than the one within.
const RING_GROWTH: u8 = 4;
/// The number of rings at most: they reach from about a metre on the Earth to all of it.
const RINGS_MAX: i32 = 13;

/// The centre of a `$near`, and the range of distances.
#[derive(Clone, Debug)]
pub struct Near {
    centre: Centre,
    least: f64,
    most: f64,
}

#[derive(Clone, Copy, Debug)]
enum Centre {
    /// Distances are metres.
    Metres(Point),
    /// Distances are radians.
    Radians(Point),
    /// Distances are those of the plane.
    Plane(Position),
}

impl Near {
    /// Parses the condition `{$near: ...}`; `siblings` are all operators at the path.
    pub(crate) fn parse(
        operator: &str,
        argument: Value<'_>,
        siblings: Document<'_>,
    ) -> Result<Near, Fault> {
        let (is_array, inner) = match argument {
            Value::Document(inner) => (false, inner),
            Value::Array(array) => (true, array.as_document()),
            _ => return Err("near must be first in: near query".to_owned()),
        };
        let is_legacy = is_array || inner.iter().next().is_some_and(|(_, first)| first.is_number());
        if !is_legacy {
            // As MongoDB reads it: a point itself, or else what may say more than that.
            let bare = match inner.get("coordinates") {
                Some(_) => parse::query_point(argument),
                None => Err(String::new()),
            };
            let Ok(Geometry::Sphere(parts)) = bare else {
                return Near::of_geometry(inner, operator, siblings);
            };
            return Near::of_part(&parts)?.within(siblings);
        }
        let mut values = inner.iter().map(|(_, value)| value);
        let third = values.nth(2);
        let at = match third {
            None => parse::query_point(argument)?,
            Some(_) => {
                let mut pair = frond_doc::DocumentBuilder::new();
                inner.iter().take(2).for_each(|(name, value)| {
                    pair.append(name, value);
                });
                parse::query_point(Value::Document(pair.build().view()))?
            }
        };
        let Geometry::Flat(at) = at else { return Err("a legacy pair is wanted".to_owned()) };
        let mut near = Near::legacy(at, operator == "$nearSphere")?;
        if let Some(third) = third {
            near.most = distance_of("$maxDistance", third)?;
        }
        near.within(siblings)
    }

    fn of_geometry(
        inner: Document<'_>,
        operator: &str,
        siblings: Document<'_>,
    ) -> Result<Near, Fault> {
        if let Some((name, value)) = siblings.iter().nth(1) {
            return Err(format!(
                "geo near accepts just one argument when querying for a GeoJSON point. Extra field \
                 found: {}",
                crate::text::field(name, value)
            ));
        }
        let mut near = None;
        for (name, value) in inner.iter() {
            match name {
                "$geometry" => {
                    let Value::Document(geometry) = value else {
                        return Err("$near requires geojson point, given something else".to_owned());
                    };
                    near = Some(match parse::query_point(Value::Document(geometry)) {
                        Ok(Geometry::Sphere(parts)) => Near::of_part(&parts)?,
                        Ok(Geometry::Flat(at)) => Near::legacy(at, true)?,
                        Err(fault) => {
                            return Err(format!(
                                "invalid point in geo near query $geometry argument: {} {fault}",
                                crate::text::value(value)
                            ));
                        }
                    });
                }
                "$minDistance" | "$maxDistance" => {}
                _ => return Err(format!("invalid argument in geo near query: {name}")),
            }
        }
        let Some(near) = near else {
            return Err(format!("{operator} requires a point, given {{}}")
                .replace("{}", &{ crate::text::value(Value::Document(inner)) }));
        };
        near.within(inner)
    }

    /// This, with the limits among `operators`.
    fn within(mut self, operators: Document<'_>) -> Result<Near, Fault> {
        for (name, value) in operators.iter() {
            self.limit(name, value)?;
        }
        Ok(self)
    }

    fn of_part(parts: &[Part]) -> Result<Near, Fault> {
        match parts {
            [Part::Point(point, _)] => Ok(Near::from(Centre::Metres(*point))),
            _ => Err("$near requires a point, given something else".to_owned()),
        }
    }

    /// Makes one from a legacy pair.
    pub(crate) fn legacy(at: Position, on_sphere: bool) -> Result<Near, Fault> {
        if !on_sphere {
            return Ok(Near::from(Centre::Plane(at)));
        }
        if !at.is_on_earth() {
            return Err("Legacy point is out of bounds for spherical query".to_owned());
        }
        Ok(Near::from(Centre::Radians(at.to_sphere())))
    }

    /// As `$geoNear` says it: a point, and whether legacy pairs are on the sphere.
    pub(crate) fn of_stage(point: Value<'_>, spherical: bool) -> Result<Near, Fault> {
        match parse::query_point(point)? {
            Geometry::Flat(at) => Near::legacy(at, spherical),
            Geometry::Sphere(parts) => Near::of_part(&parts),
        }
    }

    fn from(centre: Centre) -> Near {
        Near { centre, least: 0.0, most: f64::INFINITY }
    }

    /// Takes `$minDistance` and `$maxDistance`; other names aren't its concern.
    pub(crate) fn limit(&mut self, name: &str, value: Value<'_>) -> Result<(), Fault> {
        match name {
            "$minDistance" | "minDistance" => self.least = distance_of("$minDistance", value)?,
            "$maxDistance" | "maxDistance" => self.most = distance_of("$maxDistance", value)?,
            _ => {}
        }
        Ok(())
    }

    /// This, ring by ring from the least distance to the greatest: the places of one ring are no
    /// farther than those of the next. `grid` is that of an index of places.
    pub(crate) fn rings(&self, grid: &Grid) -> Vec<Near> {
        let widest = match self.centre {
            Centre::Metres(_) => std::f64::consts::PI * EARTH_RADIUS_METRES,
            Centre::Radians(_) => std::f64::consts::PI,
            Centre::Plane(centre) => {
                let (min, max) = grid.limits();
                let reach = |at: f64| (at - min).abs().max((max - at).abs());
                reach(centre.x).hypot(reach(centre.y))
            }
        };
        let mut rings = Vec::new();
        let mut least = self.least;
        for step in (0..RINGS_MAX).rev() {
            let most = widest / f64::from(RING_GROWTH).powi(step);
            if step == 0 || self.most <= most {
                rings.push(Near { least, ..self.clone() });
                break;
            }
            if least < most {
                rings.push(Near { least, most, ..self.clone() });
                least = most;
            }
        }
        rings
    }

    /// Whether distances are measured in the plane.
    pub(crate) fn is_in_plane(&self) -> bool {
        matches!(self.centre, Centre::Plane(_))
    }

    /// Whether they are measured in metres.
    pub(crate) fn is_in_metres(&self) -> bool {
        matches!(self.centre, Centre::Metres(_))
    }

    /// The distance of a stored value, if it is a place within the limits.
    pub fn distance(&self, stored: Value<'_>) -> Option<f64> {
        let stored = parse::stored(stored).ok()?;
        let distance = match self.centre {
            Centre::Plane(centre) => centre.distance(stored.in_plane()?),
            Centre::Radians(centre) => super::distance(&stored.on_sphere()?, centre),
            Centre::Metres(centre) => {
                super::distance(&stored.on_sphere()?, centre) * EARTH_RADIUS_METRES
            }
        };
        (self.least <= distance && distance <= self.most).then_some(distance)
    }

    /// The ranges of cells of the sphere in which all answers lie, as `cells` numbers them.
    pub(crate) fn cells(&self) -> Option<Vec<(i64, i64)>> {
        let (centre, unit) = match self.centre {
            Centre::Plane(_) => return None,
            Centre::Radians(centre) => (centre, 1.0),
            Centre::Metres(centre) => (centre, EARTH_RADIUS_METRES),
        };
        let (least, most) = (self.least / unit, self.most / unit);
        if least <= 0.0 && std::f64::consts::PI <= most {
            return Some(vec![(i64::MIN, i64::MAX)]);
        }
        Some(cells::searched(&|point| {
            let distance = centre.distance(point);
            (distance - most).max(least - distance).max(0.0)
        }))
    }

    /// The ranges of squares of the plane in which all answers lie, as `grid` numbers them.
    pub(crate) fn squares(&self, grid: &Grid) -> Option<Vec<(i64, i64)>> {
        match self.centre {
            Centre::Metres(_) => None,
            Centre::Radians(centre) => {
                Some(grid.searched(&planar::boxes_of_cap(centre, self.most), &|_, _| true))
            }
            Centre::Plane(centre) => {
                let intersects = |low: Position, high: Position| {
                    let reach =
                        |at: f64, low: f64, high: f64| (at - low).abs().max((high - at).abs());
                    let (across, up) =
                        (reach(centre.x, low.x, high.x), reach(centre.y, low.y, high.y));
                    centre.distance(centre.within(low, high)) <= self.most
                        && self.least <= across.hypot(up)
                };
                Some(grid.searched(&[centre.square(self.most)], &intersects))
            }
        }
    }
}

fn distance_of(name: &str, value: Value<'_>) -> Result<f64, Fault> {
    let Some(number) = Number::of(value).map(Number::double) else {
        return Err(format!("{name} must be a number"));
    };
    if number.is_nan() || number < 0.0 {
        return Err(format!("{name} must be non-negative"));
    }
    Ok(number)
}

/// The distance by which a `$near` sorts documents.
#[derive(Clone, Debug)]
pub struct Distance {
    near: Near,
    path: Path,
}

impl Distance {
    /// The distance of the places at a path.
    pub(crate) fn new(near: Near, path: &str) -> Distance {
        Distance { near, path: Path::new(path) }
    }

    /// The bytes by which `document` is ordered; one without a place within the limits is the last.
    pub fn key(&self, document: Document<'_>) -> Bytes {
        let nearest = nearest(&self.near, document, &self.path);
        key_of(nearest.map_or(f64::INFINITY, |nearest| nearest.distance))
    }
}

/// The nearest place of a document.
#[derive(Clone, Debug)]
pub(crate) struct Nearest {
    pub(crate) distance: f64,
    pub(crate) place: ValueBuf,
}

/// The nearest of the places at `path` that are within the limits.
pub(crate) fn nearest(near: &Near, document: Document<'_>, path: &Path) -> Option<Nearest> {
    let mut found: Option<Nearest> = None;
    let mut offer = |value: Value<'_>| {
        if let Some(distance) = near.distance(value)
            && found.as_ref().is_none_or(|best| distance < best.distance)
        {
            found = Some(Nearest { distance, place: value.to_buf() });
        }
    };
    path.visit(document, &mut |value| {
        match value {
            Some(Value::Array(array)) => {
                offer(Value::Array(array));
                array.iter().for_each(&mut offer);
            }
            Some(value) => offer(value),
            None => {}
        }
        false
    });
    found
}

/// The bytes by which distances are ordered.
pub(crate) fn key_of(distance: f64) -> Bytes {
    key::of_value(Value::Double(distance))
}
