//! Reports progress while following: a line on standard error that changes, where that is a
//! terminal; copies and commits on standard output; omissions on standard error.

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use frond_doc::{DocumentBuf, document};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::arguments::Answer;
use crate::commands::commit;
use crate::commands::follow::record::Record;
use crate::failure::Failure;
use crate::notice::print;
use crate::output::{answer_json, bytes, counted, date, grouped, plain};
use crate::terminal::Terminal;

/// The reports, and where they go.
pub struct FollowDisplay<'t> {
    terminal: &'t mut Terminal,
    as_json: Answer,
    bar: ProgressBar,
    /// The address of the source.
    source: String,
    /// The omissions that were reported.
    left_out: HashSet<String>,
    /// The number of documents of the collection that is being copied.
    documents: u64,
    bytes: u64,
}

impl FollowDisplay<'_> {
    /// Begins.
    pub fn new(terminal: &mut Terminal, as_json: Answer, source: String) -> FollowDisplay<'_> {
        let bar = ProgressBar::new_spinner();
        // Hidden where standard error is no terminal.
        bar.set_draw_target(ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
        bar.set_style(style.expect("the template is a constant"));
        bar.enable_steady_tick(Duration::from_millis(100));
        let left_out = HashSet::new();
        FollowDisplay { terminal, as_json, bar, source, left_out, documents: 0, bytes: 0 }
    }

    /// Returns where the source is.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Says that something isn't copied, once.
    pub fn left_out(&mut self, what: &str, why: &str) {
        if self.left_out.insert(what.to_owned()) {
            self.bar.suspend(|| print(format_args!("{} is left out: {}", plain(what), plain(why))));
        }
    }

    /// Says that a connection is lost.
    pub fn lost(&self, why: &str) {
        self.bar.suspend(|| print(format_args!("{}: trying again", plain(why))));
    }

    /// Says that nothing is there to copy: the source's name may be mistyped.
    pub fn has_nothing(&self) {
        let source = plain(&self.source);
        self.bar.suspend(|| print(format_args!("{source} has no collections yet")));
    }

    /// Counts documents that were copied.
    pub fn copied(&mut self, name: &str, documents: usize, bytes_more: usize) {
        self.documents += documents as u64;
        self.bytes += bytes_more as u64;
        let (count, size) = (counted(self.documents, "document"), bytes(self.bytes));
        self.bar.set_message(format!("copying {}: {count}, {size}", plain(name)));
    }

    /// Says that a collection is copied.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn finished(&mut self, name: &str) -> Result<(), Failure> {
        let (documents, bytes_all) = (self.documents, self.bytes);
        (self.documents, self.bytes) = (0, 0);
        let (count, size) = (counted(documents, "document"), bytes(bytes_all));
        let answer = document! { "copied": name, "documents": documents as i64 };
        self.print(&answer, &format!("copied {}: {count}, {size}", plain(name)))
    }

    /// Says how far the copy is.
    pub fn follows(&self, record: &Record) {
        let changes = grouped(u64::try_from(record.changes).unwrap_or(0));
        let at = match record.wall_millis {
            0 => String::new(),
            millis => format!(", the last of {}", date(millis)),
        };
        self.bar.set_message(format!("following {}: {changes} changes{at}", self.source));
    }

    /// The message of a version.
    pub fn message(&self, record: &Record) -> String {
        match (record.committed_millis, u64::try_from(record.uncommitted).unwrap_or(0)) {
            (0, 0) => format!("copy of {}", self.source),
            (0, changes) => format!("copy of {}, and {}", self.source, counted(changes, "change")),
            (_, changes) => format!("{} of {}", counted(changes, "change"), self.source),
        }
    }

    /// Says that a version was recorded.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn committed(&mut self, answer: &DocumentBuf) -> Result<(), Failure> {
        if self.as_json.is_set() {
            return self.print(answer, "");
        }
        let bar = self.bar.clone();
        bar.suspend(|| commit::print(self.terminal, answer))?;
        Ok(self.terminal.flush()?)
    }

    /// Says how many documents weren't as the source had them, if there are any.
    ///
    /// # Errors
    /// [`Failure::Warned`] with that.
    pub fn end(&self, record: &Record) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        match u64::try_from(record.unlike) {
            Ok(0) | Err(_) => Ok(()),
            Ok(count) => Err(Failure::Warned(format!(
                "{} of the copy not as the source had them: write to a branch of it, not to the \
                 copy",
                counted(count, "document")
            ))),
        }
    }

    fn print(&mut self, answer: &DocumentBuf, text: &str) -> Result<(), Failure> {
        let line = if self.as_json.is_set() { answer_json(answer) } else { text.to_owned() };
        let bar = self.bar.clone();
        bar.suspend(|| writeln!(self.terminal, "{line}").and_then(|()| self.terminal.flush()))?;
        Ok(())
    }
}
