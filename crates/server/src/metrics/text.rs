//! Prometheus' text format, version 0.0.4: families of samples, each with its help and type.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::fmt::{Display, Write};

/// The kind of a family's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// They only rise, from 0 at the start; names end in `_total`.
    Counter,
    /// They rise and fall.
    Gauge,
    /// Counts below bounds, and a sum.
    Histogram,
}

/// A text that is made.
#[derive(Default)]
pub struct Text(String);

impl Text {
    /// Begins a family.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    /// A sample of the family that was begun last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        if labels.is_empty() {
            self.line(format_args!("{name} {value}"));
            return;
        }
        let escaped =
            |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        self.line(format_args!("{name}{{{labels}}} {value}"));
    }

    /// A family of one sample.
    pub fn one(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string doesn't fail.
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_with_help_and_type() {
        let mut text = Text::default();
        text.one("a_total", Kind::Counter, "How\nmany \\.", 7_u64);
        text.family("b", Kind::Gauge, "B.");
        text.sample("b", &[("x", "a\"b\\c\nd"), ("y", "é")], 0.5);
        let expected = "# HELP a_total How\\nmany \\\\.\n# TYPE a_total counter\na_total 7\n\
                        # HELP b B.\n# TYPE b gauge\nb{x=\"a\\\"b\\\\c\\nd\",y=\"é\"} 0.5\n";
        assert_eq!(text.finish(), expected);
    }
}
