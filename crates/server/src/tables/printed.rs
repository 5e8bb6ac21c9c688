//! The tables as COMPATIBILITY.md has them.

use std::fmt::Write as _;

use frond_query::reference::{Family, Feature, SupportLevel};

use super::TABLES;
use super::every::EVERY;
use super::field::Field;
use super::kind::Kind;
use super::table::{Reads, Table, Writes};

/// The title of the family of fields.
pub const FIELDS: &str = "Fields of commands";

/// The fields of each command of MongoDB's, and of documents inside it, as one family.
pub fn family() -> Family {
    let mut features: Vec<Feature> = EVERY.iter().filter_map(Field::feature).collect();
    for table in TABLES.iter().filter(|table| is_of_mongodb(table)) {
        features.extend(table.fields.iter().filter_map(Field::feature));
        for (_, fields) in inner(table) {
            features.extend(fields.iter().filter_map(Field::feature));
        }
    }
    Family { title: FIELDS, features }
}

/// The fields of each command of MongoDB's, as the page has them.
pub fn page() -> String {
    let mut page = String::from(
        "| command | fields | otherwise | read concern | write concern | stable API |\n\
         |---|---|---|---|---|---|\n",
    );
    row(&mut page, "every command", EVERY, "", "", "");
    for table in TABLES.iter().filter(|table| is_of_mongodb(table)) {
        let reads = match table.reads {
            Reads::Local => "",
            Reads::Latest => "all but `snapshot`",
            Reads::Moments => "all",
        };
        let writes = match table.writes {
            Writes::Never => "",
            Writes::Always => "yes",
        };
        let stable = if table.is_stable { "yes" } else { "" };
        row(&mut page, table.command, table.fields, reads, writes, stable);
        for (name, fields) in inner(table) {
            row(&mut page, &format!("{}.{name}", table.command), fields, "", "", "");
        }
    }
    page
}

fn is_of_mongodb(table: &Table) -> bool {
    !table.command.starts_with("frond")
}

/// The fields of documents inside a command, by the name of the field that holds them.
fn inner(table: &Table) -> Vec<(String, &'static [Field])> {
    let mut inner = Vec::new();
    for field in table.fields {
        if let Kind::EachKind(kinds) = field.kind {
            let named = kinds.iter().map(|(kind, of)| (format!("{}, {kind}", field.name), *of));
            inner.extend(named);
        } else if !field.kind.fields().is_empty() {
            inner.push((field.name.to_owned(), field.kind.fields()));
        }
    }
    inner
}

fn row(page: &mut String, title: &str, fields: &[Field], reads: &str, writes: &str, stable: &str) {
    let works = |standing| matches!(standing, SupportLevel::Works | SupportLevel::Differs(_));
    let is_shown = |field: &&Field| field.standing.is_some_and(works);
    let named: Vec<String> = fields.iter().filter(is_shown).map(described).collect();
    let others = otherwise(fields);
    let (named, others) = (named.join(", "), others.join("; "));
    let _ = writeln!(page, "| `{title}` | {named} | {others} | {reads} | {writes} | {stable} |");
}

/// A field, what it takes, and the code that others get where it isn't 14.
fn described(field: &Field) -> String {
    let mut text = format!("`{}`", field.name);
    if field.is_required {
        text.push('!');
    }
    let kind = field.kind.short();
    if !kind.is_empty() {
        let _ = write!(text, " {kind}");
    }
    if let Some(min) = field.min.filter(|min| *min > i64::from(i32::MIN)) {
        let _ = write!(text, " ≥ {min}");
    }
    if let Some(max) = field.max {
        let _ = write!(text, " ≤ {max}");
    }
    if let Some(worded) = field.worded.filter(|worded| worded.code.number() != 14) {
        let _ = write!(text, " (else {})", worded.code.number());
    }
    text
}

/// Returns the fields that differ, are refused, or are Frond's own.
fn otherwise(fields: &[Field]) -> Vec<String> {
    let mut parts = Vec::new();
    let (mut refused, mut own) = (Vec::new(), Vec::new());
    for field in fields {
        match field.standing {
            Some(SupportLevel::Differs(how)) => parts.push(format!("`{}`: {how}", field.name)),
            Some(SupportLevel::Refused(_) | SupportLevel::Elsewhere(_)) => refused.push(field.name),
            Some(SupportLevel::Own) => own.push(field.name),
            Some(SupportLevel::Works) | None => {}
        }
    }
    if !refused.is_empty() {
        parts.push(format!("refused, 115: `{}`", refused.join(" ")));
    }
    if !own.is_empty() {
        parts.push(format!("Frond's own: `{}`", own.join(" ")));
    }
    parts
}
