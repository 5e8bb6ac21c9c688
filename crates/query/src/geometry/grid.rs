//! The squares of a 2d index: the plane from the least to the greatest coordinate, halved again and
//! again.
//!
//! 1. A coordinate has a place of 32 bits in the grid. A point's number interleaves both places, x
//!    first; as many bits of each count as the index has (`bits`), the others are 0. This is
//!    MongoDB's hash.
//! 2. The points of a square of the first n halvings have numbers of one beginning: a range.
//! 3. A region is searched as the ranges of a few squares that hold it: the largest are cut while
//!    there are few enough, and what doesn't meet the region is left out.
//!
//! *Invariants*: places never descend where coordinates ascend, so a box of coordinates is a box of
//! places; numbers are signed, and ascend as the hashes do.

use super::planar::Position;

/// Bits of a place.
const PLACE_BITS: u32 = 32;
/// Squares that a region is searched in at most.
const SQUARES_MAX: usize = 24;

/// The division of the plane by a 2d index.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Grid {
    bits: u32,
    min: f64,
    max: f64,
}

impl Default for Grid {
    /// Longitudes and latitudes, to about half a metre.
    fn default() -> Grid {
        Grid { bits: 26, min: -180.0, max: 180.0 }
    }
}

/// The reason why a grid is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GridFault {
    /// Not between 1 and 32 bits.
    Bits,
    /// The least coordinate isn't below the greatest, or one isn't finite.
    Bounds,
}

/// One square: the first bits of its places.
#[derive(Clone, Copy, Debug)]
struct Square {
    level: u32,
    column: u32,
    row: u32,
}

impl Grid {
    /// A grid of `bits` halvings from `min` to `max` in both directions.
    ///
    /// # Errors
    /// [`GridFault::Bits`] if `bits` isn't from 1 to 32; [`GridFault::Bounds`] if `min` and `max`
    /// aren't finite or don't ascend.
    pub fn new(bits: f64, min: f64, max: f64) -> Result<Grid, GridFault> {
        if !(1.0..=f64::from(PLACE_BITS)).contains(&bits) {
            return Err(GridFault::Bits);
        }
        if !min.is_finite() || !max.is_finite() || max <= min || !(max - min).is_finite() {
            return Err(GridFault::Bounds);
        }
        Ok(Grid { bits: bits as u32, min, max })
    }

    /// The least and the greatest coordinate.
    pub(crate) fn limits(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    /// The number of a point's square; `None` outside.
    pub(crate) fn number(&self, at: Position) -> Option<i64> {
        let is_in = |coordinate: f64| self.min <= coordinate && coordinate <= self.max;
        (is_in(at.x) && is_in(at.y)).then(|| {
            let hash = interleaved(self.place(at.x), self.place(at.y));
            signed(hash & (u64::MAX << (2 * (PLACE_BITS - self.bits))))
        })
    }

    /// The ranges of numbers, from the least to the greatest of each, of what may lie in one of
    /// `boxes` (each its least and its greatest corner) and in a rectangle of which `intersects` is
    /// true.
    pub(crate) fn searched(
        &self,
        boxes: &[(Position, Position)],
        intersects: &dyn Fn(Position, Position) -> bool,
    ) -> Vec<(i64, i64)> {
        let places = |(low, high): &(Position, Position)| {
            [self.place(low.x), self.place(high.x), self.place(low.y), self.place(high.y)]
        };
        let boxes: Vec<[u32; 4]> = boxes.iter().map(places).collect();
        let intersects = |square: &Square| {
            let [left, right, low, high] = square.places();
            let in_box = |[from, to, under, over]: &[u32; 4]| {
                left <= *to && *from <= right && low <= *over && *under <= high
            };
            boxes.iter().any(in_box) && {
                let (low, high) = self.rectangle(square);
                intersects(low, high)
            }
        };
        let mut squares = vec![Square { level: 0, column: 0, row: 0 }];
        squares.retain(intersects);
        // The largest is cut first; one that can't be cut into few enough stays.
        let mut position = 0;
        while let Some(square) = squares.get(position).copied() {
            let quarters = square.quarters().into_iter().filter(intersects);
            let quarters: Vec<Square> =
                if square.level < self.bits { quarters.collect() } else { vec![square] };
            if square.level == self.bits || squares.len() - 1 + quarters.len() > SQUARES_MAX {
                position += 1;
                continue;
            }
            squares.remove(position);
            squares.extend(quarters);
        }
        squares.iter().map(Square::range).collect()
    }

    /// The place of a coordinate; of one outside the first or the last.
    fn place(&self, coordinate: f64) -> u32 {
        let share = (coordinate - self.min) / (self.max - self.min);
        // The cast ends at the bounds of the type.
        (share * 4_294_967_296.0) as u32
    }

    /// The corners between which all points of a square lie: a little more than the square.
    fn rectangle(&self, square: &Square) -> (Position, Position) {
        let unit = (self.max - self.min) / 4_294_967_296.0;
        let [left, right, low, high] = square.places().map(f64::from);
        let at = |place: f64| self.min + place * unit;
        let least = Position { x: at(left - 1.0), y: at(low - 1.0) };
        (least, Position { x: at(right + 2.0), y: at(high + 2.0) })
    }
}

impl Square {
    /// The first and the last column and row of it.
    fn places(&self) -> [u32; 4] {
        let span = |prefix: u32| match PLACE_BITS - self.level {
            PLACE_BITS => (0, u32::MAX),
            shift => (prefix << shift, (prefix << shift) | ((1_u32 << shift) - 1)),
        };
        let ((left, right), (low, high)) = (span(self.column), span(self.row));
        [left, right, low, high]
    }

    fn range(&self) -> (i64, i64) {
        let [left, right, low, high] = self.places();
        (signed(interleaved(left, low)), signed(interleaved(right, high)))
    }

    fn quarters(&self) -> [Square; 4] {
        let (column, row, level) = (self.column << 1, self.row << 1, self.level + 1);
        let quarter = |right: u32, up: u32| Square { level, column: column | right, row: row | up };
        [quarter(0, 0), quarter(0, 1), quarter(1, 0), quarter(1, 1)]
    }
}

/// The bits of both, those of `x` first.
fn interleaved(x: u32, y: u32) -> u64 {
    let spread = |place: u32| {
        let mut wide = u64::from(place);
        for (shift, mask) in [
            (16, 0x0000_ffff_0000_ffff),
            (8, 0x00ff_00ff_00ff_00ff),
            (4, 0x0f0f_0f0f_0f0f_0f0f),
            (2, 0x3333_3333_3333_3333),
            (1, 0x5555_5555_5555_5555),
        ] {
            wide = (wide | wide << shift) & mask;
        }
        wide
    };
    spread(x) << 1 | spread(y)
}

/// Signed numbers in the order of hashes.
fn signed(hash: u64) -> i64 {
    (hash ^ 1 << 63) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64, y: f64) -> Position {
        Position { x, y }
    }

    #[test]
    fn numbers_keep_within_bounds() {
        assert_eq!(interleaved(u32::MAX, 0), 0xaaaa_aaaa_aaaa_aaaa);
        assert_eq!(interleaved(0b101, 0b011), 0b10_0111);
        let grid = Grid::default();
        assert_eq!(grid.number(at(-180.0, -180.0)), Some(i64::MIN));
        assert_eq!(grid.number(at(180.1, 0.0)), None);
        assert_eq!(grid.number(at(0.0, f64::NAN)), None);
        let fine = Grid::new(32.0, 0.0, 1.0).expect("proper");
        assert_eq!(fine.number(at(1.0, 1.0)), Some(i64::MAX));
        let coarse = Grid::new(1.0, 0.0, 1.0).expect("proper");
        assert_eq!(coarse.number(at(0.7, 0.9)), coarse.number(at(0.5, 0.5)));
        assert_ne!(coarse.number(at(0.7, 0.9)), coarse.number(at(0.5, 0.4)));
        for (bits, min, max, fault) in [
            (0.0, 0.0, 1.0, GridFault::Bits),
            (33.0, 0.0, 1.0, GridFault::Bits),
            (f64::NAN, 0.0, 1.0, GridFault::Bits),
            (26.0, 1.0, 1.0, GridFault::Bounds),
            (26.0, 0.0, f64::INFINITY, GridFault::Bounds),
        ] {
            assert_eq!(Grid::new(bits, min, max), Err(fault));
        }
    }

    #[test]
    fn boxes_are_covered_by_the_searched_squares() {
        for bits in [1.0, 5.0, 26.0, 32.0] {
            let grid = Grid::new(bits, -10.0, 10.0).expect("proper");
            let (low, high) = (at(-3.3, 2.0), at(1.7, 2.5));
            let ranges = grid.searched(&[(low, high)], &|_, _| true);
            assert!(ranges.len() <= SQUARES_MAX);
            for step in 0..=50 {
                let x = -3.3 + f64::from(step) / 10.0;
                for y in [2.0, 2.2, 2.5] {
                    let number = grid.number(at(x, y)).expect("inside");
                    let holds = |(from, to): &(i64, i64)| *from <= number && number <= *to;
                    assert!(ranges.iter().any(holds), "{bits} {x} {y}");
                }
            }
            let far = grid.number(at(9.0, -9.0)).expect("inside");
            assert!(!ranges.iter().any(|(from, to)| *from <= far && far <= *to), "{bits}");
        }
        let quarter = Grid::new(26.0, -1.0, 1.0).expect("proper");
        let ranges = quarter.searched(&[(at(-1.0, -1.0), at(-0.001, -0.001))], &|_, _| true);
        let widest = ranges.iter().map(|(from, to)| to.wrapping_sub(*from)).max();
        assert!(widest.is_some_and(|widest| widest < 1 << 62), "{ranges:?}");
    }
}
