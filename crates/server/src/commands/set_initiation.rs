//! `replSetInitiate`. A server by itself is the only member of its set already: that is refused.
//! Those that were started as `mongod --replSet NAME`, and hold nothing, become a set of several
//! ([`crate::replica::beginning`]).

use std::io;
use std::net::{IpAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder};
use frond_query::Code;

use crate::commands::set_configuration;
use crate::commands::set_configuration::host;
use crate::fields::Fields;
use crate::log;
use crate::replica::beginning::{self, BegunSet, SetBeginning, Step};
use crate::replica::members::{Host, Members};
use crate::request::{Answer, Request};
use crate::shared::Shared;

/// The time for the answer of what has this server begin anew.
const ANSWER_WAIT: Duration = Duration::from_millis(200);

/// Makes a set of the servers that the configuration names, if there are several; else refuses,
/// since each server is in one. Programs that start sets take "already initialized" for done.
pub fn initiate(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let given = fields.value(request.sent_name).and_then(|given| given.as_document());
    fields.finish()?;
    let server = request.server;
    if let Some(config) = given.filter(|_| server.replica.is_none()) {
        check_name(config, &server.member.set)?;
        let members = config.get("members").and_then(|members| members.as_array());
        let count = members.map_or(1, |members| members.iter().count());
        if 1 < count {
            return begin(server, config, count);
        }
        if server.is_primary() {
            // Some that start a set wait from here on for the line by which it is known to lead.
            log::leads(&server.log);
        }
    }
    Err(Error::invalid(Code::AlreadyInitialized, "already initialized"))
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

fn begin(server: &Shared, config: Document<'_>, count: usize) -> Answer {
    let host = &server.member.host;
    let Some(beginning) = &server.beginning else {
        return Err(invalid(format!(
            "{host} is a replica set of one member, not of {count}: the members of a larger one are \
             started with frond serve --members HOST:PORT,..., or as frond mongod --replSet NAME, \
             with logins also --keyFile"
        )));
    };
    let hosts = hosts(config)?;
    let members: Vec<String> = hosts.iter().map(|host| host.address.clone()).collect();
    let Some(own) = members.iter().find(|address| is_own(address, server)).cloned() else {
        return Err(Error::invalid(
            Code::NodeNotFound,
            format!(
                "No host described in new configuration for replica set {} maps to this node, \
                 {host}",
                server.member.set
            ),
        ));
    };
    let set = BegunSet { set: server.member.set.clone(), own, members };
    check_empty(server).map_err(|why| invalid(format!("{host}: {why}")))?;
    for step in Step::ALL {
        if step == Step::Begin {
            // Before the answer: who waits for the leader then must not take this server for it.
            log::joins_set(&server.log);
        }
        for other in set.members.iter().filter(|member| **member != set.own) {
            beginning::ask(&set.of(other), step, &beginning.key).map_err(|error| {
                let message = format!(
                    "replSetInitiate quorum check failed because not all proposed set members \
                     responded affirmatively: {other} failed with {error}"
                );
                Error::invalid(Code::NodeNotFound, message)
            })?;
        }
    }
    note(server, &set).map_err(invalid)?;
    restart_soon(beginning);
    Ok(DocumentBuilder::new())
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
    set_configuration::check(&members)?;
    if members != Members::first(members.addresses()) {
        return Err(Error::invalid(
            Code::CommandNotSupported,
            "a set begins with members that have their positions as _id, and no priorities, votes, \
             tags or hidden: replSetReconfig gives them those",
        ));
    }
    Ok(members.all)
}

/// Whether clients of this machine, at least, reach this server at `address`.
fn is_own(address: &str, server: &Shared) -> bool {
    if server.member.host == address {
        return true;
    }
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_loopback = host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
    is_loopback && port.parse() == Ok(server.address.port())
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

/// Answers a server that makes a set of several, this one among them.
///
/// # Errors
/// An error of the socket; that it asks for something else.
pub fn answer(server: &Shared, beginning: &SetBeginning, stream: TcpStream) -> io::Result<()> {
    let agreed = beginning::answer(stream, &beginning.key, |step, set| {
        if set.set != server.member.set {
            return Err(format!("it is of the replica set {}", server.member.set));
        }
        if !is_own(&set.own, server) {
            return Err(format!("it is {}", server.member.host));
        }
        check_empty(server)?;
        match step {
            Step::Look => Ok(()),
            Step::Begin => {
                log::joins_set(&server.log);
                note(server, set)
            }
        }
    });
    if agreed? == Some(Step::Begin) {
        restart_soon(beginning);
    }
    Ok(())
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
