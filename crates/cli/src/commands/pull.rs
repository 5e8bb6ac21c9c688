//! `frond pull`: a fetch, and a merge of what it brought.

use std::io::Write;

use clap::Args;
use frond_doc::{DocumentBuf, Value};
use frond_server::hooks::Act;
use frond_vcs::remote::{FetchReport, ORIGIN};
use frond_vcs::{CommitId, MergeOutcome, MergeRequest};

use crate::arguments::{Answer, Author};
use crate::backend::Backend;
use crate::commands::remote::{
    Data, fetched, occasion, open_database, print_fetched, run_post_hook,
};
use crate::commands::transfer::{Connection, Progress, failure};
use crate::failure::Failure;
use crate::output::{count_value, counted};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond pull shop
  frond pull shop@sale bob --branch main";

/// Fetch, and merge the remote's branch into a local one
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Pull {
    /// Database, or DATABASE@BRANCH: the branch that is merged into
    database: String,

    /// Remote
    #[arg(default_value = ORIGIN)]
    remote: String,

    /// Branch of the remote; by default the one of the same name
    #[arg(long)]
    branch: Option<String>,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    data: Data,
}

impl Pull {
    /// Pulls; the exit code is 1 if conflicts wait.
    ///
    /// # Errors
    /// As `fetch`; [`Failure::Reported`] if conflicts wait.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let opened = self.data.open()?;
        let database = open_database(&opened, &self.database)?;
        let remote = self.connection.open_to_read(&self.remote, &database)?;
        let mut occasion = occasion(Act::Merge, &self.database, &database);
        occasion.facts.push(("mergeIn", self.remote.clone()));
        opened.hooks().before(&occasion)?;
        let progress = Progress::new();
        let request = MergeRequest { author: Some(self.author.name()), ..MergeRequest::default() };
        let branch = self.branch.as_deref();
        let (report, outcome) = database
            .pull(&self.remote, &*remote, branch, request, &mut |moved| progress.show(moved))
            .map_err(failure)?;
        progress.end();
        let waits = matches!(outcome, MergeOutcome::Conflicts { .. });
        if let MergeOutcome::FastForward { head } = &outcome {
            occasion.facts.push(("commitId", head.to_string()));
        }
        if let MergeOutcome::Merged { commit } = &outcome {
            occasion.facts.push(("commitId", commit.id.to_string()));
        }
        if occasion.facts.last().is_some_and(|(fact, _)| *fact == "commitId") {
            run_post_hook(&opened, &occasion);
        }
        if self.as_json.print(terminal, &pulled(&report, &outcome))? {
            terminal.finish()?;
            Box::new(opened).close()?;
            return if waits { Err(Failure::Reported) } else { Ok(()) };
        }
        print_fetched(terminal, &report)?;
        let head = |id: &CommitId| terminal.paint(Style::Changed, id);
        let line = match &outcome {
            MergeOutcome::UpToDate { .. } => "nothing to merge".to_owned(),
            MergeOutcome::FastForward { head: id } => format!("moved forward to {}", head(id)),
            MergeOutcome::Merged { commit } => format!("merged as {}", head(&commit.id)),
            MergeOutcome::Conflicts { counts } => {
                let count = counts.iter().map(|(_, count)| count).sum();
                let conflicts = counted(count, "conflict");
                format!("{conflicts}: frond conflicts {} lists them", self.database)
            }
        };
        writeln!(terminal, "{line}")?;
        terminal.finish()?;
        Box::new(opened).close()?;
        if waits { Err(Failure::Reported) } else { Ok(()) }
    }
}

/// Returns the fetched branches and the result of the merge, in the form of `frondMerge`.
fn pulled(report: &FetchReport, outcome: &MergeOutcome) -> DocumentBuf {
    let mut answer = fetched(report);
    let (result, head) = match outcome {
        MergeOutcome::UpToDate { head } => ("upToDate", Some(head)),
        MergeOutcome::FastForward { head } => ("fastForward", Some(head)),
        MergeOutcome::Merged { commit } => ("merged", Some(&commit.id)),
        MergeOutcome::Conflicts { .. } => ("conflicts", None),
    };
    answer.append("result", Value::String(result));
    if let Some(head) = head {
        answer.append("commitId", Value::String(&head.to_string()));
    }
    if let MergeOutcome::Conflicts { counts } = outcome {
        answer.begin_array("conflicts");
        for (collection, count) in counts {
            answer.push_begin_document().append("collection", Value::String(collection));
            answer.append("count", count_value(*count)).end();
        }
        answer.end();
    }
    answer.build()
}
