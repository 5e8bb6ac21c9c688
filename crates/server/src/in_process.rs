//! The commands without a socket: what the command line runs on a data directory that it opened
//! itself.
//!
//! The same table, the same checks, the same answers as over the wire; only the messages are not
//! encoded. So whatever works here works for drivers, and the other way round.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use frond_db::Frond;
use frond_doc::{Document, DocumentBuf};

use crate::commands::COMMANDS;
use crate::dispatch;
use crate::hooks::Hooks;
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::peer::Peer;
use crate::shared::{MemberOptions, Shared};
use crate::usage::Usage;
use crate::wire::DocumentSequence;

/// A server's commands on `frond`, called directly.
///
/// *Thread safety*: commands may be run from any number of threads at once.
pub struct InProcess {
    shared: Shared,
    peer: Arc<Peer>,
}

impl InProcess {
    /// The commands on `frond`. Cursors that are left open are closed when this is dropped.
    pub fn new(frond: Frond) -> InProcess {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut shared = Shared::new(
            frond.with_document_bytes_max(DOCUMENT_BYTES_MAX as u64),
            address,
            1,
            Vec::new(),
            String::new(),
            MemberOptions::default(),
        );
        shared.usage = Usage::default().counting(COMMANDS.iter().map(|command| command.name));
        InProcess { shared, peer: Arc::new(Peer::new(1, address)) }
    }

    /// The same, with hooks.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Hooks) -> InProcess {
        self.shared.hooks = hooks;
        self
    }

    /// Runs a command on `database` and returns the whole answer, `ok` included; `sequences` are
    /// documents that stand beside it. Errors are answers with `ok: 0`, as over the wire.
    pub fn execute(
        &self,
        database: &str,
        command: Document<'_>,
        sequences: &[DocumentSequence],
    ) -> DocumentBuf {
        dispatch::run(&self.shared, &self.peer, command, sequences, Some(database))
    }
}
