//! Three-way merge of one document, field by field.
//!
//! 1. A field that is the same on both sides is agreed; one that only one side changed is as that
//!    side has it, also if it removed it.
//! 2. A field that both sides changed differently is merged in turn if both have a document there
//!    and the base has one or nothing. Otherwise it is a conflict at its path: arrays merge as a
//!    whole, and removing against changing is a conflict.
//! 3. The order is ours; then come the fields that only theirs has, in their order. `_id` never
//!    conflicts: documents of one `_id` may spell it 1 and 1.0, and ours stays where both changed it.
//! 4. A document that one side removed is removed if the other left it as it was; if that changed
//!    it, the whole document is a conflict, which has no paths. Of a document that both sides added
//!    the base is the empty document.
//!
//! Where there is a conflict the result holds what the preferred side has; with ours that is
//! what waits in the working state, with theirs it is how a conflict is resolved that way.

use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::version::fields::{self, Fields, Label};

/// Which side's value the result holds where both sides conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prefer {
    Ours,
    Theirs,
    /// As if neither side had decided: how several bases are merged into one.
    Base,
}

impl Prefer {
    fn choose<T>(self, base: T, ours: T, theirs: T) -> T {
        match self {
            Prefer::Ours => ours,
            Prefer::Theirs => theirs,
            Prefer::Base => base,
        }
    }
}

/// What a merge of one document gives.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct MergedDocument {
    /// The document, or that there is none.
    pub document: Option<DocumentBuf>,
    /// Where the sides conflict, if they do; no paths: one side removed the document.
    pub conflict: Option<Vec<String>>,
}

/// Merges a document of which there is one on each side, or none.
pub(crate) fn merge_documents(
    base: Option<Document<'_>>,
    ours: Option<Document<'_>>,
    theirs: Option<Document<'_>>,
    prefer: Prefer,
) -> MergedDocument {
    let whole = |document: Option<Document<'_>>, conflict| MergedDocument {
        document: document.map(|document| document.to_buf()),
        conflict,
    };
    if ours == theirs || theirs == base {
        return whole(ours, None);
    }
    if ours == base {
        return whole(theirs, None);
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return whole(prefer.choose(base, ours, theirs), Some(Vec::new()));
    };
    let mut merge = Merge { builder: DocumentBuilder::new(), conflicts: Vec::new(), prefer };
    merge.document("", base.unwrap_or(Document::empty()), ours, theirs);
    let conflict = (!merge.conflicts.is_empty()).then_some(merge.conflicts);
    MergedDocument { document: Some(merge.builder.build()), conflict }
}

struct Merge {
    builder: DocumentBuilder,
    conflicts: Vec<String>,
    prefer: Prefer,
}

/// One field on the three sides.
#[derive(Clone, Copy)]
struct Sides<'a> {
    base: Option<RawElement<'a>>,
    ours: Option<RawElement<'a>>,
    theirs: Option<RawElement<'a>>,
}

impl Merge {
    /// Merges the fields of three documents into the one that is open.
    fn document(
        &mut self,
        path: &str,
        base: Document<'_>,
        ours: Document<'_>,
        theirs: Document<'_>,
    ) {
        let (base, ours, theirs) = (Fields::of(base), Fields::of(ours), Fields::of(theirs));
        // A field that both sides removed is nowhere, as it should be.
        for (label, element) in ours.iter() {
            let sides =
                Sides { base: base.get(&label), ours: Some(element), theirs: theirs.get(&label) };
            self.field(path, &label, sides);
        }
        for (label, element) in theirs.iter() {
            if ours.get(&label).is_none() {
                let sides = Sides { base: base.get(&label), ours: None, theirs: Some(element) };
                self.field(path, &label, sides);
            }
        }
    }

    fn field(&mut self, path: &str, label: &Label<'_>, sides: Sides<'_>) {
        let Sides { base, ours, theirs } = sides;
        if same(ours, theirs) || same(theirs, base) {
            return self.append(ours);
        }
        if same(ours, base) {
            return self.append(theirs);
        }
        if path.is_empty() && label.name == b"_id" {
            return self.append(ours);
        }
        let Some(named) = ours.or(theirs) else { return };
        let path = fields::join(path, fields::name(&named));
        if let (Some(base), Some(ours), Some(theirs)) =
            (document_or_nothing(base), document(ours), document(theirs))
        {
            self.builder.begin_document(fields::name(&named));
            self.document(&path, base, ours, theirs);
            self.builder.end();
            return;
        }
        self.conflicts.push(path);
        self.append(self.prefer.choose(base, ours, theirs));
    }

    fn append(&mut self, element: Option<RawElement<'_>>) {
        if let Some(element) = element {
            self.builder.append(fields::name(&element), fields::value(&element));
        }
    }
}

fn same(left: Option<RawElement<'_>>, right: Option<RawElement<'_>>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => fields::same(&left, &right),
        (left, right) => left.is_none() && right.is_none(),
    }
}

fn document(element: Option<RawElement<'_>>) -> Option<Document<'_>> {
    match fields::value(&element?) {
        Value::Document(document) => Some(document),
        _ => None,
    }
}

/// As `document`; nothing at all counts as the empty document.
fn document_or_nothing(element: Option<RawElement<'_>>) -> Option<Document<'_>> {
    if element.is_none() { Some(Document::empty()) } else { document(element) }
}

#[cfg(test)]
mod tests;
