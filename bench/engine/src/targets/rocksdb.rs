//! RocksDB, the system's library, by its C interface.
//!
//! All trees share one column family, each with a prefix of its own, as MyRocks lays out a table's
//! indexes: so there is one write buffer for all, as Frond has.
//!
//! *Why the calls are sound*: every pointer comes from a RocksDB constructor, is never null
//! (checked where the library may fail), and is given back once, in the owner's `Drop`; slices are
//! passed with their own lengths; an error string is copied and freed at once. RocksDB allows any
//! number of threads on one `rocksdb_t`; iterators and batches stay with one session.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{self, NonNull};
use std::slice;
use std::thread;
use std::time::Duration;

use crate::target::{
    Entries, Failure, Put, Session, Settings, Target, VisitEntry, VisitValue, WRITE_BUFFERS_WAITING,
};

/// `rocksdb_lz4_compression` in `rocksdb/c.h`.
const LZ4: c_int = 4;
const BLOOM_BITS: f64 = 10.0;
/// How many files of its log are used again: there is one more than write buffers wait.
const LOGS_RECYCLED: usize = WRITE_BUFFERS_WAITING as usize + 2;
/// How large a file of a bulk load becomes.
const LOAD_FILE_BYTES: u64 = 64 << 20;
/// How often debt is looked at.
const POLL: Duration = Duration::from_millis(5);
/// What RocksDB calls the kinds of debt.
const DEBTS: [&CStr; 5] = [
    c"rocksdb.num-running-compactions",
    c"rocksdb.compaction-pending",
    c"rocksdb.num-running-flushes",
    c"rocksdb.mem-table-flush-pending",
    c"rocksdb.estimate-pending-compaction-bytes",
];

type Handle = *mut c_void;
type Bytes = *const c_char;

unsafe extern "C" {
    fn rocksdb_options_create() -> Handle;
    fn rocksdb_options_set_create_if_missing(options: Handle, on: c_uchar);
    fn rocksdb_options_set_max_background_jobs(options: Handle, count: c_int);
    fn rocksdb_options_set_write_buffer_size(options: Handle, bytes: usize);
    fn rocksdb_options_set_max_write_buffer_number(options: Handle, count: c_int);
    fn rocksdb_options_set_compression(options: Handle, kind: c_int);
    fn rocksdb_options_set_recycle_log_file_num(options: Handle, count: usize);
    fn rocksdb_options_set_level_compaction_dynamic_level_bytes(options: Handle, on: c_uchar);
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_block_based_options_set_block_cache(table: Handle, cache: Handle);
    fn rocksdb_block_based_options_set_filter_policy(table: Handle, policy: Handle);
    fn rocksdb_filterpolicy_create_bloom_full(bits: f64) -> Handle;
    fn rocksdb_cache_create_lru(bytes: usize) -> Handle;
    fn rocksdb_open(options: Handle, path: Bytes, error: *mut *mut c_char) -> Handle;
    fn rocksdb_close(db: Handle);
    fn rocksdb_writeoptions_create() -> Handle;
    fn rocksdb_writeoptions_set_sync(options: Handle, on: c_uchar);
    fn rocksdb_readoptions_create() -> Handle;
    fn rocksdb_flushoptions_create() -> Handle;
    fn rocksdb_flush(db: Handle, options: Handle, error: *mut *mut c_char);
    fn rocksdb_write(db: Handle, options: Handle, batch: Handle, error: *mut *mut c_char);
    fn rocksdb_writebatch_create() -> Handle;
    fn rocksdb_writebatch_clear(batch: Handle);
    fn rocksdb_writebatch_destroy(batch: Handle);
    fn rocksdb_writebatch_put(batch: Handle, key: Bytes, key_len: usize, value: Bytes, len: usize);
    fn rocksdb_get_pinned(
        db: Handle,
        options: Handle,
        key: Bytes,
        len: usize,
        error: *mut *mut c_char,
    ) -> Handle;
    fn rocksdb_pinnableslice_value(slice: Handle, len: *mut usize) -> Bytes;
    fn rocksdb_pinnableslice_destroy(slice: Handle);
    fn rocksdb_create_iterator(db: Handle, options: Handle) -> Handle;
    fn rocksdb_iter_seek(iterator: Handle, key: Bytes, len: usize);
    fn rocksdb_iter_valid(iterator: Handle) -> c_uchar;
    fn rocksdb_iter_next(iterator: Handle);
    fn rocksdb_iter_key(iterator: Handle, len: *mut usize) -> Bytes;
    fn rocksdb_iter_value(iterator: Handle, len: *mut usize) -> Bytes;
    fn rocksdb_iter_get_error(iterator: Handle, error: *mut *mut c_char);
    fn rocksdb_iter_destroy(iterator: Handle);
    fn rocksdb_property_int(db: Handle, name: Bytes, out: *mut u64) -> c_int;
    fn rocksdb_free(pointer: *mut c_void);
    fn rocksdb_envoptions_create() -> Handle;
    fn rocksdb_sstfilewriter_create(env: Handle, options: Handle) -> Handle;
    fn rocksdb_sstfilewriter_open(writer: Handle, name: Bytes, error: *mut *mut c_char);
    fn rocksdb_sstfilewriter_put(
        writer: Handle,
        key: Bytes,
        key_len: usize,
        value: Bytes,
        len: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_sstfilewriter_finish(writer: Handle, error: *mut *mut c_char);
    fn rocksdb_sstfilewriter_destroy(writer: Handle);
    fn rocksdb_ingestexternalfileoptions_create() -> Handle;
    fn rocksdb_ingestexternalfileoptions_set_move_files(options: Handle, on: c_uchar);
    fn rocksdb_ingest_external_file(
        db: Handle,
        files: *const Bytes,
        count: usize,
        options: Handle,
        error: *mut *mut c_char,
    );
}

/// Calls what may fail with a string.
fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, Failure> {
    let mut error = ptr::null_mut();
    let result = call(&mut error);
    if error.is_null() {
        return Ok(result);
    }
    // SAFETY: the library gave a string that ends with zero, and that is ours to free.
    let message = unsafe {
        let message = CStr::from_ptr(error).to_string_lossy().into_owned();
        rocksdb_free(error.cast());
        message
    };
    Err(message.into())
}

/// An open database. Its options live as long as the process: a few hundred bytes.
pub struct RocksDb {
    db: NonNull<c_void>,
    options: Handle,
    synced: Handle,
    read: Handle,
    directory: std::path::PathBuf,
    write_buffer_bytes: u64,
}

// SAFETY: RocksDB synchronises a database and its unchanging options itself.
unsafe impl Sync for RocksDb {}

impl RocksDb {
    /// Opens an empty directory.
    pub fn open(settings: &Settings<'_>) -> Result<RocksDb, Failure> {
        let path = CString::new(settings.directory.as_os_str().as_bytes())?;
        // SAFETY: see the module's head.
        unsafe {
            let table = rocksdb_block_based_options_create();
            let cache = rocksdb_cache_create_lru(settings.cache_bytes as usize);
            rocksdb_block_based_options_set_block_cache(table, cache);
            let bloom = rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS);
            rocksdb_block_based_options_set_filter_policy(table, bloom);
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            rocksdb_options_set_max_background_jobs(options, 2);
            rocksdb_options_set_write_buffer_size(options, settings.write_buffer_bytes as usize);
            let buffers = WRITE_BUFFERS_WAITING as c_int + 1;
            rocksdb_options_set_max_write_buffer_number(options, buffers);
            rocksdb_options_set_compression(options, LZ4);
            // A sync of a log that is used again need not write its length: Frond's logs are, too.
            rocksdb_options_set_recycle_log_file_num(options, LOGS_RECYCLED);
            rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
            rocksdb_options_set_block_based_table_factory(options, table);
            let db = checked(|error| rocksdb_open(options, path.as_ptr(), error))?;
            let db = NonNull::new(db).ok_or("RocksDB answered no database")?;
            let synced = rocksdb_writeoptions_create();
            rocksdb_writeoptions_set_sync(synced, 1);
            let read = rocksdb_readoptions_create();
            let directory = settings.directory.to_owned();
            let write_buffer_bytes = settings.write_buffer_bytes;
            Ok(RocksDb { db, options, synced, read, directory, write_buffer_bytes })
        }
    }

    fn db(&self) -> Handle {
        self.db.as_ptr()
    }

    fn debt(&self) -> u64 {
        let property = |name: &CStr| {
            let mut number = 0;
            // SAFETY: the name ends with zero; the number outlives the call.
            let failed = unsafe { rocksdb_property_int(self.db(), name.as_ptr(), &mut number) };
            if failed == 0 { number } else { 0 }
        };
        DEBTS.iter().map(|name| property(name)).sum()
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; no session outlives its borrow.
        unsafe { rocksdb_close(self.db()) }
    }
}

impl Target for RocksDb {
    fn description(&self) -> String {
        format!(
            "RocksDB 7.8 (the system's): one column family, LZ4, Bloom filters of {BLOOM_BITS} bits, \
             write buffers 1 + {WRITE_BUFFERS_WAITING} of {} MB, dynamic levels, 2 background jobs, {LOGS_RECYCLED} logs recycled",
            self.write_buffer_bytes >> 20
        )
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, Failure> {
        // SAFETY: given back in the session's drop.
        let batch = unsafe { rocksdb_writebatch_create() };
        Ok(Box::new(RocksSession { target: self, batch, key: Vec::new() }))
    }

    fn rest(&self) -> Result<(), Failure> {
        // SAFETY: waits until the flush is done; its options live on.
        checked(|error| unsafe { rocksdb_flush(self.db(), rocksdb_flushoptions_create(), error) })?;
        // A compaction that ends may make the next one due: quiet twice in a row is rest.
        let mut quiet = 0;
        while quiet < 2 {
            quiet = if self.debt() == 0 { quiet + 1 } else { 0 };
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn load(&self, tree: usize, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let mut files: Vec<CString> = Vec::new();
        let mut next = entries.next();
        let mut key_buffer = Vec::new();
        while next.is_some() {
            let path = self.directory.join(format!("load-{tree}-{}.sst", files.len()));
            let path = CString::new(path.as_os_str().as_bytes())?;
            // SAFETY: the writer is used and given back within this step.
            unsafe {
                let writer =
                    rocksdb_sstfilewriter_create(rocksdb_envoptions_create(), self.options);
                checked(|error| rocksdb_sstfilewriter_open(writer, path.as_ptr(), error))?;
                let mut bytes = 0;
                while let Some((key, value)) = next.take_if(|_| bytes < LOAD_FILE_BYTES) {
                    prefixed(&mut key_buffer, tree, &key);
                    bytes += (key.len() + value.len()) as u64;
                    let (key, key_len) = parts(&key_buffer);
                    let (value, len) = parts(&value);
                    checked(|error| {
                        rocksdb_sstfilewriter_put(writer, key, key_len, value, len, error);
                    })?;
                    next = entries.next();
                }
                checked(|error| rocksdb_sstfilewriter_finish(writer, error))?;
                rocksdb_sstfilewriter_destroy(writer);
            }
            files.push(path);
        }
        let names: Vec<Bytes> = files.iter().map(|file| file.as_ptr()).collect();
        // SAFETY: the names outlive the call.
        checked(|error| unsafe {
            let options = rocksdb_ingestexternalfileoptions_create();
            rocksdb_ingestexternalfileoptions_set_move_files(options, 1);
            rocksdb_ingest_external_file(self.db(), names.as_ptr(), names.len(), options, error);
        })
    }
}

struct RocksSession<'a> {
    target: &'a RocksDb,
    batch: Handle,
    key: Vec<u8>,
}

impl Drop for RocksSession<'_> {
    fn drop(&mut self) {
        // SAFETY: made once, given back once.
        unsafe { rocksdb_writebatch_destroy(self.batch) }
    }
}

impl Session for RocksSession<'_> {
    fn write(&mut self, puts: &[Put]) -> Result<(), Failure> {
        // SAFETY: the batch copies what it is given.
        unsafe {
            rocksdb_writebatch_clear(self.batch);
            for put in puts {
                prefixed(&mut self.key, put.tree, &put.key);
                let ((key, key_len), (value, len)) = (parts(&self.key), parts(&put.value));
                rocksdb_writebatch_put(self.batch, key, key_len, value, len);
            }
            let (db, synced) = (self.target.db(), self.target.synced);
            checked(|error| rocksdb_write(db, synced, self.batch, error))
        }
    }

    fn get(
        &mut self,
        tree: usize,
        key: &[u8],
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Failure> {
        prefixed(&mut self.key, tree, key);
        let (key, key_len) = parts(&self.key);
        let (db, read) = (self.target.db(), self.target.read);
        // SAFETY: the slice is given back after its bytes were visited.
        unsafe {
            let slice = checked(|error| rocksdb_get_pinned(db, read, key, key_len, error))?;
            if slice.is_null() {
                return Ok(false);
            }
            let mut len = 0;
            let value = rocksdb_pinnableslice_value(slice, &mut len);
            visit(slice::from_raw_parts(value.cast(), len));
            rocksdb_pinnableslice_destroy(slice);
        }
        Ok(true)
    }

    fn range(
        &mut self,
        tree: usize,
        from: &[u8],
        visit: &mut VisitEntry<'_>,
    ) -> Result<(), Failure> {
        prefixed(&mut self.key, tree, from);
        let prefix = (tree as u32).to_be_bytes();
        let (from, from_len) = parts(&self.key);
        // SAFETY: keys and values are visited before the iterator moves, and it is given back.
        unsafe {
            let iterator = rocksdb_create_iterator(self.target.db(), self.target.read);
            rocksdb_iter_seek(iterator, from, from_len);
            while rocksdb_iter_valid(iterator) != 0 {
                let (mut key_len, mut len) = (0, 0);
                let key = rocksdb_iter_key(iterator, &mut key_len);
                let key = slice::from_raw_parts(key.cast::<u8>(), key_len);
                let value = rocksdb_iter_value(iterator, &mut len);
                let value = slice::from_raw_parts(value.cast::<u8>(), len);
                let Some(key) = key.strip_prefix(&prefix) else { break };
                if !visit(key, value) {
                    break;
                }
                rocksdb_iter_next(iterator);
            }
            let done = checked(|error| rocksdb_iter_get_error(iterator, error));
            rocksdb_iter_destroy(iterator);
            done
        }
    }
}

fn prefixed(buffer: &mut Vec<u8>, tree: usize, key: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(&(tree as u32).to_be_bytes());
    buffer.extend_from_slice(key);
}

fn parts(bytes: &[u8]) -> (Bytes, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}
