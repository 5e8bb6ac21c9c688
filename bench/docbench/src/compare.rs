//! Two results files of the same workloads, such as before and after a change: what is better, what
//! is worse, with intervals.
//!
//! Rows with the same key (workload, target, parameters, metric) are set side by side. Differences
//! inside the noise are counted, not listed. The two runs weren't interleaved, so a difference
//! between two moments of the machine counts as a difference here: the headers that differ are
//! printed first.

use std::collections::{BTreeMap, HashMap};

use crate::ratio::{Ratio, geometric_mean};
use crate::report::words::{self, put};
use crate::results::{Results, Row, RunHeader, Status};

/// The result of comparing two runs.
pub struct Comparison {
    /// As a table in plain text.
    pub text: String,
    /// Rows that are worse outside the noise, or that had a figure and have none.
    pub worse: usize,
}

struct Pair<'a> {
    before: &'a Row,
    after: &'a Row,
    ratio: Ratio,
}

/// Compares `after` with `before`; all rows are listed with `all`, otherwise those outside the
/// noise.
pub fn compare(before: &Results, after: &Results, all: bool) -> Comparison {
    let known: HashMap<String, &Row> = before.rows.iter().map(|row| (key(row), row)).collect();
    let (mut pairs, mut lost, mut unmatched) = (Vec::new(), Vec::new(), 0);
    for row in &after.rows {
        let Some(earlier) = known.get(&key(row)) else {
            unmatched += 1;
            continue;
        };
        if let Some(ratio) = Ratio::of(row, earlier) {
            pairs.push(Pair { before: earlier, after: row, ratio });
        } else if earlier.status == Status::Ok && row.status != Status::Ok {
            lost.push(row);
        }
    }
    let mut text = differences(&before.run, &after.run);
    let worse =
        pairs.iter().filter(|pair| !pair.ratio.is_noise() && pair.ratio.value < 1.0).count();
    table(&mut text, &mut pairs, all);
    for row in &lost {
        let reason = row.reason.as_deref().unwrap_or("no reason given");
        put(
            &mut text,
            format_args!("has no figure any more: {}: {reason}\n", words::full_name(row)),
        );
    }
    means(&mut text, &pairs);
    if unmatched > 0 {
        put(&mut text, format_args!("{unmatched} rows stand in the second file only\n"));
    }
    Comparison { text, worse: worse + lost.len() }
}

fn key(row: &Row) -> String {
    let parameters = serde_json::to_string(&row.parameters).unwrap_or_default();
    format!("{}\0{}\0{parameters}\0{}", row.workload, row.target, row.metric)
}

/// Returns the differences between the headers that make two runs hard to compare.
fn differences(before: &RunHeader, after: &RunHeader) -> String {
    let mut text = String::new();
    let facts = |run: &RunHeader| {
        [
            ("commit", run.commit.clone()),
            ("scale", run.scale.clone()),
            ("seed", run.seed.to_string()),
            ("durability", run.durability.clone()),
            ("processor", run.machine.processor.clone()),
            ("disk", run.machine.disk.clone()),
            ("load", run.machine.load.clone()),
        ]
    };
    for ((name, old), (_, new)) in facts(before).into_iter().zip(facts(after)) {
        if old != new {
            put(&mut text, format_args!("{name}: {old} -> {new}\n"));
        }
    }
    text
}

fn table(text: &mut String, pairs: &mut [Pair<'_>], all: bool) {
    pairs.sort_by(|one, other| one.ratio.value.total_cmp(&other.ratio.value));
    let noise = pairs.iter().filter(|pair| pair.ratio.is_noise()).count();
    for pair in pairs.iter().filter(|pair| all || !pair.ratio.is_noise()) {
        let sign = match pair.ratio {
            ratio if ratio.is_noise() => "same  ",
            ratio if ratio.value < 1.0 => "WORSE ",
            _ => "better",
        };
        let (low, high) = pair.ratio.interval;
        let median = |row: &Row| words::figure(row.median.unwrap_or(f64::NAN), &row.unit);
        put(
            text,
            format_args!(
                "{sign} {:>6.2}x  [{low:.2}, {high:.2}]  {:>14} -> {:<14}  {}\n",
                pair.ratio.value,
                median(pair.before),
                median(pair.after),
                words::full_name(pair.after)
            ),
        );
    }
    put(text, format_args!("{} rows compared, {noise} inside the noise\n", pairs.len()));
}

fn means(text: &mut String, pairs: &[Pair<'_>]) {
    let mut by_target: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| pair.after.headline) {
        let row = pair.after;
        by_target.entry((&row.target, &row.workload)).or_default().push(pair.ratio.value);
    }
    for ((target, workload), ratios) in by_target {
        if let Some(mean) = geometric_mean(&ratios) {
            put(
                text,
                format_args!(
                    "geometric mean of {} headlines: {mean:.2}x  {target} {workload}\n",
                    ratios.len()
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn a_slower_row_is_worse_and_a_lost_one_too() {
        let before = example::results();
        let mut after = before.clone();
        for row in after.rows.iter_mut().filter(|row| row.metric == "throughput") {
            row.samples.iter_mut().for_each(|sample| *sample /= 3.0);
        }
        let comparison = compare(&before, &after, false);
        let slower =
            after.rows.iter().filter(|row| row.metric == "throughput" && row.status == Status::Ok);
        assert_eq!(comparison.worse, slower.count(), "{}", comparison.text);
        assert!(comparison.text.contains("WORSE"), "{}", comparison.text);
        assert_eq!(compare(&before, &before, false).worse, 0);
        after = before.clone();
        after.rows[0].status = Status::Wrong;
        assert_eq!(compare(&before, &after, false).worse, 1);
    }
}
