//! A patch: turns old bytes into new ones that have most of them in common.
//!
//! A document in which one field changes differs in few places: the field's bytes, and the lengths
//! before it if the field got longer or shorter. So the bytes are compared from the front and from
//! the back:
//! 1. Where they differ in a *cut* of a few bytes and agree again behind it, one goes on behind it.
//! 2. Where they don't agree soon, one stops. The part between the two ends is one cut more.
//!
//! That finds any number of changes that leave the length, and one that doesn't. A change that it
//! doesn't find costs bytes, never correctness.
//!
//! *Form*, little-endian: length of the old bytes (4), their mark (8), count of cuts (1), then each
//! cut: where it begins in the old bytes (4), how many it removes (4), how many it inserts (4),
//! these. Cuts ascend and don't overlap. The mark shows that the old bytes are those that the patch
//! was made for: it is their XXH3-64, or of a chunk the front of its name, for which nothing need
//! be hashed.

use std::ops::Range;

use bytes::Bytes;
use frond_store::chunk::Origin;
use frond_store::{Chunk, ChunkHash};
use twox_hash::XxHash3_64;

/// The number of bytes that must agree behind a cut.
const AGREE_BYTES: usize = 16;
/// The number of bytes that are compared at once.
const COMPARED_BYTES: usize = 128;
/// A cut that one goes on behind is no longer than this: two names of chunks.
const CUT_BYTES_MAX: usize = 64;
/// The number of cuts on each way at most, with one between.
const CUT_COUNT_MAX: usize = 64;
const _: () = assert!(2 * CUT_COUNT_MAX < u8::MAX as usize);
const MARK_BYTES: usize = 8;
/// Length, mark, count.
const HEAD_BYTES: usize = size_of::<u32>() + MARK_BYTES + 1;
/// A cut before what it inserts.
const CUT_HEAD_BYTES: usize = 3 * size_of::<u32>();

/// A patch, as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Patch(Bytes);

/// A part in which old and new bytes differ.
#[derive(Clone)]
struct Cut {
    old: Range<usize>,
    new: Range<usize>,
}

impl Patch {
    /// Returns the patch that turns `old` into `new`, if it takes at most half as many bytes as
    /// `new`.
    pub fn between(old: &[u8], new: &[u8]) -> Option<Patch> {
        Patch::checked(old, || XxHash3_64::oneshot(old).to_le_bytes(), new)
    }

    /// The same of encoded chunks.
    pub fn between_chunks(old: &Chunk, new: &Chunk) -> Option<Patch> {
        Patch::checked(old.encoded(), || mark_of(old.hash()), new.encoded())
    }

    /// Returns the patch that turns the chunk that `new` was made of into `new`: nothing is
    /// compared.
    pub fn of_origin(origin: &Origin, new: &Chunk) -> Option<Patch> {
        let cuts = origin.places().map(|place| Cut { old: place.clone(), new: place });
        let mark = || mark_of(origin.old);
        Patch::made(new.encoded().len(), mark, new.encoded(), cuts)
    }

    fn checked(old: &[u8], mark: impl FnOnce() -> [u8; MARK_BYTES], new: &[u8]) -> Option<Patch> {
        let cuts = cuts(old, new);
        let patch = Patch::made(old.len(), mark, new, cuts.iter().cloned())?;
        assert!(patch.gives(old, new), "a patch gives the new bytes");
        Some(patch)
    }

    fn made(
        old_bytes: usize,
        mark: impl FnOnce() -> [u8; MARK_BYTES],
        new: &[u8],
        cuts: impl Iterator<Item = Cut> + Clone,
    ) -> Option<Patch> {
        let old_bytes = u32::try_from(old_bytes).ok()?;
        u32::try_from(new.len()).ok()?;
        let cut_bytes = cuts.clone().map(|cut| CUT_HEAD_BYTES + cut.new.len());
        let bytes = HEAD_BYTES + cut_bytes.sum::<usize>();
        if new.len() < 2 * bytes {
            return None;
        }
        let mut form = Vec::with_capacity(bytes);
        form.extend_from_slice(&old_bytes.to_le_bytes());
        form.extend_from_slice(&mark());
        form.push(cuts.clone().count() as u8); // The limit is above.
        for cut in cuts {
            for field in [cut.old.start, cut.old.len(), cut.new.len()] {
                form.extend_from_slice(&(field as u32).to_le_bytes());
            }
            form.extend_from_slice(&new[cut.new]);
        }
        Some(Patch(form.into()))
    }

    /// Returns about how many bytes a patch that turns `old` into `new` takes.
    pub fn bytes_between(old: &[u8], new: &[u8]) -> usize {
        cuts(old, new).iter().map(|cut| CUT_HEAD_BYTES + cut.new.len()).sum()
    }

    /// Whether it turns `old`, which it was made for, into `new`.
    fn gives(&self, old: &[u8], new: &[u8]) -> bool {
        let mut rest = new;
        let mut take = |part: &[u8]| {
            let found = rest.strip_prefix(part);
            rest = found.unwrap_or_default();
            found.is_some()
        };
        self.each_part(old, |part| take(part).then_some(()).ok_or(OUTSIDE)).is_ok()
            && rest.is_empty()
    }

    /// The patch that `form` begins with, and how long it is.
    ///
    /// # Errors
    /// Says why the bytes are no patch.
    pub fn decode(form: &Bytes) -> Result<(Patch, usize), &'static str> {
        let mut reader = Reader { rest: form };
        reader.take(HEAD_BYTES - 1)?;
        let [count] = reader.array()?;
        for _ in 0..count {
            reader.cut()?;
        }
        let bytes = form.len() - reader.rest.len();
        Ok((Patch(form.slice(..bytes)), bytes))
    }

    /// As it is stored.
    pub fn form(&self) -> &[u8] {
        &self.0
    }

    /// The new bytes. The error says why these aren't the old ones.
    ///
    /// # Errors
    /// Says why `old` isn't what the patch was made from, or which cut lies outside of it.
    pub fn apply(&self, old: &[u8]) -> Result<Vec<u8>, &'static str> {
        self.apply_marked(old, XxHash3_64::oneshot(old).to_le_bytes())
    }

    /// The same of an encoded chunk.
    ///
    /// # Errors
    /// As `apply`.
    pub fn apply_to_chunk(&self, old: &Chunk) -> Result<Vec<u8>, &'static str> {
        self.apply_marked(old.encoded(), mark_of(old.hash()))
    }

    fn apply_marked(&self, old: &[u8], mark: [u8; MARK_BYTES]) -> Result<Vec<u8>, &'static str> {
        let mut reader = Reader { rest: &self.0 };
        if reader.u32()? != old.len() || reader.array()? != mark {
            return Err("a patch of other bytes than those that are there");
        }
        let mut new = Vec::with_capacity(old.len() + self.0.len());
        self.each_part(old, |part| {
            new.extend_from_slice(part);
            Ok(())
        })?;
        Ok(new)
    }

    /// Calls `take` with all parts of the new bytes, in order.
    fn each_part(
        &self,
        old: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let mut reader = Reader { rest: &self.0 };
        reader.take(HEAD_BYTES - 1)?;
        let [count] = reader.array()?;
        let mut done = 0;
        for _ in 0..count {
            let (start, removed, inserted) = reader.cut()?;
            take(old.get(done..start).ok_or(OUTSIDE)?)?;
            take(inserted)?;
            done = start.checked_add(removed).ok_or(OUTSIDE)?;
        }
        take(old.get(done..).ok_or(OUTSIDE)?)
    }
}

fn mark_of(name: ChunkHash) -> [u8; MARK_BYTES] {
    *name.0.first_chunk().expect("a name is longer than a mark")
}

const OUTSIDE: &str = "a cut of a patch lies outside of the old bytes, or in another";

/// Returns where old and new bytes differ.
fn cuts(old: &[u8], new: &[u8]) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let front = walk_forth(old, new, &mut cuts);
    let mut behind = Vec::new();
    let back = walk_back(&old[front..], &new[front..], &mut behind);
    let (old_end, new_end) = (old.len() - back, new.len() - back);
    if front < old_end || front < new_end {
        cuts.push(Cut { old: front..old_end, new: front..new_end });
    }
    // These count from the end of the old bytes, and of the new ones.
    let from_end = |bytes: usize, cut: &Range<usize>| bytes - cut.end..bytes - cut.start;
    cuts.extend(
        behind
            .into_iter()
            .rev()
            .map(|cut| Cut { old: from_end(old.len(), &cut), new: from_end(new.len(), &cut) }),
    );
    cuts
}

/// Goes on from the front as far as the bytes agree but for cuts; returns how far.
fn walk_forth(old: &[u8], new: &[u8], cuts: &mut Vec<Cut>) -> usize {
    let shorter = old.len().min(new.len());
    let (old, new) = (&old[..shorter], &new[..shorter]);
    let mut at = 0;
    loop {
        at += common_front(&old[at..], &new[at..]);
        let agree = |from: usize| {
            let part = |bytes: &[u8]| bytes[from..].first_chunk::<AGREE_BYTES>().copied();
            from <= shorter && part(old).is_some_and(|part_of_old| part(new) == Some(part_of_old))
        };
        let end = (at + 1..=at + CUT_BYTES_MAX).find(|end| agree(*end));
        let Some(end) = end.filter(|_| cuts.len() < CUT_COUNT_MAX) else { return at };
        cuts.push(Cut { old: at..end, new: at..end });
        at = end;
    }
}

/// The same from the back. The cuts count from there.
fn walk_back(old: &[u8], new: &[u8], cuts: &mut Vec<Range<usize>>) -> usize {
    let shorter = old.len().min(new.len());
    let (old, new) = (&old[old.len() - shorter..], &new[new.len() - shorter..]);
    let mut at = 0;
    loop {
        at += common_back(&old[..shorter - at], &new[..shorter - at]);
        let agree = |from: usize| {
            let end = shorter.checked_sub(from);
            let part = |bytes: &[u8]| bytes[..end?].last_chunk::<AGREE_BYTES>().copied();
            part(old).is_some_and(|part_of_old| part(new) == Some(part_of_old))
        };
        let end = (at + 1..=at + CUT_BYTES_MAX).find(|end| agree(*end));
        let Some(end) = end.filter(|_| cuts.len() < CUT_COUNT_MAX) else { return at };
        cuts.push(at..end);
        at = end;
    }
}

/// Returns how many bytes agree at the front of two slices of one length.
fn common_front(left: &[u8], right: &[u8]) -> usize {
    let chunks = left.chunks_exact(COMPARED_BYTES).zip(right.chunks_exact(COMPARED_BYTES));
    let whole = COMPARED_BYTES * chunks.take_while(|(left, right)| left == right).count();
    let rest = left[whole..].iter().zip(&right[whole..]);
    whole + rest.take_while(|(left, right)| left == right).count()
}

/// Returns how many bytes agree at the back of two slices of one length.
fn common_back(left: &[u8], right: &[u8]) -> usize {
    let chunks = left.rchunks_exact(COMPARED_BYTES).zip(right.rchunks_exact(COMPARED_BYTES));
    let whole = COMPARED_BYTES * chunks.take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[..left.len() - whole], &right[..right.len() - whole]);
    let rest = left.iter().rev().zip(right.iter().rev());
    whole + rest.take_while(|(left, right)| left == right).count()
}

/// Takes fields from the front; never beyond the end.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or("a patch is cut short")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], &'static str> {
        let mut array = [0; BYTES];
        array.copy_from_slice(self.take(BYTES)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<usize, &'static str> {
        usize::try_from(u32::from_le_bytes(self.array()?)).map_err(|_| OUTSIDE)
    }

    /// Returns where a cut begins, how many bytes it removes, and what it inserts.
    fn cut(&mut self) -> Result<(usize, usize, &'a [u8]), &'static str> {
        let (start, removed, inserted) = (self.u32()?, self.u32()?, self.u32()?);
        Ok((start, removed, self.take(inserted)?))
    }
}

#[cfg(test)]
mod tests {
    use frond_testkit::random::for_seeds;

    use super::*;

    /// Checks that a patch turns `old` into `new`, and how long it is; 0: there is none.
    fn check(what: &str, old: &[u8], new: &[u8], bytes: usize) {
        let patch = Patch::between(old, new);
        assert_eq!(patch.as_ref().map_or(0, |patch| patch.form().len()), bytes, "{what}");
        let Some(patch) = patch else { return };
        assert_eq!(patch.apply(old).unwrap(), new, "{what}");
        let form = Bytes::from([patch.form(), b"what follows"].concat());
        assert_eq!(Patch::decode(&form), Ok((patch, bytes)), "{what}");
    }

    fn with(old: &[u8], parts: &[(Range<usize>, &[u8])]) -> Vec<u8> {
        let mut new = old.to_vec();
        for (part, inserted) in parts.iter().rev() {
            new.splice(part.clone(), inserted.iter().copied());
        }
        new
    }

    #[test]
    fn a_patch_is_as_long_as_the_change() {
        let old: Vec<u8> = (0..1000u32).map(|at| (at * 7 + at / 256) as u8).collect();
        type Case<'a> = (&'a str, &'a [(Range<usize>, &'a [u8])], usize);
        let cases: [Case<'_>; 11] = [
            ("nothing", &[], 13),
            ("a byte", &[(500..501, b"x")], 13 + 13),
            ("the first", &[(0..1, b"x")], 13 + 13),
            ("the last", &[(999..1000, b"x")], 13 + 13),
            ("two far apart", &[(100..104, b"abcd"), (700..703, b"efg")], 13 + 16 + 15),
            ("two side by side", &[(100..104, b"abcd"), (110..113, b"efg")], 13 + 12 + 13),
            ("longer", &[(500..503, b"longer than it was")], 13 + 12 + 18),
            ("shorter", &[(500..530, b"short")], 13 + 12 + 5),
            ("a length, and longer", &[(0..1, b"l"), (500..503, b"as long")], 13 + 13 + 12 + 7),
            ("longer, and a byte behind", &[(300..301, b"xyz"), (900..901, b"b")], 13 + 15 + 13),
            ("much is gone", &[(100..700, b"x")], 13 + 13),
        ];
        for (what, parts, bytes) in cases {
            check(what, &old, &with(&old, parts), bytes);
        }
        let other: Vec<u8> = old.iter().map(|byte| byte ^ 0x55).collect();
        check("all", &old, &other, 0);
        // With the heads of the patch and of its cut.
        let most = 500 - 13 - 12;
        check("half of it", &old, &with(&old, &[(100..100 + most, &other[..most])]), 500);
        check("more", &old, &with(&old, &[(100..101 + most, &other[..=most])]), 0);
        check("out of nothing", &[], &old, 0);
        check("into nothing", &old, &[], 0);
        check("little of little", b"a little text", b"a little test", 0);
    }

    #[test]
    fn a_patch_gives_its_bytes_and_no_others() {
        let old = vec![7; 300];
        let new = with(&old, &[(100..101, b"x"), (200..201, b"yz")]);
        let patch = Patch::between(&old, &new).unwrap();
        assert!(patch.gives(&old, &new));
        let others = [
            with(&new, &[(300..300, b"z")]),
            with(&new, &[(299..301, b"")]),
            with(&new, &[(150..151, b"z")]),
            Vec::new(),
        ];
        for other in others {
            assert!(!patch.gives(&old, &other), "{other:?}");
        }
    }

    #[test]
    fn any_change_has_a_patch_that_makes_it_or_none() {
        for_seeds(300, |mut random| {
            let count = random.below(3000);
            let mut old = random.bytes(count);
            if random.one_in(2) {
                // Much that agrees where it shouldn't.
                old.iter_mut().for_each(|byte| *byte &= 1);
            }
            let mut new = old.clone();
            for _ in 0..random.below(8) {
                let start = random.below(new.len() + 1);
                let end = (start + random.below(30)).min(new.len());
                let count = if random.one_in(2) { end - start } else { random.below(30) };
                new.splice(start..end, random.bytes(count));
            }
            if let Some(patch) = Patch::between(&old, &new) {
                assert_eq!(patch.apply(&old).unwrap(), new);
                assert!(2 * patch.form().len() <= new.len());
                let mut other = old.clone();
                other.push(0);
                assert!(patch.apply(&other).is_err());
                if let Some(byte) = old.first() {
                    other = old.clone();
                    other[0] = byte ^ 1;
                    assert!(patch.apply(&other).is_err());
                }
            }
        });
    }

    #[test]
    fn changed_patches_never_panic() {
        for_seeds(300, |mut random| {
            let old = random.bytes(500);
            let new = with(&old, &[(10..11, b"x"), (200..230, b"longer than it was, by much")]);
            let mut form = Patch::between(&old, &new).unwrap().form().to_vec();
            let position = size_of::<u32>() + size_of::<u64>();
            let position = position + random.below(form.len() - position);
            form[position] = random.next() as u8;
            if let Ok((patch, _)) = Patch::decode(&form.into()) {
                let _ = patch.apply(&old);
            }
        });
    }
}
