//! Cells: the sphere cut into squares, each into four, so that places can be filed in a tree.
//!
//! The sphere lies in a cube; each of its six faces is a square of level 0. A cell's number is its
//! face, two bits for each level, and a one behind them, so that the numbers of all cells within a
//! cell are a range around its own (as in S2, whose curve within a face we don't need).
//!
//! 1. A stored shape is filed under the cells of a covering of it: a point under its smallest cell,
//!    others under a few larger ones ([`filed`]).
//! 2. A query's region is covered by a few cells ([`covering`]); what it may touch is filed under a
//!    cell within one of them (a range of numbers), or under one that one of them lies in (single
//!    numbers): [`searched`].
//!
//! *Invariant*: coverings may hold more than the shape, never less: a cell is left out only if the
//! shape is farther from its middle than its corners are.

use super::Part;
use super::sphere::{Point, TOLERANCE};

/// The level of the smallest cells: 3 cm on the Earth.
const LEVEL_MAX: u32 = 28;
/// Cells under which a shape is filed at most, if it has room in so few.
const FILED_MAX: usize = 8;
/// The level of the smallest cells that cover a region: half a metre.
const SEARCHED_LEVEL_MAX: u32 = LEVEL_MAX - 4;
/// Cells that cover a region at most.
const SEARCHED_MAX: usize = 20;
/// Cells under which a shape of many parts is filed at most.
const CELLS_MAX: usize = 10_000;

/// A cell: its face, its level, and its place in the face, counted in cells of its level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    face: u8,
    level: u32,
    column: u32,
    row: u32,
}

impl Cell {
    /// The cell of a level in which a point lies.
    fn of_point(point: Point, level: u32) -> Cell {
        let vector = point.vector();
        let mut axis = 0;
        for other in 1..3 {
            if vector[axis].abs() < vector[other].abs() {
                axis = other;
            }
        }
        let face = axis as u8 + if vector[axis] < 0.0 { 3 } else { 0 };
        let place = |other: usize| {
            let side = 1_u32 << level;
            let along = (vector[other] / vector[axis].abs()).atan() / std::f64::consts::FRAC_PI_4;
            (((along + 1.0) / 2.0 * f64::from(side)) as u32).min(side - 1)
        };
        Cell { face, level, column: place((axis + 1) % 3), row: place((axis + 2) % 3) }
    }

    /// The place on the sphere at a column and a row, which may lie between cells.
    fn place(self, column: f64, row: f64) -> Point {
        let axis = usize::from(self.face % 3);
        let side = f64::from(1_u32 << self.level);
        let along = |place: f64| ((place / side * 2.0 - 1.0) * std::f64::consts::FRAC_PI_4).tan();
        let mut vector = [0.0; 3];
        vector[axis] = if self.face < 3 { 1.0 } else { -1.0 };
        vector[(axis + 1) % 3] = along(column);
        vector[(axis + 2) % 3] = along(row);
        Point::toward(vector)
    }

    /// Its middle, and the angle within which all of it lies.
    fn extent(self) -> (Point, f64) {
        let (column, row) = (f64::from(self.column), f64::from(self.row));
        let middle = self.place(column + 0.5, row + 0.5);
        let corners = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)];
        // Its edges are great circles, so nothing is farther from the middle than a corner.
        let angle = |(right, up): (f64, f64)| middle.distance(self.place(column + right, row + up));
        (middle, corners.into_iter().map(angle).fold(0.0, f64::max) + TOLERANCE)
    }

    fn quarters(self) -> [Cell; 4] {
        let (column, row, level) = (self.column * 2, self.row * 2, self.level + 1);
        let quarter =
            |right: u32, up: u32| Cell { column: column + right, row: row + up, level, ..self };
        [quarter(0, 0), quarter(1, 0), quarter(0, 1), quarter(1, 1)]
    }

    /// Its number.
    pub(crate) fn number(self) -> i64 {
        let mut path = u64::from(self.face);
        for bit in (0..self.level).rev() {
            path =
                path << 2 | u64::from(self.row >> bit & 1) << 1 | u64::from(self.column >> bit & 1);
        }
        ((path << 1 | 1) << (2 * (LEVEL_MAX - self.level))) as i64
    }

    /// The numbers of all cells within it: the least and the greatest.
    fn range(self) -> (i64, i64) {
        let reach = (1_i64 << (2 * (LEVEL_MAX - self.level))) - 1;
        (self.number() - reach, self.number() + reach)
    }

    /// The cells that it lies in.
    fn around(self) -> impl Iterator<Item = Cell> {
        (0..self.level).map(move |level| {
            let up = self.level - level;
            Cell { level, column: self.column >> up, row: self.row >> up, ..self }
        })
    }
}

/// A few cells that hold everything that is no farther from a point than `distance` says.
fn covering(distance: &dyn Fn(Point) -> f64, cells_max: usize, level_max: u32) -> Vec<Cell> {
    let intersects = |cell: &Cell| {
        let (middle, angle) = cell.extent();
        distance(middle) <= angle
    };
    let faces = (0..6).map(|face| Cell { face, level: 0, column: 0, row: 0 });
    let mut cells: Vec<Cell> = faces.filter(intersects).collect();
    // The largest cell is cut first; one that can't be cut into few enough stays.
    let mut position = 0;
    while let Some(cell) = cells.get(position).copied() {
        if cell.level == level_max {
            position += 1;
            continue;
        }
        let quarters: Vec<Cell> = cell.quarters().into_iter().filter(intersects).collect();
        if cells.len() - 1 + quarters.len() > cells_max {
            position += 1;
            continue;
        }
        cells.remove(position);
        cells.extend(quarters);
    }
    cells
}

/// The numbers under which a shape is filed, ascending; `None` if it has too many parts.
pub(crate) fn filed(parts: &[Part]) -> Option<Vec<i64>> {
    let mut numbers = Vec::new();
    for part in parts {
        match part {
            Part::Point(point, _) => numbers.push(Cell::of_point(*point, LEVEL_MAX).number()),
            _ => {
                let cells = covering(&|point| part.distance(point), FILED_MAX, LEVEL_MAX);
                numbers.extend(cells.into_iter().map(Cell::number));
            }
        }
        if numbers.len() > CELLS_MAX {
            return None;
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// The numbers under which shapes that meet a region may be filed, where `distance` gives how far
/// the region is from a point: ranges, from the least to the greatest of each, ascending.
pub(crate) fn searched(distance: &dyn Fn(Point) -> f64) -> Vec<(i64, i64)> {
    let cells = covering(distance, SEARCHED_MAX, SEARCHED_LEVEL_MAX);
    let mut ranges = Vec::new();
    for cell in cells {
        ranges.push(cell.range());
        ranges.extend(cell.around().map(|outer| (outer.number(), outer.number())));
    }
    ranges.sort_unstable();
    ranges.dedup();
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_lies_in_its_cells() {
        for (longitude, latitude) in [(0.0, 0.0), (13.4, 52.5), (-179.9, -89.0), (45.0, 35.0)] {
            let point = Point::from_degrees(longitude, latitude);
            let least = Cell::of_point(point, LEVEL_MAX);
            for level in 0..LEVEL_MAX {
                let cell = Cell::of_point(point, level);
                let (middle, angle) = cell.extent();
                assert!(middle.distance(point) <= angle, "{point:?} {level}");
                let (low, high) = cell.range();
                assert!(low <= least.number() && least.number() <= high, "{point:?} {level}");
                assert!(least.around().any(|outer| outer == cell));
            }
        }
    }

    #[test]
    fn numbers_are_unique_and_ranges_nest() {
        let face = Cell { face: 5, level: 0, column: 0, row: 0 };
        let (low, high) = face.range();
        assert!(0 < low && low < high);
        let mut before = low - 1;
        let mut quarters = face.quarters().map(Cell::range).to_vec();
        quarters.sort_unstable();
        for (from, to) in quarters {
            assert!(before < from && from <= to && to <= high);
            assert!(!(from..=to).contains(&face.number()));
            before = to;
        }
    }

    #[test]
    fn coverings_are_small() {
        let point = Point::from_degrees(13.4, 52.5);
        let ranges = searched(&|other| (point.distance(other) - 1e-5).max(0.0));
        assert!(ranges.len() < 300, "{}", ranges.len());
        let number = Cell::of_point(point, LEVEL_MAX).number();
        assert!(ranges.iter().any(|(low, high)| *low <= number && number <= *high));
        let wide: i128 = ranges.iter().map(|(low, high)| i128::from(high - low)).sum();
        assert!(wide < 1 << 40, "{wide}");
    }
}
