//! The measurements as Markdown: what was measured where, and a table a question.
//!
//! A figure is the median of the repetitions, with half of their range. A ratio says how many times
//! better Frond is than the peer beside which it stands (below 1: worse), so it reads the same way
//! in every table; in brackets where the ranges overlap, so that nothing is ranked inside the
//! noise.

use std::fmt::Write;

use crate::measure::Sample;
use crate::workload::{Measured, Work};

const ROWS: [Work; 9] = [
    Work::InsertBatches,
    Work::SettleInserts,
    Work::InsertSingles,
    Work::ReadById,
    Work::ReadByIndex,
    Work::Scan,
    Work::Update,
    Work::UpdateThreads,
    Work::SettleUpdates,
];
const ROWS_OF_VERSIONS: [Work; 5] =
    [Work::CommitAll, Work::CommitChanged, Work::Branch, Work::Diff, Work::Merge];

/// The results of one target.
pub struct Column {
    /// The target's name.
    pub name: String,
    /// Version and settings; empty if it never ran.
    pub description: String,
    /// A repetition each.
    pub repetitions: Vec<Measured>,
    /// The reason why it has no figures, if it has none.
    pub failure: Option<String>,
}

/// The direction in which a figure is better.
#[derive(Clone, Copy)]
enum Better {
    More,
    Less,
}

/// A number of a table, over the repetitions.
#[derive(Clone, Copy)]
struct Figure {
    least: f64,
    median: f64,
    most: f64,
}

impl Figure {
    /// Half of the range, in percent of the median.
    fn spread_percent(self) -> f64 {
        let half = (self.most - self.least) / 2.0;
        if self.median > 0.0 { half / self.median * 100.0 } else { 0.0 }
    }

    fn in_megabytes(self) -> Figure {
        Figure { least: self.least / 1e6, median: self.median / 1e6, most: self.most / 1e6 }
    }
}

impl Column {
    fn figure(&self, work: Work, value: impl Fn(&Sample) -> f64) -> Option<Figure> {
        figure(self.samples(work).map(value).collect())
    }

    /// Returns the bytes written; where the device doesn't count there is no figure.
    fn written_bytes(&self, work: Work) -> Option<Figure> {
        let each = |sample: &Sample| {
            sample.written_bytes.map(|bytes| bytes as f64 / sample.operations as f64)
        };
        figure(self.samples(work).filter_map(each).collect())
    }

    fn samples(&self, work: Work) -> impl Iterator<Item = &Sample> {
        let samples = self.repetitions.iter().flat_map(|measured| &measured.samples);
        samples.filter(move |(other, _)| *other == work).map(|(_, sample)| sample)
    }

    fn disk_bytes(&self) -> Option<Figure> {
        figure(self.repetitions.iter().map(|measured| measured.disk_bytes as f64).collect())
    }
}

fn figure(mut values: Vec<f64>) -> Option<Figure> {
    values.sort_unstable_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    Some(Figure { least, median: values[values.len() / 2], most })
}

/// The tables, for `columns` of which the first is Frond's.
pub fn tables(columns: &[Column]) -> String {
    let mut text = String::new();
    for column in columns {
        let description = match &column.failure {
            Some(failure) => format!("not run: {failure}"),
            None => column.description.clone(),
        };
        let _ = writeln!(text, "- **{}**: {description}", column.name);
    }
    text +=
        "\n### Speed\n\nOperations a second (milliseconds where it says so); more is better.\n\n";
    table(&mut text, columns, Better::More, |column, work| {
        if work.is_settling() {
            return column.figure(work, |sample| sample.wall_micros as f64 / 1e3);
        }
        column.figure(work, |sample| {
            sample.operations as f64 * 1e6 / sample.wall_micros.max(1) as f64
        })
    });
    text += "\n### Processor time\n\nMicroseconds an operation, of all threads; less is better. A \
             checkpoint's is divided by the writes\nbefore it, so that it adds up with theirs.\n\n";
    table(&mut text, columns, Better::Less, |column, work| {
        column.figure(work, |sample| sample.cpu_micros as f64 / sample.operations as f64)
    });
    text += "\n### Bytes written\n\nBytes that reached the device, an operation; less is better. \
             Rows that write nothing are left out.\n\n";
    table(&mut text, columns, Better::Less, |column, work| {
        if matches!(work, Work::ReadById | Work::ReadByIndex | Work::Scan) {
            return None;
        }
        column.written_bytes(work)
    });
    text += "\n### Size\n\nMegabytes on the disk at the end, after the last checkpoint; less is \
             better.\n\n";
    header(&mut text, columns);
    let sizes = columns.iter().map(|column| column.disk_bytes().map(Figure::in_megabytes));
    let sizes: Vec<_> = sizes.collect();
    row(&mut text, "size on disk, MB", &sizes, Better::Less);
    versions(&mut text, columns);
    text
}

fn header(text: &mut String, columns: &[Column]) {
    let mut names = String::from("| work |");
    let mut lines = String::from("|---|");
    for (position, column) in columns.iter().enumerate() {
        let _ = write!(names, " {} |", column.name);
        lines += "---:|";
        if position > 0 {
            names += " ratio |";
            lines += "---:|";
        }
    }
    let _ = writeln!(text, "{names}\n{lines}");
}

fn table(
    text: &mut String,
    columns: &[Column],
    better: Better,
    cell: impl Fn(&Column, Work) -> Option<Figure>,
) {
    header(text, columns);
    for work in ROWS {
        let figures: Vec<_> = columns.iter().map(|column| cell(column, work)).collect();
        if figures.iter().all(Option::is_none) {
            continue;
        }
        // A checkpoint's speed is shown as a time.
        match (better, work.is_settling()) {
            (Better::More, true) => {
                row(text, &format!("{}, ms", work.title()), &figures, Better::Less);
            }
            _ => row(text, work.title(), &figures, better),
        }
    }
}

fn row(text: &mut String, title: &str, figures: &[Option<Figure>], better: Better) {
    let _ = write!(text, "| {title} |");
    let frond = figures.first().copied().flatten();
    for (position, figure) in figures.iter().enumerate() {
        let Some(figure) = figure else {
            *text += if position > 0 { " not run | |" } else { " not run |" };
            continue;
        };
        let _ = write!(text, " {} ±{:.0} % |", number(figure.median), figure.spread_percent());
        if position > 0 {
            let _ = match frond {
                Some(frond) => write!(text, " {} |", ratio(frond, *figure, better)),
                None => write!(text, " |"),
            };
        }
    }
    *text += "\n";
}

fn ratio(frond: Figure, peer: Figure, better: Better) -> String {
    let (more, less) = match better {
        Better::More => (frond.median, peer.median),
        Better::Less => (peer.median, frond.median),
    };
    if less <= 0.0 {
        return String::new();
    }
    let ratio = more / less;
    let overlap = frond.least <= peer.most && peer.least <= frond.most;
    if overlap { format!("({ratio:.2}x)") } else { format!("{ratio:.2}x") }
}

fn versions(text: &mut String, columns: &[Column]) {
    *text += "\n### Versions\n\nOnly Frond has them. Milliseconds and kilobytes written, each.\n\n\
              | work | ms | KB written |\n|---|---:|---:|\n";
    let Some(frond) = columns.first() else {
        return;
    };
    for work in ROWS_OF_VERSIONS {
        let wall =
            frond.figure(work, |sample| sample.wall_micros as f64 / sample.operations as f64 / 1e3);
        let Some(wall) = wall else {
            continue;
        };
        let written = frond.written_bytes(work);
        let written = written.map_or("?".into(), |figure| number(figure.median / 1e3));
        let _ = writeln!(
            text,
            "| {} | {} ±{:.0} % | {written} |",
            work.title(),
            number(wall.median),
            wall.spread_percent(),
        );
    }
}

/// Three digits, thousands apart.
fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let digits = match value {
        value if value < 1.0 => 3,
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut parts = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            parts.push(',');
        }
        parts.push(digit);
    }
    if fraction.is_empty() { parts } else { format!("{parts}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_at_least() {
        for (value, expected) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234.0, "1,234"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn above_one_is_better_in_every_table() {
        let figure = |median| Figure { least: median, median, most: median };
        assert_eq!(ratio(figure(200.0), figure(100.0), Better::More), "2.00x");
        assert_eq!(ratio(figure(200.0), figure(100.0), Better::Less), "0.50x");
        let apart = Figure { least: 90.0, median: 150.0, most: 160.0 };
        assert_eq!(ratio(apart, figure(100.0), Better::More), "(1.50x)");
    }

    #[test]
    fn a_missing_peer_is_reported() {
        let column = Column {
            name: "PostgreSQL".into(),
            description: String::new(),
            repetitions: Vec::new(),
            failure: Some("not installed".into()),
        };
        assert!(tables(&[column]).contains("not run: not installed"));
    }
}
