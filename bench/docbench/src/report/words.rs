//! Writes figures and names, in the report and in a comparison.

use std::fmt::Write;

use crate::results::Row;

/// A figure with three digits and its unit; bytes in binary units.
pub fn figure(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => bytes(value),
        "" => digits(value),
        _ => format!("{} {unit}", digits(value)),
    }
}

/// A number with at least three significant digits, thousands apart.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "none".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, fraction)| {
            (whole, Some(fraction.trim_end_matches('0')).filter(|fraction| !fraction.is_empty()))
        });
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

fn bytes(value: f64) -> String {
    let mut scaled = value;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if scaled.abs() < 1_024.0 {
            return format!("{} {unit}", digits(scaled));
        }
        scaled /= 1_024.0;
    }
    format!("{} TiB", digits(scaled))
}

/// A parameter's value as text.
pub fn parameter(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the varied parameters, except those in `without`: `clients 8, loop closed, mix A`.
pub fn case(row: &Row, without: &[&str]) -> String {
    let shown = row.parameters.iter().filter(|(name, _)| !without.contains(&name.as_str()));
    shown.map(|(name, value)| format!("{name} {}", parameter(value))).collect::<Vec<_>>().join(", ")
}

/// The metric as words: `latency_p999` is `latency p99.9`.
pub fn metric(name: &str) -> String {
    name.replace("_p999", " p99.9").replace('_', " ")
}

/// All that names a row.
pub fn full_name(row: &Row) -> String {
    let case = case(row, &[]);
    let separator = if case.is_empty() { "" } else { ", " };
    format!("{} {}: {}{separator}{case}", row.target, row.workload, metric(&row.metric))
}

/// Text that means itself in HTML, in attributes too.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Appends what `format_args!` says.
pub fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("writing to a string can't fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        for (value, unit, expected) in [
            (0.0, "ms", "0 ms"),
            (0.012_345, "ms", "0.0123 ms"),
            (1.5, "ms", "1.5 ms"),
            (12.0, "ms", "12 ms"),
            (12.34, "", "12.3"),
            (999.6, "", "1,000"),
            (1_234_567.8, "operations/s", "1,234,568 operations/s"),
            (-1_500.0, "", "-1,500"),
            (f64::NAN, "", "none"),
            (1_023.0, "bytes", "1,023 B"),
            (1_572_864.0, "bytes", "1.5 MiB"),
        ] {
            assert_eq!(figure(value, unit), expected);
        }
    }

    #[test]
    fn metrics_and_markup() {
        assert_eq!(metric("latency_p999"), "latency p99.9");
        assert_eq!(metric("clients_below_5_ms"), "clients below 5 ms");
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
