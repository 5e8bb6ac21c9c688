//! Refuses commands that also name databases or branches of another line.
//!
//! A command goes to one line, which has an old copy at best of what other lines lead, and whose
//! servers can't know that it is old. So what names another line's database or branch is refused,
//! wherever it stands: in a field of a command on versions, by each of its names; in the pipeline
//! of a request, of a view, or of what is explained; as a place where results go.

use std::sync::Arc;

use frond_db::Error;
use frond_doc::{Array, Document, Value};

use super::line::Line;
use super::routed_request::RoutedRequest;
use super::table::Table;

/// The prefixes of the names of commands on versions.
const OF_VERSIONS: &[&str] = &["dolt", "dumbo", "frond"];
/// Stages that show versions.
const STAGES_OF_VERSIONS: &[&str] =
    &["$blame", "$conflicts", "$diff", "$history", "$log", "$reflog"];
/// The fields of both that name a branch or a revision, or several.
const REVISIONS: &[&str] = &[
    "branch", "delete", "from", "merge_in", "merges", "onto", "range", "rename", "start", "tag",
    "target", "to",
];

/// Refuses a command that goes to `line` and names what another one leads.
///
/// # Errors
/// `IllegalOperation`, which says what lies where; as [`Table::line_of`].
pub(super) fn check(ask: &RoutedRequest<'_>, table: &Table, line: &Arc<Line>) -> Result<(), Error> {
    let named = NamedDatabases { what: ask.name, database: ask.database, table, line };
    if OF_VERSIONS.iter().any(|prefix| ask.name.starts_with(prefix)) {
        named.revisions(ask.body)?;
    }
    if let Some(pipeline) = ask.body.get("pipeline").and_then(|pipeline| pipeline.as_array()) {
        named.pipeline(pipeline)?;
    }
    if let Some(out) = ask.body.get("out").and_then(|out| out.as_document()) {
        named.place(ask.name, out)?;
    }
    let explained = match ask.name {
        "explain" => ask.body.get("explain").and_then(|explained| explained.as_document()),
        _ => None,
    };
    match explained.and_then(RoutedRequest::read) {
        Some(explained) => {
            check(&RoutedRequest { database: ask.database, ..explained }, table, line)
        }
        None => Ok(()),
    }
}

struct NamedDatabases<'a> {
    /// The command.
    what: &'a str,
    database: &'a str,
    table: &'a Table,
    /// The line it goes to.
    line: &'a Arc<Line>,
}

impl NamedDatabases<'_> {
    /// The revisions that fields name.
    fn revisions(&self, fields: Document<'_>) -> Result<(), Error> {
        let database = self.database.split('@').next().unwrap_or_default();
        for branch in self.table.branches_of(database) {
            let is_named = |value: Value<'_>| match value {
                Value::Array(values) => values.iter().any(|value| names(value, branch)),
                value => names(value, branch),
            };
            let mut named = fields.iter().filter(|(field, _)| REVISIONS.contains(field));
            if named.any(|(_, value)| is_named(value)) {
                let other = format!("{database}@{branch}");
                self.table.check_same(self.what, (self.database, self.line), &other)?;
            }
        }
        Ok(())
    }

    fn pipeline(&self, stages: Array<'_>) -> Result<(), Error> {
        for (stage, value) in stages.iter().filter_map(|stage| stage.as_document()?.iter().next()) {
            let Some(options) = value.as_document() else { continue };
            match stage {
                "$out" | "$unionWith" => self.place(stage, options)?,
                "$merge" => self.place_in(stage, options, "into")?,
                "$lookup" | "$graphLookup" => self.place_in(stage, options, "from")?,
                "$facet" => {
                    let parts = options.iter().filter_map(|(_, part)| part.as_array());
                    parts.into_iter().try_for_each(|part| self.pipeline(part))?;
                }
                stage if STAGES_OF_VERSIONS.contains(&stage) => self.revisions(options)?,
                _ => {}
            }
            if let Some(inner) = options.get("pipeline").and_then(|inner| inner.as_array()) {
                self.pipeline(inner)?;
            }
        }
        Ok(())
    }

    fn place_in(&self, what: &str, options: Document<'_>, field: &str) -> Result<(), Error> {
        match options.get(field).and_then(|place| place.as_document()) {
            Some(place) => self.place(what, place),
            None => Ok(()),
        }
    }

    /// A collection, `{db, coll}`.
    fn place(&self, what: &str, place: Document<'_>) -> Result<(), Error> {
        match place.get("db").and_then(|database| database.as_str()) {
            Some(other) => self.table.check_same(what, (self.database, self.line), other),
            None => Ok(()),
        }
    }
}

/// Whether a revision, or the end of a range, begins at this branch: `plan~2`, `main..plan`,
/// `plan@{now}`.
fn names(value: Value<'_>, branch: &str) -> bool {
    let Some(text) = value.as_str() else { return false };
    let ends = text.split("..").map(|end| end.trim_start_matches('.'));
    ends.flat_map(|end| end.split(['~', '^', '@', '{', '}', ':'])).any(|part| part == branch)
}
