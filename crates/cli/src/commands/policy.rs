//! `frond policy`: when and how commits of a database are made, and what they must pass.

use std::io::Write;

use frond_doc::{DocumentBuilder, Value, extended_json};

use crate::arguments::{Answer, Target};
use crate::failure::Failure;
use crate::output::{count_of, counted, shown_json};
use crate::terminal::Terminal;

const EXAMPLES: &str = concat!(
    r#"Examples:
  frond policy shop                                       show it
  frond policy shop --set '{"everySeconds": 3600}'        commit what changed every hour
  frond policy shop --set '{"changedBytes": 10000000, "branches": ["main"], "author": "robot",
      "message": "{branch}: {changes} documents ({collections})",
      "thin": [{"olderThanSeconds": 86400, "keepEverySeconds": 3600}]}'
  frond policy shop --set '{"rules": [{"name": "prices", "collection": "items",
      "documents": {"price": {"$gt": 0}}, "changes": {"change": {"$ne": "removed"}}}]}'
  frond policy shop --thin                                thin main's automatic commits now
  frond policy shop --remove

"#,
    "A server commits changes by itself, after everySeconds or about changedBytes of writes. thin \
     keeps one automatic commit for each keepEverySeconds at the end of a branch. Rules are filters \
     that a commit must pass: the documents that it adds or changes (documents), or the rows of its \
     $diff (changes)."
);

/// Show or set when a database commits automatically, and which rules commits must pass
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("what").args(["set", "remove", "thin"]))]
pub struct Policy {
    /// Database, or DATABASE@BRANCH to thin
    database: String,

    /// The policy
    #[arg(long, value_name = "JSON")]
    set: Option<String>,

    /// Remove the policy
    #[arg(long)]
    remove: bool,

    /// Thin the branch's automatic commits now
    #[arg(long)]
    thin: bool,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Policy {
    /// Does one of the four.
    ///
    /// # Errors
    /// [`Failure::Usage`] if `--set` is no document; as [`Target::open`]; [`Failure::Refused`] for
    /// what no policy can say.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondPolicy", Value::Int32(1));
        if let Some(set) = &self.set {
            let policy = extended_json::parse(set)
                .map_err(|error| Failure::Usage(format!("--set is not a document: {error}")))?;
            command.append("set", Value::Document(policy.view()));
        }
        for (name, flag) in [("remove", self.remove), ("thin", self.thin)] {
            if flag {
                command.append(name, Value::Boolean(true));
            }
        }
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        let answer = answer.view();
        if self.thin {
            let thinned = counted(count_of(answer, "thinned"), "commit");
            writeln!(terminal, "thinned out {thinned}")?;
            return backend.close();
        }
        match answer.get("policy") {
            Some(policy @ Value::Document(_)) => writeln!(terminal, "{}", shown_json(policy))?,
            _ => writeln!(terminal, "no policy: commits are made by command only")?,
        }
        backend.close()
    }
}
