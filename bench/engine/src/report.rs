//! The report: a table a workload in Markdown, a column a target, ratios beside Frond's figures.

use std::fmt::Write;

use crate::figures::{Figure, Figures, Kind};

/// The outcome of a target in a workload.
pub enum Outcome {
    /// It was measured.
    Measured(Figures),
    /// It isn't compiled in, or can't do this.
    NotRun,
    /// The reason why there are no figures.
    Failed(String),
}

/// One workload's results.
pub struct Table {
    /// The title.
    pub title: String,
    /// Targets, in the order of the columns; the first is what the others are compared with.
    pub columns: Vec<(String, Outcome)>,
}

impl Table {
    /// The table.
    pub fn markdown(&self) -> String {
        let mut out = format!("### {}\n\n", self.title);
        let measured: Vec<(&str, &Figures)> = self
            .columns
            .iter()
            .filter_map(|(name, outcome)| match outcome {
                Outcome::Measured(figures) => Some((name.as_str(), figures)),
                _ => None,
            })
            .collect();
        let own = measured.iter().find(|(name, _)| *name == "frond").map(|(_, figures)| *figures);
        let names: Vec<&str> = measured.iter().map(|(name, _)| *name).collect();
        let _ = writeln!(out, "| | {} |", names.join(" | "));
        let _ = writeln!(out, "|---|{}", "---:|".repeat(names.len()));
        for row in rows(&measured) {
            let _ = write!(out, "| {} |", row.name);
            for (name, figures) in &measured {
                let cell = find(figures, &row.name).map_or_else(String::new, |figure| {
                    let own = own.and_then(|own| find(own, &row.name));
                    cell(figure, own.filter(|_| *name != "frond"))
                });
                let _ = write!(out, " {cell} |");
            }
            out.push('\n');
        }
        for (name, outcome) in &self.columns {
            match outcome {
                Outcome::Measured(_) => {}
                Outcome::NotRun => drop(writeln!(out, "\n{name}: not run.")),
                Outcome::Failed(why) => drop(writeln!(out, "\n{name}: failed, {why}.")),
            }
        }
        out.push('\n');
        out
    }
}

/// Returns each figure that any target has; a row that only some have stands behind those that it
/// follows.
fn rows<'a>(measured: &[(&str, &'a Figures)]) -> Vec<&'a Figure> {
    let mut rows: Vec<&Figure> = Vec::new();
    for (_, figures) in measured {
        let mut place = 0;
        for figure in &figures.0 {
            match rows.iter().position(|row| row.name == figure.name) {
                Some(found) => place = found + 1,
                None => {
                    rows.insert(place, figure);
                    place += 1;
                }
            }
        }
    }
    rows
}

fn find<'a>(figures: &'a Figures, name: &str) -> Option<&'a Figure> {
    figures.0.iter().find(|figure| figure.name == name)
}

/// A number, and how many times better Frond's is.
fn cell(figure: &Figure, own: Option<&Figure>) -> String {
    let number = number(figure.value);
    let ratio = own.and_then(|own| match figure.kind {
        Kind::Rate => Some(own.value / figure.value),
        Kind::Cost => Some(figure.value / own.value),
        Kind::Fact => None,
    });
    match ratio.filter(|ratio| ratio.is_finite()) {
        Some(ratio) => format!("{number} ({ratio:.2}x)"),
        None => number,
    }
}

/// Three digits that matter, or all of a whole number, with commas.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude < 9.995 {
        return format!("{value:.2}");
    }
    if magnitude < 99.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", magnitude);
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_what_matters() {
        for (value, expected) in [
            (0.0, "0.00"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.6, "1,235"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn ratios_say_how_much_better_frond_is() {
        let figures = |rate: f64, cost: f64| {
            let mut figures = Figures::default();
            figures.rate("rate", rate);
            figures.cost("cost", cost);
            Outcome::Measured(figures)
        };
        let table = Table {
            title: "T".to_owned(),
            columns: vec![
                ("frond".to_owned(), figures(20.0, 5.0)),
                ("other".to_owned(), figures(10.0, 20.0)),
                ("third".to_owned(), Outcome::NotRun),
            ],
        };
        let text = table.markdown();
        assert!(text.contains("| rate | 20.0 | 10.0 (2.00x) |"), "{text}");
        assert!(text.contains("| cost | 5.00 | 20.0 (4.00x) |"), "{text}");
        assert!(text.contains("third: not run."), "{text}");
    }
}
