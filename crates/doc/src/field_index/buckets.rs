//! Names of outermost fields in hash buckets of one cache line each, where names don't repeat.
//!
//! A bucket holds ten fields: sixteen bits of the name's hash, and the element's offset. A field
//! goes into the first bucket with room from its own on, so that of two fields with one name the
//! first is found first. The name itself is compared in the document, which the value needs anyway.

use std::sync::Arc;

use super::{ElementSpot, shape};
use crate::raw::RawElements;

/// Fields of a bucket: 10 x 6 bytes, and their number, in 64 bytes.
const BUCKET_FIELDS: usize = 10;
/// Buckets are made for seven fields each: 9 bytes a field, and few fields lie in the next one.
const BUCKET_FIELDS_EXPECTED: usize = 7;
/// A document whose fields are mostly not in their own bucket, nor in one of these behind it, has
/// no index: a client that makes names with equal hashes makes that document slow, not others.
const STEPS_MAX: usize = 8;
/// Documents with more outermost fields have no index.
pub const FIELD_COUNT_MAX: usize = 1 << 18;

#[derive(Clone, Debug)]
pub(super) struct Buckets {
    buckets: Arc<[Bucket]>,
}

#[repr(align(64))]
#[derive(Clone, Debug, Default)]
struct Bucket {
    offsets: [u32; BUCKET_FIELDS],
    tags: [u16; BUCKET_FIELDS],
    count: u8,
}
const _: () = assert!(size_of::<Bucket>() == 64);

impl Buckets {
    /// Files a document's outermost fields.
    pub(super) fn of(bytes: &[u8]) -> Option<Buckets> {
        u32::try_from(bytes.len()).ok()?;
        let mut fields = Vec::new();
        let mut elements = RawElements::new(bytes);
        loop {
            let offset = bytes.len() - elements.rest().len();
            let Some(element) = elements.next() else { break };
            fields.push((shape::hash(element.name), offset as u32));
            if FIELD_COUNT_MAX < fields.len() {
                return None;
            }
        }
        let count = fields.len() / BUCKET_FIELDS_EXPECTED + 1;
        let mut buckets = vec![Bucket::default(); count];
        let mut steps_left = fields.len() * STEPS_MAX;
        for (hash, offset) in fields {
            let mut position = first_bucket(hash, count);
            while usize::from(buckets[position].count) == BUCKET_FIELDS {
                position = (position + 1) % count;
                steps_left = steps_left.checked_sub(1)?;
            }
            let bucket = &mut buckets[position];
            let free = usize::from(bucket.count);
            bucket.offsets[free] = offset;
            bucket.tags[free] = tag(hash);
            bucket.count += 1;
        }
        Some(Buckets { buckets: buckets.into() })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// Returns where the first field lies that has this name.
    pub(super) fn find(&self, document: &[u8], name: &[u8]) -> Option<ElementSpot> {
        let hash = shape::hash(name);
        let mut position = first_bucket(hash, self.buckets.len());
        // There is room for more fields than there are, so a bucket that isn't full ends this.
        loop {
            let bucket = &self.buckets[position];
            let count = usize::from(bucket.count).min(BUCKET_FIELDS);
            for (tag_there, offset) in bucket.tags[..count].iter().zip(&bucket.offsets) {
                if *tag_there == tag(hash) && is_named(document, *offset as usize, name) {
                    let name_bytes = u32::try_from(name.len()).ok()?;
                    return Some(ElementSpot { offset: *offset, name_bytes });
                }
            }
            if count < BUCKET_FIELDS {
                return None;
            }
            position = (position + 1) % self.buckets.len();
        }
    }
}

fn first_bucket(hash: u64, count: usize) -> usize {
    ((hash >> 32) as usize * count) >> 32
}

fn tag(hash: u64) -> u16 {
    hash as u16
}

fn is_named(document: &[u8], offset: usize, name: &[u8]) -> bool {
    let rest = document.get(offset + 1..).unwrap_or(&[]);
    // A name asked for with a zero in it is no field's, though the bytes may stand there.
    rest.starts_with(name) && rest.get(name.len()) == Some(&0) && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::DocumentBuilder;
    use crate::document::value::Value;
    use crate::field_index::shape::{SHAPES_BYTES_MAX, ShapeRegistry};

    /// Names whose hashes are equal: in the middle what makes one factor zero.
    fn colliding(count: usize) -> Vec<String> {
        let beginning = (0..1 << 20).find_map(|turn| {
            let front = format!("{turn:016}");
            let front_bytes = front.as_bytes().first_chunk().expect("it has sixteen bytes");
            let middle = shape::zero_behind(front_bytes, 32).to_le_bytes();
            let is_name = middle.iter().all(|byte| (1..0x80).contains(byte));
            is_name.then(|| front + str::from_utf8(&middle).expect("it is ASCII"))
        });
        let beginning = beginning.expect("one of some hundred");
        (0..count).map(|position| format!("{beginning}{position:08}")).collect()
    }

    #[test]
    fn names_that_collide_cost_no_more_than_others() {
        let names = colliding(3_000);
        assert!(
            names
                .iter()
                .all(|name| shape::hash(name.as_bytes()) == shape::hash(names[0].as_bytes()))
        );
        let mut builder = DocumentBuilder::new();
        for (position, name) in names.iter().enumerate() {
            builder.append(name, Value::Int32(position as i32));
        }
        let document = builder.build();
        assert!(Buckets::of(document.as_bytes()).is_none());
        let shapes = ShapeRegistry::new(SHAPES_BYTES_MAX);
        for _ in 0..3 {
            let document = document.clone().indexed(&shapes);
            assert!(!document.view().is_indexed() && shapes.count() == 0);
            assert_eq!(document.get(&names[2_999]), Some(Value::Int32(2_999)));
        }
    }
}
