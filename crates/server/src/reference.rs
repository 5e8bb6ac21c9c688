//! The parts of MongoDB that work, are refused, or differ: the tables of COMPATIBILITY.md.
//!
//! Each family comes from the table that the parser itself uses, and is printed between two marks
//! in the page; the text around them is prose. `cargo xtask compatibility` writes them.

use std::fmt::Write as _;

use frond_query::reference::{Family, Feature, STAGES, SupportLevel};

use crate::commands::{COMMANDS, Run, sources};
use crate::tables;

/// Returns every family: commands, their fields, the query language, indexes.
pub fn families() -> Vec<Family> {
    let commands = COMMANDS.iter().filter(|command| !command.name.starts_with("frond"));
    let commands = commands.map(|command| match command.run {
        Run::Handler(_) => Feature::works(command.name),
        Run::Refused(_) => Feature::new(command.name, SupportLevel::Refused("115")),
        Run::NoSearch => Feature::new(command.name, SupportLevel::Elsewhere("31082")),
    });
    let mut families = vec![Family::new("Commands", commands)];
    families.push(tables::family());
    families.extend(frond_query::reference::families());
    families.extend(frond_db::catalog::reference::families());
    for family in &mut families {
        if family.title == STAGES {
            sources::complete(&mut family.features);
        }
    }
    families
}

/// Returns how many of a family's features are MongoDB's, and how many of those work.
fn share(family: &Family) -> (usize, usize) {
    let is_counted = |feature: &&Feature| {
        !matches!(feature.standing, SupportLevel::Own | SupportLevel::Elsewhere(_))
    };
    let documented = family.features.iter().filter(is_counted);
    let works = |feature: &&Feature| {
        matches!(feature.standing, SupportLevel::Works | SupportLevel::Differs(_))
    };
    (documented.clone().filter(works).count(), documented.count())
}

/// The share of what MongoDB documents that works, commands apart, in tenths of a percent.
fn share_in_all(families: &[Family]) -> (usize, usize) {
    let counted = families.iter().filter(|family| family.title != "Commands");
    counted.map(share).fold((0, 0), |sum, share| (sum.0 + share.0, sum.1 + share.1))
}

/// The parts of the page that are written from the tables: the name of each, and its lines.
pub fn parts() -> Vec<(String, String)> {
    let families = families();
    let (works, documented) = share_in_all(&families);
    let mut summary = String::new();
    let tenths = works * 1_000 / documented.max(1);
    let _ = writeln!(
        summary,
        "Of {documented} operators, stages, accumulators, variables, kinds and options of indexes, and fields \
         of commands that MongoDB 8.0 Community documents, {works} work: {}.{} %.",
        tenths / 10,
        tenths % 10
    );
    let mut parts = vec![("share".to_owned(), summary)];
    parts.push(("fields".to_owned(), tables::page()));
    for family in families.iter().filter(|family| family.title != tables::FIELDS) {
        parts.push((slug(family.title), page_table(family)));
    }
    parts
}

/// `Query operators` as `query-operators`.
fn slug(title: &str) -> String {
    let letters = title.chars().filter(|letter| letter.is_ascii_alphabetic() || *letter == ' ');
    letters.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The table of one family.
fn page_table(family: &Family) -> String {
    let (works, documented) = share(family);
    let mut table = format!("| {} | {works} of {documented} |\n|---|---|\n", family.title);
    let _ = writeln!(table, "| work | {} |", names(family));
    for feature in &family.features {
        if let SupportLevel::Differs(how) = feature.standing {
            let _ = writeln!(table, "| `{}` | works, but: {how} |", feature.name);
        }
    }
    for (code, names) in grouped(family, refused) {
        let _ = writeln!(table, "| refused, {code} | {} |", quoted(&names));
    }
    for (code, names) in grouped(family, elsewhere) {
        let _ = writeln!(table, "| not in MongoDB Community, {code} | {} |", quoted(&names));
    }
    let own = named(family, |standing| standing == SupportLevel::Own);
    if !own.is_empty() {
        let _ = writeln!(table, "| Frond's own | {} |", quoted(&own));
    }
    table
}

fn named(family: &Family, is: impl Fn(SupportLevel) -> bool) -> Vec<&'static str> {
    let features = family.features.iter().filter(|feature| is(feature.standing));
    features.map(|feature| feature.name).collect()
}

/// Returns the features that work, as code.
fn names(family: &Family) -> String {
    quoted(&named(family, |standing| {
        matches!(standing, SupportLevel::Works | SupportLevel::Differs(_))
    }))
}

fn refused(standing: SupportLevel) -> Option<&'static str> {
    if let SupportLevel::Refused(code) = standing { Some(code) } else { None }
}

fn elsewhere(standing: SupportLevel) -> Option<&'static str> {
    if let SupportLevel::Elsewhere(code) = standing { Some(code) } else { None }
}

/// Groups the features for which `code_of` has a code, by code, in the order in which the codes
/// come.
fn grouped(
    family: &Family,
    code_of: fn(SupportLevel) -> Option<&'static str>,
) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut codes: Vec<(&str, Vec<&str>)> = Vec::new();
    for feature in &family.features {
        let Some(code) = code_of(feature.standing) else { continue };
        match codes.iter_mut().find(|(other, _)| *other == code) {
            Some((_, names)) => names.push(feature.name),
            None => codes.push((code, vec![feature.name])),
        }
    }
    codes
}

fn quoted(names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!("`{}`", names.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_name_of_its_own() {
        let mut names: Vec<String> = parts().into_iter().map(|(name, _)| name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
