//! Documents about commits, changes and conflicts: rows for pipelines and commands.

pub(crate) mod size_limit;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::{
    Blame, CommitInfo, Conflict, DiffDetail, DiffRow, DocumentVersion, FieldChange,
    FieldChangeKind, RefChangeInfo,
};

impl CommitInfo {
    /// Appends `commitId parents message author timestamp`, `committer` and `authored` where they
    /// are others than author and timestamp, and `automatic` and `reverts` where they hold.
    pub fn append_to(&self, row: &mut DocumentBuilder) {
        row.append("commitId", Value::String(&self.id.to_string()));
        row.begin_array("parents");
        for parent in &self.parents {
            row.push(Value::String(&parent.to_string()));
        }
        row.end()
            .append("message", Value::String(&self.message))
            .append("author", Value::String(&self.author))
            .append("timestamp", Value::DateTime(self.timestamp_millis));
        if self.committer != self.author {
            row.append("committer", Value::String(&self.committer));
        }
        if self.authored_millis != self.timestamp_millis {
            row.append("authored", Value::DateTime(self.authored_millis));
        }
        if self.automatic {
            row.append("automatic", Value::Boolean(true));
        }
        if let Some(reverts) = self.reverts {
            row.append("reverts", Value::String(&reverts.to_string()));
        }
    }

    /// The row of a log; its `_id` is the commit's id.
    pub fn to_row(&self) -> DocumentBuf {
        let mut row = DocumentBuilder::new();
        row.append("_id", Value::String(&self.id.to_string()));
        self.append_to(&mut row);
        row.build()
    }
}

/// Appends `name: [{type, path, from, to}]`.
pub fn append_field_changes(row: &mut DocumentBuilder, name: &str, changes: &[FieldChange]) {
    row.begin_array(name);
    for change in changes {
        let kind = match change.kind {
            FieldChangeKind::Added => "added",
            FieldChangeKind::Removed => "removed",
            FieldChangeKind::Modified => "modified",
            FieldChangeKind::Reordered => "reordered",
        };
        row.push_begin_document()
            .append("type", Value::String(kind))
            .append("path", Value::String(&change.path));
        if let Some(from) = &change.from {
            row.append("from", Value::from(from));
        }
        if let Some(to) = &change.to {
            row.append("to", Value::from(to));
        }
        row.end();
    }
    row.end();
}

fn append_sides(row: &mut DocumentBuilder, from: Option<&DocumentBuf>, to: Option<&DocumentBuf>) {
    for (name, side) in [("before", from), ("after", to)] {
        if let Some(side) = side {
            row.append(name, Value::from(side));
        }
    }
}

impl DiffRow {
    /// `{_id?, collection, kind, change, name?, changes?, before?, after?}`; without `whole` the
    /// documents themselves are left out.
    pub fn to_row(&self, whole: bool) -> DocumentBuf {
        let mut row = DocumentBuilder::new();
        let kind = match &self.detail {
            DiffDetail::Collection => "collection",
            DiffDetail::Options { .. } => "options",
            DiffDetail::Index { .. } => "index",
            DiffDetail::Document { from, to } => {
                let any = to.as_ref().or(from.as_ref());
                let id = any.and_then(|document| document.get("_id"));
                row.append("_id", id.unwrap_or(Value::Null));
                "document"
            }
        };
        row.append("collection", Value::String(&self.collection))
            .append("kind", Value::String(kind))
            .append("change", Value::String(self.change.name()));
        match &self.detail {
            DiffDetail::Collection => {}
            DiffDetail::Options { from, to } => append_sides(&mut row, Some(from), Some(to)),
            DiffDetail::Index { name, from, to } => {
                row.append("name", Value::String(name));
                append_sides(&mut row, from.as_ref(), to.as_ref());
            }
            DiffDetail::Document { from, to } => {
                if from.is_some() && to.is_some() {
                    append_field_changes(&mut row, "changes", &self.field_changes());
                }
                if whole {
                    append_sides(&mut row, from.as_ref(), to.as_ref());
                }
            }
        }
        row.build()
    }
}

impl DocumentVersion {
    /// The commit's fields (none for the working state), `change`, `changes` and `document`.
    pub fn to_row(&self) -> DocumentBuf {
        let mut row = DocumentBuilder::new();
        if let Some(commit) = &self.commit {
            commit.append_to(&mut row);
        }
        row.append("change", Value::String(self.change.name()));
        append_field_changes(&mut row, "changes", &self.changes);
        row.append("document", self.document.as_ref().map_or(Value::Null, Value::from));
        row.build()
    }
}

impl Conflict {
    /// Appends `id collection kind _id paths base ours theirs`; a side that has nothing is null.
    pub fn append_to(&self, row: &mut DocumentBuilder) {
        row.append("id", Value::String(&self.id))
            .append("collection", Value::String(&self.collection))
            .append("kind", Value::String(self.kind.name()))
            .append("_id", Value::from(&self.document_id))
            .begin_array("paths");
        for path in &self.paths {
            row.push(Value::String(path));
        }
        row.end();
        for (name, side) in [("base", &self.base), ("ours", &self.ours), ("theirs", &self.theirs)] {
            row.append(name, side.as_ref().map_or(Value::Null, Value::from));
        }
    }

    /// The row of a list of conflicts.
    pub fn to_row(&self) -> DocumentBuf {
        let mut row = DocumentBuilder::new();
        self.append_to(&mut row);
        row.build()
    }
}

impl RefChangeInfo {
    /// Appends `change branch from to why time`, and `collection`, `tag`, `undid` where there are
    /// such.
    pub fn append_to(&self, row: &mut DocumentBuilder) {
        row.append("change", Value::Int64(self.change as i64))
            .append("branch", Value::String(&self.branch));
        for (name, commit) in [("from", self.from), ("to", self.to)] {
            match commit {
                Some(commit) => row.append(name, Value::String(&commit.to_string())),
                None => row.append(name, Value::Null),
            };
        }
        row.append("why", Value::String(&self.why))
            .append("time", Value::DateTime(self.time_millis));
        if let Some(collection) = &self.collection {
            row.append("collection", Value::String(collection));
        }
        if let Some(tag) = &self.tag {
            row.append("tag", Value::String(&tag.name));
        }
        if let Some(undid) = self.undid {
            row.append("undid", Value::Int64(undid as i64));
        }
    }

    /// The row of a reflog.
    pub fn to_row(&self) -> DocumentBuf {
        let mut row = DocumentBuilder::new();
        self.append_to(&mut row);
        row.build()
    }
}

impl Blame {
    /// One row a field: `{path, value}` and the commit's fields, none where no commit has it yet.
    pub fn to_rows(&self) -> Vec<DocumentBuf> {
        let row = |field: &crate::BlamedField| {
            let mut row = DocumentBuilder::new();
            row.append("path", Value::String(&field.path));
            row.append("value", Value::from(&field.value));
            if let Some(commit) = &field.commit {
                commit.append_to(&mut row);
            }
            row.build()
        };
        self.fields.iter().map(row).collect()
    }
}
