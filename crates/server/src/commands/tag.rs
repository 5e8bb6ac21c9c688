//! `frondTag`: lists, makes and removes tags.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_vcs::TagInfo;

use crate::access::Action;
use crate::authorization::VersionScope;
use crate::commands::history::author_default;
use crate::request::{Answer, Request};

/// Lists the tags, without `tag`; with it makes one, at `target` or this version's commit,
/// annotated if a `message` is given; with `delete` removes it.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = fields.string("tag")?;
    let target = fields.string("target")?;
    let message = fields.string("message")?;
    let author = fields.string("author")?;
    let author = author.map_or_else(|| author_default(request), str::to_owned);
    let (deletes, forces) = (fields.boolean("delete")?, fields.boolean("force")?);
    let name_missing = fields.missing("tag");
    fields.finish()?;
    let database = request.existing_database()?;
    let mut answer = DocumentBuilder::new();
    let Some(name) = name else {
        if deletes || target.is_some() || message.is_some() {
            return Err(name_missing);
        }
        answer.begin_array("tags");
        for mut tag in database.list_tags()? {
            if !is_readable(request, &tag)? {
                (tag.message, tag.author) = (None, None);
            }
            answer.push_begin_document();
            append_tag(&mut answer, &tag);
            answer.end();
        }
        answer.end();
        return Ok(answer);
    };
    if deletes {
        let tag = database.delete_tag(name)?;
        answer.append("deleted", Value::String(&tag.name));
        answer.append("commitId", Value::String(&tag.commit.to_string()));
        return Ok(answer);
    }
    let annotation = message.map(|message| (message, author.as_str()));
    append_tag(&mut answer, &database.create_tag(name, target, annotation, forces)?);
    Ok(answer)
}

/// Whether the client may read what a tag says: as it may read the commit that it names, which no
/// branch does. Names are no secret.
fn is_readable(request: &Request<'_>, tag: &TagInfo) -> Result<bool, Error> {
    let Some(rights) = &request.rights else { return Ok(true) };
    let commit = tag.commit.to_string();
    request.authorization(rights).may(
        Action::Find,
        request.database_name,
        VersionScope::Revision(&commit),
        None,
    )
}

/// Appends `tag commitId time`, and `message author` of an annotated one.
pub fn append_tag(answer: &mut DocumentBuilder, tag: &TagInfo) {
    answer
        .append("tag", Value::String(&tag.name))
        .append("commitId", Value::String(&tag.commit.to_string()));
    for (name, text) in [("message", &tag.message), ("author", &tag.author)] {
        if let Some(text) = text {
            answer.append(name, Value::String(text));
        }
    }
    answer.append("time", Value::DateTime(tag.time_millis));
}
