//! Converts between our entries and those of the Raft library.
//!
//! Of a change of the members the library reads its own encoding, in an entry's data, only when it
//! is proposed; ours stands in the context, and is what is stored and sent. So nothing that another
//! member sent is parsed as protobuf.

use raft::eraftpb::{self, ConfChange, ConfChangeType, EntryType};

use crate::configuration::{Change, Configuration};
use crate::entry::{Content, Entry};
use crate::ids::{EntryIndex, Term};

/// A change, as the library applies it.
pub(crate) fn raft_change(change: Change) -> ConfChange {
    let (kind, member) = match change {
        Change::AddLearner(member) => (ConfChangeType::AddLearnerNode, member),
        Change::Promote(member) => (ConfChangeType::AddNode, member),
        Change::Remove(member) => (ConfChangeType::RemoveNode, member),
    };
    let mut made = ConfChange { node_id: member.0, ..ConfChange::default() };
    made.set_change_type(kind);
    made
}

/// An entry of the library's.
pub(crate) fn raft_entry(entry: &Entry) -> eraftpb::Entry {
    let (index, term) = (entry.index.0, entry.term.0);
    let mut made = eraftpb::Entry { index, term, ..eraftpb::Entry::default() };
    match &entry.content {
        Content::Data(bytes) => made.data = bytes.clone(),
        Content::Change(change) => {
            made.set_entry_type(EntryType::EntryConfChange);
            made.context = change.encode().to_vec().into();
        }
    }
    made
}

/// An entry of ours.
pub(crate) fn entry_of(entry: &eraftpb::Entry) -> Entry {
    let content = match entry.get_entry_type() {
        EntryType::EntryNormal => Content::Data(entry.data.clone()),
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => Content::Change(
            Change::decode(&entry.context).expect("every change is made from one of ours"),
        ),
    };
    Entry { index: EntryIndex(entry.index), term: Term(entry.term), content }
}

/// A configuration of the library's.
pub(crate) fn raft_configuration(set: &Configuration) -> eraftpb::ConfState {
    let ids = |members: &std::collections::BTreeSet<crate::MemberId>| {
        members.iter().map(|member| member.0).collect::<Vec<u64>>()
    };
    eraftpb::ConfState::from((ids(&set.voters), ids(&set.learners)))
}
