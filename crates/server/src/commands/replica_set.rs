//! What a replica set tells of itself: `replSetGetStatus`, `replSetGetConfig`; and
//! `replSetStepDown`. Which members there are can't be changed: `replSetInitiate` answers that it
//! is done already, and `replSetReconfig` takes what is there.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Timestamp, Value};
use frond_query::Code;

use crate::commands::reply;
use crate::replica::Role;
use crate::request::{Answer, Request};
use crate::shared::Shared;

/// MongoDB's `AlreadyInitialized`.
const ALREADY_INITIALIZED: Code = Code::Location(23);
/// MongoDB's `NewReplicaSetConfigurationIncompatible`.
const INCOMPATIBLE: Code = Code::Location(103);
/// The one election that there was, of a server by itself.
const TERM_ALONE: i64 = 1;

/// What a server says of the set that it is in.
pub struct Standing<'a> {
    /// All members.
    pub hosts: Vec<&'a str>,
    /// Where writes are taken, if that is known.
    pub primary: Option<String>,
    /// The term.
    pub term: i64,
    /// Whether it knows the others, and so can be read.
    pub is_ready: bool,
    /// Whether it gets a copy of what others have, and can't be read.
    pub is_recovering: bool,
}

impl Standing<'_> {
    /// That of a server.
    pub fn of(server: &Shared) -> Standing<'_> {
        let Some(replica) = &server.replica else {
            let primary = server.is_primary().then(|| server.member.host.clone());
            let hosts = vec![&*server.member.host];
            let term = TERM_ALONE;
            return Standing { hosts, primary, term, is_ready: true, is_recovering: false };
        };
        let standing = replica.standing();
        let is_recovering = standing.role == Role::Recovering;
        Standing {
            hosts: replica.options.members.iter().map(String::as_str).collect(),
            primary: standing.primary,
            term: i64::try_from(standing.term).unwrap_or(i64::MAX),
            // One that begins, or is about to begin anew, shows what it has applied: drivers that
            // knew of no member that can be read would give up instead of waiting.
            is_ready: !is_recovering && !replica.identity().members.is_empty(),
            is_recovering,
        }
    }

    /// A member's state, by its host: MongoDB's number and name.
    fn state_of(&self, host: &str, own: &str) -> (i32, &'static str) {
        match self.primary.as_deref() == Some(host) {
            true => (1, "PRIMARY"),
            false if host == own && self.is_recovering => (3, "RECOVERING"),
            false if host == own && !self.is_ready => (0, "STARTUP"),
            false => (2, "SECONDARY"),
        }
    }
}

/// A moment of the cluster's time as a date: whole seconds.
pub fn date_of(time: Timestamp) -> Value<'static> {
    Value::DateTime(i64::try_from(time.0 >> 32).unwrap_or(0).saturating_mul(1_000))
}

/// Appends a moment and its term.
pub fn append_optime(answer: &mut DocumentBuilder, name: &str, time: Timestamp, term: i64) {
    answer
        .begin_document(name)
        .append("ts", Value::Timestamp(time))
        .append("t", Value::Int64(term))
        .end();
}

/// Tells how the members are, as far as this one knows: a leader knows of each other member whether
/// it has the leader's log, a follower knows only who leads.
pub fn status(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["initialSync"]);
    fields.finish()?;
    let server = request.server;
    let time = server.operation_time();
    let standing = Standing::of(server);
    let own = &*server.member.host;
    let count = i32::try_from(standing.hosts.len()).unwrap_or(i32::MAX);
    let majority = count / 2 + 1;
    let mut answer = DocumentBuilder::new();
    answer
        .append("set", Value::String(&server.member.set))
        .append("date", Value::DateTime(server.frond.now_millis()))
        .append("myState", Value::Int32(standing.state_of(own, own).0))
        .append("term", Value::Int64(standing.term))
        .append("syncSourceHost", Value::String(""))
        .append("syncSourceId", Value::Int32(-1))
        .append("heartbeatIntervalMillis", Value::Int64(2_000))
        .append("majorityVoteCount", Value::Int32(majority))
        .append("writeMajorityCount", Value::Int32(majority))
        .append("votingMembersCount", Value::Int32(count))
        .append("writableVotingMembersCount", Value::Int32(count));
    answer.begin_document("optimes");
    for name in
        ["lastCommittedOpTime", "readConcernMajorityOpTime", "appliedOpTime", "durableOpTime"]
    {
        append_optime(&mut answer, name, time, standing.term);
    }
    answer.end();
    let held = held_by(server);
    answer.begin_array("members");
    for (position, host) in standing.hosts.iter().enumerate() {
        let (state, state_name) = standing.state_of(host, own);
        answer
            .push_begin_document()
            .append("_id", Value::Int32(i32::try_from(position).unwrap_or(i32::MAX)))
            .append("name", Value::String(host))
            .append("health", Value::Double(1.0))
            .append("state", Value::Int32(state))
            .append("stateStr", Value::String(state_name));
        if let Some((_, entry)) = held.iter().find(|(of, _)| of == host) {
            answer.append("entry", reply::number(*entry));
        }
        if *host != own {
            answer.end();
            continue;
        }
        answer.append("uptime", reply::number(server.started.elapsed().as_secs()));
        append_optime(&mut answer, "optime", time, standing.term);
        answer
            .append("optimeDate", date_of(time))
            .append("configVersion", Value::Int32(1))
            .append("configTerm", Value::Int64(standing.term))
            .append("self", Value::Boolean(true));
        if let Some(fault) = server.frond.fault() {
            answer.append("infoMessage", Value::String(&fault.message));
        }
        answer.end();
    }
    answer.end();
    Ok(answer)
}

/// Up to which entry each member has the log, as far as this one knows.
fn held_by(server: &Shared) -> Vec<(String, u64)> {
    let Some(replica) = &server.replica else { return Vec::new() };
    let Some(status) = replica.status() else { return Vec::new() };
    let mut held: Vec<(String, u64)> = Vec::new();
    for (id, entry) in status.held {
        held.extend(replica.address_of(id).map(|address| (address, entry.0)));
    }
    if held.is_empty() {
        held.push((server.member.host.clone(), status.last.0));
    }
    held
}

/// Tells the configuration.
pub fn config(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["commitmentStatus"]);
    fields.finish()?;
    let server = request.server;
    let standing = Standing::of(server);
    let mut answer = DocumentBuilder::new();
    answer
        .begin_document("config")
        .append("_id", Value::String(&server.member.set))
        .append("version", Value::Int32(1))
        .append("term", Value::Int64(standing.term))
        .append("protocolVersion", Value::Int64(1))
        .begin_array("members");
    for (position, host) in standing.hosts.iter().enumerate() {
        answer
            .push_begin_document()
            .append("_id", Value::Int32(i32::try_from(position).unwrap_or(i32::MAX)))
            .append("host", Value::String(host))
            .append("arbiterOnly", Value::Boolean(false))
            .append("buildIndexes", Value::Boolean(true))
            .append("hidden", Value::Boolean(false))
            .append("priority", Value::Double(1.0))
            .append("votes", Value::Int32(1))
            .end();
    }
    answer.end().end();
    Ok(answer)
}

/// Has another member lead.
pub fn step_down(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&[request.sent_name, "secondaryCatchUpPeriodSecs", "force"]);
    fields.finish()?;
    let server = request.server;
    let Some(replica) = server.replica.as_ref().filter(|_| server.is_primary()) else {
        let message = match server.replica {
            Some(_) => "not primary so can't step down",
            None => "a server by itself can't step down: there is no other member",
        };
        return Err(Error::invalid(Code::NotWritablePrimary, message));
    };
    replica.step_down().map_err(|why| {
        let message = format!("No electable secondaries caught up: {why}");
        Error::invalid(Code::ExceededTimeLimit, message)
    })?;
    Ok(DocumentBuilder::new())
}

/// Takes a configuration that says what is the case: these members, and no other.
pub fn reconfigure(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["force"]);
    let config = fields.required_document(request.sent_name)?;
    fields.finish()?;
    let member = &request.server.member;
    let is_set = config.get("_id") == Some(Value::String(&member.set));
    let known = Standing::of(request.server).hosts;
    let is_same = match config.get("members") {
        Some(Value::Array(members)) => {
            let hosts = members.iter().map(|it| match it {
                Value::Document(it) => it.get("host").and_then(|host| host.as_str()),
                _ => None,
            });
            hosts.eq(known.iter().copied().map(Some))
        }
        _ => false,
    };
    if is_set && is_same {
        return Ok(DocumentBuilder::new());
    }
    let (name, hosts) = (&member.set, known.join(", "));
    let message = match known.len() {
        1 => format!("the replica set {name} has one member, {hosts}, and can't be changed"),
        _ => format!("the replica set {name} has the members {hosts}, and can't be changed yet"),
    };
    Err(Error::invalid(INCOMPATIBLE, message))
}

/// Refuses to make a replica set: this is one.
pub fn initiate(_: &Request<'_>) -> Answer {
    Err(Error::invalid(ALREADY_INITIALIZED, "already initialized"))
}
