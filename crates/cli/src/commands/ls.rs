//! `frond ls`: the databases, or a database's collections.

use std::io::Write;

use frond_doc::{Value, document};

use crate::arguments::Target;
use crate::backend::Backend;
use crate::failure::Failure;
use crate::output::{bytes, count_of, counted, documents_of, json, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond ls                      the databases, with their sizes on the disk
  frond ls shop                 the collections of shop, with the number of documents
  frond ls shop@main~2          as they were two commits ago
  frond ls 'shop@{1 hour ago}'  as they were an hour ago, committed or not
  frond ls --uri 127.0.0.1:27017

frond branch shop lists the branches, frond tag shop the tags.";

/// List the databases, or the collections of one
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Ls {
    /// Database, or DATABASE@VERSION; without it the databases are listed
    database: Option<String>,

    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Ls {
    /// Lists them.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such database or version.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        match &self.database {
            None => self.databases(&mut *backend, terminal)?,
            Some(database) => self.collections(&mut *backend, terminal, database)?,
        }
        backend.close()
    }

    fn databases(&self, backend: &mut dyn Backend, terminal: &mut Terminal) -> Result<(), Failure> {
        let answer = backend.execute("admin", &document! { "listDatabases": 1_i32 })?;
        for database in documents_of(answer.view(), "databases") {
            if self.json {
                writeln!(terminal, "{}", json(Value::Document(database)))?;
                continue;
            }
            let name = format!("{:<24}", plain(text_of(database, "name")));
            let size = bytes(count_of(database, "sizeOnDisk"));
            writeln!(terminal, "{} {size:>10}", terminal.paint(Style::Strong, name))?;
        }
        Ok(())
    }

    fn collections(
        &self,
        backend: &mut dyn Backend,
        terminal: &mut Terminal,
        database: &str,
    ) -> Result<(), Failure> {
        // A database that isn't there has no collections, and no error: the log knows.
        backend.execute(database, &document! { "frondLog": 1_i32, "limit": 1_i32 })?;
        let mut listed = Vec::new();
        backend.for_each_document(
            database,
            &document! { "listCollections": 1_i32 },
            &mut |found| {
                listed.push((text_of(found, "name").to_owned(), text_of(found, "type").to_owned()));
                Ok(())
            },
        )?;
        listed.sort_unstable();
        for (name, kind) in &listed {
            let documents = match kind.as_str() {
                // To count one is to run its pipeline.
                "view" => None,
                _ => {
                    let answer = backend.execute(database, &document! { "count": name })?;
                    Some(count_of(answer.view(), "n"))
                }
            };
            if self.json {
                let mut row = document! { "name": name, "type": kind };
                if let Some(documents) = documents {
                    let documents = i64::try_from(documents).unwrap_or(i64::MAX);
                    row = document! { "name": name, "type": kind, "documents": documents };
                }
                writeln!(terminal, "{}", json(Value::from(&row)))?;
                continue;
            }
            let name = terminal.paint(Style::Strong, format!("{:<24}", plain(name)));
            let size = documents.map_or_else(|| kind.clone(), |count| counted(count, "document"));
            writeln!(terminal, "{name} {size}")?;
        }
        Ok(())
    }
}
