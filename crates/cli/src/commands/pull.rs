//! `frond pull`: a fetch, and a merge of what it brought.

use std::io::Write;

use clap::Args;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_server::hooks::Act;
use frond_vcs::remote::{FetchReport, Moved, ORIGIN};
use frond_vcs::{MergeOutcome, MergeRequest};

use crate::arguments::{Answer, Author};
use crate::backend::Backend;
use crate::commands::merge::{self, OutcomeDisplay};
use crate::commands::remote::{
    Data, fetched, occasion, open_database, print_fetched, run_post_hook,
};
use crate::commands::served::{self, Served};
use crate::commands::transfer::{Connection, Progress, failure};
use crate::failure::Failure;
use crate::output::{count_of, count_value, counted, documents_of, text_of};
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
        if let Some(server) = self.data.server()? {
            return self.by_server(terminal, server);
        }
        let opened = self.data.open()?;
        let database = open_database(&opened, &self.database)?;
        let remote = self.connection.open_to_read(&self.remote, &database)?;
        let mut occasion = occasion(Act::Merge, &self.database, &database);
        occasion.facts.push(("mergeIn", self.remote.clone()));
        let progress = Progress::new();
        let request = MergeRequest { author: Some(self.author.name()), ..MergeRequest::default() };
        let branch = self.branch.as_deref();
        let show = &mut |moved: &Moved| progress.show(moved);
        let (report, request) = database
            .fetch_to_merge(&self.remote, &*remote, branch, request, show)
            .map_err(failure)?;
        progress.end();
        // No other process has the directory open: what is judged is what is merged.
        occasion.facts.push(("mergeInId", request.merge_in.clone()));
        opened.hooks().before(&occasion)?;
        let outcome = database.merge(&request).map_err(failure)?;
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
        self.print(terminal, &pulled(&report, &outcome))?;
        terminal.finish()?;
        Box::new(opened).close()?;
        if waits { Err(Failure::Reported) } else { Ok(()) }
    }

    fn by_server(&self, terminal: &mut Terminal, mut server: Served) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondPull", Value::Int32(1));
        command.append("remote", Value::String(&self.remote));
        command.append("author", Value::String(&self.author.name()));
        if let Some(branch) = &self.branch {
            command.append("branch", Value::String(branch));
        }
        let answer = server.transfer(&self.database, command, &self.connection);
        let answer = answer.map(|answer| served::pulled(answer.view()));
        let how = OutcomeDisplay { as_json: self.as_json, print };
        merge::finish(server.into_backend(), terminal, &self.database, answer, how)
    }

    fn print(&self, terminal: &mut Terminal, report: &DocumentBuf) -> Result<(), Failure> {
        if self.as_json.print(terminal, report)? {
            return Ok(());
        }
        if text_of(report.view(), "result") != "conflicts" {
            return print(terminal, report);
        }
        print_fetched(terminal, report.view())?;
        let counts = documents_of(report.view(), "conflicts");
        let conflicts = counted(counts.map(|each| count_of(each, "count")).sum(), "conflict");
        Ok(writeln!(terminal, "{conflicts}: frond conflicts {} lists them", self.database)?)
    }
}

/// Prints what a pull brought, and how its merge ended.
fn print(terminal: &mut Terminal, report: &DocumentBuf) -> Result<(), Failure> {
    let report = report.view();
    print_fetched(terminal, report)?;
    let head = terminal.paint(Style::Changed, text_of(report, "commitId"));
    let line = match text_of(report, "result") {
        "upToDate" => "nothing to merge".to_owned(),
        "fastForward" => format!("moved forward to {head}"),
        _ => format!("merged as {head}"),
    };
    Ok(writeln!(terminal, "{line}")?)
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
