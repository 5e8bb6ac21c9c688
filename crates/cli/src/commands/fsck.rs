//! `frond fsck`: reads a whole data directory and reports what is damaged.

use std::io::Write;
use std::path::PathBuf;

use frond_doc::{DocumentBuilder, Value};
use frond_remote::tiered;
use indicatif::ProgressBar;

use crate::arguments::Answer;
use crate::backend::{STOP_IT, open_failure};
use crate::commands::salvage;
use crate::directory::check_there;
use crate::failure::Failure;
use crate::output::{append_texts, count_value, counted};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond fsck
  frond fsck --data /var/lib/frond

Reads every chunk from the disk and hashes it, looks for the parts that each references, and checks \
the order and the counts of the trees. What is damaged is listed by file, and then by branch, collection \
and _id. Nothing is changed, except that the log is replayed, as \
at any start. The exit code is 1 if anything is damaged.";

/// Check a data directory for damage
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Fsck {
    /// Data directory; no server may be using it
    #[arg(long, value_name = "DIR", default_value = "./frond-data")]
    data: PathBuf,

    #[command(flatten)]
    as_json: Answer,
}

impl Fsck {
    /// Checks it.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the directory can't be opened, or is damaged.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let directory = self.data.display();
        check_there(&self.data, ": name one with --data")?;
        let bar = ProgressBar::new_spinner(); // Hidden where standard error is no terminal.
        let report = tiered::fsck(&self.data, &mut |done| {
            bar.set_message(counted(done, "chunk"));
            bar.tick();
        });
        bar.finish_and_clear();
        let report = report.map_err(|error| open_failure(&self.data, &error, STOP_IT))?;
        let mut answer = DocumentBuilder::new();
        answer.append("whole", Value::Boolean(report.damages.is_empty()));
        answer.append("chunks", count_value(report.chunks));
        append_texts(&mut answer, "damages", &report.damages);
        if let Some(lost) = &report.lost {
            answer.append("lost", Value::Document(salvage::described(lost).build().view()));
        }
        if self.as_json.print(terminal, &answer.build())? {
            return if report.damages.is_empty() { Ok(()) } else { Err(Failure::Reported) };
        }
        for damage in &report.damages {
            writeln!(terminal, "{}", terminal.paint(Style::Removed, damage))?;
        }
        if let Some(lost) = &report.lost {
            salvage::print_lost(terminal, lost)?;
        }
        if report.damages.is_empty() {
            let whole = terminal.paint(Style::Added, "whole");
            writeln!(terminal, "{directory} is {whole}: {}", counted(report.chunks, "chunk"))?;
            return Ok(());
        }
        terminal.finish()?;
        Err(Failure::failed(format!(
            "{directory} is damaged in {}, {} of it are whole: keep a copy of it as it is before \
             anything else",
            counted(report.damages.len() as u64, "place"),
            counted(report.chunks, "chunk")
        )))
    }
}
