//! Signatures: the names of a document, one after the other.

use std::collections::HashSet;

use super::{FIELD_COUNT_MAX, NAME_BYTES_MAX, SEPARATOR};
use crate::element_type::ElementType;
use crate::raw::{RawElements, split_name};

/// Ends a nested document in a shape's signature: no byte of a name in UTF-8.
pub(super) const NESTED_END: u8 = 0xff;
/// Ends a name in a shape's signature: no byte of a name.
const NAME_END: u8 = 0;

/// The facts collected by one walk over a document.
#[derive(Default)]
pub(super) struct Walk {
    /// Per field the name, a zero, and whether a nested document follows; after that its end.
    pub(super) signature: Vec<u8>,
    pub(super) offsets: Vec<usize>,
}

impl Walk {
    pub(super) fn over(bytes: &[u8]) -> Option<Walk> {
        let mut walk = Walk::default();
        // Per open document its elements. Offsets come from what is left to walk over: a nested
        // document's end is known when its parent's element was cut.
        let mut open = vec![(bytes.len(), RawElements::new(bytes))];
        while let Some((end, elements)) = open.last_mut() {
            let (end, offset) = (*end, *end - elements.rest().len());
            let Some(element) = elements.next() else {
                if elements.rest() != [0] {
                    return None; // Not BSON: a scan ends where it can't go on, and so may an index.
                }
                walk.signature.push(NESTED_END);
                open.pop();
                continue;
            };
            let is_document = element.kind == ElementType::Document;
            walk.offsets.push(offset);
            walk.signature.extend_from_slice(element.name);
            walk.signature.extend_from_slice(&[NAME_END, u8::from(is_document)]);
            if FIELD_COUNT_MAX < walk.offsets.len() || NAME_BYTES_MAX < walk.signature.len() {
                return None;
            }
            if is_document {
                let nested_end = end - elements.rest().len();
                open.push((nested_end, RawElements::new(element.value)));
            }
        }
        Some(walk)
    }
}

/// A field of a signature.
pub(super) struct SignatureField {
    pub(super) name_bytes: u16,
    /// The names from the outermost on with separators between them; `None` below a field that is
    /// not the first of its name.
    pub(super) path: Option<Vec<u8>>,
    pub(super) depth: u8,
}

/// The fields of a signature, in their order; `None` if one has too long a name.
pub(super) fn fields_of(signature: &[u8]) -> Option<Vec<SignatureField>> {
    let mut fields = Vec::new();
    /// An open document: its path with a separator behind it, and the names met in it.
    type Open<'a> = (Option<Vec<u8>>, HashSet<&'a [u8]>);
    let mut open: Vec<Open<'_>> = vec![(Some(Vec::new()), Default::default())];
    let mut rest = signature;
    while let Some((first, after)) = rest.split_first() {
        if *first == NESTED_END {
            open.pop();
            rest = after;
            continue;
        }
        let (name, after) = split_name(rest)?;
        let (is_document, after) = after.split_first()?;
        let depth = u8::try_from(open.len()).ok()?;
        let (around, names) = open.last_mut()?;
        let is_first = names.insert(name);
        let path = around.as_ref().filter(|_| is_first).map(|around| [around, name].concat());
        if *is_document == 1 {
            let inner = path.as_ref().map(|path| [path, &[SEPARATOR][..]].concat());
            open.push((inner, Default::default()));
        }
        fields.push(SignatureField { name_bytes: u16::try_from(name.len()).ok()?, path, depth });
        rest = after;
    }
    Some(fields)
}
