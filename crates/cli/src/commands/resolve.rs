//! `frond resolve`: decides one conflict of a merge that waits.

use std::io::Write;

use frond_doc::{DocumentBuf, DocumentBuilder, Value, extended_json};

use crate::arguments::{Answer, Target};
use crate::failure::Failure;
use crate::output::{count_of, counted};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond resolve shop 3k2j9q7t --ours       keep this branch's value
  frond resolve shop 3k2j9q7t --theirs     take the other side's
  frond resolve shop 3k2j9q7t --value '{\"_id\": 1, \"name\": \"lamp\", \"price\": 25}'
  frond resolve shop 3k2j9q7t --update '{\"$set\": {\"price\": 25}}'
  frond resolve shop 3k2j9q7t --remove     neither: remove the document
  frond resolve shop --collection items --theirs
  frond resolve shop --all --ours

frond conflicts shop lists the conflicts with their ids.";

/// Resolve a conflict of a merge in progress
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(
    override_usage = "frond resolve [OPTIONS] <DATABASE> <ID | --collection <COLLECTION> | --all> \
                            <--ours | --theirs | --value <JSON> | --update <JSON> | --remove>"
)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["ours", "theirs", "value", "update", "remove"]))]
#[command(group = clap::ArgGroup::new("which").required(true).args(["id", "collection", "all"]))]
pub struct Resolve {
    /// Database, or DATABASE@BRANCH, whose merge waits
    database: String,

    /// The conflict's id
    id: Option<String>,

    /// All conflicts of this collection
    #[arg(short, long)]
    collection: Option<String>,

    /// All conflicts
    #[arg(long)]
    all: bool,

    /// Keep this branch's value
    #[arg(long)]
    ours: bool,

    /// Take the other side's value
    #[arg(long)]
    theirs: bool,

    /// Take this document instead
    #[arg(long, value_name = "JSON")]
    value: Option<String>,

    /// Apply this update to the document as it is now
    #[arg(long, value_name = "JSON")]
    update: Option<String>,

    /// Remove the document
    #[arg(long)]
    remove: bool,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Resolve {
    /// Resolves the conflict and prints how many are left.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such conflict.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let command = self.command()?;
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command)?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        match count_of(answer.view(), "remaining") {
            0 => {
                let hint = format!("frond merge {} --continue", self.database);
                let hint = terminal.paint(Style::Accent, hint);
                writeln!(
                    terminal,
                    "resolved: no conflicts are left; finish the merge with  \
                                    {hint}"
                )?;
            }
            left => writeln!(terminal, "resolved: {} left", counted(left, "conflict"))?,
        }
        backend.close()
    }

    fn command(&self) -> Result<DocumentBuf, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondResolveConflict", Value::Int32(1));
        for (name, text) in [("id", &self.id), ("collection", &self.collection)] {
            if let Some(text) = text {
                command.append(name, Value::String(text));
            }
        }
        if self.all {
            command.append("all", Value::Boolean(true));
        }
        let given = [("value", &self.value), ("update", &self.update)];
        let given = given.into_iter().find_map(|(name, text)| Some((name, text.as_ref()?)));
        if let Some((name, text)) = given {
            let document = extended_json::parse(text)
                .map_err(|error| Failure::Usage(format!("--{name} is not a document: {error}")))?;
            command.append(name, Value::Document(document.view()));
        } else if self.remove {
            command.append("value", Value::Null);
        } else {
            let side = if self.ours { "ours" } else { "theirs" };
            command.append("resolution", Value::String(side));
        }
        Ok(command.build())
    }
}
