//! `frondRemote`, `frondClone`, `frondFetch`, `frondPull` and `frondPush`: the same repository
//! elsewhere, while this server serves.
//!
//! A `token` that a command brings is for this one transfer: it is kept nowhere and answered
//! nowhere.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::MergeRequest;
use frond_vcs::remote::{Depth, FetchReport, Moved, ORIGIN, PushRequest};

use crate::commands::reply::long;
use crate::commands::{history, merge};
use crate::fields::Fields;
use crate::hooks::Act;
use crate::remote_opener;
use crate::request::{Answer, Request};

/// Lists the remotes, without `name`; with `url` adds one; with `remove` forgets it.
pub fn remotes(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let (name, url) = (fields.string("name")?, fields.string("url")?);
    let removes = fields.boolean("remove")?;
    fields.finish()?;
    let database = request.existing_database()?;
    let mut answer = DocumentBuilder::new();
    match (name, url, removes) {
        (None, None, false) => {
            answer.begin_array("remotes");
            for remote in database.list_remotes()? {
                answer
                    .push_begin_document()
                    .append("name", Value::String(&remote.name))
                    .append("url", Value::String(&remote.url))
                    .end();
            }
            answer.end();
        }
        (Some(name), Some(url), false) => {
            remote_opener::check(url)?;
            database.add_remote(name, url)?;
            answer.append("name", Value::String(name)).append("url", Value::String(url));
        }
        (Some(name), None, true) => {
            database.remove_remote(name)?;
            answer.append("removed", Value::String(name));
        }
        _ => {
            let message = "frondRemote takes nothing, 'name' and 'url', or 'name' and 'remove'";
            return Err(Error::invalid(Code::BadValue, message));
        }
    }
    Ok(answer)
}

/// Makes this database a copy of one elsewhere.
pub fn clone(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let from = fields.required_string("from")?;
    let depth = depth(&mut fields)?;
    let token = fields.string("token")?;
    fields.finish()?;
    let database = request.database()?;
    let name = &database.name().name;
    let remote = request.server.places.open(from, name, token, &request.operation)?;
    let report = database.clone_to(from, &remote, depth, &mut |moved| {
        remote_opener::show(&request.operation, moved)
    })?;
    Ok(fetched(DocumentBuilder::new(), &report))
}

/// Brings what a remote has; no branch of this server moves.
pub fn fetch(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = fields.string("remote")?.unwrap_or(ORIGIN);
    let depth = depth(&mut fields)?;
    let token = fields.string("token")?;
    fields.finish()?;
    let database = request.database()?;
    let url = database.remote_url(name)?;
    let own = &database.name().name;
    let remote = request.server.places.open(&url, own, token, &request.operation)?;
    let report = database.fetch_to(name, &remote, depth, &mut |moved| {
        remote_opener::show(&request.operation, moved)
    })?;
    Ok(fetched(DocumentBuilder::new(), &report))
}

/// Fetches, and merges the remote's branch into this one.
pub fn pull(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = fields.string("remote")?.unwrap_or(ORIGIN);
    let branch = fields.string("branch")?;
    let author = fields.string("author")?.map(str::to_owned);
    let token = fields.string("token")?;
    let merge_request = MergeRequest {
        author: Some(author.unwrap_or_else(|| history::author_default(request))),
        message: fields.string("message")?.map(str::to_owned),
        no_fast_forward: fields.boolean("noFF")?,
        fast_forward_only: fields.boolean("ffOnly")?,
        rules: merge::rules(&mut fields)?,
        ..MergeRequest::default()
    };
    fields.finish()?;
    let database = request.database()?;
    let url = database.remote_url(name)?;
    let own = &database.name().name;
    let remote = request.server.places.open(&url, own, token, &request.operation)?;
    let show = &mut |moved: &Moved| remote_opener::show(&request.operation, moved);
    let (report, merge_request) =
        database.fetch_to_merge(name, &remote, branch, merge_request, show)?;
    let version = merge_request.merge_in.clone();
    let answer = merge::hooked(request, &database, [name, ""], Some(&version), |judged| {
        database.merge(&MergeRequest { judged, ..merge_request })
    })?;
    Ok(fetched(answer, &report))
}

/// Sends this branch's commits to a remote, and moves its branch there.
pub fn push(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = fields.string("remote")?.unwrap_or(ORIGIN);
    let push = PushRequest {
        branch: fields.string("branch")?.map(str::to_owned),
        force_with_lease: fields.boolean("forceWithLease")?,
        tags: fields.boolean("tags")?,
    };
    let token = fields.string("token")?;
    fields.finish()?;
    let database = request.database()?;
    let url = database.remote_url(name)?;
    let own = &database.name().name;
    let remote = request.server.places.open(&url, own, token, &request.operation)?;
    let branch = database.branch().unwrap_or_default().to_owned();
    let facts = vec![("branch", branch), ("remote", name.to_owned())];
    let mut occasion = history::occasion(request, Act::Push, facts);
    request.server.hooks.before(&occasion)?;
    let report = database
        .push(name, &remote, &push, &mut |moved| remote_opener::show(&request.operation, moved))?;
    let mut answer = DocumentBuilder::new();
    answer.append("branch", Value::String(&report.branch));
    if let Some(from) = report.from {
        answer.append("from", Value::String(&from.to_string()));
    }
    answer.append("commitId", Value::String(&report.to.to_string()));
    append_tags(&mut answer, "tags", &report.tags);
    append_moved(&mut answer, &report.moved);
    if !report.damages.is_empty() {
        answer.append("mended", Value::Int64(long(report.mended)));
    }
    occasion.facts.push(("commitId", report.to.to_string()));
    request.server.hooks.after(&occasion, &mut answer);
    Ok(answer)
}

fn depth(fields: &mut Fields<'_>) -> Result<Depth, Error> {
    match (fields.count("depth")?, fields.boolean("unshallow")?) {
        (None | Some(0), false) => Ok(Depth::Known),
        (Some(commits), false) => Ok(Depth::Commits(commits)),
        (None, true) => Ok(Depth::All),
        (Some(_), true) => {
            let message = "'depth' and 'unshallow' contradict each other";
            Err(Error::invalid(Code::BadValue, message))
        }
    }
}

/// The answer, and what was fetched.
fn fetched(mut answer: DocumentBuilder, report: &FetchReport) -> DocumentBuilder {
    answer.begin_array("branches");
    for branch in &report.branches {
        answer.push_begin_document().append("name", Value::String(&branch.name));
        if let Some(from) = branch.from {
            answer.append("from", Value::String(&from.to_string()));
        }
        answer.append("commitId", Value::String(&branch.to.to_string())).end();
    }
    answer.end();
    append_tags(&mut answer, "tags", &report.tags);
    if !report.tags_kept.is_empty() {
        append_tags(&mut answer, "tagsKept", &report.tags_kept);
    }
    append_moved(&mut answer, &report.moved);
    answer
}

fn append_tags(answer: &mut DocumentBuilder, name: &str, tags: &[String]) {
    answer.begin_array(name);
    for tag in tags {
        answer.push(Value::String(tag));
    }
    answer.end();
}

fn append_moved(answer: &mut DocumentBuilder, moved: &Moved) {
    answer
        .begin_document("moved")
        .append("commits", Value::Int64(long(moved.commits)))
        .append("chunks", Value::Int64(long(moved.chunks)))
        .append("bytes", Value::Int64(long(moved.bytes)))
        .end();
}
