//! The changes of an update to a document of 32 KB or more: the chunks that both versions share are
//! passed over, so that for a document of 16 MB that was changed in one place only a few are read.
//!
//! Containers, which make such a document long, are compared by their differing elements
//! ([`Versions`]); short values are compared in memory, as those of other documents are. An array
//! whose elements came or went before others is described from there on by position, or whole where
//! that is about as much.

use std::borrow::Cow;

use frond_doc::DocumentBuf;
use frond_doc::pieces::{Differing, Hunk, Item, LargeDocument, PiecesError, Versions};
use frond_doc::raw::RawElement;
use frond_store::ChunkStore;

use super::path::Path;
use super::{DEPTH_MAX, Difference, EMPTY_BYTES, Mark, Updated, is_sayable};

/// Describes what changed from `before` to `after`; `None` if that can't be described, or takes
/// more than `after` itself.
///
/// # Errors
/// As [`LargeDocument::read`].
pub fn describe_large(
    store: &dyn ChunkStore,
    before: &LargeDocument,
    after: &LargeDocument,
) -> Result<Option<DocumentBuf>, PiecesError> {
    let bytes_max = after.bytes() + EMPTY_BYTES as u64;
    let difference = Difference::default();
    let mut walk = Walk { store, document: after, difference, bytes: 0, bytes_max };
    if !walk.of_containers(&Path::Root, &before.versions(after), 0)? {
        return Ok(None);
    }
    Ok(walk.difference.build(bytes_max))
}

/// A walk through both versions.
struct Walk<'a> {
    store: &'a dyn ChunkStore,
    /// The new version: its values are read.
    document: &'a LargeDocument,
    difference: Difference<'static>,
    /// About how long the description is so far.
    bytes: u64,
    bytes_max: u64,
}

impl Walk<'_> {
    /// Describes what differs of two containers. `false`: that can't be described, or is too much;
    /// what was noted of it is to be taken back.
    fn of_containers(
        &mut self,
        path: &Path<'_>,
        versions: &Versions,
        depth: usize,
    ) -> Result<bool, PiecesError> {
        let differing = versions.differing(self.store)?;
        match versions.are_arrays() {
            true => self.of_arrays(path, versions, &differing, depth),
            false => self.of_documents(path, versions, &differing, depth),
        }
    }

    fn of_documents(
        &mut self,
        path: &Path<'_>,
        versions: &Versions,
        differing: &Differing,
        depth: usize,
    ) -> Result<bool, PiecesError> {
        let (mut removed, mut changed, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for hunk in &differing.hunks {
            let (mut old, mut new) = (hunk.before.iter().peekable(), hunk.after.iter().peekable());
            while let (Some(left), Some(right)) = (old.peek(), new.peek()) {
                if left.name != right.name {
                    removed.push(&left.name[..]);
                    old.next();
                    continue;
                }
                if !left.is_equal(right) {
                    changed.push((*left, *right));
                }
                old.next();
                new.next();
            }
            removed.extend(old.map(|item| &item.name[..]));
            let is_last = hunk.after_at + hunk.after.len() as u64 == differing.after_count;
            let come = added.len();
            added.extend(new);
            // No description puts a field before another.
            if come < added.len() && !is_last {
                return Ok(false);
            }
        }
        let has_moved = added.iter().any(|item| removed.contains(&&item.name[..]));
        let names = changed.iter().map(|(_, new)| &new.name[..]);
        let names: Vec<&[u8]> = names
            .chain(removed.iter().copied())
            .chain(added.iter().map(|it| &it.name[..]))
            .collect();
        // No outermost field stands twice.
        if has_moved
            || !names.iter().all(|name| is_sayable(name))
            || depth > 0 && !versions.have_once(self.store, &names)?
        {
            return Ok(false);
        }
        for name in removed {
            let Some(path) = path.field(name) else { return Ok(false) };
            let path = self.text_of(&path);
            self.difference.removed.push(path);
        }
        for (old, new) in changed {
            let Some(path) = path.field(&new.name) else { return Ok(false) };
            self.of_items(&path, old, new, depth)?;
        }
        for item in added {
            let Some(path) = path.field(&item.name) else { return Ok(false) };
            self.whole(&path, item)?;
        }
        Ok(self.bytes <= self.bytes_max)
    }

    fn of_arrays(
        &mut self,
        path: &Path<'_>,
        versions: &Versions,
        differing: &Differing,
        depth: usize,
    ) -> Result<bool, PiecesError> {
        let Differing { hunks, before_count, after_count } = differing;
        let end = |at: u64, items: &[Item]| at + items.len() as u64;
        let keeps_positions = |hunk: &&Hunk| {
            let is_end = end(hunk.before_at, &hunk.before) == *before_count
                && end(hunk.after_at, &hunk.after) == *after_count;
            hunk.before.len() == hunk.after.len() || is_end
        };
        let kept = hunks.iter().take_while(keeps_positions).count();
        for hunk in &hunks[..kept] {
            self.by_position(path, hunk.after_at, (&hunk.before, &hunk.after), depth)?;
        }
        let Some(moved) = hunks.get(kept) else { return Ok(self.bytes <= self.bytes_max) };
        let from = moved.after_at;
        if *after_count < 2 * (after_count - from) {
            return Ok(false); // Rather whole.
        }
        let (before, after) = versions.items_from(self.store, from)?;
        self.by_position(path, from, (&before, &after), depth)?;
        Ok(self.bytes <= self.bytes_max)
    }

    /// Describes elements of arrays from a position on; where they aren't as many, both end there.
    fn by_position(
        &mut self,
        path: &Path<'_>,
        from: u64,
        (before, after): (&[Item], &[Item]),
        depth: usize,
    ) -> Result<(), PiecesError> {
        let both = before.len().min(after.len());
        for (position, new) in (from..).zip(after) {
            let path = path.element(position as usize);
            match before.get((position - from) as usize) {
                Some(old) if old.is_equal(new) => {}
                Some(old) => self.of_items(&path, old, new, depth)?,
                None => self.whole(&path, new)?,
            }
        }
        if both < before.len() {
            let path = self.text_of(path);
            self.difference.truncated.push((path, from as usize + both));
        }
        Ok(())
    }

    /// Describes what differs of two elements of one name.
    fn of_items(
        &mut self,
        path: &Path<'_>,
        old: &Item,
        new: &Item,
        depth: usize,
    ) -> Result<(), PiecesError> {
        if self.bytes_max < self.bytes {
            return Ok(());
        }
        let versions = Versions::of_items(old, new, self.document).filter(|_| depth < DEPTH_MAX);
        if let Some(versions) = versions {
            let (mark, bytes): (Mark, u64) = (self.difference.mark(), self.bytes);
            if self.of_containers(path, &versions, depth + 1)? {
                return Ok(());
            }
            self.difference.go_back(mark);
            self.bytes = bytes;
            return self.whole(path, new);
        }
        // A long value is described whole: it isn't read to find out what is left of it.
        let Some(before) = old.short_value() else { return self.whole(path, new) };
        if self.bytes_max < self.bytes + new.value_len() {
            return self.whole(path, new);
        }
        let after = new.value_bytes(self.document, self.store)?;
        let element = |item: &Item, value| RawElement { kind: item.kind, name: &[], value };
        let mut part = Difference::default();
        part.of_values(path, element(old, before), element(new, &after), depth);
        self.take(part);
        Ok(())
    }

    /// Notes an element with its whole value, unless it is too much.
    fn whole(&mut self, path: &Path<'_>, item: &Item) -> Result<(), PiecesError> {
        let path = self.text_of(path);
        self.bytes += item.value_len();
        if self.bytes <= self.bytes_max {
            let value = Cow::Owned(item.value_bytes(self.document, self.store)?);
            self.difference.updated.push(Updated { path, kind: item.kind, value });
        }
        Ok(())
    }

    /// Returns a path's text, and counts it; its parts are noted if that could be read in two ways.
    fn text_of(&mut self, path: &Path<'_>) -> String {
        let text = self.difference.text_of(path);
        self.bytes += text.len() as u64;
        text
    }

    fn take(&mut self, part: Difference<'_>) {
        let updated = part.updated.into_iter().map(|it| Updated {
            path: it.path,
            kind: it.kind,
            value: Cow::Owned(it.value.into_owned()),
        });
        let from = self.difference.updated.len();
        self.difference.updated.extend(updated);
        let updated = &self.difference.updated[from..];
        let noted = updated.iter().map(|it| it.path.len() + it.value.len()).sum::<usize>();
        let removed = part.removed.iter().map(String::len).sum::<usize>();
        self.bytes += (noted + removed) as u64;
        self.difference.removed.extend(part.removed);
        self.difference.truncated.extend(part.truncated);
        self.difference.ambiguous.extend(part.ambiguous);
    }
}
