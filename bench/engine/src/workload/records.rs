//! Records as several workloads of Frond alone load them: keys that ascend with their numbers,
//! values of the workload's own.

use bytes::Bytes;
use frond_engine::{Durability, Engine, TreeId};
use frond_tree::{Entry, Tree, Value};

use crate::random::scramble;
use crate::target::Failure;

pub const KEY_BYTES: usize = 16;

/// Loads a new tree with the first `count` records.
pub fn load(engine: &Engine, count: u64, value: fn(u64) -> Bytes) -> Result<TreeId, Failure> {
    let tree = engine.reserve_tree_id();
    let entry = |number| Entry { key: key(number), value: Value::inline(value(number)) };
    let mut transaction = engine.begin();
    let mut entries = (0..count).map(|number| Ok(entry(number)));
    let base = Tree::load(&**engine.store(), engine.local_format(), &mut entries)?;
    transaction.set_base(tree, base)?;
    transaction.commit(Durability::Synced)?;
    Ok(tree)
}

pub fn key(number: u64) -> Bytes {
    let key = [number.to_be_bytes(), scramble(number).to_be_bytes()];
    Bytes::copy_from_slice(key.as_flattened())
}
