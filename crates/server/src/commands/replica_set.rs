//! What a replica set of one member tells of itself: `replSetGetStatus`, `replSetGetConfig`. It
//! can't be changed: `replSetInitiate` answers that it is done already, and `replSetReconfig` takes
//! what is there.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Timestamp, Value};
use frond_query::Code;

use crate::commands::reply;
use crate::request::{Answer, Request};

/// MongoDB's `AlreadyInitialized`.
const ALREADY_INITIALIZED: Code = Code::Location(23);
/// MongoDB's `NewReplicaSetConfigurationIncompatible`.
const INCOMPATIBLE: Code = Code::Location(103);
/// The one election that there was.
pub const TERM: i64 = 1;

/// A moment of the cluster's time as a date: whole seconds.
pub fn date_of(time: Timestamp) -> Value<'static> {
    Value::DateTime(i64::try_from(time.0 >> 32).unwrap_or(0).saturating_mul(1_000))
}

/// Appends a moment and its term.
pub fn append_optime(answer: &mut DocumentBuilder, name: &str, time: Timestamp) {
    answer
        .begin_document(name)
        .append("ts", Value::Timestamp(time))
        .append("t", Value::Int64(TERM))
        .end();
}

/// Tells how the members are: there is one, and it is well unless a fault has closed it for
/// writing.
pub fn status(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["initialSync"]);
    fields.finish()?;
    let server = request.server;
    let time = server.operation_time();
    let (state, state_name) = if server.is_primary() { (1, "PRIMARY") } else { (2, "SECONDARY") };
    let mut answer = DocumentBuilder::new();
    answer
        .append("set", Value::String(&server.member.set))
        .append("date", Value::DateTime(server.frond.now_millis()))
        .append("myState", Value::Int32(state))
        .append("term", Value::Int64(TERM))
        .append("syncSourceHost", Value::String(""))
        .append("syncSourceId", Value::Int32(-1))
        .append("heartbeatIntervalMillis", Value::Int64(2_000))
        .append("majorityVoteCount", Value::Int32(1))
        .append("writeMajorityCount", Value::Int32(1))
        .append("votingMembersCount", Value::Int32(1))
        .append("writableVotingMembersCount", Value::Int32(1));
    answer.begin_document("optimes");
    for name in
        ["lastCommittedOpTime", "readConcernMajorityOpTime", "appliedOpTime", "durableOpTime"]
    {
        append_optime(&mut answer, name, time);
    }
    answer.end();
    answer
        .begin_array("members")
        .push_begin_document()
        .append("_id", Value::Int32(0))
        .append("name", Value::String(&server.member.host))
        .append("health", Value::Double(1.0))
        .append("state", Value::Int32(state))
        .append("stateStr", Value::String(state_name))
        .append("uptime", reply::number(server.started.elapsed().as_secs()));
    append_optime(&mut answer, "optime", time);
    answer
        .append("optimeDate", date_of(time))
        .append("configVersion", Value::Int32(1))
        .append("configTerm", Value::Int64(TERM))
        .append("self", Value::Boolean(true));
    if let Some(fault) = server.frond.fault() {
        answer.append("infoMessage", Value::String(&fault.message));
    }
    answer.end().end();
    Ok(answer)
}

/// Tells the configuration.
pub fn config(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["commitmentStatus"]);
    fields.finish()?;
    let member = &request.server.member;
    let mut answer = DocumentBuilder::new();
    answer
        .begin_document("config")
        .append("_id", Value::String(&member.set))
        .append("version", Value::Int32(1))
        .append("term", Value::Int64(TERM))
        .append("protocolVersion", Value::Int64(1))
        .begin_array("members")
        .push_begin_document()
        .append("_id", Value::Int32(0))
        .append("host", Value::String(&member.host))
        .append("arbiterOnly", Value::Boolean(false))
        .append("buildIndexes", Value::Boolean(true))
        .append("hidden", Value::Boolean(false))
        .append("priority", Value::Double(1.0))
        .append("votes", Value::Int32(1))
        .end()
        .end()
        .end();
    Ok(answer)
}

/// Takes a configuration that says what is the case: this member, and no other.
pub fn reconfigure(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["force"]);
    let config = fields.required_document(request.sent_name)?;
    fields.finish()?;
    let member = &request.server.member;
    let is_set = config.get("_id") == Some(Value::String(&member.set));
    let is_alone = match config.get("members") {
        Some(Value::Array(members)) => {
            let mut hosts = members.iter().map(|it| match it {
                Value::Document(it) => it.get("host").and_then(|host| host.as_str()),
                _ => None,
            });
            hosts.next().flatten() == Some(&*member.host) && hosts.next().is_none()
        }
        _ => false,
    };
    if is_set && is_alone {
        return Ok(DocumentBuilder::new());
    }
    let (name, host) = (&member.set, &member.host);
    let message = format!("the replica set {name} has one member, {host}, and can't be changed");
    Err(Error::invalid(INCOMPATIBLE, message))
}

/// Refuses to make a replica set: this is one.
pub fn initiate(_: &Request<'_>) -> Answer {
    Err(Error::invalid(ALREADY_INITIALIZED, "already initialized"))
}
