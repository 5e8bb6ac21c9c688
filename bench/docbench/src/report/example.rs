//! Results for the tests of the report and the comparison: two targets, the second of which gave a
//! wrong answer.

use serde_json::json;

use crate::drive::new_histogram;
use crate::results::{Results, Row, encode_histogram};

/// The results.
pub fn results() -> Results {
    let run = json!({
        "schema": 1, "docbench": "0.1.0", "commit": "abc", "started": 0, "started_utc": "then",
        "command": ["docbench"], "scale": "smoke", "repetitions": 3, "seed": 1,
        "workloads": ["ycsb"], "targets": ["one", "two"], "durability": "synced",
        "machine": {"processor": "a <processor>", "processors": 2, "memory_bytes": 1, "kernel": "k",
            "system": "s", "disk": "d", "load": "0 0 0"},
        "fsync_probe_micros": [100.0, 120.0], "flushes_counted": true,
        "generator": {"closed_nanos": 50.0, "open_micros": [60.0, 70.0, 900.0]},
    });
    let about = json!({"name": "one", "version": "1.0", "connection": "embedded",
        "durability": "synced", "settings": [["cache", "256 MB"]]});
    let targets = json!([
        {"name": "one", "status": "ok", "about": about, "flushes_a_write": 1.0, "write_micros": 150.0},
        {"name": "two", "status": "ok", "about": about},
    ]);
    Results {
        run: serde_json::from_value(run).expect("a header"),
        targets: serde_json::from_value(targets).expect("targets"),
        rows: rows(),
        end: None,
    }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for clients in [1, 8, 35] {
        let rate = f64::from(clients) * 10.0;
        let mut row =
            row("one", "throughput", "operations/s", "higher", json!({"clients": clients}));
        row.samples = vec![rate, rate * 1.01, rate * 0.99];
        row.median = Some(rate);
        row.headline = clients == 8;
        if row.headline {
            row.series = vec![vec![10.0, 16.0, 16.0], vec![12.0, 16.0, 17.0, 1.0]];
            row.series_step = Some(0.2);
            row.series_warm_up = Some(1.0);
        }
        rows.push(row);
    }
    let mut latency =
        row("one", "latency_p50", "ms", "lower", json!({"clients": 8, "operation": "all"}));
    let mut histogram = new_histogram();
    (1..2_000_u64).for_each(|micros| histogram.record(micros).expect("in the bounds"));
    latency.samples = vec![1.0, 1.0, 1.0];
    latency.median = Some(1.0);
    latency.histogram = Some(encode_histogram(&histogram).expect("it can be written"));
    rows.push(latency);
    let mut wrong = row("two", "throughput", "operations/s", "higher", json!({"clients": 8}));
    wrong.headline = true;
    wrong.status = crate::results::Status::Wrong;
    wrong.reason = Some("key 7 has another's value".into());
    rows.push(wrong);
    rows
}

fn row(target: &str, metric: &str, unit: &str, better: &str, parameters: serde_json::Value) -> Row {
    let row = json!({
        "workload": "ycsb", "target": target, "parameters": parameters, "metric": metric,
        "unit": unit, "better": better, "status": "ok", "samples": [],
    });
    serde_json::from_value(row).expect("a row")
}
