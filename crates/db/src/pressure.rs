//! The pressure of memory: how near the process is to what it may take, and what gives way then.
//!
//! Budgets count what is charged to them; a process takes more: what the allocator keeps for each
//! thread, stacks, what lies between. So the program that knows the process (a server does) reports
//! how near it is, and each budget and cache has less in proportion: caches shrink at once, large
//! writes and what stages hold wait, go to disk or are refused (146) sooner. A single large write
//! goes on whatever is reported.

use crate::frond::Frond;
use crate::{large, reader};

/// All of what may give way gives way.
pub const PRESSURE_MAX: u32 = 1000;
/// The number of quarters of the store's cache that may be given up: without the inner nodes of
/// trees every read would be several.
const CACHE_QUARTERS: u64 = 3;

/// The bytes that are kept of documents in any case.
const DOCUMENTS_BYTES_MIN: u64 = 64 << 10;

impl Frond {
    /// Has caches and budgets leave so many thousandths of their memory, until another number is
    /// set.
    pub fn set_memory_pressure(&self, thousandths: u32) {
        let thousandths = u64::from(thousandths.min(PRESSURE_MAX));
        let part = |bytes: u64| {
            u64::try_from(u128::from(bytes) * u128::from(thousandths) / u128::from(PRESSURE_MAX))
                .unwrap_or(bytes)
        };
        let budget = self.memory_budget();
        budget.withhold(usize::try_from(part(budget.bytes_max() as u64)).unwrap_or(usize::MAX));
        let engine = self.engine();
        engine.withhold_write_memory(part(engine.write_memory_bytes().0));
        let (cache_bytes, documents_bytes) = self.cache_bytes();
        if let Some(cache) = engine.store().read_cache() {
            cache.withhold(part(cache_bytes / 4 * CACHE_QUARTERS));
        }
        // A cache that had no room once would not know what it dropped.
        let left = (documents_bytes - part(documents_bytes)).max(DOCUMENTS_BYTES_MIN);
        large::set_cache_bytes(left);
        reader::set_cache_bytes(left);
    }
}
