//! Three-way merge of one document, field by field.
//!
//! 1. A field that is the same on both sides is agreed; one that only one side changed is as that
//!    side has it, also if it removed it.
//! 2. A field that both sides changed differently is merged in turn if both have a document there
//!    and the base has one or nothing. Otherwise it is a conflict at its path: arrays merge as a
//!    whole, and removing against changing is a conflict.
//!    A field that has a rule is merged by that first.
//! 3. The result is the same in both directions. The order of fields is that of one side, then come
//!    those that only the other has, in its order: the side that reordered what the base had, if
//!    one alone did; otherwise the one whose names sort first. `_id` never conflicts: documents of
//!    one `_id` may spell it 1 and 1.0, and where both changed it the spelling that sorts first
//!    stays.
//! 4. A document that one side removed is removed if the other left it as it was; if that changed
//!    it, the whole document is a conflict, which has no paths. Of a document that both sides added
//!    the base is the empty document.
//!
//! *Rules* (`merge_rules`): by document, what both sides changed is a conflict as a whole; equal
//! changes may be conflicts, too.
//!
//! Where there is a conflict the result holds what the preferred side has; with ours that is
//! what waits in the working state, with theirs it is how a conflict is resolved that way.

use frond_db::inside::merge_rules::DocumentRules;
use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::fields::{self, Fields, Label};
use crate::merge::field_rule;
use crate::three_way::{Side, ThreeWay};

/// The result of merging one document.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct MergedDocument {
    /// The document, or that there is none.
    pub document: Option<DocumentBuf>,
    /// The paths where the sides conflict, if they do; no paths: one side removed the document.
    pub conflict: Option<Vec<String>>,
}

/// Merges the sides' versions of a document, any of which may be absent, in the usual way.
#[cfg(test)]
pub(crate) fn merge_documents(
    base: Option<Document<'_>>,
    ours: Option<Document<'_>>,
    theirs: Option<Document<'_>>,
    prefer: Side,
) -> MergedDocument {
    merge_by_rules(ThreeWay::new(base, ours, theirs), prefer, &DocumentRules::default())
}

/// Merges the sides' versions of a document, any of which may be absent.
pub(crate) fn merge_by_rules(
    sides: ThreeWay<Option<Document<'_>>>,
    prefer: Side,
    rules: &DocumentRules,
) -> MergedDocument {
    let ThreeWay { base, ours, theirs } = sides;
    let whole = |document: Option<Document<'_>>, conflict| MergedDocument {
        document: document.map(|document| document.to_buf()),
        conflict,
    };
    // The same document that both sides made is one document, whatever its fields add up to.
    let is_summed = rules.sums() && base.is_some();
    if theirs == base || (ours == theirs && !rules.touched && !is_summed) {
        return whole(ours, None);
    }
    if ours == base {
        return whole(theirs, None);
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return whole(sides.on(prefer), Some(Vec::new()));
    };
    if rules.whole {
        return whole(sides.on(prefer), Some(Vec::new()));
    }
    let mut merge = Merge { builder: DocumentBuilder::new(), conflicts: Vec::new(), prefer, rules };
    merge.document("", base.unwrap_or(Document::empty()), ours, theirs);
    let conflict = (!merge.conflicts.is_empty()).then_some(merge.conflicts);
    MergedDocument { document: Some(merge.builder.build()), conflict }
}

struct Merge<'r> {
    builder: DocumentBuilder,
    conflicts: Vec<String>,
    prefer: Side,
    rules: &'r DocumentRules,
}

/// One field on the three sides.
type Sides<'a> = ThreeWay<Option<RawElement<'a>>>;

/// Whether ours gives the order of the result. Both directions of a merge agree on the side.
fn is_ours_first(base: &Fields<'_>, ours: &Fields<'_>, theirs: &Fields<'_>) -> bool {
    match (is_reordered(base, ours), is_reordered(base, theirs)) {
        (true, false) => return true,
        (false, true) => return false,
        _ => {}
    }
    fn names<'a>(fields: &Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
        fields.iter().map(|(label, _)| label.name).collect::<Vec<_>>().into_iter()
    }
    names(ours).le(names(theirs))
}

/// Whether the fields that both have stand in another order.
fn is_reordered(base: &Fields<'_>, side: &Fields<'_>) -> bool {
    let kept = base.iter().filter(|(label, _)| side.get(label).is_some());
    let found = side.iter().filter(|(label, _)| base.get(label).is_some());
    !kept.map(|(label, _)| label).eq(found.map(|(label, _)| label))
}

impl Merge<'_> {
    /// Merges the fields of three documents into the one that is open.
    fn document(
        &mut self,
        path: &str,
        base: Document<'_>,
        ours: Document<'_>,
        theirs: Document<'_>,
    ) {
        let (base, ours, theirs) = (Fields::of(base), Fields::of(ours), Fields::of(theirs));
        let (first, second) =
            if is_ours_first(&base, &ours, &theirs) { (&ours, &theirs) } else { (&theirs, &ours) };
        let only_second = second.iter().filter(|(label, _)| first.get(label).is_none());
        // A field that both sides removed is nowhere, as it should be.
        for (label, _) in first.iter().chain(only_second) {
            let sides = ThreeWay::new(&base, &ours, &theirs).map(|side| side.get(&label));
            self.field(path, &label, sides);
        }
    }

    fn field(&mut self, path: &str, label: &Label<'_>, sides: Sides<'_>) {
        let ThreeWay { base, ours, theirs } = sides;
        let is_agreed = same(ours, theirs) && !self.rules.touched;
        if same(theirs, base) || (is_agreed && !self.rules.sums()) {
            return self.append(ours);
        }
        if same(ours, base) {
            return self.append(theirs);
        }
        if path.is_empty() && label.name == b"_id" {
            return self.append(spelled_first(ours, theirs));
        }
        let Some(named) = ours.or(theirs) else { return };
        let name = fields::name(&named);
        let path = fields::join(path, name);
        if let Some(rule) = self.rules.fields.get(&path) {
            let ThreeWay { base, ours, theirs } =
                sides.map(|side| side.map(|side| fields::value(&side)));
            if let Some(merged) = field_rule::apply(*rule, base, ours, theirs) {
                self.builder.append(name, Value::from(&merged));
                return;
            }
        }
        if let (Some(base), Some(ours), Some(theirs)) =
            (document_or_nothing(base), document(ours), document(theirs))
        {
            self.builder.begin_document(name);
            self.document(&path, base, ours, theirs);
            self.builder.end();
            return;
        }
        if is_agreed {
            return self.append(ours);
        }
        self.conflicts.push(path);
        self.append(sides.on(self.prefer));
    }

    fn append(&mut self, element: Option<RawElement<'_>>) {
        if let Some(element) = element {
            self.builder.append(fields::name(&element), fields::value(&element));
        }
    }
}

/// Returns the one of two spellings of one value that both directions choose.
fn spelled_first<'a>(
    ours: Option<RawElement<'a>>,
    theirs: Option<RawElement<'a>>,
) -> Option<RawElement<'a>> {
    let spelling = |element: &Option<RawElement<'a>>| {
        element.map(|element| (element.kind as u8, element.value))
    };
    if spelling(&ours) <= spelling(&theirs) { ours } else { theirs }
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
