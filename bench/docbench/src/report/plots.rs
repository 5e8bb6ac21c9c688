//! Chooses the plots of a workload's rows: nothing here knows a workload.
//!
//! 1. *By parameter*: a metric over a numeric parameter that takes three values or more on one
//!    target, with all other parameters equal: latency against clients, or against a document's
//!    size.
//! 2. *Over time*: the throughput of a headline, step by step, the repetitions' mean.
//! 3. *By percentile*: the latencies of a headline's load, from its histogram.
//!
//! A kind has at most [`PLOTS_MAX`] plots a workload; the rest stands in the table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::plot::{Axis, Line, Plot};
use super::words;
use crate::results::{Row, Status, decode_histogram};
use crate::target::Failure;

const PLOTS_MAX: usize = 12;
const VALUES_MIN: usize = 3;
/// Sizes, rates and clients that span such a factor are drawn by factors.
const SPAN_OF_LOG: f64 = 8.0;

/// All plots of some rows of one workload; `looks` names the subjects in the report's order.
pub fn plots(rows: &[&Row], looks: &[String]) -> Result<Vec<Plot>, Failure> {
    let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.status == Status::Ok).collect();
    let mut plots = by_parameter(&rows, looks);
    plots.extend(over_time(&rows, looks));
    plots.extend(by_percentile(&rows, looks)?);
    Ok(plots)
}

fn look_of(row: &Row, looks: &[String]) -> usize {
    looks.iter().position(|look| *look == row.target).unwrap_or(looks.len())
}

/// Rows that differ in nothing but the target and `parameter`, by what is equal.
type Groups<'a> = BTreeMap<String, Vec<&'a Row>>;

fn groups<'a>(rows: &[&'a Row], metric: &str, parameter: &str) -> Groups<'a> {
    let mut groups: Groups<'a> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.metric == metric) {
        if row.parameters.get(parameter).is_some_and(Value::is_number) {
            groups.entry(words::case(row, &[parameter])).or_default().push(row);
        }
    }
    groups
}

fn by_parameter(rows: &[&Row], looks: &[String]) -> Vec<Plot> {
    let rows: Vec<&Row> = rows.iter().copied().filter(|row| is_plotted(row, rows)).collect();
    let metrics = first_seen(rows.iter().map(|row| row.metric.as_str()));
    let parameters: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.parameters.keys().map(String::as_str)).collect();
    let mut plots = Vec::new();
    for metric in &metrics {
        for parameter in &parameters {
            for (case, group) in groups(&rows, metric, parameter) {
                plots.extend(parameter_plot(&group, (metric, parameter, &case), looks));
            }
        }
    }
    plots.truncate(PLOTS_MAX);
    plots
}

/// Whether it is drawn: of latencies the median and the 95th percentile are, of all operations
/// together if there are.
fn is_plotted(row: &Row, rows: &[&Row]) -> bool {
    let operation = row.parameters.get("operation").and_then(Value::as_str);
    let has_all = || {
        rows.iter().any(|other| {
            other.workload == row.workload
                && other.parameters.get("operation").and_then(Value::as_str) == Some("all")
        })
    };
    row.median.is_some()
        && !matches!(row.metric.as_str(), "latency_p99" | "latency_p999")
        && (operation.is_none_or(|operation| operation == "all") || !has_all())
}

fn first_seen<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

fn parameter_plot(
    group: &[&Row],
    (metric, parameter, case): (&str, &str, &str),
    looks: &[String],
) -> Option<Plot> {
    let mut lines: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for row in group {
        let x = row.parameters.get(parameter).and_then(Value::as_f64)?;
        lines.entry(look_of(row, looks)).or_default().push((x, row.median?));
    }
    if lines.values().all(|points| points.len() < VALUES_MIN) {
        return None;
    }
    for points in lines.values_mut() {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    let axis = |of: fn(&(f64, f64)) -> f64| {
        let values = || lines.values().flatten().map(of);
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        if low > 0.0 && high / low >= SPAN_OF_LOG { Axis::Log } else { Axis::Linear }
    };
    let unit = &group.first()?.unit;
    Some(Plot {
        title: title(&format!("{} by {parameter}", words::metric(metric)), case),
        x: (parameter.replace('_', " "), axis(|point| point.0)),
        y: (format!("{}, {unit}", words::metric(metric)), axis(|point| point.1)),
        mark: None,
        lines: lines.into_iter().map(|(look, points)| Line { look, points }).collect(),
    })
}

fn title(what: &str, case: &str) -> String {
    if case.is_empty() { what.into() } else { format!("{what} ({case})") }
}

/// The rows that make a plot each, by their case, in the order in which they came.
fn by_case<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<(String, Vec<&'a Row>)> {
    let mut cases: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let case = words::case(row, &[]);
        match cases.iter_mut().find(|(name, _)| *name == case) {
            Some((_, rows)) => rows.push(row),
            None => cases.push((case, vec![row])),
        }
    }
    cases.truncate(PLOTS_MAX);
    cases
}

fn over_time(rows: &[&Row], looks: &[String]) -> Vec<Plot> {
    let rows = rows.iter().copied().filter(|row| row.headline && !row.series.is_empty());
    let plot = |(case, rows): (String, Vec<&Row>)| {
        let step = rows.first().and_then(|row| row.series_step).unwrap_or(1.0);
        let warm_up = rows.first().and_then(|row| row.series_warm_up);
        let line = |row: &&Row| Line {
            look: look_of(row, looks),
            points: mean_series(&row.series, row.series_step.unwrap_or(step)),
        };
        Plot {
            title: title(&format!("{} over time", words::metric(&rows[0].metric)), &case),
            x: ("seconds".into(), Axis::Linear),
            y: (rows[0].unit.clone(), Axis::Linear),
            mark: warm_up.filter(|steps| *steps > 0.0).map(|steps| steps * step),
            lines: rows.iter().map(line).collect(),
        }
    };
    by_case(rows).into_iter().map(plot).collect()
}

/// The mean rate of each step that all repetitions have.
fn mean_series(series: &[Vec<f64>], step: f64) -> Vec<(f64, f64)> {
    let steps = series.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |position: usize| {
        series.iter().map(|one| one[position]).sum::<f64>() / series.len() as f64 / step
    };
    (0..steps).map(|position| ((position + 1) as f64 * step, mean(position))).collect()
}

fn by_percentile(rows: &[&Row], looks: &[String]) -> Result<Vec<Plot>, Failure> {
    // A histogram is plotted if the load it is of is a headline, or has an open loop.
    let headlines: BTreeSet<String> =
        rows.iter().filter(|row| row.headline).map(|row| words::case(row, &[])).collect();
    let wanted = rows.iter().copied().filter(|row| {
        row.histogram.is_some()
            && is_plotted(row, rows)
            && (row.headline
                || headlines.contains(&words::case(row, &["operation"]))
                || row.parameters.get("loop").and_then(Value::as_str) == Some("open"))
    });
    let mut plots = Vec::new();
    for (case, rows) in by_case(wanted) {
        let mut lines = Vec::new();
        for row in &rows {
            let Some(text) = &row.histogram else { continue };
            lines.push(Line { look: look_of(row, looks), points: percentiles(text)? });
        }
        plots.push(Plot {
            title: title("latency by percentile", &case),
            x: ("percentile".into(), Axis::Quantile),
            y: ("latency, ms".into(), Axis::Log),
            mark: None,
            lines,
        });
    }
    Ok(plots)
}

/// Latencies in milliseconds by 1 / (1 - quantile), as far as at least ten values lie above.
fn percentiles(text: &str) -> Result<Vec<(f64, f64)>, Failure> {
    let histogram = decode_histogram(text)?;
    let last = (histogram.len() as f64 / 10.0).max(10.0);
    let steps = (0..).map(|step| 10_f64.powf(f64::from(step) / 8.0));
    let at = |left: f64| (left, histogram.value_at_quantile(1.0 - 1.0 / left).max(1) as f64 / 1e3);
    Ok(steps.take_while(|left| *left <= last).map(at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn rows_make_plots_by_parameter_over_time_and_by_percentile() {
        let results = example::results();
        let rows: Vec<&Row> = results.rows.iter().collect();
        let plots = plots(&rows, &["one".into(), "two".into()]).expect("the rows are right");
        let titles: Vec<&str> = plots.iter().map(|plot| plot.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "throughput by clients",
                "throughput over time (clients 8)",
                "latency by percentile (clients 8, operation all)",
            ]
        );
        assert_eq!(plots[0].lines.len(), 1, "what was wrong isn't drawn");
        assert_eq!(plots[1].lines[0].points[0], (0.2, 55.0));
        assert_eq!(plots[1].mark, Some(0.2));
        let (first, last) = (plots[2].lines[0].points[0], plots[2].lines[0].points.last());
        assert!(first.1 <= last.expect("there are points").1);
        for plot in &plots {
            assert!(plot.svg().expect("it can be drawn").is_some(), "{}", plot.title);
        }
    }
}
