//! Dolt itself, run as a server on the repository while it is read.
//!
//! A shell stands between: it ends the server when its standard input does, so that a `frond` that
//! was killed leaves none behind, which would keep the repository locked. The server refuses to
//! write and listens on loopback only. Its configuration, and the users that it makes for itself,
//! lie in a directory of ours: otherwise it would put them into the repository.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use frond_doc::Value;
use tempfile::TempDir;

use crate::commands::from_dolt::connection::Connection;
use crate::failure::Failure;
use crate::output::{json, plain};

/// The time that a server may take until it answers.
const START_MAX: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(50);
/// So much of the output of a server that ended is shown.
const OUTPUT_BYTES_MAX: u64 = 4_096;

const SUPERVISOR: &str = r#"exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ read -r line <&3; kill "$child" 2>/dev/null; } &
exec 3<&-
wait "$child""#;

/// A server of Dolt; it ends with this.
pub struct Program {
    child: Child,
    port: u16,
    server_output: File,
    /// Removed when the server has ended.
    _own: TempDir,
}

impl Program {
    /// Starts `program` on the repository in `directory`.
    ///
    /// # Errors
    /// [`Failure::Failed`] if there is no such program or repository.
    pub fn start(program: &Path, directory: &Path) -> Result<Program, Failure> {
        if !directory.join(".dolt").is_dir() {
            let what = format!("{} is not a Dolt repository: it has no .dolt", directory.display());
            return Err(Failure::failed(what));
        }
        let failed = |error| Failure::file(&program.display().to_string(), &error);
        let mut command = Command::new(program);
        let command = command.arg("version").stdout(Stdio::null()).stderr(Stdio::null());
        if !command.status().map_err(|error| not_found(program, &error))?.success() {
            return Err(Failure::failed(format!("{} version fails", program.display())));
        }
        let port = free_port().map_err(failed)?;
        let own = tempfile::tempdir().map_err(failed)?;
        let directory = directory.canonicalize().map_err(failed)?;
        let settings = own.path().join("config.yaml");
        let text = configuration(&directory, own.path(), port);
        std::fs::write(&settings, text).map_err(failed)?;
        let server_output = tempfile::tempfile().map_err(failed)?;
        let child = Command::new("/bin/sh")
            .args(["-c", SUPERVISOR, "sh"])
            .arg(program)
            .args(["sql-server", "--config"])
            .arg(&settings)
            .current_dir(own.path())
            .env("DOLT_DISABLE_EVENT_FLUSH", "true")
            .stdin(Stdio::piped())
            .stdout(server_output.try_clone().map_err(failed)?)
            .stderr(server_output.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        Ok(Program { child, port, server_output, _own: own })
    }

    /// Connects, once the server answers.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it ends, or doesn't answer in a minute.
    pub fn connect(&mut self) -> Result<Connection, Failure> {
        let end = Instant::now() + START_MAX;
        loop {
            if let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) {
                let failed = |error| Failure::file("the connection to dolt", &error);
                stream.set_nodelay(true).map_err(failed)?;
                let reader = stream.try_clone().map_err(failed)?;
                return Connection::begin(Box::new(reader), Box::new(stream));
            }
            let ended = self.child.try_wait();
            if ended.is_ok_and(|ended| ended.is_some()) || end < Instant::now() {
                return Err(Failure::failed(format!("dolt sql-server: {}", self.server_output())));
            }
            thread::sleep(STEP);
        }
    }

    fn server_output(&mut self) -> String {
        let mut server_output = Vec::new();
        let read = self.server_output.rewind();
        let read = read.and_then(|()| {
            (&self.server_output).take(OUTPUT_BYTES_MAX).read_to_end(&mut server_output)
        });
        match read {
            Ok(0) | Err(_) => "it doesn't answer".to_owned(),
            Ok(_) => plain(String::from_utf8_lossy(&server_output).trim()),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Nothing can be done about one that can't be waited for.
        let _ = self.child.wait();
    }
}

fn not_found(program: &Path, error: &io::Error) -> Failure {
    let name = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::failed(format!(
            "there is no program {name}: Dolt does the reading, so install it, or name its program \
             with --dolt-program"
        )),
        _ => Failure::file(&name.to_string(), error),
    }
}

/// The server's configuration; what JSON quotes is quoted for YAML, too.
fn configuration(repository: &Path, own: &Path, port: u16) -> String {
    let quoted = |path: &Path| json(Value::String(&path.to_string_lossy()));
    let in_own = |name: &str| quoted(&own.join(name));
    format!(
        "log_level: error\n\
         behavior:\n  read_only: true\n  event_scheduler: \"OFF\"\n\
         listener:\n  host: 127.0.0.1\n  port: {port}\n\
         data_dir: {}\ncfg_dir: {}\nprivilege_file: {}\nbranch_control_file: {}\n",
        quoted(repository),
        quoted(own),
        in_own("privileges.db"),
        in_own("branch_control.db"),
    )
}

/// A port that is free now; Dolt's server takes no 0.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
