//! `frond merge`: brings another version's changes into a branch.

use std::collections::BTreeMap;
use std::io::Write;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};

use crate::arguments::{Answer, Author, Target};
use crate::backend::Backend;
use crate::commands::commit;
use crate::failure::Failure;
use crate::notice;
use crate::output::{count_of, counted, documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond merge shop sale -m 'the sale begins'
  frond merge shop@sale main              the other way: bring sale up to date
  frond merge shop sale --dry-run         only tell what it would do
  frond merge shop sale --squash -m 'sale'      as one commit with one parent
  frond merge shop sale --on-conflict theirs    take their side where both changed something
  frond merge shop sale --rule items.stock=delta --rule items.tags=union
  frond merge shop --continue             finish it when all conflicts are resolved
  frond merge shop --abort                give it up

Changes to different documents, and to different fields of one document, merge by themselves. The same \
field changed on both sides is a conflict, which is kept until you decide: frond conflicts lists \
them, frond resolve resolves one. With conflicts, the exit code is 1.";

/// Bring another version's changes into a branch
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "frond merge [OPTIONS] <DATABASE> <VERSION>
       frond merge [OPTIONS] <DATABASE> --continue | --abort")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["merge_in", "continue_", "abort"]))]
pub struct Merge {
    /// Database, or DATABASE@BRANCH: what is merged into
    database: String,

    /// Branch, commit's id or other version to merge in
    #[arg(value_name = "VERSION")]
    merge_in: Option<String>,

    /// The merge commit's message
    #[arg(short, long)]
    message: Option<String>,

    /// Make a merge commit even if the branch could just move forward
    #[arg(long, requires = "merge_in")]
    no_ff: bool,

    /// Refuse if the branch can't just move forward
    #[arg(long, requires = "merge_in", conflicts_with = "no_ff")]
    ff_only: bool,

    /// Make a commit with one parent and everything that the other side did
    #[arg(long, requires = "merge_in", conflicts_with_all = ["no_ff", "ff_only"])]
    squash: bool,

    /// Only show what the merge would do, and its conflicts: nothing changes
    #[arg(short = 'n', long, requires = "merge_in")]
    dry_run: bool,

    #[command(flatten)]
    rules: Rules,

    /// Don't merge while there are uncommitted changes; by default they become a commit of their
    /// own first
    #[arg(long)]
    refuse_dirty: bool,

    /// Finish a merge whose conflicts are all resolved
    #[arg(long = "continue")]
    continue_: bool,

    /// Abort the merge in progress; what was written since it began stays
    #[arg(long, conflicts_with = "message")]
    abort: bool,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

/// The code with which a merge that found conflicts answers.
const OPERATION_FAILED: i64 = 96;

impl Merge {
    /// Merges, continues or aborts.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Reported`] if conflicts wait; [`Failure::Refused`] for all
    /// other reasons.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let command = self.command()?;
        let how = OutcomeDisplay { as_json: self.as_json, print };
        let mut backend = self.target.open()?;
        if self.merge_in.is_some() && !self.refuse_dirty && !self.dry_run {
            print_dirty(&mut *backend, &self.database);
        }
        run(backend, terminal, &self.database, &command, how)
    }

    fn command(&self) -> Result<DocumentBuf, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondMerge", Value::Int32(1));
        if let Some(merge_in) = &self.merge_in {
            command.append("merge_in", Value::String(merge_in));
        }
        if let Some(message) = &self.message {
            command.append("message", Value::String(message));
        }
        if let Some(author) = self.author.of(&self.target).filter(|_| !self.abort) {
            command.append("author", Value::String(&author));
        }
        self.rules.append_to(&mut command)?;
        let flags = [
            ("noFF", self.no_ff),
            ("ffOnly", self.ff_only),
            ("squash", self.squash),
            ("refuseDirty", self.refuse_dirty),
            ("dryRun", self.dry_run),
            ("continue", self.continue_),
            ("abort", self.abort),
        ];
        for (name, _) in flags.iter().filter(|(_, is_set)| *is_set) {
            command.append(name, Value::Boolean(true));
        }
        Ok(command.build())
    }
}

/// Says that what is not committed will be committed first, if there is anything.
pub fn print_dirty(backend: &mut dyn Backend, database: &str) {
    if is_dirty(backend, database) {
        notice::print(format_args!(
            "changes that are not committed become a commit of their own first (--refuse-dirty \
             refuses instead)"
        ));
    }
}

/// Whether there are changes that are not committed; that there is no such branch is reported
/// later.
fn is_dirty(backend: &mut dyn Backend, database: &str) -> bool {
    let status = backend.execute(database, &document! { "frondStatus": 1_i32 });
    status.is_ok_and(|status| {
        text_of(status.view(), "merging").is_empty()
            && documents_of(status.view(), "collections").next().is_some()
    })
}

/// How documents are merged, where not as usual.
#[derive(clap::Args, Clone, Debug)]
pub struct Rules {
    /// Take this side where both changed the same thing, instead of keeping a conflict
    #[arg(long, value_name = "SIDE", value_parser = ["ours", "theirs"])]
    on_conflict: Option<String>,

    /// What merges by itself: fields (the default) or whole documents
    #[arg(long, value_parser = ["field", "document"])]
    granularity: Option<String>,

    /// What equal changes on both sides are: an agreement (the default) or a conflict
    #[arg(long, value_parser = ["agree", "conflict"])]
    equal_changes: Option<String>,

    /// Merge a field as a sum of changes (delta) or as a set (union)
    #[arg(long = "rule", value_name = "COLLECTION.PATH=delta|union")]
    rules: Vec<String>,
}

impl Rules {
    /// Appends them to a command.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a rule that isn't `COLLECTION.PATH=RULE`.
    pub fn append_to(&self, command: &mut DocumentBuilder) -> Result<(), Failure> {
        for (name, text) in [
            ("onConflict", &self.on_conflict),
            ("granularity", &self.granularity),
            ("equalChanges", &self.equal_changes),
        ] {
            if let Some(text) = text {
                command.append(name, Value::String(text));
            }
        }
        let mut collections: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for rule in &self.rules {
            let parts = rule.split_once('=').and_then(|(place, rule)| {
                let (collection, path) = place.split_once('.')?;
                Some((collection, path, rule))
            });
            let Some((collection, path, rule)) = parts else {
                let message = format!("--rule {rule}: expected COLLECTION.PATH=delta|union");
                return Err(Failure::Usage(message));
            };
            collections.entry(collection).or_default().push((path, rule));
        }
        if collections.is_empty() {
            return Ok(());
        }
        command.begin_document("mergeRules");
        for (collection, rules) in collections {
            command.begin_document(collection);
            for (path, rule) in rules {
                command.append(path, Value::String(rule));
            }
            command.end();
        }
        command.end();
        Ok(())
    }
}

/// The form in which the result of a merge is shown.
#[derive(Clone, Copy)]
pub struct OutcomeDisplay {
    /// Whether it is shown as JSON.
    pub as_json: Answer,
    /// Prints its success otherwise.
    pub print: fn(&mut Terminal, &DocumentBuf) -> Result<(), Failure>,
}

/// Runs a command that merges, and prints how it ended; the exit code is 1 if conflicts wait.
///
/// # Errors
/// [`Failure::Reported`] if conflicts wait; [`Failure::Refused`] for all other reasons.
pub fn run(
    mut backend: Box<dyn Backend>,
    terminal: &mut Terminal,
    database: &str,
    command: &DocumentBuf,
    how: OutcomeDisplay,
) -> Result<(), Failure> {
    let answer = backend.execute(database, command);
    finish(backend, terminal, database, answer, how)
}

/// Prints the answer of a command that merges.
///
/// # Errors
/// As [`run`].
pub fn finish(
    backend: Box<dyn Backend>,
    terminal: &mut Terminal,
    database: &str,
    answer: Result<DocumentBuf, Failure>,
    how: OutcomeDisplay,
) -> Result<(), Failure> {
    match answer {
        Ok(answer) => {
            if !how.as_json.print(terminal, &answer)? {
                (how.print)(terminal, &answer)?;
            }
        }
        Err(Failure::Refused { code: OPERATION_FAILED, answer, .. })
            if text_of(answer.view(), "result") == "conflicts" =>
        {
            if !how.as_json.print(terminal, &answer)? {
                print_conflicts(terminal, database, &answer)?;
            }
            terminal.finish()?;
            backend.close()?;
            return Err(Failure::Reported);
        }
        Err(failure) => return Err(failure),
    }
    backend.close()
}

/// Prints what conflicts, and what to do.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn print_conflicts(
    terminal: &mut Terminal,
    database: &str,
    answer: &DocumentBuf,
) -> Result<(), Failure> {
    writeln!(terminal, "Conflicts wait to be resolved:")?;
    print_counts(terminal, answer.view())?;
    for (what, command) in [
        ("list them with", format!("frond conflicts {database}")),
        ("resolve each with", format!("frond resolve {database} ID --ours")),
        ("then", format!("frond merge {database} --continue")),
        ("or give up with", format!("frond merge {database} --abort")),
    ] {
        writeln!(terminal, "{what:>18}  {}", terminal.paint(Style::Accent, command))?;
    }
    Ok(())
}

fn print_aborted(terminal: &mut Terminal, answer: &DocumentBuf) -> Result<(), Failure> {
    writeln!(terminal, "gave up the merge; what was written since it began stays")?;
    print_set_aside(terminal, answer.view(), "frond undo brings it back")
}

/// Prints the collections in which something was written since that is set aside, and `how` it
/// comes back.
///
/// # Errors
/// What can't be printed.
pub fn print_set_aside(
    terminal: &mut Terminal,
    answer: Document<'_>,
    how: &str,
) -> Result<(), Failure> {
    let set_aside = answer.get("setAside").and_then(|names| names.as_array());
    for collection in
        set_aside.iter().flat_map(|names| names.iter()).filter_map(|name| name.as_str())
    {
        let collection = plain(collection);
        writeln!(terminal, "  {collection}: but for what changed the same ({how})")?;
    }
    Ok(())
}

/// Prints what a merge would do.
fn print_preview(terminal: &mut Terminal, answer: Document<'_>, id: &str) -> Result<(), Failure> {
    let branch = plain(text_of(answer, "branch"));
    match text_of(answer, "result") {
        "merged" => writeln!(terminal, "would merge into {branch} without conflicts")?,
        "fastForward" => writeln!(terminal, "would move {branch} forward to {id}")?,
        "upToDate" => writeln!(terminal, "nothing to merge: already up to date at {id}")?,
        _ => {
            writeln!(terminal, "would conflict:")?;
            print_counts(terminal, answer)?;
            terminal.finish()?;
            return Err(Failure::Reported);
        }
    }
    Ok(())
}

/// Prints how many conflicts each collection has.
fn print_counts(terminal: &mut Terminal, answer: Document<'_>) -> Result<(), Failure> {
    for conflict in documents_of(answer, "conflicts") {
        let collection = plain(text_of(conflict, "collection"));
        let line = format!("  {collection}: {}", counted(count_of(conflict, "count"), "conflict"));
        writeln!(terminal, "{}", terminal.paint(Style::Removed, line))?;
    }
    Ok(())
}

/// Prints what a merge did.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn print(terminal: &mut Terminal, answer: &DocumentBuf) -> Result<(), Failure> {
    let view = answer.view();
    let id = terminal.paint(Style::Changed, text_of(view, "commitId"));
    if view.get("dryRun").is_some() {
        return print_preview(terminal, view, &id);
    }
    match text_of(view, "result") {
        "merged" => commit::print(terminal, answer)?,
        "fastForward" => writeln!(terminal, "moved forward to {id}")?,
        "upToDate" => writeln!(terminal, "nothing to merge: already up to date at {id}")?,
        "aborted" => return print_aborted(terminal, answer),
        other => writeln!(terminal, "{other} {id}")?,
    }
    print_set_aside(terminal, view, "frond undo brings it back")
}
