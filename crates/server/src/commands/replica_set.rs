//! Commands about the replica set: `replSetGetStatus`; and `replSetStepDown`.

use std::sync::Arc;
use std::time::Duration;

use frond_db::Error;
use frond_doc::{DocumentBuilder, Timestamp, Value};
use frond_query::Code;

use crate::commands::reply;
use crate::replica::members::{Host, Members};
use crate::replica::status::{MemberStatus, State};
use crate::request::{Answer, Request};
use crate::shared::Shared;

/// The one election that there was, of a server by itself.
const TERM_ALONE: i64 = 1;

/// A server's description of the set that it is in.
pub struct SetDescription {
    /// All members.
    pub members: Arc<Members>,
    /// The member that takes writes, if it is known.
    pub primary: Option<String>,
    /// The term.
    pub term: i64,
    /// Whether it knows the others, and so can be read.
    pub is_ready: bool,
}

impl SetDescription {
    /// Returns the description of a server's set.
    pub fn of(server: &Shared) -> SetDescription {
        let Some(replica) = &server.replica else {
            let primary = server.is_primary().then(|| server.member.host.clone());
            let members = Arc::new(Members::first([&server.member.host]));
            let term = TERM_ALONE;
            return SetDescription { members, primary, term, is_ready: true };
        };
        let standing = replica.standing();
        SetDescription {
            members: replica.members(),
            primary: standing.primary,
            term: i64::try_from(standing.term).unwrap_or(i64::MAX),
            is_ready: matches!(replica.state(), State::Primary | State::Secondary),
        }
    }

    /// A member's state, by its host, and what it has said of itself if it is another.
    fn state_of(&self, host: &str, server: &Shared) -> (State, Option<(Duration, MemberStatus)>) {
        let Some(replica) = server.replica.as_ref().filter(|_| host != &*server.member.host) else {
            return (self.own_state(server), None);
        };
        let last_status = replica.last_status_of(host);
        let state = last_status.map_or(State::Unreachable, |(_, peer_status)| peer_status.state);
        match self.primary.as_deref() == Some(host) {
            true if state != State::Unreachable => (State::Primary, last_status),
            // It has been one, and hasn't said anything since.
            false if state == State::Primary => (State::Secondary, last_status),
            _ => (state, last_status),
        }
    }

    fn own_state(&self, server: &Shared) -> State {
        match &server.replica {
            Some(replica) => replica.state(),
            None if self.primary.is_some() => State::Primary,
            None => State::Secondary,
        }
    }
}

/// Checks that the server doesn't wait for `replSetInitiate`.
///
/// # Errors
/// `NotYetInitialized` (94).
pub fn check_initiated(server: &Shared) -> Result<(), Error> {
    match server.awaits_set() {
        true => Err(Error::invalid(Code::NotYetInitialized, "no replset config has been received")),
        false => Ok(()),
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

/// Answers with the members' states, as each has reported: a leader knows also how far each holds
/// its log. One that isn't in the set (any more) knows nothing of them.
pub fn status(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["initialSync"]);
    fields.finish()?;
    let server = request.server;
    check_initiated(server)?;
    let time = server.operation_time();
    let standing = SetDescription::of(server);
    let own_state = standing.own_state(server);
    if own_state == State::Removed {
        let message = "Our replica set config is invalid or we are not a member of it";
        return Err(Error::invalid(Code::InvalidReplicaSetConfig, message));
    }
    let own = &*server.member.host;
    let count = i32::try_from(standing.members.voter_count()).unwrap_or(i32::MAX);
    let majority = count / 2 + 1;
    let mut answer = DocumentBuilder::new();
    answer
        .append("set", Value::String(&server.member.set))
        .append("date", Value::DateTime(server.frond.now_millis()))
        .append("myState", Value::Int32(own_state as i32))
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
    for Host { id, address: host, .. } in &standing.members.all {
        let (state, last_status) = standing.state_of(host, server);
        let health = if state == State::Unreachable { 0.0 } else { 1.0 };
        answer
            .push_begin_document()
            .append("_id", Value::Int32(*id))
            .append("name", Value::String(host))
            .append("health", Value::Double(health))
            .append("state", Value::Int32(state as i32))
            .append("stateStr", Value::String(state.name()));
        if let Some((_, entry)) = held.iter().find(|(of, _)| of == host) {
            answer.append("entry", reply::number(*entry));
        }
        match host == own {
            true => append_own(&mut answer, server, &standing),
            false => append_other(&mut answer, server, standing.term, last_status),
        }
        answer.end();
    }
    answer.end();
    Ok(answer)
}

fn append_own(answer: &mut DocumentBuilder, server: &Shared, standing: &SetDescription) {
    let term = standing.term;
    let time = server.operation_time();
    answer.append("uptime", reply::number(server.started.elapsed().as_secs()));
    append_optime(answer, "optime", time, term);
    answer
        .append("optimeDate", date_of(time))
        .append("configVersion", Value::Int32(standing.members.version))
        .append("configTerm", Value::Int64(term))
        .append("self", Value::Boolean(true));
    if let Some(fault) = server.frond.fault() {
        answer.append("infoMessage", Value::String(&fault.message));
    }
}

fn append_other(
    answer: &mut DocumentBuilder,
    server: &Shared,
    term: i64,
    last_status: Option<(Duration, MemberStatus)>,
) {
    let (moment, uptime) = match last_status {
        Some((_, peer_status)) => (peer_status.moment, peer_status.uptime_seconds),
        None => (Timestamp(0), 0),
    };
    answer.append("uptime", reply::number(uptime));
    append_optime(answer, "optime", moment, if last_status.is_some() { term } else { -1 });
    answer.append("optimeDate", date_of(moment));
    if let Some((ago, _)) = last_status {
        let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        let at = server.frond.now_millis().saturating_sub(ago);
        answer.append("lastHeartbeatRecv", Value::DateTime(at));
    }
}

/// Returns the entry up to which each member has the log, as far as this one knows.
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

/// Has another member lead.
pub fn step_down(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&[request.sent_name, "secondaryCatchUpPeriodSecs", "force"]);
    fields.finish()?;
    let server = request.server;
    check_initiated(server)?;
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
