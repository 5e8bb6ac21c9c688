//! Every accumulator of MongoDB's, in the order of their names, and where it
//! may stand. The window functions that are no accumulators (`$rank`, `$shift`, ...) are the
//! stage's.

use super::Kind;
use crate::feature::Feature;

/// The places where an accumulator may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In `$group`, `$bucket` or `$bucketAuto`.
    Group,
    /// In `$setWindowFields`.
    Window,
}

/// One accumulator.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    in_group: bool,
    in_window: bool,
}

impl Row {
    /// Whether MongoDB has it there.
    fn stands_in(&self, place: Place) -> bool {
        match place {
            Place::Group => self.in_group,
            Place::Window => self.in_window,
        }
    }
}

const fn row(name: &'static str, kind: Kind) -> Row {
    Row { name, kind, in_group: true, in_window: true }
}

const fn in_window(name: &'static str, kind: Kind) -> Row {
    Row { name, kind, in_group: false, in_window: true }
}

const fn in_group(name: &'static str, kind: Kind) -> Row {
    Row { name, kind, in_group: true, in_window: false }
}

static ACCUMULATORS: &[Row] = &[
    // Into which a `mapReduce` is translated.
    in_group("$_internalJsReduce", Kind::Scripted),
    in_group("$accumulator", Kind::Scripted),
    row("$addToSet", Kind::AddToSet),
    row("$avg", Kind::Avg),
    row("$bottom", Kind::Bottom),
    row("$bottomN", Kind::BottomN),
    row("$count", Kind::Count),
    in_window("$covariancePop", Kind::CovariancePop),
    in_window("$covarianceSamp", Kind::CovarianceSamp),
    row("$first", Kind::First),
    row("$firstN", Kind::FirstN),
    row("$last", Kind::Last),
    row("$lastN", Kind::LastN),
    row("$max", Kind::Max),
    row("$maxN", Kind::MaxN),
    row("$median", Kind::Median),
    row("$mergeObjects", Kind::MergeObjects),
    row("$min", Kind::Min),
    row("$minN", Kind::MinN),
    row("$percentile", Kind::Percentile),
    row("$push", Kind::Push),
    row("$stdDevPop", Kind::StdDevPop),
    row("$stdDevSamp", Kind::StdDevSamp),
    row("$sum", Kind::Sum),
    row("$top", Kind::Top),
    row("$topN", Kind::TopN),
];

/// Finds an accumulator by its name.
pub(super) fn find(name: &str, place: Place) -> Option<&'static Row> {
    let position = ACCUMULATORS.binary_search_by(|row| row.name.cmp(name)).ok()?;
    ACCUMULATORS.get(position).filter(|row| row.stands_in(place))
}

/// Returns every accumulator that may stand in a place, for the list of what works.
pub(crate) fn features(place: Place) -> impl Iterator<Item = Feature> {
    let standing = ACCUMULATORS.iter().filter(move |row| row.stands_in(place));
    standing.filter(|row| !row.name.starts_with("$_")).map(|row| Feature::works(row.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ascend_so_that_they_can_be_searched() {
        for pair in ACCUMULATORS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
    }
}
