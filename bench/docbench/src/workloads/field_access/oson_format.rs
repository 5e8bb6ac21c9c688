//! OSON, by Oracle's own driver in a virtual machine beside us.
//!
//! The harness (`Oson.java`) is run from its source by `java`; the library is looked for where
//! Maven puts it, or where `DOCBENCH_OJDBC` says. It runs a task twice and times the second: what
//! is hot is compiled by then. The answer is a line: nanoseconds, letters, bytes.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Done, Task, Way};
use crate::sql::documents::json;
use crate::target::Failure;

const SOURCE: &str = include_str!("Oson.java");
const LIBRARY: &str = ".m2/repository/com/oracle/database/jdbc/ojdbc11";
const HOW: &str = "Oracle's driver isn't there: mvn dependency:get \
                   -Dartifact=com.oracle.database.jdbc:ojdbc11:23.5.0.24.07";

/// The virtual machine is started once.
static HARNESS: Mutex<Option<Harness>> = Mutex::new(None);

struct Harness {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Harness {
    fn drop(&mut self) {
        // It has ended already, or is of no use any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Has the harness find fields.
pub fn run(task: &Task<'_>) -> Result<Done, Failure> {
    let mut place = HARNESS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut harness = match place.take() {
        Some(harness) => harness,
        None => Harness::start()?,
    };
    let done = harness.ask(task)?;
    *place = Some(harness);
    Ok(done)
}

impl Harness {
    fn start() -> Result<Harness, Failure> {
        let library = library().ok_or_else(|| Failure::Missing(HOW.into()))?;
        let directory = std::env::temp_dir().join(format!("docbench-oson-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let source = directory.join("Oson.java");
        std::fs::write(&source, SOURCE)?;
        let process = Command::new("java")
            .arg("-cp")
            .arg(library)
            .arg(&source)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process =
            process.map_err(|error| Failure::Missing(format!("java can't be started: {error}")))?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Failure::Other("java was started without pipes".into()));
        };
        let mut harness = Harness { process, input, output: BufReader::new(output) };
        // It has read its source when it says so.
        let ready = harness.line();
        std::fs::remove_dir_all(&directory)?;
        match ready?.as_str() {
            "ready" => Ok(harness),
            other => Err(Failure::Other(format!("the OSON harness said {other:?}"))),
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self, task: &Task<'_>) -> Result<Done, Failure> {
        let way = match task.way {
            Way::Opened => "opened",
            Way::Bytes => "bytes",
            Way::Scan => "scan",
        };
        let document = json(&task.document.clone().into());
        let paths = task.paths.join(" ");
        write!(self.input, "{way}\n{}\n{paths}\n{document}\n", task.times)?;
        self.input.flush()?;
        let line = self.line()?;
        let numbers: Option<Vec<u64>> =
            line.split_whitespace().map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[nanos, letters, size]) => {
                Ok(Done { elapsed: Duration::from_nanos(nanos), letters, size })
            }
            _ => Err(Failure::Other(format!("the OSON harness answered {line:?}"))),
        }
    }
}

fn library() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("DOCBENCH_OJDBC") {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    let versions = PathBuf::from(std::env::var_os("HOME")?).join(LIBRARY).read_dir().ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|version| version.ok()?.path().read_dir().ok())
        .flatten()
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "jar"))
        .collect();
    found.sort();
    found.pop()
}
