//! `replSetInitiate`. A server that was started as `mongod --replSet NAME` waits for it: it becomes
//! the only member of its set, or one of several ([`crate::replica::beginning`]). Any other is in a
//! set already: that is refused.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder};
use frond_query::Code;

use crate::commands::set_configuration;
use crate::commands::set_configuration::host;
use crate::fields::Fields;
use crate::log;
use crate::replica::beginning::{self, ALREADY_INITIALIZED, BegunSet};
use crate::replica::beginning::{Question, SetBeginning, Step};
use crate::replica::members::{Host, Members};
use crate::request::{Answer, Request};
use crate::shared::Shared;

const NO_SUCH_SET: &str = "it knows no such set";
/// The time for the answer of what has this server begin anew.
const ANSWER_WAIT: Duration = Duration::from_millis(200);

/// Makes a set of the servers that the configuration names, this one alone without any. Programs
/// that start sets take "already initialized" for done.
pub fn initiate(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let given = fields.value(request.sent_name).and_then(|given| given.as_document());
    fields.finish()?;
    let server = request.server;
    if let Some(config) = given {
        check_name(config, &server.member.set)?;
    }
    let members = given.and_then(|config| config.get("members")?.as_array());
    let count = members.map_or(1, |members| members.iter().count());
    let given = given.filter(|config| config.iter().next().is_some());
    match (server.awaits_set(), given) {
        (true, Some(config)) if 1 < count => begin(server, config),
        (true, given) => {
            if let Some(config) = given {
                set_of(server, config)?;
            }
            let directory = &server.data_directory;
            beginning::end_wait(Path::new(directory))
                .map_err(|error| invalid(format!("{directory}: {error}")))?;
            server.initiation.is_awaited.store(false, Ordering::Relaxed);
            server.topology.send_modify(|counter| *counter += 1);
            log::leads(&server.log);
            Ok(DocumentBuilder::new())
        }
        (false, _) => {
            let is_alone = server.replica.is_none();
            if is_alone && 1 < count {
                return Err(invalid(format!(
                    "{} is a replica set of one member, not of {count}: the members of a larger \
                     one are started with frond serve --members HOST:PORT,..., or on empty \
                     directories as frond mongod --replSet NAME",
                    server.member.host
                )));
            }
            if is_alone && server.is_primary() {
                // Some that start a set wait from here on for the line by which it is known to
                // lead.
                log::leads(&server.log);
            }
            Err(Error::invalid(Code::AlreadyInitialized, ALREADY_INITIALIZED))
        }
    }
}

fn check_name(config: Document<'_>, set: &str) -> Result<(), Error> {
    match config.get("_id").and_then(|name| name.as_str()).filter(|it| *it != set) {
        None => Ok(()),
        Some(name) => Err(invalid(format!(
            "Attempting to initiate a replica set with name {name}, but command line reports {set}; \
             rejecting"
        ))),
    }
}

fn begin(server: &Shared, config: Document<'_>) -> Answer {
    let host = &server.member.host;
    let Some(beginning) = &server.beginning else {
        let why = "where clients log in, the members of a set are started with --keyFile";
        return Err(invalid(format!("{host}: {why}")));
    };
    let set = set_of(server, config)?;
    check_empty(server).map_err(|why| invalid(format!("{host}: {why}")))?;
    let others: Vec<&String> = set.members.iter().filter(|member| **member != set.own).collect();
    let ask = |other: &str, step| beginning::ask(&set.of(other), step, &beginning.key);
    for step in [Step::Look, Step::Note] {
        for (place, other) in others.iter().enumerate() {
            if let Err(error) = ask(other, step) {
                for noted in others[..=place].iter().filter(|_| step == Step::Note) {
                    // What it has noted has no effect until it is started again.
                    let _ = ask(noted, Step::Forget);
                }
                let message = format!(
                    "replSetInitiate quorum check failed because not all proposed set members \
                     responded affirmatively: {other} failed with {error}"
                );
                return Err(Error::invalid(Code::NodeNotFound, message));
            }
        }
    }
    if let Err(why) = note(server, &set) {
        for noted in others {
            let _ = ask(noted, Step::Forget);
        }
        return Err(invalid(why));
    }
    // Before the answer: who waits for the leader then must not take this server for it.
    log::joins_set(&server.log);
    for other in others {
        // It has noted the set, and is in it at the latest when it is started again.
        let _ = ask(other, Step::Begin);
    }
    restart_soon(beginning);
    Ok(DocumentBuilder::new())
}

/// The set of a configuration, as this server has it.
fn set_of(server: &Shared, config: Document<'_>) -> Result<BegunSet, Error> {
    let (set, host) = (server.member.set.clone(), &server.member.host);
    let hosts = hosts(config)?;
    let members: Vec<String> = hosts.iter().map(|host| host.address.clone()).collect();
    let own: Vec<&String> = members.iter().filter(|address| is_own(address, server)).collect();
    match own[..] {
        [own] => Ok(BegunSet { set, own: own.clone(), members }),
        [] => Err(Error::invalid(
            Code::NodeNotFound,
            format!(
                "No host described in new configuration for replica set {set} maps to this node, \
                 {host}"
            ),
        )),
        [first, second, ..] => Err(invalid(format!(
            "The hosts {first} and {second} both map to this node in new configuration for replica \
             set {set}"
        ))),
    }
}

/// The members of a configuration. Its settings, and whether a majority has to have journaled, are
/// passed over: a set has times of its own, and a majority always has.
fn hosts(config: Document<'_>) -> Result<Vec<Host>, Error> {
    let mut fields = Fields::of_part("ReplSetConfig", config)?;
    let members = fields.array("members")?.ok_or_else(|| fields.missing("members"))?;
    fields.ignore(&[
        "_id",
        "version",
        "term",
        "protocolVersion",
        "settings",
        "replicaSetId",
        "writeConcernMajorityJournalDefault",
    ]);
    fields.finish()?;
    let members = members.iter().map(host::parse);
    let members = members.collect::<Result<Vec<Host>, Error>>()?;
    let is_line = |host: &Host| !host.address.contains(|letter: char| letter.is_control());
    if !members.iter().all(is_line) {
        return Err(invalid("a host's name holds a control character".to_owned()));
    }
    let members = Members { version: 1, all: members };
    match members.all.len() {
        0 => {
            let why = "Replica set configuration must contain at least one member";
            return Err(invalid(why.to_owned()));
        }
        // There is no other that it could be preferred to.
        1 if members.all.iter().all(Host::is_electable) => return Ok(members.all),
        1 => {
            let why = "Replica set configuration must contain at least one non-arbiter member with \
                       priority > 0";
            return Err(invalid(why.to_owned()));
        }
        _ => set_configuration::check(&members)?,
    }
    if members != Members::first(members.addresses()) {
        return Err(Error::invalid(
            Code::CommandNotSupported,
            "a set begins with members that have their positions as _id, and no priorities, votes, \
             tags or hidden: replSetReconfig gives them those",
        ));
    }
    Ok(members.all)
}

/// Whether clients of this machine, at least, reach this server at `address`: by its port, at an
/// address of this machine.
fn is_own(address: &str, server: &Shared) -> bool {
    if server.member.host == address {
        return true;
    }
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    if port.parse() != Ok(server.address.port()) {
        return false;
    }
    let is_here = |address: SocketAddr| TcpListener::bind((address.ip(), 0)).is_ok();
    let found = (host.trim_matches(['[', ']']), 0).to_socket_addrs();
    found.is_ok_and(|mut addresses| addresses.any(is_here))
}

fn check_empty(server: &Shared) -> Result<(), String> {
    match server.frond.holds_nothing() {
        Ok(true) => Ok(()),
        Ok(false) => Err(beginning::HOLDS_DATA.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn note(server: &Shared, set: &BegunSet) -> Result<(), String> {
    let directory = &server.data_directory;
    set.write(Path::new(directory)).map_err(|error| format!("{directory}: {error}"))
}

/// Answers a server that makes a set of several, this one among them, or is a member of it already.
///
/// # Errors
/// An error of the socket; that it asks for something else.
pub fn answer(server: &Shared, beginning: &SetBeginning, stream: TcpStream) -> io::Result<()> {
    let agreed = beginning::answer(stream, &beginning.key, |question| match question {
        Question::Step(step, set) => decide(server, *step, set),
        Question::Member(member) => {
            let noted = BegunSet::read(Path::new(&server.data_directory))?;
            match noted.is_some_and(|set| set.has_other(member)) && server.awaits_set() {
                true => Ok(()),
                false => Err(NO_SUCH_SET.to_owned()),
            }
        }
    });
    if let Some(Question::Step(Step::Begin, _) | Question::Member(_)) = agreed? {
        log::joins_set(&server.log);
        restart_soon(beginning);
    }
    Ok(())
}

fn decide(server: &Shared, step: Step, set: &BegunSet) -> Result<(), String> {
    if set.set != server.member.set {
        return Err(format!("it is of the replica set {}", server.member.set));
    }
    if !is_own(&set.own, server) {
        return Err(format!("it is {}", server.member.host));
    }
    if !server.awaits_set() {
        return Err(ALREADY_INITIALIZED.to_owned());
    }
    let directory = Path::new(&server.data_directory);
    // A note that takes long, and is to be forgotten meanwhile, is forgotten behind it.
    let _noting = server.initiation.noting.lock().unwrap_or_else(PoisonError::into_inner);
    match step {
        Step::Look => check_empty(server),
        Step::Note => {
            check_empty(server)?;
            note(server, set)
        }
        Step::Begin if BegunSet::read(directory)?.as_ref() == Some(set) => Ok(()),
        Step::Begin => Err(NO_SUCH_SET.to_owned()),
        Step::Forget => set.forget(directory).map_err(|error| error.to_string()),
    }
}

fn restart_soon(beginning: &SetBeginning) {
    let restart = beginning.restart;
    let wait = move || {
        thread::sleep(ANSWER_WAIT);
        restart();
    };
    if thread::Builder::new().name("frond-set-begins".to_owned()).spawn(wait).is_err() {
        restart();
    }
}

fn invalid(message: String) -> Error {
    Error::invalid(Code::InvalidReplicaSetConfig, message)
}
