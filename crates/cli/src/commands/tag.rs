//! `frond tag`: names for versions that stay where they are.

use std::io::Write;

use frond_doc::{DocumentBuilder, Value};

use crate::arguments::{Answer, Author, Target};
use crate::failure::Failure;
use crate::output::{documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond tag shop                          list the tags
  frond tag shop v1                       name the last commit
  frond tag shop v1 main~3 -m 'as sold'   an older one, with a message
  frond tag shop --delete v1

Then shop@v1 is a database that can be read.";

/// List, make or remove tags: names of versions
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Tag {
    /// Database, or DATABASE@BRANCH to tag its last commit
    database: String,

    /// Tag to make; without it, the tags are listed
    tag: Option<String>,

    /// Version that it names; by default the last commit
    #[arg(value_name = "VERSION")]
    version: Option<String>,

    /// Message, which makes it an annotated tag with an author
    #[arg(short, long, requires = "tag")]
    message: Option<String>,

    /// Move the tag if it exists
    #[arg(short, long, requires = "tag")]
    force: bool,

    /// Remove this tag
    #[arg(short, long, value_name = "TAG", conflicts_with = "tag")]
    delete: Option<String>,

    /// As in git: the tags are listed without it, too
    #[arg(short, long, hide = true, conflicts_with_all = ["tag", "delete"])]
    list: bool,

    /// As in git: a message makes a tag annotated
    #[arg(short, long, hide = true, requires = "message")]
    annotate: bool,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Tag {
    /// Does one of the three.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if the tag is missing or taken, or there is no
    /// such version.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondTag", Value::Int32(1));
        if let Some(tag) = self.tag.as_ref().or(self.delete.as_ref()) {
            command.append("tag", Value::String(tag));
        }
        if let Some(version) = &self.version {
            command.append("target", Value::String(version));
        }
        if let Some(message) = &self.message {
            command.append("message", Value::String(message));
            if let Some(author) = self.author.of(&self.target) {
                command.append("author", Value::String(&author));
            }
        }
        for (name, is_set) in [("delete", self.delete.is_some()), ("force", self.force)] {
            if is_set {
                command.append(name, Value::Boolean(true));
            }
        }
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        let answer = answer.view();
        if self.delete.is_some() {
            let commit = terminal.paint(Style::Changed, text_of(answer, "commitId"));
            let tag = plain(text_of(answer, "deleted"));
            writeln!(terminal, "removed tag {tag}, which named {commit}")?;
        } else if self.tag.is_some() {
            let commit = terminal.paint(Style::Changed, text_of(answer, "commitId"));
            writeln!(terminal, "tag {} names {commit}", plain(text_of(answer, "tag")))?;
        } else {
            for tag in documents_of(answer, "tags") {
                let name = format!("{:<24}", plain(text_of(tag, "tag")));
                let commit = terminal.paint(Style::Changed, text_of(tag, "commitId"));
                let message = plain(text_of(tag, "message"));
                let line = format!("{} {commit}  {message}", terminal.paint(Style::Strong, name));
                writeln!(terminal, "{}", line.trim_end())?;
            }
        }
        backend.close()
    }
}
