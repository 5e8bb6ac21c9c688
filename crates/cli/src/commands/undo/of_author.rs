//! `frond undo --user`: what one author committed since a time, taken back commit by commit.
//!
//! The newest is reverted first, so that each revert meets what its commit made, but for what
//! others changed since: that is a conflict, which waits as any merge's. When it is resolved the
//! same command goes on: what a revert has taken back, which wasn't taken back itself, is passed
//! over, and so is what others have made without effect.
//!
//! A merge isn't the author's change: what it brought are others. What was decided when it was
//! concluded is (conflicts, and what was written while it waited): that is taken back, by a revert
//! against what the merge alone would be (`parent: 0`). Where that can't be known, the merge is
//! named and left, and the command fails once all else is done.
//!
//! The database's own record of a revert counts, not its message. The author's own reverts are
//! changes as any, unless it is the author that takes them back.

use std::collections::HashSet;
use std::io::Write;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::backend::Backend;
use crate::commands::{commit, log, merge};
use crate::failure::Failure;
use crate::output::{answer_json, array_of, plain, text_of};
use crate::terminal::Terminal;

use super::Undo;

/// A revert that would change nothing.
const NO_PROGRESS_MADE: i64 = 82;
const OPERATION_FAILED: i64 = 96;

const ILLEGAL_OPERATION: i64 = 20;
/// The letters of a message that are shown.
const MESSAGE_LETTERS: usize = 200;

/// A commit that is to be taken back.
struct Found {
    id: String,
    message: String,
    /// Of a merge, what was decided.
    is_merge: bool,
}

impl Undo {
    /// Takes back what `user` committed since `since`.
    ///
    /// # Errors
    /// [`Failure::Reported`] if conflicts wait; [`Failure::Failed`] if there is nothing to take
    /// back.
    pub fn of_author(
        &self,
        terminal: &mut Terminal,
        user: &str,
        since: &str,
    ) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        let found = self.find(&mut *backend, user, since)?;
        let (mut is_any, mut left) = (false, Vec::new());
        for Found { id, message, is_merge } in &found {
            let done = backend.execute(&self.database, &self.revert(id, *is_merge));
            match &done {
                // Most merges hold no decision.
                Err(Failure::Refused { code: NO_PROGRESS_MADE, .. }) if *is_merge => continue,
                Err(Failure::Refused { code: ILLEGAL_OPERATION, message: why, .. })
                    if *is_merge =>
                {
                    left.push(format!("{id}: {why}: {}", plain(message)));
                    continue;
                }
                _ => is_any = true,
            }
            match done {
                Ok(answer) if self.as_json.is_set() => {
                    writeln!(terminal, "{}", answer_json(&answer))?;
                }
                Ok(answer) => commit::print(terminal, &answer)?,
                Err(Failure::Refused { code: OPERATION_FAILED, answer, .. })
                    if text_of(answer.view(), "result") == "conflicts" =>
                {
                    if !self.as_json.print(terminal, &answer)? {
                        writeln!(terminal, "taking back {id}: {}", plain(message))?;
                        merge::print_conflicts(terminal, &self.database, &answer)?;
                        writeln!(terminal, "and then run this command again: it continues")?;
                    }
                    terminal.finish()?;
                    backend.close()?;
                    return Err(Failure::Reported);
                }
                Err(Failure::Refused { code: NO_PROGRESS_MADE, message: why, .. }) => {
                    if !self.as_json.is_set() {
                        writeln!(terminal, "{id}: {why}: {}", plain(message))?;
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        terminal.finish()?;
        backend.close()?;
        if !left.is_empty() {
            return Err(Failure::failed(format!(
                "not taken back: merge {}",
                left.join("; merge ")
            )));
        }
        let nothing = || format!("no commit by {user} since {since} is left to take back");
        if is_any { Ok(()) } else { Err(Failure::failed(nothing())) }
    }

    /// The command that takes a commit back; of a merge, what was decided.
    fn revert(&self, id: &str, is_merge: bool) -> DocumentBuf {
        let mut revert = DocumentBuilder::new();
        revert.append("frondRevert", Value::Int32(1)).append("target", Value::String(id));
        if is_merge {
            revert.append("parent", Value::Int32(0));
        }
        if let Some(author) = self.author.of(&self.target) {
            revert.append("author", Value::String(&author));
        }
        revert.build()
    }

    /// The author's commits that aren't taken back, newest first.
    fn find(
        &self,
        backend: &mut dyn Backend,
        user: &str,
        since: &str,
    ) -> Result<Vec<Found>, Failure> {
        let mut wanted = DocumentBuilder::new();
        wanted.append("since", Value::DateTime(log::parse_date(since)?));
        let is_own = is_of(&self.author.name(), user);
        let (mut taken_back, mut found) = (HashSet::new(), Vec::new());
        let command = log::stage("$log", &wanted.build(), None);
        backend.for_each_document(&self.database, &command, &mut |commit| {
            let (id, reverts) = (text_of(commit, "commitId"), text_of(commit, "reverts"));
            let is_theirs = is_of(text_of(commit, "author"), user);
            if taken_back.contains(id) {
                return Ok(());
            }
            if !reverts.is_empty() && (is_own || !is_theirs) {
                taken_back.insert(reverts.to_owned());
            } else if is_theirs {
                let message = text_of(commit, "message").lines().next().unwrap_or_default();
                found.push(Found {
                    id: id.to_owned(),
                    message: message.chars().take(MESSAGE_LETTERS).collect(),
                    is_merge: array_of(commit, "parents").iter().count() > 1,
                });
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Whether an author, `NAME <MAIL>` or a name alone, is meant by its name, its mail, or whole.
fn is_of(author: &str, user: &str) -> bool {
    let (name, mail) = author.split_once('<').unwrap_or((author, ""));
    [author, name.trim(), mail.trim_end_matches('>')].contains(&user) && !user.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors() {
        for (author, user, expected) in [
            ("Ada <ada@example.org>", "Ada", true),
            ("Ada <ada@example.org>", "ada@example.org", true),
            ("Ada <ada@example.org>", "Ada <ada@example.org>", true),
            ("Ada <ada@example.org>", "A", false),
            ("agent", "agent", true),
            ("agent 2", "agent", false),
            ("agent", "", false),
        ] {
            assert_eq!(is_of(author, user), expected, "{author} {user}");
        }
    }
}
