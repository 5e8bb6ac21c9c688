//! WiredTiger, the system's library: one table a tree, by the functions of `native/wiredtiger.c`.
//!
//! The log is synced by one thread for all ([`journal`]) and blocks are compressed with Snappy if
//! the library has it, both as MongoDB does.
//!
//! *Why the calls are sound*: handles come from WiredTiger and are given back once, in their
//! owner's `Drop`; a session and its cursors stay on one thread; keys and values are passed with
//! their own lengths and copied before a call returns; what a cursor shows is visited before it
//! moves.

mod journal;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use self::journal::Journal;
use crate::target::{Entries, Failure, Put, Session, Settings, Target, VisitEntry, VisitValue};

const SNAPPY: &str = "extensions=[libwiredtiger_snappy.so],";

type Handle = *mut c_void;

unsafe extern "C" {
    fn frond_wt_open(home: *const c_char, config: *const c_char, connection: *mut Handle) -> c_int;
    fn frond_wt_close(connection: Handle) -> c_int;
    fn frond_wt_session(connection: Handle, session: *mut Handle) -> c_int;
    fn frond_wt_session_close(session: Handle) -> c_int;
    fn frond_wt_create(session: Handle, uri: *const c_char, config: *const c_char) -> c_int;
    fn frond_wt_cursor(
        session: Handle,
        uri: *const c_char,
        config: *const c_char,
        cursor: *mut Handle,
    ) -> c_int;
    fn frond_wt_cursor_close(cursor: Handle) -> c_int;
    fn frond_wt_begin(session: Handle) -> c_int;
    fn frond_wt_commit(session: Handle) -> c_int;
    fn frond_wt_rollback(session: Handle) -> c_int;
    fn frond_wt_flush_log(session: Handle) -> c_int;
    fn frond_wt_checkpoint(session: Handle) -> c_int;
    fn frond_wt_insert(
        cursor: Handle,
        key: *const c_void,
        key_size: usize,
        value: *const c_void,
        size: usize,
    ) -> c_int;
    fn frond_wt_search(cursor: Handle, key: *const c_void, key_size: usize) -> c_int;
    fn frond_wt_seek(cursor: Handle, key: *const c_void, key_size: usize) -> c_int;
    fn frond_wt_next(cursor: Handle) -> c_int;
    fn frond_wt_reset(cursor: Handle) -> c_int;
    fn frond_wt_entry(
        cursor: Handle,
        key: *mut *const c_void,
        key_size: *mut usize,
        value: *mut *const c_void,
        size: *mut usize,
    ) -> c_int;
    fn frond_wt_error(error: c_int) -> *const c_char;
    fn frond_wt_not_found() -> c_int;
    fn frond_wt_rollback_error() -> c_int;
    fn frond_wt_version() -> *const c_char;
}

fn checked(error: c_int) -> Result<(), Failure> {
    if error == 0 {
        return Ok(());
    }
    // SAFETY: the library answers a string of its own that ends with zero.
    Err(unsafe { CStr::from_ptr(frond_wt_error(error)) }.to_string_lossy().into_owned().into())
}

/// Turns "not found" into false.
fn found(error: c_int) -> Result<bool, Failure> {
    // SAFETY: answers a constant.
    if error == unsafe { frond_wt_not_found() } {
        return Ok(false);
    }
    checked(error).map(|()| true)
}

/// An open connection.
pub struct WiredTiger {
    connection: Handle,
    uris: Vec<CString>,
    compressor: &'static str,
    journal: Arc<Journal>,
    /// Syncs the log until the connection is closed.
    syncer: Option<JoinHandle<()>>,
}

/// The session of the thread that syncs.
struct Syncer(Handle);

// SAFETY: it goes to that thread once, and nothing else uses it.
unsafe impl Send for Syncer {}

impl Syncer {
    fn sync(&self) -> Result<(), Failure> {
        // SAFETY: see the module's head; the session lives until its connection is closed.
        checked(unsafe { frond_wt_flush_log(self.0) })
    }
}

// SAFETY: a connection may be used by any number of threads at once, says WiredTiger's manual.
unsafe impl Sync for WiredTiger {}

impl WiredTiger {
    /// Opens an empty directory.
    pub fn open(settings: &Settings<'_>) -> Result<WiredTiger, Failure> {
        let home = CString::new(settings.directory.as_os_str().as_bytes())?;
        // At least so much, or it stalls.
        let cache_bytes = settings.cache_bytes.max(16 << 20);
        let config = format!(
            "create,cache_size={cache_bytes},session_max=1000,\
             eviction=(threads_min=1,threads_max=2),checkpoint=(wait=60,log_size=2GB),\
             log=(enabled=true,compressor=)"
        );
        let mut connection = ptr::null_mut();
        let open = |extensions: &str, connection: &mut Handle| -> Result<(), Failure> {
            let config = CString::new(format!("{extensions}{config}"))?;
            // SAFETY: see the module's head.
            checked(unsafe { frond_wt_open(home.as_ptr(), config.as_ptr(), connection) })
        };
        let compressor = if open(SNAPPY, &mut connection).is_ok() {
            "snappy"
        } else {
            open("", &mut connection)?;
            ""
        };
        let uris: Result<Vec<CString>, _> = (0..settings.tree_count)
            .map(|tree| CString::new(format!("table:tree{tree}")))
            .collect();
        let mut target = WiredTiger {
            connection,
            uris: uris?,
            compressor,
            journal: Arc::default(),
            syncer: None,
        };
        target.syncer = Some(target.start_syncer()?);
        let session = target.open_session()?;
        let config = CString::new(format!(
            "key_format=u,value_format=u,block_compressor={compressor},leaf_page_max=32KB"
        ))?;
        for uri in &target.uris {
            // SAFETY: see the module's head.
            checked(unsafe { frond_wt_create(session.session, uri.as_ptr(), config.as_ptr()) })?;
        }
        drop(session);
        Ok(target)
    }

    fn start_syncer(&self) -> Result<JoinHandle<()>, Failure> {
        let (syncer, journal) = (Syncer(self.new_session()?), Arc::clone(&self.journal));
        Ok(thread::spawn(move || journal.run(|| syncer.sync())))
    }

    fn new_session(&self) -> Result<Handle, Failure> {
        let mut session = ptr::null_mut();
        // SAFETY: see the module's head.
        checked(unsafe { frond_wt_session(self.connection, &mut session) })?;
        Ok(session)
    }

    fn open_session(&self) -> Result<WiredTigerSession<'_>, Failure> {
        let session = self.new_session()?;
        let cursors = vec![ptr::null_mut(); self.uris.len()];
        Ok(WiredTigerSession { target: self, session, cursors })
    }
}

impl Drop for WiredTiger {
    fn drop(&mut self) {
        self.journal.stop();
        self.syncer.take().map(JoinHandle::join);
        // SAFETY: opened once, closed once; no session outlives its borrow, and the thread ended.
        unsafe { frond_wt_close(self.connection) };
    }
}

impl Target for WiredTiger {
    fn description(&self) -> String {
        // SAFETY: the library answers a string of its own that ends with zero.
        let version = unsafe { CStr::from_ptr(frond_wt_version()) }.to_string_lossy();
        let compressor = if self.compressor.is_empty() { "none" } else { self.compressor };
        format!(
            "{version}: a table for each tree, compression {compressor}, one thread syncs the log"
        )
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, Failure> {
        Ok(Box::new(self.open_session()?))
    }

    fn rest(&self) -> Result<(), Failure> {
        let session = self.open_session()?;
        // SAFETY: see the module's head.
        checked(unsafe { frond_wt_checkpoint(session.session) })
    }

    fn load(&self, tree: usize, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let session = self.open_session()?;
        let mut cursor = ptr::null_mut();
        // SAFETY: see the module's head.
        unsafe {
            let uri = self.uris[tree].as_ptr();
            checked(frond_wt_cursor(session.session, uri, c"bulk".as_ptr(), &mut cursor))?;
            for (key, value) in entries {
                checked(insert(cursor, &key, &value))?;
            }
            checked(frond_wt_cursor_close(cursor))?;
            checked(frond_wt_checkpoint(session.session))?;
            checked(frond_wt_flush_log(session.session))
        }
    }
}

/// # Safety
/// `cursor` is open.
unsafe fn insert(cursor: Handle, key: &[u8], value: &[u8]) -> c_int {
    let (key_bytes, value_bytes) = (key.as_ptr().cast(), value.as_ptr().cast());
    // SAFETY: the library copies both before it returns.
    unsafe { frond_wt_insert(cursor, key_bytes, key.len(), value_bytes, value.len()) }
}

struct WiredTigerSession<'a> {
    target: &'a WiredTiger,
    session: Handle,
    /// Opened when a tree is first used; null before.
    cursors: Vec<Handle>,
}

impl Drop for WiredTigerSession<'_> {
    fn drop(&mut self) {
        // SAFETY: made once, closed once, with its cursors.
        unsafe { frond_wt_session_close(self.session) };
    }
}

impl WiredTigerSession<'_> {
    fn cursor(&mut self, tree: usize) -> Result<Handle, Failure> {
        if self.cursors[tree].is_null() {
            let (uri, mut cursor) = (self.target.uris[tree].as_ptr(), ptr::null_mut());
            // SAFETY: see the module's head.
            checked(unsafe { frond_wt_cursor(self.session, uri, ptr::null(), &mut cursor) })?;
            self.cursors[tree] = cursor;
        }
        Ok(self.cursors[tree])
    }

    /// Answers what went wrong, or 0.
    fn try_write(&mut self, puts: &[Put]) -> Result<c_int, Failure> {
        // SAFETY: see the module's head.
        checked(unsafe { frond_wt_begin(self.session) })?;
        for put in puts {
            let cursor = self.cursor(put.tree)?;
            // SAFETY: see the module's head.
            let error = unsafe { insert(cursor, &put.key, &put.value) };
            if error != 0 {
                // SAFETY: a transaction is open.
                checked(unsafe { frond_wt_rollback(self.session) })?;
                return Ok(error);
            }
        }
        // SAFETY: a transaction is open.
        Ok(unsafe { frond_wt_commit(self.session) })
    }
}

impl Session for WiredTigerSession<'_> {
    fn write(&mut self, puts: &[Put]) -> Result<(), Failure> {
        loop {
            let error = self.try_write(puts)?;
            // SAFETY: answers a constant.
            if error != unsafe { frond_wt_rollback_error() } {
                checked(error)?;
                return self.target.journal.wait();
            }
            thread::yield_now();
        }
    }

    fn get(
        &mut self,
        tree: usize,
        key: &[u8],
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Failure> {
        let cursor = self.cursor(tree)?;
        // SAFETY: see the module's head.
        unsafe {
            if !found(frond_wt_search(cursor, key.as_ptr().cast(), key.len()))? {
                return Ok(false);
            }
            visit(entry(cursor)?.1);
            checked(frond_wt_reset(cursor))?;
        }
        Ok(true)
    }

    fn range(
        &mut self,
        tree: usize,
        from: &[u8],
        visit: &mut VisitEntry<'_>,
    ) -> Result<(), Failure> {
        let cursor = self.cursor(tree)?;
        // SAFETY: see the module's head.
        unsafe {
            let mut goes_on = found(frond_wt_seek(cursor, from.as_ptr().cast(), from.len()))?;
            while goes_on {
                let (key, value) = entry(cursor)?;
                goes_on = visit(key, value) && found(frond_wt_next(cursor))?;
            }
            checked(frond_wt_reset(cursor))
        }
    }
}

/// # Safety
/// `cursor` stands at an entry, and doesn't move while the answer is used.
unsafe fn entry<'a>(cursor: Handle) -> Result<(&'a [u8], &'a [u8]), Failure> {
    let (mut key, mut key_size, mut value, mut size) = (ptr::null(), 0, ptr::null(), 0);
    // SAFETY: the four places outlive the call; the library's pointers have these lengths.
    unsafe {
        checked(frond_wt_entry(cursor, &mut key, &mut key_size, &mut value, &mut size))?;
        Ok((bytes(key, key_size), bytes(value, size)))
    }
}

/// # Safety
/// `start` points to `size` bytes, or `size` is 0.
unsafe fn bytes<'a>(start: *const c_void, size: usize) -> &'a [u8] {
    // SAFETY: as above; an empty value may have no address.
    if size == 0 { &[] } else { unsafe { slice::from_raw_parts(start.cast(), size) } }
}
