//! Commands that maintain a server of MongoDB, as far as they mean something here: `fsync`,
//! `fsyncUnlock`, `compact` and `reIndex`.

use frond_db::{Error, ReclaimOptions};
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::{gc, reply};
use crate::request::{Answer, Request};

/// Writes what is in memory to its files, relaxed writes (`j: false`) with it. Writers can't be
/// locked out.
pub fn fsync(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    if fields.boolean("lock")? {
        let message = "fsync with lock is not supported by Frond: use frond backup, during which \
                       writers continue";
        return Err(Error::invalid(Code::CommandNotSupported, message));
    }
    fields.ignore(&["async", "fsyncLockAcquisitionTimeoutMillis"]);
    fields.finish()?;
    request.server.frond.flush()?;
    let mut answer = DocumentBuilder::new();
    answer.append("numFiles", Value::Int32(1));
    Ok(answer)
}

/// Answers that nothing is locked.
pub fn fsync_unlock(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    Err(Error::invalid(Code::IllegalOperation, "fsyncUnlock called when not locked"))
}

/// Gives back disk space, of all databases: files are shared. Dropped collections can be brought
/// back as before.
pub fn compact(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    fields.refuse("dryRun")?;
    fields.ignore(&["force", "freeSpaceTargetMB"]);
    fields.finish()?;
    let collections = request.database()?.list_collections()?;
    let Some(found) = collections.iter().find(|found| found.name == collection) else {
        return Err(Error::invalid(Code::NamespaceNotFound, "collection does not exist"));
    };
    if found.is_view() {
        return Err(Error::invalid(Code::CommandNotSupportedOnView, "can't compact a view"));
    }
    let options = ReclaimOptions { thorough: false, bytes_a_second: None, purge: false };
    let undo_millis = gc::UNDO_SECONDS * 1_000;
    let interrupt = request.operation.interrupt();
    let frond = &request.server.frond;
    let collected = frond_vcs::reclaim_until(frond, undo_millis, options, &interrupt)?.collected;
    let freed = collected.bytes_before.saturating_sub(collected.bytes_after);
    let mut answer = DocumentBuilder::new();
    answer.append("bytesFreed", reply::number(freed));
    Ok(answer)
}

/// Refuses as a member of a replica set does.
pub fn re_index(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    request.no_fields()?;
    let message = format!(
        "reIndex is only allowed on a standalone mongod instance. Cannot reIndex '{}' while \
         replication is active",
        request.namespace(collection)
    );
    Err(Error::invalid(Code::IllegalOperation, message))
}
