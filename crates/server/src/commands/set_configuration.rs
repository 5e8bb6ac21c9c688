//! `replSetGetConfig` and `replSetReconfig`: which members a replica set is to have.
//!
//! The configuration is written like all data of the set; the leader then brings the members to it
//! one at a time. Parts of a configuration that aren't built (delays, arbiters, settings) are
//! refused by name, unless they have the value that holds anyway. [`host`] reads one member.

pub mod host;

use std::collections::BTreeSet;
use std::sync::TryLockError;

use frond_db::Error;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use frond_quorum::{MEMBERS_MAX, VOTERS_MAX};

use crate::commands::replica_set::{SetDescription, check_initiated};
use crate::fields::Fields;
use crate::replica::members::{Host, Members};
use crate::request::{Answer, Request};
use crate::shared::Shared;
use host::unsupported;

/// The collection of `local` in which mongod keeps it.
pub const COLLECTION: &str = "system.replset";
/// The least number of members with a vote: fewer can lose none.
const VOTERS_MIN: usize = 2;

/// Answers with the configuration.
pub fn config(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["commitmentStatus"]);
    fields.finish()?;
    check_initiated(request.server)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_document("config");
    append_configuration(&mut answer, request.server);
    answer.end();
    Ok(answer)
}

/// The document of `local.system.replset`, which mongosh and other tools read the configuration
/// from; `None` of any other collection.
pub fn documents_of(request: &Request<'_>, collection: Option<&str>) -> Option<Vec<DocumentBuf>> {
    if (request.database_name, collection) != ("local", Some(COLLECTION)) {
        return None;
    }
    if request.server.awaits_set() {
        return Some(Vec::new());
    }
    let mut configuration = DocumentBuilder::new();
    append_configuration(&mut configuration, request.server);
    Some(vec![configuration.build()])
}

fn append_configuration(answer: &mut DocumentBuilder, server: &Shared) {
    let standing = SetDescription::of(server);
    answer
        .append("_id", Value::String(&server.member.set))
        .append("version", Value::Int32(standing.members.version))
        .append("term", Value::Int64(standing.term))
        .begin_array("members");
    for host in &standing.members.all {
        let member = answer.push_begin_document();
        host.append_to(member);
        member
            .append("arbiterOnly", Value::Boolean(false))
            .append("buildIndexes", Value::Boolean(true))
            .append("secondaryDelaySecs", Value::Int64(0))
            .end();
    }
    answer
        .end()
        .append("protocolVersion", Value::Int64(1))
        .append("writeConcernMajorityJournalDefault", Value::Boolean(true));
}

/// Has the set have the members of a configuration.
pub fn reconfigure(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let forced = fields.optional_boolean("force")?.unwrap_or(false);
    fields.ignore(&["maxTimeMS"]);
    let given = fields.required_document(request.sent_name)?;
    fields.finish()?;
    let server = request.server;
    check_initiated(server)?;
    let given = parse(given, &server.member.set)?;
    let known = SetDescription::of(server).members;
    let Some(replica) = &server.replica else { return reconfigure_alone(server, &known, &given) };
    if forced && known.all == given.all {
        // As programs that start sets do where one is there again.
        return Ok(DocumentBuilder::new());
    }
    if forced {
        let message = "BSON field 'replSetReconfig.force' is not supported by Frond: a majority \
                       of the members decides who the members are";
        return Err(Error::invalid(Code::CommandNotSupported, message));
    }
    if !server.is_primary() {
        let state = replica.state().name();
        let message =
            format!("Safe reconfig is only allowed on a writable PRIMARY. Current state {state}");
        return Err(Error::invalid(Code::NotWritablePrimary, message));
    }
    let _configuring = match replica.configuring.try_lock() {
        Ok(configuring) => configuring,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let message = "Cannot run replSetReconfig because the node is currently updating its \
                           configuration";
            return Err(Error::invalid(Code::ConfigurationInProgress, message));
        }
    };
    check_step(&replica.members(), &given, &server.member.set)?;
    if !given.has(&server.member.host) {
        let (version, term) = (given.version, replica.standing().term);
        let message = format!(
            "No host described in new configuration with {{version: {version}, term: {term}}} for \
             replica set {} maps to this node: rs.stepDown() first",
            server.member.set
        );
        return Err(Error::invalid(Code::NodeNotFound, message));
    }
    check_own(&given, &server.member.host, (replica.standing().term, &server.member.set))?;
    given.write(&server.frond)?;
    replica.note_members(server);
    if given.all.len() < known.all.len() {
        // Once this answers the removed one may be switched off.
        replica.await_members(given.all.len());
    }
    Ok(DocumentBuilder::new())
}

/// The same of the only member of a set, which has no other.
fn reconfigure_alone(server: &Shared, known: &Members, given: &Members) -> Answer {
    if known.all == given.all {
        return Ok(DocumentBuilder::new());
    }
    let (set, host) = (&server.member.set, &server.member.host);
    let message = format!("the replica set {set} has one member, {host}, and can't be changed");
    Err(Error::invalid(Code::NewReplicaSetConfigurationIncompatible, message))
}

/// Checks that this member may stay the primary.
fn check_own(given: &Members, host: &str, (term, set): (u64, &str)) -> Result<(), Error> {
    let Some(own) = given.at(host).filter(|own| !own.is_electable()) else { return Ok(()) };
    let message = format!(
        "This node, {host}, with _id MemberId({}) is not electable under the new configuration \
         with {{version: {}, term: {term}}} for replica set {set}",
        own.id, given.version
    );
    Err(Error::invalid(Code::NewReplicaSetConfigurationIncompatible, message))
}

/// Reads a configuration, as far as there is one for it alone.
fn parse(config: Document<'_>, set: &str) -> Result<Members, Error> {
    let mut fields = Fields::of_part("ReplSetConfig", config)?;
    let name = fields.required_string("_id")?;
    let version = fields.integer("version")?.ok_or_else(|| fields.missing("version"))?;
    let members = fields.array("members")?.ok_or_else(|| fields.missing("members"))?;
    let protocol = fields.integer("protocolVersion")?.unwrap_or(1);
    let journal = fields.optional_boolean("writeConcernMajorityJournalDefault")?.unwrap_or(true);
    fields.refuse_all(&["settings", "configsvr"])?;
    fields.ignore(&["term", "replicaSetId"]);
    fields.finish()?;
    if name != set {
        let message = format!(
            "New and old configurations differ in replica set name; old was {set}, and new is \
             {name}"
        );
        return Err(Error::invalid(Code::NewReplicaSetConfigurationIncompatible, message));
    }
    if protocol != 1 {
        let message = format!("protocolVersion of {protocol} is not supported, only 1");
        return Err(Error::invalid(Code::InvalidReplicaSetConfig, message));
    }
    if !journal {
        return Err(unsupported("writeConcernMajorityJournalDefault: false"));
    }
    let version = i32::try_from(version).ok().filter(|version| 0 < *version).ok_or_else(|| {
        let message = format!("version field value of {version} is out of range (0, {}]", i32::MAX);
        Error::invalid(Code::InvalidReplicaSetConfig, message)
    })?;
    let all = members.iter().map(host::parse).collect::<Result<Vec<Host>, Error>>()?;
    let members = Members { version, all };
    check(&members)?;
    Ok(members)
}

/// Checks what a configuration must be, whatever was before.
///
/// # Errors
/// `InvalidReplicaSetConfig` if an id or an address stands there twice, or there are too many.
pub fn check(members: &Members) -> Result<(), Error> {
    let invalid = |message: String| Err(Error::invalid(Code::InvalidReplicaSetConfig, message));
    let (mut ids, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for (position, host) in members.all.iter().enumerate() {
        if !ids.insert(host.id) {
            return invalid(format!(
                "Found two member configurations with same _id field, members.{position}._id == {}",
                host.id
            ));
        }
        if !addresses.insert(&host.address) {
            return invalid(format!(
                "Found two member configurations with same host field, members.{position}.host \
                 == {}",
                host.address
            ));
        }
    }
    let (count, voters) = (members.all.len(), members.voter_count());
    if MEMBERS_MAX < count {
        return invalid(format!(
            "Replica set configuration contains {count} members, but must have at least 1 and no \
             more than {MEMBERS_MAX}"
        ));
    }
    if VOTERS_MAX < voters {
        return invalid(format!(
            "Replica set configuration contains {voters} voting members, but must be at least 1 \
             and no more than {VOTERS_MAX}"
        ));
    }
    if !members.all.is_empty() && !members.all.iter().any(Host::is_electable) {
        let what = "Replica set configuration must contain at least one non-arbiter member with \
                    priority > 0";
        return invalid(what.to_owned());
    }
    Ok(())
}

/// Checks that a configuration may follow on another.
fn check_step(old: &Members, new: &Members, set: &str) -> Result<(), Error> {
    let incompatible = |message: String| {
        Err(Error::invalid(Code::NewReplicaSetConfigurationIncompatible, message))
    };
    if new.version <= old.version {
        return incompatible(format!(
            "New replica set configuration version must be greater than old, but {} is not greater \
             than {} for replica set {set}",
            new.version, old.version
        ));
    }
    if new.voter_count() < VOTERS_MIN {
        let message = format!("a replica set has at least {VOTERS_MIN} members with a vote");
        return Err(Error::invalid(Code::InvalidReplicaSetConfig, message));
    }
    for host in &new.all {
        let before = old.all.iter().find(|it| it.address == host.address);
        if let Some(before) = before.filter(|before| before.id != host.id) {
            return incompatible(format!(
                "New and old configurations both have members with host of {} but in the new \
                 configuration the _id field is {} and in the old configuration it is {} for \
                 replica set {set}",
                host.address, host.id, before.id
            ));
        }
        if old.all.iter().any(|it| it.id == host.id && it.address != host.address) {
            return incompatible(format!(
                "a member keeps its host: first remove {}, then add {} with another _id",
                host.id, host.address
            ));
        }
    }
    let votes = |of: &Members, host: &Host| of.at(&host.address).is_some_and(|it| it.votes);
    let voters = |of: &Members, in_other: &Members| {
        of.all.iter().filter(|host| host.votes && !votes(in_other, host)).count()
    };
    if 1 < voters(new, old) + voters(old, new) {
        return incompatible(
            "Non force replset reconfig can only add or remove at most 1 voting member.".to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    fn parsed(text: &str) -> Result<Members, i32> {
        let config = extended_json::parse(&text.replace('\'', "\"")).expect("a document");
        parse(config.view(), "rs0").map_err(|error| error.code.number())
    }

    fn of(members: &str) -> Result<Members, i32> {
        parsed(&format!("{{'_id': 'rs0', 'version': 2, 'members': [{members}]}}"))
    }

    #[test]
    fn unsupported_options_are_refused_by_name() {
        let (a, b) = ("{'_id': 0, 'host': 'a:1'}", "{'_id': 1, 'host': 'b:1'}");
        let with = |field: &str| of(&format!("{a}, {{'_id': 1, 'host': 'b:1', {field}}}"));
        let members = of(&format!("{a}, {b}")).expect("two members");
        let same = "'arbiterOnly': false, 'hidden': false, 'priority': 1.0, 'votes': 1, 'tags': {}, \
                    'buildIndexes': true, 'secondaryDelaySecs': 0";
        assert_eq!(with(same), Ok(members));
        for field in ["'arbiterOnly': true", "'secondaryDelaySecs': 5", "'buildIndexes': false"] {
            assert_eq!(with(field), Err(115), "{field}");
        }
        assert_eq!(with("'other': 1"), Err(40415));
        assert_eq!(of(&format!("{a}, {a}")), Err(93));
        assert_eq!(of(&format!("{a}, {{'_id': 1, 'host': 'a:1'}}")), Err(93));
        assert_eq!(of(&format!("{a}, {{'_id': 300, 'host': 'c:1'}}")), Err(2));
        assert_eq!(of(&format!("{a}, {{'_id': 1, 'host': ':1'}}")), Err(9));
        let many = |count, last: &str| {
            let host = |id| match id + 1 == count {
                true => format!("{{'_id': {id}, 'host': 'a:{}'{last}}}", id + 1),
                false => format!("{{'_id': {id}, 'host': 'a:{}'}}", id + 1),
            };
            (0..count).map(host).collect::<Vec<String>>().join(", ")
        };
        assert_eq!(of(&many(8, "")), Err(93));
        assert!(of(&many(8, ", 'votes': 0, 'priority': 0")).is_ok());
        assert_eq!(parsed("{'_id': 'rs1', 'version': 2, 'members': []}"), Err(103));
    }

    #[test]
    fn a_member_may_have_no_vote_and_never_be_the_primary() {
        let a = "{'_id': 0, 'host': 'a:1'}";
        let with = |fields: &str| {
            let members = of(&format!("{a}, {{'_id': 1, 'host': 'b:1', {fields}}}"))?;
            let Host { votes, priority, hidden, tags, .. } = members.all[1].clone();
            Ok((votes, priority, hidden, tags.len()))
        };
        assert_eq!(with("'priority': 0"), Ok((true, 0.0, false, 0)));
        assert_eq!(with("'priority': 0, 'hidden': true"), Ok((true, 0.0, true, 0)));
        assert_eq!(with("'priority': 0, 'votes': 0"), Ok((false, 0.0, false, 0)));
        assert_eq!(
            with("'priority': 2.5, 'tags': {'dc': 'x', 'b': 'y'}"),
            Ok((true, 2.5, false, 2))
        );
        for (wrong, code) in [
            ("'hidden': true", 2),
            ("'votes': 0", 2),
            ("'votes': 2", 2),
            ("'priority': -1", 2),
            ("'priority': 1001", 2),
            ("'priority': 'x'", 14),
            ("'tags': {'dc': 1}", 14),
            ("'tags': 'dc'", 14),
        ] {
            assert_eq!(with(wrong), Err(code), "{wrong}");
        }
        assert_eq!(of("{'_id': 0, 'host': 'a:1', 'priority': 0}"), Err(93));
        let given = of(&format!("{a}, {{'_id': 1, 'host': 'b:1', 'priority': 0}}")).expect("two");
        let own = |host| check_own(&given, host, (3, "rs0")).map_err(|error| error.code.number());
        assert_eq!((own("a:1"), own("b:1")), (Ok(()), Err(103)));
    }

    #[test]
    fn one_vote_comes_or_goes_at_a_time() {
        let host = |id: i32, address: &str| Host::new(id, address.to_owned());
        let without_vote = |id, address| Host { votes: false, priority: 0.0, ..host(id, address) };
        let old = Members { version: 1, all: vec![host(0, "a:1"), host(1, "b:1"), host(2, "c:1")] };
        let step = |version, all: &[Host]| {
            let new = Members { version, all: all.to_vec() };
            check_step(&old, &new, "rs0").map_err(|error| error.code.number())
        };
        let three = &old.all[..];
        assert_eq!(step(1, three), Err(103));
        assert_eq!(step(2, three), Ok(()));
        assert_eq!(step(7, &[three, &[host(3, "d:1")]].concat()), Ok(()));
        assert_eq!(step(2, &three[..2]), Ok(()));
        assert_eq!(step(2, &three[..1]), Err(93));
        assert_eq!(step(2, &[three, &[host(3, "d:1"), host(4, "e:1")]].concat()), Err(103));
        let readers = [without_vote(3, "d:1"), without_vote(4, "e:1")];
        assert_eq!(step(2, &[three, &readers].concat()), Ok(()));
        assert_eq!(step(2, &[&three[..2], &[without_vote(2, "c:1")]].concat()), Ok(()));
        let few = [host(0, "a:1"), without_vote(1, "b:1"), without_vote(2, "c:1")];
        assert_eq!(step(2, &few), Err(93));
        assert_eq!(step(2, &[host(0, "a:1"), host(1, "b:1"), host(5, "c:1")]), Err(103));
        assert_eq!(step(2, &[host(0, "a:1"), host(1, "b:1"), host(2, "d:1")]), Err(103));
    }
}
