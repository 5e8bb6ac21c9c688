//! `frondPolicy`: when and how commits of a database are made, and what they must pass.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::CommitPolicy;

use crate::commands::reply;
use crate::request::{Answer, Request};

/// Shows, sets or removes the policy of a database, or thins a branch by it now.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let set = fields.document("set")?;
    let (removes, thins) = (fields.boolean("remove")?, fields.boolean("thin")?);
    fields.finish()?;
    if usize::from(set.is_some()) + usize::from(removes) + usize::from(thins) > 1 {
        let message = "frondPolicy takes one of 'set', 'remove' and 'thin'";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let database = request.existing_database()?;
    let mut answer = DocumentBuilder::new();
    if thins {
        answer.append("thinned", reply::number(database.thin_automatic_commits()?));
        return Ok(answer);
    }
    if let Some(set) = set {
        let policy = CommitPolicy::parse(set, database.frond().now_millis())?;
        database.set_commit_policy(Some(&policy))?;
    } else if removes {
        database.set_commit_policy(None)?;
    }
    match database.commit_policy()? {
        Some(policy) => answer.append("policy", Value::from(policy.to_document())),
        None => answer.append("policy", Value::Null),
    };
    Ok(answer)
}
