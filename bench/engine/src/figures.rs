//! The measurements of a run: names, numbers, and the direction that is better.

use std::time::Duration;

/// The kind of a number, which decides how it is printed and compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// More is better.
    Rate,
    /// Less is better.
    Cost,
    /// Neither: it says what was done.
    Fact,
}

impl Kind {
    const ALL: [(Kind, &'static str); 3] =
        [(Kind::Rate, "rate"), (Kind::Cost, "cost"), (Kind::Fact, "fact")];

    fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// One number.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The meaning of the number, with its unit.
    pub name: String,
    /// The kind of the number.
    pub kind: Kind,
    /// The number.
    pub value: f64,
}

/// The figures of a process, on their way to the process that started it: a line a figure.
#[derive(Default)]
pub struct Figures(pub Vec<Figure>);

impl Figures {
    /// Adds a figure of which more is better.
    pub fn rate(&mut self, name: impl Into<String>, value: f64) {
        self.0.push(Figure { name: name.into(), kind: Kind::Rate, value });
    }

    /// Adds a figure of which less is better.
    pub fn cost(&mut self, name: impl Into<String>, value: f64) {
        self.0.push(Figure { name: name.into(), kind: Kind::Cost, value });
    }

    /// Neither.
    pub fn fact(&mut self, name: impl Into<String>, value: f64) {
        self.0.push(Figure { name: name.into(), kind: Kind::Fact, value });
    }

    /// The lines.
    pub fn encode(&self) -> String {
        let line = |figure: &Figure| {
            format!("{}\t{}\t{}\n", figure.kind.name(), figure.value, figure.name)
        };
        self.0.iter().map(line).collect()
    }

    /// Reads the lines; what isn't one is left out.
    pub fn decode(lines: &str) -> Figures {
        let figure = |line: &str| {
            let mut parts = line.splitn(3, '\t');
            let kind = parts.next()?;
            let kind = Kind::ALL.iter().find(|(_, name)| *name == kind)?.0;
            let value = parts.next()?.parse().ok()?;
            Some(Figure { name: parts.next()?.to_owned(), kind, value })
        };
        Figures(lines.lines().filter_map(figure).collect())
    }
}

/// The times of many operations.
#[derive(Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Adds one.
    pub fn add(&mut self, taken: Duration) {
        // A tenth of a microsecond is the unit: seven minutes fit.
        self.0.push(u32::try_from(taken.as_nanos() / 100).unwrap_or(u32::MAX));
    }

    /// Adds those of another thread.
    pub fn add_all(&mut self, other: Latencies) {
        self.0.extend(other.0);
    }

    /// Returns the number.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time in microseconds that `share` of them didn't exceed; 0 without any.
    pub fn micros_at(&mut self, share: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        self.0.sort_unstable();
        let position = ((self.0.len() - 1) as f64 * share) as usize;
        f64::from(self.0[position]) / 10.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back() {
        let mut figures = Figures::default();
        figures.rate("documents/s, 1 thread", 12.5);
        figures.cost("CPU, µs", 0.25);
        figures.fact("documents", 7.0);
        assert_eq!(Figures::decode(&figures.encode()).0, figures.0);
        assert!(Figures::decode("rate\tx\ty\nnothing\n").0.is_empty());
    }

    #[test]
    fn percentiles_are_of_the_sorted() {
        let mut latencies = Latencies::default();
        for micros in (1..=101).rev() {
            latencies.add(Duration::from_micros(micros));
        }
        assert_eq!(latencies.micros_at(0.5), 51.0);
        assert_eq!(latencies.micros_at(0.99), 100.0);
    }
}
