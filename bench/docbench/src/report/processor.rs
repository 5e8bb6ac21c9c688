//! A table beside the rates: the processor time that an operation took in the server, and in the
//! client.
//!
//! Clients run on the processors that the databases use, so a rate says as much of the client's
//! library as of the database where that library takes more. This table separates them. Rows are
//! the cases of headlines.

use super::words::{self, escaped, put};
use crate::results::{Row, Status};
use crate::workload::{CPU_OF_CLIENT, CPU_OF_SERVER};

/// The table; empty where no server's processor time was measured.
pub fn table(rows: &[&Row], columns: &[String]) -> String {
    let servers: Vec<&str> = columns
        .iter()
        .map(String::as_str)
        .filter(|column| {
            rows.iter().any(|row| row.target == *column && row.metric == CPU_OF_CLIENT)
        })
        .collect();
    let mut cases: Vec<&Row> = Vec::new();
    for row in rows.iter().copied().filter(|row| row.metric == CPU_OF_CLIENT) {
        let is_headline =
            rows.iter().any(|other| other.headline && other.parameters == row.parameters);
        if is_headline && cases.iter().all(|case| case.parameters != row.parameters) {
            cases.push(row);
        }
    }
    if cases.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<h3>Processor time an operation: server, and client</h3><div class='wide'>\
         <table class='matrix'><thead><tr><th>case</th>",
    );
    for server in &servers {
        put(&mut text, format_args!("<th>{}</th>", escaped(server)));
    }
    text.push_str("</tr></thead><tbody>");
    for case in cases {
        put(&mut text, format_args!("<tr><th>{}</th>", escaped(&words::case(case, &[]))));
        for server in &servers {
            let figure = |metric: &str| {
                let found = rows.iter().find(|row| {
                    (row.target.as_str(), row.metric.as_str()) == (server, metric)
                        && row.parameters == case.parameters
                });
                let found = found.filter(|row| row.status == Status::Ok).and_then(|row| row.median);
                found.map_or("none".into(), |value| words::figure(value, "µs"))
            };
            let (own, of_client) = (figure(CPU_OF_SERVER), figure(CPU_OF_CLIENT));
            put(&mut text, format_args!("<td>{own}<small>client {of_client}</small></td>"));
        }
        text.push_str("</tr>");
    }
    text.push_str("</tbody></table></div>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn server_and_client_stand_apart() {
        let mut results = example::results();
        let columns = ["one".to_owned(), "two".to_owned()];
        let rows: Vec<&Row> = results.rows.iter().collect();
        assert_eq!(table(&rows, &columns), "", "an embedded database has no client apart");
        let headline = results.rows.iter().find(|row| row.headline).cloned().expect("there is one");
        for (metric, micros) in [(CPU_OF_SERVER, 40.0), (CPU_OF_CLIENT, 90.0)] {
            let metric = metric.to_owned();
            let row = Row { metric, headline: false, median: Some(micros), ..headline.clone() };
            results.rows.push(row);
        }
        let rows: Vec<&Row> = results.rows.iter().collect();
        let text = table(&rows, &columns);
        assert!(text.contains("<td>40 µs<small>client 90 µs</small></td>"), "{text}");
        assert!(!text.contains("two"), "{text}");
    }
}
