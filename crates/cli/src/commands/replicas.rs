//! `frond replicas`: the members of a replica set, how far each is, and whether they hold the same.
//!
//! To compare, each branch is hashed on the primary, then on each other member, and on the primary
//! again. If it hasn't changed there meanwhile, a member that has applied the same log shows the
//! same state. One that shows another may only be behind, so it is asked again for a while.

use std::io::Write;
use std::thread;
use std::time::Duration;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};

use crate::arguments::server_of;
use crate::backend::{Backend, Remote, ServerUri};
use crate::commands::branch::driver_name;
use crate::failure::Failure;
use crate::output::{append_texts, counted, documents_of, json, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond replicas --uri 'mongodb://a,b,c/?replicaSet=rs0'
  frond replicas --uri a.example:27017 --compare    whether all hold the same documents and versions

Exit code 3: a member is away, or none leads. Exit code 1: members differ.";

const PRIMARY: &str = "PRIMARY";
const NAMESPACE_NOT_FOUND: i64 = 26;
const INVALID_REPLICA_SET_CONFIG: i64 = 93;
/// A member that doesn't answer is given up after so long.
const ANSWER_WAIT: Duration = Duration::from_secs(600);
/// A member that shows another state is asked again so often, so long after.
const ATTEMPTS_MAX: u32 = 20;
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// List the members of a replica set, and compare what they hold
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Replicas {
    /// A member, or several of which one answers: HOST:PORT, or
    /// mongodb://USER:PASSWORD@HOST:PORT,.../?replicaSet=NAME
    #[arg(long, value_name = "URI", default_value = "127.0.0.1:27017")]
    uri: String,

    /// Read all documents on each member, and compare their hashes and the last commits of all
    /// branches
    #[arg(long)]
    compare: bool,

    /// Print one line of JSON for each member, and each branch that is compared
    #[arg(long)]
    json: bool,
}

/// A member, as the set reports it.
struct Row {
    host: String,
    state: String,
    /// How many seconds the primary's last operation is newer than its own, if both are known.
    behind_seconds: Option<u64>,
    /// The last entry of the set's log that it has, where the member that was asked knows that.
    entry: Option<i64>,
}

impl Row {
    /// Whether it can be read.
    fn answers(&self) -> bool {
        matches!(&*self.state, PRIMARY | "SECONDARY")
    }

    fn json(&self) -> DocumentBuf {
        let mut row = DocumentBuilder::new();
        row.append("member", Value::String(&self.host));
        row.append("state", Value::String(&self.state));
        if let Some(seconds) = self.behind_seconds {
            row.append("behindSeconds", Value::Int64(i64::try_from(seconds).unwrap_or(i64::MAX)));
        }
        if let Some(entry) = self.entry {
            row.append("entry", Value::Int64(entry));
        }
        row.build()
    }
}

impl Replicas {
    /// Lists the members, and compares them if that is asked for.
    ///
    /// # Errors
    /// [`Failure::Usage`] if it is no such URI; [`Failure::Lost`] if no member answers;
    /// [`Failure::Warned`] if one is away or none leads; [`Failure::Failed`] if members differ.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let server = server_of(&self.uri)?;
        let status = status_of_set(&server)?;
        let rows = rows_of(status.view());
        self.print(terminal, text_of(status.view(), "set"), &rows)?;
        let differing = match self.compare {
            true => self.compare(terminal, &server, &rows)?,
            false => 0,
        };
        if differing > 0 {
            let what = counted(differing, "branch");
            return Err(Failure::failed(format!("members differ: {what} of databases")));
        }
        let away: Vec<&str> =
            rows.iter().filter(|row| !row.answers()).map(|row| &*row.host).collect();
        if !away.is_empty() {
            return Err(Failure::Warned(format!("can't be read: {}", away.join(", "))));
        }
        match rows.iter().any(|row| row.state == PRIMARY) {
            true => Ok(()),
            false => Err(Failure::Warned("no member leads".to_owned())),
        }
    }

    fn print(&self, terminal: &mut Terminal, set: &str, rows: &[Row]) -> Result<(), Failure> {
        if self.json {
            for row in rows {
                writeln!(terminal, "{}", json(Value::from(&row.json())))?;
            }
            return Ok(());
        }
        let name = terminal.paint(Style::Strong, plain(set));
        writeln!(terminal, "Set {name}, {}", counted(rows.len() as u64, "member"))?;
        let columns = rows.iter().map(|row| row.host.len()).max().unwrap_or(0);
        for row in rows {
            let behind = match row.behind_seconds {
                Some(_) if row.state == PRIMARY => String::new(),
                Some(seconds) => format!("{seconds} s behind"),
                None => "lag unknown".to_owned(),
            };
            let entry = row.entry.map_or(String::new(), |entry| format!("entry {entry}"));
            let line = format!("{:<columns$}  {:<10}  {behind:<14}  {entry}", row.host, row.state);
            writeln!(terminal, "{}", plain(line.trim_end()))?;
        }
        Ok(())
    }

    /// Compares all branches of all databases. Returns how many differ.
    fn compare(
        &self,
        terminal: &mut Terminal,
        server: &ServerUri,
        rows: &[Row],
    ) -> Result<u64, Failure> {
        let leader = rows.iter().find(|row| row.state == PRIMARY);
        let leader =
            leader.ok_or_else(|| Failure::failed("no member leads: nothing is compared"))?;
        let mut members = vec![Member::connect(&leader.host, server)?];
        for row in rows.iter().filter(|row| row.answers() && row.state != PRIMARY) {
            members.push(Member::connect(&row.host, server)?);
        }
        let mut differing = 0;
        for branch in branches_of(&mut members[0])? {
            let count = members.len();
            let mut state_of = |position: usize| members[position].state_of(&branch);
            let outcome = compare_states(count, &mut state_of, &mut || thread::sleep(ASK_AGAIN))?;
            differing += u64::from(matches!(outcome, Outcome::Differ(_)));
            self.print_outcome(terminal, &branch, &outcome, &members)?;
        }
        Ok(differing)
    }

    fn print_outcome(
        &self,
        terminal: &mut Terminal,
        branch: &str,
        outcome: &Outcome,
        members: &[Member],
    ) -> Result<(), Failure> {
        let (word, differing): (&str, &[usize]) = match outcome {
            Outcome::Same => ("same", &[]),
            Outcome::Differ(differing) => ("differs", differing),
            Outcome::Busy => ("busy", &[]),
        };
        let hosts: Vec<String> = differing.iter().map(|it| members[*it].host.clone()).collect();
        if self.json {
            let mut row = DocumentBuilder::new();
            row.append("branch", Value::String(branch)).append("compared", Value::String(word));
            append_texts(&mut row, "differing", &hosts);
            writeln!(terminal, "{}", json(Value::from(&row.build())))?;
            return Ok(());
        }
        let outcome_text = match outcome {
            Outcome::Same => format!("the same on {}", counted(members.len() as u64, "member")),
            Outcome::Differ(_) => format!("differs on {}", hosts.join(", ")),
            Outcome::Busy => "was written to all the time: it can't be compared now".to_owned(),
        };
        let name = terminal.paint(Style::Strong, format!("{:<24}", plain(branch)));
        writeln!(terminal, "{name} {}", plain(&outcome_text))?;
        Ok(())
    }
}

/// What comparing a branch showed.
#[derive(PartialEq, Debug)]
enum Outcome {
    /// All members have the same.
    Same,
    /// Those in these positions have something else than the primary, and had for ten seconds.
    Differ(Vec<usize>),
    /// It changed all the time.
    Busy,
}

/// A member to which this process is connected.
struct Member {
    host: String,
    remote: Remote,
}

impl Member {
    fn connect(host: &str, server: &ServerUri) -> Result<Member, Failure> {
        let remote = Remote::connect_to_member(host, server)?;
        remote.set_read_timeout(ANSWER_WAIT)?;
        Ok(Member { host: host.to_owned(), remote })
    }

    fn execute(&mut self, database: &str, command: &DocumentBuf) -> Result<DocumentBuf, Failure> {
        let backend: &mut dyn Backend = &mut self.remote;
        backend.execute(database, command)
    }

    /// What it shows of a branch: the hash of all documents, and the last commit. `None`: it hasn't
    /// heard of the branch yet, or not any more.
    fn state_of(&mut self, branch: &str) -> Result<Option<[String; 2]>, Failure> {
        let log = match self.execute(branch, &document! { "frondLog": 1_i32, "limit": 1_i32 }) {
            Err(Failure::Refused { code: NAMESPACE_NOT_FOUND, .. }) => return Ok(None),
            log => log?,
        };
        let head = documents_of(log.view(), "commits").next();
        let head = head.map_or(String::new(), |commit| text_of(commit, "commitId").to_owned());
        let hashed = self.execute(branch, &document! { "dbHash": 1_i32 })?;
        Ok(Some([text_of(hashed.view(), "md5").to_owned(), head]))
    }
}

/// All branches of all databases, as databases are called, as the primary has them.
fn branches_of(primary: &mut Member) -> Result<Vec<String>, Failure> {
    let listed =
        primary.execute("admin", &document! { "listDatabases": 1_i32, "nameOnly": true })?;
    let mut found = Vec::new();
    for database in documents_of(listed.view(), "databases") {
        let name = text_of(database, "name");
        let answer = primary.execute(name, &document! { "frondBranch": 1_i32 });
        let branches = match answer {
            Ok(answer) => answer,
            // It was dropped meanwhile, or has no branches.
            Err(Failure::Refused { .. }) => continue,
            Err(error) => return Err(error),
        };
        let names = documents_of(branches.view(), "branches");
        found.extend(names.map(|it| format!("{name}@{}", driver_name(text_of(it, "branch")))));
    }
    Ok(found)
}

/// Compares what `count` members show, of which `state_of` the first, 0, is the primary's; `pause`
/// is called before they are asked again. The positions of those that differ go into the outcome.
fn compare_states<S: PartialEq, E>(
    count: usize,
    state_of: &mut dyn FnMut(usize) -> Result<S, E>,
    pause: &mut dyn FnMut(),
) -> Result<Outcome, E> {
    let mut attempts = 0;
    loop {
        let before = state_of(0)?;
        let mut differing = Vec::new();
        for position in 1..count {
            if state_of(position)? != before {
                differing.push(position);
            }
        }
        let is_still = state_of(0)? == before;
        attempts += 1;
        match (is_still, differing.is_empty()) {
            (true, true) => return Ok(Outcome::Same),
            _ if attempts < ATTEMPTS_MAX => pause(),
            (true, false) => return Ok(Outcome::Differ(differing)),
            (false, _) => return Ok(Outcome::Busy),
        }
    }
}

/// The status of the set, from the first server of those that were named which answers and is in
/// it: one that was removed is passed over, as it is by drivers.
fn status_of_set(server: &ServerUri) -> Result<DocumentBuf, Failure> {
    let ask = |address: &String| {
        let mut member = Remote::connect_to_member(address, server)?;
        let backend: &mut dyn Backend = &mut member;
        backend.execute("admin", &document! { "replSetGetStatus": 1_i32 })
    };
    let is_passed_over = |failure: &Failure| {
        let removed = INVALID_REPLICA_SET_CONFIG;
        matches!(failure, Failure::Lost(_))
            || matches!(failure, Failure::Refused { code, .. } if *code == removed)
    };
    let mut status = ask(&server.address);
    for address in &server.others {
        if !status.as_ref().is_err_and(is_passed_over) {
            break;
        }
        status = ask(address);
    }
    status
}

/// The members that `replSetGetStatus` reports.
fn rows_of(status: Document<'_>) -> Vec<Row> {
    let moment = |member: Document<'_>| {
        let optime = member.get("optime").and_then(|it| it.as_document())?;
        match optime.get("ts") {
            Some(Value::Timestamp(at)) if at.0 != 0 => Some(at.0 >> 32),
            _ => None,
        }
    };
    let members: Vec<Document<'_>> = documents_of(status, "members").collect();
    let is_primary = |it: &&Document<'_>| text_of(**it, "stateStr") == PRIMARY;
    let newest = members.iter().find(is_primary).and_then(|it| moment(*it));
    let row = |member: &Document<'_>| Row {
        host: text_of(*member, "name").to_owned(),
        state: text_of(*member, "stateStr").to_owned(),
        behind_seconds: newest.zip(moment(*member)).map(|(newest, own)| newest.saturating_sub(own)),
        entry: member.get("entry").and_then(|entry| entry.as_integer()),
    };
    members.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use frond_doc::Timestamp;

    use super::*;

    fn member(name: &str, state: &str, seconds: u64) -> DocumentBuf {
        let optime = document! { "ts": Value::Timestamp(Timestamp(seconds << 32)) };
        document! { "name": name, "stateStr": state, "optime": &optime }
    }

    /// What is found where each member shows this when it is asked for the nth time; the last for
    /// ever.
    fn compared(shown: &[&[u8]]) -> Outcome {
        let mut attempts = vec![0; shown.len()];
        let mut state_of = |position: usize| {
            let states = shown[position];
            let state = states[attempts[position].min(states.len() - 1)];
            attempts[position] += 1;
            Ok::<u8, ()>(state)
        };
        compare_states(shown.len(), &mut state_of, &mut || ()).expect("all answer")
    }

    #[test]
    fn members_differ_if_they_still_do_while_nothing_is_written() {
        assert_eq!(compared(&[&[1]]), Outcome::Same);
        assert_eq!(compared(&[&[1], &[1], &[1]]), Outcome::Same);
        assert_eq!(compared(&[&[1], &[1], &[2]]), Outcome::Differ(vec![2]));
        // One is behind.
        assert_eq!(compared(&[&[3], &[3], &[1, 1, 2, 3]]), Outcome::Same);
        // What is written while they are asked may have come to one and not yet to another.
        assert_eq!(compared(&[&[1, 2, 2], &[1, 2], &[2]]), Outcome::Same);
        let counting: Vec<u8> = (0..=255).collect();
        assert_eq!(compared(&[&counting, &[0], &counting]), Outcome::Busy);
        assert_eq!(compared(&[&counting[..20], &[0]]), Outcome::Differ(vec![1]));
    }

    #[test]
    fn a_member_is_behind_the_primary_or_it_is_not_known() {
        let members = [
            member("a", "SECONDARY", 90),
            member("b", PRIMARY, 100),
            member("c", "SECONDARY", 103),
            member("d", "(not reachable/healthy)", 0),
        ];
        let mut status = DocumentBuilder::new();
        status.begin_array("members");
        for member in &members {
            status.push(Value::from(member));
        }
        status.end();
        let rows = rows_of(status.build().view());
        let behind: Vec<_> = rows.iter().map(|row| row.behind_seconds).collect();
        assert_eq!(behind, [Some(10), Some(0), Some(0), None]);
        let there: Vec<_> = rows.iter().map(Row::answers).collect();
        assert_eq!(there, [true, true, true, false]);
    }
}
