//! The content of a Dolt repository: commits, names, and how tables change from commit to commit.

use std::collections::{HashMap, HashSet};

use crate::commands::from_dolt::column::{Column, date, quoted};
use crate::commands::from_dolt::connection::{Connection, Row};
use crate::commands::from_dolt::table::Table;
use crate::failure::Failure;

/// Databases that every server of Dolt has.
const SYSTEM_DATABASES: &[&str] = &["information_schema", "mysql", "dolt_cluster"];
/// The prefix of tables that Dolt keeps for itself: views, procedures, ignored names.
const SYSTEM_TABLES: &str = "dolt_";

/// A commit of Dolt.
#[derive(Clone, Debug)]
pub struct Commit {
    pub hash: String,
    /// The first is the one that it was made on.
    pub parents: Vec<String>,
    /// `NAME <MAIL>`.
    pub author: String,
    pub message: String,
    /// Milliseconds since 1970.
    pub made_millis: i64,
}

/// A branch or tag.
#[derive(Debug)]
pub struct Name {
    pub name: String,
    /// The commit that it names.
    pub hash: String,
    /// What a tag says, and who made it.
    pub message: Option<(String, String)>,
}

/// A commit's change to a table.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    Dropped(String),
    Added(String),
    /// Its rows or its columns changed, or both.
    Changed(String),
    Renamed {
        from: String,
        to: String,
    },
}

/// A row of a table that changed between two commits.
pub enum RowChange<'r> {
    /// Of the row after the change, the first cell is at this position.
    Written(&'r Row, usize),
    /// Of the row that was there, the first cell is at this position.
    Removed(&'r Row, usize),
}

/// A repository that is read.
pub struct Repository {
    connection: Connection,
}

impl Repository {
    /// The repository that a server has.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it has none, or several.
    pub fn open(mut connection: Connection) -> Result<Repository, Failure> {
        let databases = connection.rows("SHOW DATABASES")?;
        let names = databases.iter().map(|row| row.text(0));
        let mut own = names.filter(|name| !SYSTEM_DATABASES.contains(name));
        let (Some(name), None) = (own.next(), own.next()) else {
            let what = "the directory holds several Dolt databases, or none: name one of them";
            return Err(Failure::failed(what));
        };
        connection.rows(&format!("USE {}", quoted(name)))?;
        // Timestamps are shown in UTC.
        connection.rows("SET time_zone = '+00:00'")?;
        Ok(Repository { connection })
    }

    /// The branches.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn branches(&mut self) -> Result<Vec<Name>, Failure> {
        let rows = self.connection.rows("SELECT name, hash FROM dolt_branches ORDER BY name")?;
        let name =
            |row: &Row| Name { name: row.text(0).into(), hash: row.text(1).into(), message: None };
        Ok(rows.iter().map(name).collect())
    }

    /// The branch that the repository is on.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn active_branch(&mut self) -> Result<String, Failure> {
        let rows = self.connection.rows("SELECT active_branch()")?;
        Ok(rows.first().map(|row| row.text(0).to_owned()).unwrap_or_default())
    }

    /// The tags.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn tags(&mut self) -> Result<Vec<Name>, Failure> {
        let sql = "SELECT tag_name, tag_hash, message, tagger, email FROM dolt_tags \
                   ORDER BY tag_name";
        let rows = self.connection.rows(sql)?;
        let name = |row: &Row| Name {
            name: row.text(0).into(),
            hash: row.text(1).into(),
            message: Some((row.text(2).into(), author(row.text(3), row.text(4)))),
        };
        Ok(rows.iter().map(name).collect())
    }

    /// The commits that lead to `tips`, parents first, and lines of descent as long as can be.
    ///
    /// # Errors
    /// As [`Connection::query`]; [`Failure::Failed`] if a commit is missing, as in a shallow clone.
    pub fn commits(&mut self, tips: &[&str]) -> Result<Vec<Commit>, Failure> {
        let mut known: HashMap<String, Commit> = HashMap::new();
        for tip in tips {
            if !known.contains_key(*tip) {
                self.read_log(tip, &mut known)?;
            }
        }
        order(tips, known)
    }

    fn read_log(&mut self, tip: &str, known: &mut HashMap<String, Commit>) -> Result<(), Failure> {
        let sql = format!(
            "SELECT commit_hash, committer, email, date, message, parents \
             FROM dolt_log({}, '--parents')",
            text(tip)
        );
        self.connection.query(&sql, &mut |row| {
            let made_millis = date(row.text(3)).ok_or_else(|| {
                Failure::failed(format!("commit {} has no date: {}", row.text(0), row.text(3)))
            })?;
            let parents = row.text(5).split([',', ' ']).filter(|parent| !parent.is_empty());
            let commit = Commit {
                hash: row.text(0).to_owned(),
                parents: parents.map(str::to_owned).collect(),
                author: author(row.text(1), row.text(2)),
                message: row.text(4).to_owned(),
                made_millis,
            };
            known.insert(commit.hash.clone(), commit);
            Ok(())
        })
    }

    /// Returns the changes of a commit to the tables of its first parent.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn changes(&mut self, commit: &Commit) -> Result<Vec<Change>, Failure> {
        let Some(parent) = commit.parents.first() else {
            let tables =
                self.connection.rows(&format!("SHOW TABLES AS OF {}", text(&commit.hash)))?;
            let names = tables.iter().map(|row| row.text(0).to_owned());
            return Ok(names.filter(|name| is_own(name)).map(Change::Added).collect());
        };
        // The summary leaves out tables whose primary key got other columns.
        let mut changes = Vec::new();
        for function in ["dolt_diff_summary", "dolt_schema_diff"] {
            let sql = format!(
                "SELECT from_table_name, to_table_name FROM {function}({}, {})",
                text(parent),
                text(&commit.hash)
            );
            for change in self.connection.rows(&sql)?.iter().filter_map(change) {
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
        // A name that becomes free may be taken again: by a rename, or a table that is new.
        changes.sort_by_key(|change| match change {
            Change::Dropped(_) => 0,
            Change::Renamed { .. } => 1,
            Change::Added(_) | Change::Changed(_) => 2,
        });
        Ok(changes)
    }

    /// A table as it is at a commit.
    ///
    /// # Errors
    /// As [`Connection::query`]; [`Failure::Failed`] if documents have no place for a column.
    pub fn table(&mut self, name: &str, commit: &str) -> Result<Table, Failure> {
        let sql = format!("SHOW COLUMNS FROM {} AS OF {}", quoted(name), text(commit));
        let rows = self.connection.rows(&sql)?;
        let columns =
            rows.iter().map(|row| Column::of(name, row.text(0), row.text(1), row.text(3)));
        Table::new(name, columns.collect::<Result<_, _>>()?)
    }

    /// Shows each row of a table at a commit; its cells begin at 0.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn rows(
        &mut self,
        table: &Table,
        commit: &str,
        visit: &mut dyn FnMut(&Row) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let columns: Vec<_> = table.columns.iter().map(|column| column.selected("")).collect();
        let (columns, name) = (columns.join(", "), quoted(&table.name));
        let sql = format!("SELECT {columns} FROM {name} AS OF {}", text(commit));
        self.connection.query(&sql, visit)
    }

    /// Shows each row that differs between two commits, at both of which the table has these
    /// columns.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn row_changes(
        &mut self,
        table: &Table,
        (from, to): (&str, &str),
        visit: &mut dyn FnMut(RowChange<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let selected =
            |prefix: &'static str| table.columns.iter().map(move |column| column.selected(prefix));
        let columns: Vec<_> = selected("to_").chain(selected("from_")).collect();
        let sql = format!(
            "SELECT diff_type, {} FROM dolt_diff({}, {}, {})",
            columns.join(", "),
            text(from),
            text(to),
            text(&table.name)
        );
        let (written, removed) = (1, 1 + table.columns.len());
        self.connection.query(&sql, &mut |row| match row.text(0) {
            "removed" => visit(RowChange::Removed(row, removed)),
            "modified" => {
                // Keys that are equal to a collation may differ.
                if table.keys().any(|at| row.bytes(written + at) != row.bytes(removed + at)) {
                    visit(RowChange::Removed(row, removed))?;
                }
                visit(RowChange::Written(row, written))
            }
            _ => visit(RowChange::Written(row, written)),
        })
    }
}

fn is_own(table: &str) -> bool {
    !table.starts_with(SYSTEM_TABLES)
}

fn change(row: &Row) -> Option<Change> {
    let (from, to) = (row.text(0).to_owned(), row.text(1).to_owned());
    if !is_own(&from) || !is_own(&to) {
        return None;
    }
    Some(match (from.as_str(), to.as_str()) {
        ("", _) => Change::Added(to),
        (_, "") => Change::Dropped(from),
        (before, after) if before == after => Change::Changed(to),
        _ => Change::Renamed { from, to },
    })
}

fn author(name: &str, mail: &str) -> String {
    if mail.is_empty() { name.to_owned() } else { format!("{name} <{mail}>") }
}

/// A text as SQL quotes it.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Commits with their parents first: from each tip down along first parents, and from there up
/// again, so that few commits follow one that isn't their parent.
fn order(tips: &[&str], mut known: HashMap<String, Commit>) -> Result<Vec<Commit>, Failure> {
    let mut ordered = Vec::with_capacity(known.len());
    let mut opened = HashSet::new();
    let mut waiting: Vec<String> = tips.iter().rev().map(|tip| (*tip).to_owned()).collect();
    while let Some(hash) = waiting.pop() {
        let Some(commit) = known.get(&hash) else {
            if opened.contains(&hash) {
                continue;
            }
            let what = format!("commit {hash} is missing: is the repository a shallow clone?");
            return Err(Failure::failed(what));
        };
        if opened.insert(hash.clone()) {
            waiting.push(hash);
            let parents = commit.parents.iter().rev();
            waiting.extend(parents.filter(|parent| !opened.contains(*parent)).cloned());
        } else if let Some(commit) = known.remove(&hash) {
            ordered.push(commit);
        }
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(hash: &str, parents: &str) -> (String, Commit) {
        let commit = Commit {
            hash: hash.to_owned(),
            parents: parents.split_whitespace().map(str::to_owned).collect(),
            author: String::new(),
            message: String::new(),
            made_millis: 0,
        };
        (hash.to_owned(), commit)
    }

    #[test]
    fn parents_come_first() {
        let graph = || {
            HashMap::from([
                commit("a", ""),
                commit("b", "a"),
                commit("s", "a"),
                commit("t", "s"),
                commit("m", "b t"),
                commit("n", "m"),
                commit("u", "t n"),
            ])
        };
        let listed = |tips: &[&str]| {
            let ordered = order(tips, graph()).expect("all are there");
            ordered.iter().map(|commit| commit.hash.clone()).collect::<String>()
        };
        assert_eq!(listed(&["n"]), "abstmn");
        assert_eq!(listed(&["t", "n"]), "astbmn");
        assert_eq!(listed(&["u", "n"]), "astbmnu");
        let mut torn = graph();
        torn.remove("s");
        assert!(order(&["n"], torn).is_err());
    }
}
