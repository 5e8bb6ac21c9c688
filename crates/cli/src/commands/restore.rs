//! `frond restore`: a collection or a document as another version has it.

use std::io::Write;

use frond_doc::{Document, DocumentBuilder, Value};
use frond_vcs::PartRequest;
use frond_vcs::remote::RestoreRequest;

use crate::arguments::{Answer, Target};
use crate::commands::{backup, log};
use crate::failure::{Failure, NAMESPACE_NOT_FOUND};
use crate::output::{documents_of, plain, shown_json, text_of};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond restore shop items                      as it was in the last commit
  frond restore shop items --from v1            as it was in an older version
  frond restore shop items --id 17 --from main~3
  frond restore shop items --from sale          a collection of another branch
  frond restore shop items --from 'WORKING@{1 hour ago}'        as it was then, committed or not
  frond restore --backup /mnt/backup --data ./restored          everything, from the newest backup
  frond restore --backup s3://bucket/frond --name MOMENT --data ./restored
  frond restore --backup /mnt/backup --database shop --data ./frond-data          one database of it
  frond restore --backup /mnt/backup --database shop --collection items --data ./other

The branch stays where it is: what was restored is an uncommitted change. frond undo undoes the \
restoring of a collection.";

/// Restore a collection or a document from another version, or a data directory from a backup
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "frond restore [OPTIONS] <DATABASE> <COLLECTION>
       frond restore [OPTIONS] --backup <PLACE>")]
pub struct Restore {
    /// Database, or DATABASE@BRANCH
    #[arg(required_unless_present = "backup")]
    database: Option<String>,

    /// Collection
    #[arg(required_unless_present = "backup")]
    collection: Option<String>,

    /// Version to take it from; by default the last commit
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,

    /// Only the document with this _id (JSON or plain text)
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Directory or bucket (s3://, az://, gs://) with backups: restores the newest one into --data,
    /// which must be empty or hold what an interrupted restore left
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["database", "collection", "uri"])]
    backup: Option<String>,

    /// Which backup; by default the newest
    #[arg(long, requires = "backup")]
    name: Option<String>,

    /// Restore only this database of the backup, with its branches, tags and commits, into --data,
    /// which may hold others
    #[arg(long = "database", value_name = "DATABASE", requires = "backup")]
    of_database: Option<String>,

    /// Restore only this collection's documents and indexes, as the default branch had them (or
    /// another one, with --database DATABASE@BRANCH), into the default branch
    #[arg(long = "collection", value_name = "COLLECTION", requires = "of_database")]
    of_collection: Option<String>,

    /// If part of the backup can't be read, restore the rest, as --database always does. The exit
    /// code is 1 all the same
    #[arg(long, requires = "backup")]
    partial: bool,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Restore {
    /// Restores it.
    ///
    /// # Errors
    /// [`Failure::Usage`] if a name is missing; as [`Target::open`]; [`Failure::Refused`] if the
    /// version lacks what is asked for.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if let Some(place) = &self.backup {
            if let Some(database) = &self.of_database {
                let request = PartRequest {
                    backup: self.name.clone(),
                    database: database.clone(),
                    collection: self.of_collection.clone(),
                };
                let output = (terminal, self.as_json);
                return backup::restore_part(output, place, &request, &self.target.data);
            }
            let request = RestoreRequest { name: self.name.clone(), partial: self.partial };
            return backup::restore((terminal, self.as_json), place, &request, &self.target.data);
        }
        let (Some(database), Some(collection)) = (&self.database, &self.collection) else {
            return Err(Failure::Usage("a database and a collection are needed".to_owned()));
        };
        let mut command = DocumentBuilder::new();
        command.append("frondRestore", Value::Int32(1));
        command.append("collection", Value::String(collection));
        if let Some(from) = &self.from {
            command.append("from", Value::String(from));
        }
        if let Some(id) = &self.id {
            log::append_id(&mut command, "document", id);
        }
        let mut backend = self.target.open()?;
        let answer = backend.execute(database, &command.build());
        let answer = answer.map_err(|failure| self.explain(failure, collection))?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        let from = self.from.as_deref().unwrap_or("the last commit");
        let result_text = |answer: Document<'_>| match text_of(answer, "result") {
            "restored" => format!("is as {from} has it"),
            "removed" => format!("was removed: {from} doesn't have it"),
            _ => format!("was as {from} has it already"),
        };
        let collection = plain(collection);
        for document in documents_of(answer.view(), "documents") {
            let id = shown_json(document.get("_id").unwrap_or(Value::Null));
            writeln!(terminal, "{collection} {id} {}", result_text(document))?;
        }
        if self.id.is_none() {
            writeln!(terminal, "{collection} {}", result_text(answer.view()))?;
        }
        backend.close()
    }

    /// Of a path where a collection belongs, since `frond blame` takes one.
    fn explain(&self, failure: Failure, collection: &str) -> Failure {
        match (failure, collection.split_once('/')) {
            (Failure::Refused { code: NAMESPACE_NOT_FOUND, message, .. }, Some((name, id)))
                if self.id.is_none() =>
            {
                Failure::Failed(format!("{message}; a document is {name} --id {id}"))
            }
            (failure, _) => failure,
        }
    }
}
