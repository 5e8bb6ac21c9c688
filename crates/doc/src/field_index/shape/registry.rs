//! The shapes that were seen.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::signature::Walk;
use super::{Offset, Shape, hash};
use crate::raw::RawElements;

/// Signatures that were seen once: their number bounds what is remembered of them.
const SEEN_ONCE_SLOTS: usize = 1 << 10;
/// Fronts of documents that can't have a shape: their number bounds what is remembered of them.
const REFUSED_SLOTS: usize = 1 << 8;
/// The number of names at the front by which the shapes to try first are chosen.
const FRONT_FIELDS: usize = 4;

/// The shapes that were seen, up to a bound. Its owner decides how long it lives.
///
/// *Thread safety*: any number of threads; the lock is held for a look-up or an insertion.
#[derive(Debug)]
pub struct ShapeRegistry {
    bytes_max: usize,
    /// The shape met last: mostly the next document's too.
    last: RwLock<Option<Arc<Shape>>>,
    known: RwLock<FieldLookup>,
}

#[derive(Debug)]
struct FieldLookup {
    bytes: usize,
    /// The signature is all the names, so different shapes never meet.
    by_signature: HashMap<Box<[u8]>, Arc<Shape>>,
    /// The shapes that were met last, the last one first, by the hash of the first names.
    by_front: HashMap<u64, [Option<Arc<Shape>>; 2]>,
    /// Hashes of signatures, by hash.
    seen_once: Box<[u64]>,
    /// Hashes of first names, by hash, and how many bytes such a document has at least that is too
    /// wide for a shape: to look at all of its names to see that costs a hundred times what a
    /// look-up in its outermost ones does.
    refused: Box<[(u64, usize)]>,
}

impl ShapeRegistry {
    /// Makes an empty registry whose shapes will take at most so many bytes.
    pub fn new(bytes_max: usize) -> ShapeRegistry {
        let known = FieldLookup {
            bytes: 0,
            by_signature: HashMap::new(),
            by_front: HashMap::new(),
            seen_once: vec![0; SEEN_ONCE_SLOTS].into(),
            refused: vec![(0, usize::MAX); REFUSED_SLOTS].into(),
        };
        ShapeRegistry { bytes_max, last: RwLock::default(), known: RwLock::new(known) }
    }

    /// Returns how many shapes are known.
    pub fn count(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).by_signature.len()
    }

    /// Returns how much memory the shapes take.
    pub fn bytes(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// The shape of a document, with the offset of each of its elements; `None` if it is too wide,
    /// or was not met before.
    pub(in crate::field_index) fn shape_of<O: Offset>(
        &self,
        document: &[u8],
    ) -> Option<(Arc<Shape>, Arc<[O]>)> {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(shape) = last
            && let Some(offsets) = shape.offsets(document)
        {
            return Some((shape, offsets));
        }
        let found = self.find_or_make(document)?;
        if let Ok(mut last) = self.last.try_write() {
            *last = Some(found.0.clone());
        }
        Some(found)
    }

    #[cold]
    fn find_or_make<O: Offset>(&self, document: &[u8]) -> Option<(Arc<Shape>, Arc<[O]>)> {
        u32::try_from(document.len()).ok()?;
        let front = hash_of_front(document);
        let recent = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let (refused, bytes) = known.refused[front as usize % REFUSED_SLOTS];
            if refused == front && bytes <= document.len() {
                return None;
            }
            known.by_front.get(&front).cloned().unwrap_or_default()
        };
        for shape in recent.into_iter().flatten() {
            if let Some(offsets) = shape.offsets(document) {
                return Some((shape, offsets));
            }
        }
        let walk = Walk::over(document);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let Some(walk) = walk else {
            known.refuse(front, document.len());
            return None;
        };
        let of_document = (front, document.len());
        let shape = known.shape(&walk.signature, of_document, self.bytes_max)?;
        Some((shape, walk.offsets.into_iter().map(O::of).collect()))
    }
}

impl FieldLookup {
    /// The shape with a signature, if there is one or this is the second time.
    fn shape(
        &mut self,
        signature: &[u8],
        (front, document_bytes): (u64, usize),
        bytes_max: usize,
    ) -> Option<Arc<Shape>> {
        let shape = match self.by_signature.get(signature) {
            Some(shape) => shape.clone(),
            None => {
                let hash = hash(signature);
                let previous = &mut self.seen_once[hash as usize % SEEN_ONCE_SLOTS];
                if std::mem::replace(previous, hash) != hash {
                    return None;
                }
                if bytes_max < self.bytes + signature.len() {
                    return None;
                }
                let Some(shape) = Shape::of(signature) else {
                    self.refuse(front, document_bytes);
                    return None;
                };
                let bytes = shape.bytes() + signature.len();
                if bytes_max < self.bytes + bytes {
                    return None;
                }
                self.bytes += bytes;
                let shape = Arc::new(shape);
                self.by_signature.insert(signature.into(), shape.clone());
                shape
            }
        };
        let recent = self.by_front.entry(front).or_default();
        recent[1] = recent[0].replace(shape.clone());
        Some(shape)
    }

    /// Notes that documents with these first names and so many bytes have no shape, if none of
    /// them has one.
    fn refuse(&mut self, front: u64, bytes: usize) {
        if self.by_front.contains_key(&front) {
            return;
        }
        let refused = &mut self.refused[front as usize % REFUSED_SLOTS];
        let least = if refused.0 == front { refused.1.min(bytes) } else { bytes };
        *refused = (front, least);
    }
}

fn hash_of_front(document: &[u8]) -> u64 {
    RawElements::new(document).take(FRONT_FIELDS).fold(0, |before, element| {
        (before ^ hash(element.name)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_index::shape::FIELD_COUNT_MAX;
    use crate::{DocumentBuf, DocumentBuilder, Value};

    /// A document of so many fields, whose names begin alike.
    fn of_width(count: usize, begins: &str) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        for position in 0..count {
            builder.append(&format!("{begins}{position}"), Value::Int32(1));
        }
        builder.build()
    }

    fn is_refused(registry: &ShapeRegistry, document: &DocumentBuf) -> bool {
        let front = hash_of_front(document.as_bytes());
        let (refused, bytes) =
            registry.known.read().expect("not poisoned").refused[front as usize % REFUSED_SLOTS];
        refused == front && bytes <= document.as_bytes().len()
    }

    #[test]
    fn documents_with_too_many_fields_are_scanned_once() {
        let registry = ShapeRegistry::new(1 << 20);
        let wide = of_width(FIELD_COUNT_MAX + 1, "field");
        assert!(!is_refused(&registry, &wide));
        assert!(registry.shape_of::<u32>(wide.as_bytes()).is_none());
        assert!(is_refused(&registry, &wide));
        // Others that begin alike have a shape, though they are seen later.
        let narrow = of_width(20, "field");
        registry.shape_of::<u32>(narrow.as_bytes());
        assert!(registry.shape_of::<u32>(narrow.as_bytes()).is_some());
    }

    #[test]
    fn one_too_wide_takes_no_shape_from_others_that_begin_alike() {
        let registry = ShapeRegistry::new(1 << 20);
        let shape_of = |count, begins| {
            registry.shape_of::<u32>(of_width(count, begins).as_bytes()).map(|(shape, _)| shape)
        };
        for begins in ["field", "field", "other", "other"] {
            shape_of(20, begins);
        }
        assert!(shape_of(FIELD_COUNT_MAX + 1, "field").is_none());
        assert!(shape_of(20, "field").is_some());
    }
}
