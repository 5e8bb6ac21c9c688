//! Gathers what one workload measures on all targets, in all repetitions, into rows.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde_json::Value;

use crate::drive::{Measured, SERIES_STEP, Span, new_histogram};
use crate::results::{Better, Row, Status, encode_histogram};
use crate::statistics;
use crate::target::Failure;

/// The parameters of some rows.
#[derive(Clone, Debug, Default)]
pub struct Case {
    parameters: BTreeMap<String, Value>,
    headline: bool,
}

impl Case {
    /// A case where nothing is varied.
    pub fn new() -> Case {
        Case::default()
    }

    /// Adds a parameter.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Case {
        self.parameters.insert(name.into(), value.into());
        self
    }

    /// The same parameters, for a metric beside the headline's.
    pub fn detail(mut self) -> Case {
        self.headline = false;
        self
    }

    /// Its first metric stands in the summary matrix: see the recorder's methods.
    pub fn headline(mut self) -> Case {
        self.headline = true;
        self
    }
}

/// A row that is being gathered.
struct Gathered {
    row: Row,
    histogram: Option<Histogram<u64>>,
}

/// All rows of one workload, in the order in which they first came.
pub struct Recorder {
    workload: String,
    gathered: Vec<Gathered>,
    /// The reason why a target has no more rows.
    faults: BTreeMap<String, (Status, String)>,
    checked: BTreeMap<String, u64>,
}

impl Recorder {
    /// Begins without rows.
    pub fn new(workload: &str) -> Recorder {
        Recorder {
            workload: workload.into(),
            gathered: Vec::new(),
            faults: BTreeMap::new(),
            checked: BTreeMap::new(),
        }
    }

    fn row(
        &mut self,
        target: &str,
        case: &Case,
        metric: &str,
        (unit, better): (&str, Better),
    ) -> &mut Gathered {
        let found = self.gathered.iter().position(|gathered| {
            gathered.row.target == target
                && gathered.row.metric == metric
                && gathered.row.parameters == case.parameters
        });
        let position = found.unwrap_or_else(|| {
            let row = self.empty(target, case, metric, (unit, better));
            self.gathered.push(Gathered { row, histogram: None });
            self.gathered.len() - 1
        });
        &mut self.gathered[position]
    }

    fn empty(
        &self,
        target: &str,
        case: &Case,
        metric: &str,
        (unit, better): (&str, Better),
    ) -> Row {
        Row {
            workload: self.workload.clone(),
            target: target.into(),
            parameters: case.parameters.clone(),
            metric: metric.into(),
            unit: unit.into(),
            better,
            headline: false,
            status: Status::Ok,
            reason: None,
            samples: Vec::new(),
            median: None,
            interval: None,
            histogram: None,
            series: Vec::new(),
            series_step: None,
            series_warm_up: None,
            checked: None,
        }
    }

    /// Adds one repetition's value. It is a headline if the case is.
    pub fn value(
        &mut self,
        target: &str,
        case: &Case,
        metric: &str,
        (unit, better): (&str, Better),
        value: f64,
    ) {
        let gathered = self.row(target, case, metric, (unit, better));
        gathered.row.headline = case.headline;
        gathered.row.samples.push(value);
    }

    /// Adds one repetition's course over time to a row that has a value; `step` in seconds.
    pub fn series(&mut self, target: &str, case: &Case, metric: &str, series: Vec<f64>, step: f64) {
        let gathered = self.row(target, case, metric, ("", Better::Neither));
        gathered.row.series.push(series);
        gathered.row.series_step = Some(step);
        gathered.row.series_warm_up = Some(0.0);
    }

    /// Adds one repetition's load: `throughput` with its series (the headline, if the case is one),
    /// and `latency_p50`, `_p95`, `_p99`, `_p999` for each operation and, where there are several,
    /// for `all`; each `latency_p50` has the histogram.
    pub fn load(&mut self, target: &str, case: &Case, span: &Span, measured: &Measured) {
        let rate = ("operations/s", Better::Higher);
        let gathered = self.row(target, case, "throughput", rate);
        gathered.row.headline = case.headline;
        gathered.row.samples.push(measured.rate());
        gathered.row.series.push(measured.series.iter().map(|count| *count as f64).collect());
        gathered.row.series_step = Some(SERIES_STEP.as_secs_f64());
        let steps = span.warm_up.as_secs_f64() / SERIES_STEP.as_secs_f64();
        gathered.row.series_warm_up = Some(steps);
        if measured.latencies.len() > 1 {
            self.latency(target, case, "all", &measured.all_latencies());
        }
        for (operation, histogram) in &measured.latencies {
            self.latency(target, case, operation, histogram);
        }
    }

    /// Adds one repetition's latencies (microseconds) of one operation: `latency_p50` with the
    /// histogram, `_p95`, `_p99`, `_p999`, with the parameter `operation`.
    pub fn latency(
        &mut self,
        target: &str,
        case: &Case,
        operation: &str,
        histogram: &Histogram<u64>,
    ) {
        let case = Case { headline: false, ..case.clone() }.with("operation", operation);
        for (metric, quantile) in [
            ("latency_p50", 0.5),
            ("latency_p95", 0.95),
            ("latency_p99", 0.99),
            ("latency_p999", 0.999),
        ] {
            let gathered = self.row(target, &case, metric, ("ms", Better::Lower));
            gathered.row.samples.push(histogram.value_at_quantile(quantile) as f64 / 1e3);
            if metric == "latency_p50" {
                let all = gathered.histogram.get_or_insert_with(new_histogram);
                all.add(histogram).expect("all histograms have the same bounds");
            }
        }
    }

    /// Counts answers that were checked and right.
    pub fn checked(&mut self, target: &str, count: u64) {
        *self.checked.entry(target.into()).or_default() += count;
    }

    /// Says that `case` can't be measured on the target, and why.
    pub fn not_run(&mut self, target: &str, case: &Case, metric: &str, reason: &str) {
        let gathered = self.row(target, case, metric, ("", Better::Neither));
        gathered.row.headline = case.headline;
        gathered.row.status = Status::NotRun;
        gathered.row.reason = Some(reason.into());
    }

    /// Notes that the target's run has ended with a failure: none of its rows counts if an answer
    /// was wrong.
    pub fn fault(&mut self, target: &str, failure: &Failure) {
        let status = match failure {
            Failure::Wrong(_) => Status::Wrong,
            Failure::Unsupported(_) | Failure::Missing(_) => Status::NotRun,
            Failure::Conflict(_) | Failure::Other(_) => Status::Failed,
        };
        self.faults.insert(target.into(), (status, failure.to_string()));
    }

    /// Whether the target has ended with a failure.
    pub fn has_fault(&self, target: &str) -> bool {
        self.faults.contains_key(target)
    }

    /// All rows, with their medians and intervals.
    pub fn finish(mut self) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for (target, (status, reason)) in std::mem::take(&mut self.faults) {
            let mut row = self.empty(&target, &Case::new(), "", ("", Better::Neither));
            row.status = status;
            row.reason = Some(reason.clone());
            rows.push(row);
            for gathered in &mut self.gathered {
                if gathered.row.target == target && status == Status::Wrong {
                    gathered.row.status = status;
                    gathered.row.reason = Some(reason.clone());
                }
            }
        }
        for Gathered { mut row, histogram } in self.gathered {
            row.median = statistics::median(&row.samples);
            row.interval = statistics::interval(&row.samples);
            row.histogram = histogram.as_ref().map(encode_histogram).transpose()?;
            row.checked = self.checked.get(&row.target).copied();
            rows.push(row);
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_disqualifies_all_rows_of_the_target() {
        let mut recorder = Recorder::new("w");
        let fact = ("bytes", Better::Lower);
        recorder.value("good", &Case::new(), "disk", fact, 1.0);
        recorder.value("bad", &Case::new(), "disk", fact, 1.0);
        recorder.fault("bad", &Failure::Wrong("41, not 42".into()));
        let rows = recorder.finish().expect("there is no histogram");
        for row in rows {
            let expected = if row.target == "bad" { Status::Wrong } else { Status::Ok };
            assert_eq!(row.status, expected, "{row:?}");
        }
    }

    #[test]
    fn repetitions_come_together() {
        let mut recorder = Recorder::new("w");
        for value in [3.0, 1.0, 2.0] {
            let case = Case::new().with("clients", 8).headline();
            recorder.value("t", &case, "throughput", ("operations/s", Better::Higher), value);
        }
        let rows = recorder.finish().expect("there is no histogram");
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].median, rows[0].samples.len()), (Some(2.0), 3));
        assert_eq!(rows[0].interval, Some((1.0, 3.0)));
        assert!(rows[0].headline);
    }
}
