//! `frond branch`: lists, makes, renames and deletes branches.

use std::io::Write;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::arguments::{Answer, Target};
use crate::failure::Failure;
use crate::output::{
    array_of, count_of, date, day_and_time, documents_of, grouped, plain, text_of,
};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond branch shop                     list the branches: last commit, its date, ahead of main, behind
  frond branch shop sale                make one at the last commit
  frond branch shop old main~5          make one at an older version
  frond branch shop old 'WORKING@{1 hour ago}'    what main held then, committed or not
  frond branch shop --delete sale       delete one that was merged
  frond branch shop --delete sale -f    delete it whatever its state; or -D sale
  frond branch shop --move sale spring  rename one, with what isn't committed on it
  frond branch shop main --protect      main only moves forward from now on
  frond branch shop main --close        main takes merges only, no direct writes
  frond branch shop try --expire 604800  may be removed in a week
  frond branch shop --remove-expired    remove expired branches

A branch is one small record, however large the database is. Its database, shop@sale, is read and \
written like any other.";

/// As git has it, the branch would come where the database does.
const DELETES: &str = ": frond branch DATABASE --delete BRANCH deletes one";

/// List, make, rename or delete branches
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Branch {
    /// Database, or DATABASE@BRANCH to start from there
    database: String,

    /// Branch to make; without it, branches are listed
    branch: Option<String>,

    /// Version at which it starts: a branch, a commit's id, main~2; by default the last commit
    #[arg(requires = "branch")]
    start: Option<String>,

    /// Delete this branch
    #[arg(short, long, value_name = "BRANCH", conflicts_with = "branch")]
    delete: Option<String>,

    /// Delete it even if it isn't merged or has uncommitted changes
    #[arg(short, long, requires = "delete")]
    force: bool,

    /// The same as --delete BRANCH --force
    #[arg(short = 'D', value_name = "BRANCH", conflicts_with_all = ["branch", "delete"])]
    delete_forced: Option<String>,

    /// Rename a branch; with one name, that of DATABASE@BRANCH
    #[arg(short = 'm', long = "move", num_args = 1..=2, value_names = ["BRANCH", "NAME"])]
    #[arg(conflicts_with_all = ["branch", "delete", "delete_forced"])]
    rename: Vec<String>,

    /// As in git: the branches are listed without it, too
    #[arg(short, long, short_alias = 'v', hide = true, conflicts_with_all = ["branch", "rename"])]
    list: bool,

    /// Let the branch only move forward: no reset, amend, rebase, forced push or deletion
    #[arg(long, requires = "branch", conflicts_with = "unprotect")]
    protect: bool,

    /// Remove the protection
    #[arg(long, requires = "branch")]
    unprotect: bool,

    /// Refuse direct writes to the branch: it changes by merges and pulls only
    #[arg(long, requires = "branch", conflicts_with = "reopen")]
    close: bool,

    /// Accept direct writes to the branch again
    #[arg(long, requires = "branch")]
    reopen: bool,

    /// Allow the branch to be removed after this many seconds; 0: never
    #[arg(long, value_name = "SECONDS", requires = "branch")]
    expire: Option<u32>,

    /// Remove expired branches
    #[arg(long, conflicts_with_all = ["branch", "delete", "delete_forced", "rename"])]
    remove_expired: bool,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Branch {
    /// Lists, makes, renames or deletes branches.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if the branch is missing, taken, protected or not
    /// committed.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let command = self.command()?;
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command);
        let answer = answer.map_err(|failure| match failure {
            Failure::Refused { message, .. }
                if self.deleted().is_some() && message.contains("doesn't exist yet") =>
            {
                Failure::failed(format!("{message}{DELETES}"))
            }
            other => other,
        })?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        let answer = answer.view();
        if self.remove_expired {
            for branch in array_of(answer, "removed").iter().filter_map(|name| name.as_str()) {
                writeln!(terminal, "removed branch {}", plain(branch))?;
            }
        } else if self.changes_policy() && self.start.is_none() {
            print_branch(terminal, answer)?;
        } else if self.deleted().is_some() {
            writeln!(terminal, "deleted branch {}", plain(text_of(answer, "deleted")))?;
        } else if self.branch.is_some() || !self.rename.is_empty() {
            self.print_made(terminal, answer)?;
        } else {
            for branch in documents_of(answer, "branches") {
                print_branch(terminal, branch)?;
            }
        }
        backend.close()
    }

    /// The branch to delete.
    fn deleted(&self) -> Option<&str> {
        self.delete.as_deref().or(self.delete_forced.as_deref())
    }

    fn changes_policy(&self) -> bool {
        self.protect || self.unprotect || self.close || self.reopen || self.expire.is_some()
    }

    fn command(&self) -> Result<DocumentBuf, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondBranch", Value::Int32(1));
        let (renamed, new) = match self.rename.as_slice() {
            [] => (None, None),
            [new] => (self.database.split_once('@').map(|(_, branch)| branch), Some(new)),
            [branch, new, ..] => (Some(branch.as_str()), Some(new)),
        };
        if let Some(new) = new {
            command.append("rename", Value::String(new));
            if renamed.is_none() {
                let message = "--move takes the branch and its new name: frond branch DATABASE \
                               --move BRANCH NAME";
                return Err(Failure::Usage(message.to_owned()));
            }
        }
        let named = self.branch.as_deref().or(self.deleted()).or(renamed);
        if let Some(branch) = named {
            command.append("branch", Value::String(branch));
        }
        if let Some(start) = &self.start {
            command.append("start", Value::String(start));
        }
        if self.deleted().is_some() {
            let forces = self.force || self.delete_forced.is_some();
            command.append("delete", Value::Boolean(true));
            command.append("forceDelete", Value::Boolean(forces));
        }
        if self.protect || self.unprotect {
            command.append("protected", Value::Boolean(self.protect));
        }
        if self.close || self.reopen {
            command.append("closed", Value::Boolean(self.close));
        }
        if let Some(seconds) = self.expire {
            command.append("expireAfterSeconds", Value::Int64(i64::from(seconds)));
        }
        if self.remove_expired {
            command.append("removeExpired", Value::Boolean(true));
        } else if named.is_none() {
            command.append("details", Value::Boolean(true));
        }
        Ok(command.build())
    }

    fn print_made(&self, terminal: &mut Terminal, answer: Document<'_>) -> Result<(), Failure> {
        let repository = self.database.split('@').next().unwrap_or(&self.database);
        let branch = text_of(answer, "branch");
        let database = format!("{repository}@{}", driver_name(branch));
        let in_uri = percent_encode(&database);
        let branch = plain(branch);
        let database = terminal.paint(Style::Strong, plain(&database));
        let head = match text_of(answer, "commitId") {
            "" => "nothing, there is no commit yet".to_owned(),
            head => terminal.paint(Style::Changed, head),
        };
        let done = if self.rename.is_empty() { "made branch" } else { "renamed to" };
        Ok(writeln!(
            terminal,
            "{done} {branch} at {head}: use it as database {database}, in a URI {in_uri}"
        )?)
    }
}

/// A branch as part of a database's name: what drivers refuse there is encoded, and the percent
/// sign, which encodes what comes after it.
pub fn driver_name(branch: &str) -> String {
    let mut name = String::with_capacity(branch.len());
    for character in branch.chars() {
        match character {
            '%' | '/' | '\\' | '.' | ' ' | '"' | '$' | '*' | '<' | '>' | ':' | '|' | '?' => {
                name.push_str(&format!("%{:02X}", character as u32));
            }
            _ => name.push(character),
        }
    }
    name
}

/// `text` as part of a URI's path.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Prints a branch, its commit and its policy on one line.
fn print_branch(terminal: &mut Terminal, branch: Document<'_>) -> Result<(), Failure> {
    let name = format!("{:<24}", plain(text_of(branch, "branch")));
    let head = match text_of(branch, "commitId") {
        "" => "no commits yet".to_owned(),
        head => terminal.paint(Style::Changed, head),
    };
    write!(terminal, "{} {head}", terminal.paint(Style::Strong, name))?;
    if let Some(Value::DateTime(millis)) = branch.get("timestamp") {
        write!(terminal, "  {}", day_and_time(millis))?;
    }
    let counts = ["ahead", "behind"].map(|name| (count_of(branch, name), name));
    for (count, name) in counts.iter().filter(|(count, _)| *count > 0) {
        write!(terminal, "  {} {name}", grouped(*count))?;
    }
    if branch.get("protected").is_some_and(|protected| protected.is_truthy()) {
        write!(terminal, "  protected")?;
    }
    if branch.get("closed").is_some_and(|closed| closed.is_truthy()) {
        write!(terminal, "  closed")?;
    }
    if let Some(Value::DateTime(millis)) = branch.get("expires") {
        write!(terminal, "  until {}", date(millis))?;
    }
    Ok(writeln!(terminal)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_drivers_and_uris() {
        for (branch, name, in_uri) in [
            ("sale", "sale", "sale"),
            ("a/b.c", "a%2Fb%2Ec", "a%252Fb%252Ec"),
            ("5%", "5%25", "5%2525"),
            ("größe", "größe", "gr%C3%B6%C3%9Fe"),
        ] {
            assert_eq!(driver_name(branch), name);
            assert_eq!(percent_encode(&driver_name(branch)), in_uri);
        }
    }
}
