//! The summary: what each workload's headlines say of the subject beside each other database.
//!
//! 1. A cell holds the peer's median and how many times better the subject is, in a colour, with a
//!    sign, and in digits: none of them is needed to read the others. Inside the noise there is no
//!    ranking.
//! 2. An embedded peer is compared with the subject embedded, if that was measured; a server with
//!    the subject's server.
//! 3. Targets of different durability never stand in one table.
//! 4. A cell says if its workload wasn't run, failed or was disqualified.

use super::words::{self, escaped, put};
use crate::ratio::{Ratio, geometric_mean};
use crate::results::{Results, Row, Status, TargetLine};

/// Rows of one workload that stand in the same line of the matrix.
pub struct Heading<'a> {
    /// The case and metric.
    pub title: String,
    /// The rows by target.
    pub rows: Vec<&'a Row>,
}

/// The targets of a report and which are compared with each other.
pub struct Sides<'a> {
    results: &'a Results,
    subject: &'a str,
}

impl<'a> Sides<'a> {
    /// `subject` is a target's name; those that begin with it and a hyphen are the same database.
    pub fn new(results: &'a Results, subject: &'a str) -> Sides<'a> {
        Sides { results, subject }
    }

    /// Whether the target is the subject, in one of its forms.
    pub fn is_subject(&self, target: &str) -> bool {
        let rest = target.strip_prefix(self.subject);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    fn line(&self, target: &str) -> Option<&TargetLine> {
        self.results.targets.iter().find(|line| line.name == target)
    }

    fn about(&self, target: &str, field: &str) -> String {
        let about = self.line(target).and_then(|line| line.about.as_ref());
        let value = about.and_then(|about| about.get(field)).and_then(|value| value.as_str());
        value.unwrap_or("").to_owned()
    }

    /// Returns the durability of the target's writes.
    pub fn durability(&self, target: &str) -> String {
        self.about(target, "durability")
    }

    fn is_embedded(&self, target: &str) -> bool {
        self.about(target, "connection") == "embedded"
    }

    /// The subject's row beside which the target's row stands.
    pub fn base<'r>(&self, row: &Row, rows: &[&'r Row]) -> Option<&'r Row> {
        let mine = || rows.iter().copied().filter(|other| self.is_subject(&other.target));
        let same =
            mine().find(|other| self.is_embedded(&other.target) == self.is_embedded(&row.target));
        same.or_else(|| mine().next()).filter(|_| !self.is_subject(&row.target))
    }

    /// Ratios of a line, by peer: above 1 the subject is better.
    pub fn ratios(&self, rows: &[&Row]) -> Vec<(String, Ratio)> {
        let ratio = |row: &&Row| Some((row.target.clone(), Ratio::of(self.base(row, rows)?, row)?));
        rows.iter().filter_map(ratio).collect()
    }
}

/// A workload's headlines, in order.
pub fn headings<'a>(rows: &[&'a Row]) -> Vec<Heading<'a>> {
    let mut headings: Vec<Heading<'a>> = Vec::new();
    for row in rows.iter().copied().filter(|row| row.headline) {
        let case = words::case(row, &[]);
        let separator = if case.is_empty() { "" } else { ": " };
        let title = format!("{}{separator}{case}", words::metric(&row.metric));
        match headings.iter_mut().find(|heading| heading.title == title) {
            Some(heading) => heading.rows.push(row),
            None => headings.push(Heading { title, rows: vec![row] }),
        }
    }
    headings
}

/// One table for each durability that the columns have.
pub fn matrix(sides: &Sides<'_>, workload: &str, rows: &[&Row], columns: &[String]) -> String {
    let mut text = String::new();
    let mut classes: Vec<String> = Vec::new();
    for column in columns {
        let durability = sides.durability(column);
        if !classes.contains(&durability) {
            classes.push(durability);
        }
    }
    for class in &classes {
        let of_class = |column: &&String| sides.durability(column) == *class;
        let columns: Vec<&String> = columns.iter().filter(of_class).collect();
        let rows: Vec<&Row> =
            rows.iter().copied().filter(|row| columns.contains(&&row.target)).collect();
        if classes.len() > 1 {
            let name = if class.is_empty() { "unknown" } else { class };
            put(&mut text, format_args!("<p>Durability: {}</p>", escaped(name)));
        }
        table(&mut text, sides, (workload, &rows), &columns);
    }
    text
}

fn table(
    text: &mut String,
    sides: &Sides<'_>,
    (workload, rows): (&str, &[&Row]),
    columns: &[&String],
) {
    put(
        text,
        format_args!(
            "<div class='wide'><table class='matrix'><thead><tr><th>{}</th>",
            escaped(workload)
        ),
    );
    for column in columns {
        put(text, format_args!("<th>{}</th>", escaped(column)));
    }
    text.push_str("</tr></thead><tbody>");
    let mut means: Vec<Vec<f64>> = vec![Vec::new(); columns.len()];
    for heading in headings(rows) {
        put(text, format_args!("<tr><th>{}</th>", escaped(&heading.title)));
        for (column, ratios) in columns.iter().zip(&mut means) {
            let row = heading.rows.iter().copied().find(|row| row.target == **column);
            let ratio = row.and_then(|row| Ratio::of(sides.base(row, &heading.rows)?, row));
            ratios.extend(ratio.map(|ratio| ratio.value));
            cell(text, row, ratio);
        }
        text.push_str("</tr>");
    }
    text.push_str("<tr class='mean'><th>geometric mean of the ratios</th>");
    for ratios in &means {
        match geometric_mean(ratios) {
            Some(mean) => put(text, format_args!("<td>{mean:.2}&times; of {}</td>", ratios.len())),
            None => text.push_str("<td></td>"),
        }
    }
    text.push_str("</tr></tbody></table></div>");
}

fn cell(text: &mut String, row: Option<&Row>, ratio: Option<Ratio>) {
    let Some(row) = row else {
        return text.push_str("<td class='none'>not measured</td>");
    };
    if row.status != Status::Ok {
        let reason = escaped(row.reason.as_deref().unwrap_or(""));
        let name = status_name(row.status);
        return put(text, format_args!("<td class='none'>{name}<small>{reason}</small></td>"));
    }
    let median = row.median.unwrap_or(f64::NAN);
    let figure = escaped(&words::figure(median, &row.unit));
    let Some(ratio) = ratio else {
        return put(text, format_args!("<td title='{median}'>{figure}</td>"));
    };
    let (sign, class) = verdict(&ratio);
    let (low, high) = ratio.interval;
    put(
        text,
        format_args!(
            "<td class='{class}' title='{median}; ratio {low:.2} to {high:.2}'><b>{sign} \
             {:.2}&times;</b><small>{figure}</small></td>",
            ratio.value
        ),
    );
}

/// A sign and a style: how much better or worse, in three steps.
fn verdict(ratio: &Ratio) -> (&'static str, &'static str) {
    match ratio.value {
        _ if ratio.is_noise() => ("&asymp;", "same"),
        value if value >= 3.0 => ("&#9650;", "better3"),
        value if value >= 1.5 => ("&#9650;", "better2"),
        value if value >= 1.0 => ("&#9650;", "better1"),
        value if value > 1.0 / 1.5 => ("&#9660;", "worse1"),
        value if value > 1.0 / 3.0 => ("&#9660;", "worse2"),
        _ => ("&#9660;", "worse3"),
    }
}

/// A status as a reader reads it.
pub fn status_name(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Wrong => "WRONG ANSWER",
        Status::NotRun => "not run",
        Status::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn a_peer_is_compared_with_the_subject_in_its_own_form() {
        let mut results = example::results();
        let template = results.rows[0].clone();
        let target = |name: &str, connection: &str| TargetLine {
            name: name.into(),
            about: Some(serde_json::json!({"connection": connection, "durability": "synced"})),
            ..results.targets[0].clone()
        };
        results.targets = vec![
            target("frond", "TCP on loopback"),
            target("frond-embedded", "embedded"),
            target("sqlite", "embedded"),
            target("postgres", "Unix socket"),
        ];
        let row = |name: &str, rate: f64| Row {
            target: name.into(),
            samples: vec![rate; 3],
            median: Some(rate),
            headline: true,
            ..template.clone()
        };
        let rows = [
            row("frond", 10.0),
            row("frond-embedded", 40.0),
            row("sqlite", 20.0),
            row("postgres", 20.0),
        ];
        let rows: Vec<&Row> = rows.iter().collect();
        let sides = Sides::new(&results, "frond");
        let ratios: Vec<(String, f64)> =
            sides.ratios(&rows).into_iter().map(|(name, ratio)| (name, ratio.value)).collect();
        assert_eq!(ratios, [("sqlite".to_owned(), 2.0), ("postgres".to_owned(), 0.5)]);
        let columns: Vec<String> = rows.iter().map(|row| row.target.clone()).collect();
        let text = matrix(&sides, "ycsb", &rows, &columns);
        assert!(text.contains("2.00&times;") && text.contains("0.50&times;"), "{text}");
        assert_eq!(text.matches("<table").count(), 1);
    }

    #[test]
    fn a_missing_figure_says_why() {
        let results = example::results();
        let rows: Vec<&Row> = results.rows.iter().collect();
        let sides = Sides::new(&results, "one");
        let text = matrix(&sides, "ycsb", &rows, &["one".into(), "two".into()]);
        assert!(
            text.contains("WRONG ANSWER<small>key 7 has another&#39;s value</small>"),
            "{text}"
        );
    }
}
