//! The naive model: databases as whole copies, merged by walking over everything.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_testkit::Random;

pub const IDS: usize = 9;
pub const COLLECTIONS: [&str; 3] = ["x", "y", "z"];

/// A document without its `_id`, fields in their order.
pub type Fields = Vec<(String, Item)>;
pub type Collection = BTreeMap<i32, Fields>;
pub type Whole = BTreeMap<&'static str, Collection>;

#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    Number(i32),
    Nested(Fields),
    /// Merged as a whole.
    List(Vec<i32>),
    Text(Rc<str>),
}

fn get<'a>(fields: &'a Fields, name: &str) -> Option<&'a Item> {
    fields.iter().find(|(known, _)| known == name).map(|(_, item)| item)
}

/// Appends a field.
pub fn append(name: &str, item: &Item, builder: &mut DocumentBuilder) {
    match item {
        Item::Number(number) => {
            builder.append(name, Value::Int32(*number));
        }
        Item::Text(text) => {
            builder.append(name, Value::String(text));
        }
        Item::Nested(nested) => {
            builder.begin_document(name);
            nested.iter().for_each(|(name, item)| append(name, item, builder));
            builder.end();
        }
        Item::List(numbers) => {
            builder.begin_array(name);
            numbers.iter().for_each(|number| {
                builder.push(Value::Int32(*number));
            });
            builder.end();
        }
    }
}

pub fn to_document(id: i32, fields: &Fields) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(id));
    fields.iter().for_each(|(name, item)| append(name, item, &mut builder));
    builder.build()
}

pub fn random_fields(random: &mut Random) -> Fields {
    let mut fields = Fields::new();
    for name in ["a", "b", "n", "c", "t"] {
        if random.one_in(3) {
            continue;
        }
        let item = if name == "t" && !random.one_in(4) {
            Item::List((0..random.below(3)).map(|_| random.below(3) as i32).collect())
        } else if name == "n" && !random.one_in(4) {
            let names = ["x", "y"].into_iter().filter(|_| random.one_in(2));
            let names: Vec<&str> = names.collect();
            let number = |name: &str| (name.to_owned(), Item::Number(random.below(3) as i32));
            Item::Nested(names.into_iter().map(number).collect())
        } else {
            Item::Number(random.below(3) as i32)
        };
        fields.push((name.to_owned(), item));
    }
    fields
}

/// The conflicts: collection, `_id`, paths.
pub type ModelConflicts = BTreeSet<(&'static str, i32, Vec<String>)>;

/// `ours` or `theirs` where both sides differ from each other and from the base.
fn merge_items<T: PartialEq + Clone>(
    base: Option<&T>,
    ours: Option<&T>,
    theirs: Option<&T>,
) -> Result<Option<T>, ()> {
    if ours == theirs || theirs == base {
        Ok(ours.cloned())
    } else if ours == base {
        Ok(theirs.cloned())
    } else {
        Err(())
    }
}

/// The side whose value counts where both conflict: its place among base, ours and theirs.
pub type Preferred = usize;
pub const BASE: Preferred = 0;
pub const OURS: Preferred = 1;
pub const THEIRS: Preferred = 2;

/// Whether ours gives the order of the merged fields.
fn is_ours_first([base, ours, theirs]: [&Fields; 3]) -> bool {
    let names = |fields: &Fields, others: &Fields| -> Vec<String> {
        let kept = fields.iter().filter(|(name, _)| get(others, name).is_some());
        kept.map(|(name, _)| name.clone()).collect()
    };
    let is_reordered = |side: &Fields| names(base, side) != names(side, base);
    match (is_reordered(ours), is_reordered(theirs)) {
        (true, false) => true,
        (false, true) => false,
        // `_id` stands first in both.
        _ => names(ours, ours) <= names(theirs, theirs),
    }
}

fn merge_fields(
    path: &str,
    sides: [&Fields; 3],
    prefer: Preferred,
    conflicts: &mut Vec<String>,
) -> Fields {
    let [base, ours, theirs] = sides;
    let mut merged = Fields::new();
    let (first, second) = if is_ours_first(sides) { (ours, theirs) } else { (theirs, ours) };
    let only_second = second.iter().filter(|(name, _)| get(first, name).is_none());
    for (name, _) in first.iter().chain(only_second) {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let items = sides.map(|side| get(side, name));
        let item = match merge_items(items[0], items[1], items[2]) {
            Ok(item) => item,
            Err(()) => match (items[0], items[1], items[2]) {
                (
                    None | Some(Item::Nested(_)),
                    Some(Item::Nested(ours)),
                    Some(Item::Nested(theirs)),
                ) => {
                    let empty = Fields::new();
                    let base = match get(base, name) {
                        Some(Item::Nested(base)) => base,
                        _ => &empty,
                    };
                    let sides = [base, ours, theirs];
                    Some(Item::Nested(merge_fields(&path, sides, prefer, conflicts)))
                }
                _ => {
                    conflicts.push(path);
                    items[prefer].cloned()
                }
            },
        };
        merged.extend(item.map(|item| (name.clone(), item)));
    }
    merged
}

/// A document on three sides, merged; the paths if there is a conflict.
pub fn merge_document(
    sides: [Option<&Fields>; 3],
    prefer: Preferred,
) -> (Option<Fields>, Option<Vec<String>>) {
    if let Ok(merged) = merge_items(sides[0], sides[1], sides[2]) {
        return (merged, None);
    }
    let (Some(ours), Some(theirs)) = (sides[1], sides[2]) else {
        return (sides[prefer].cloned(), Some(Vec::new()));
    };
    let empty = Fields::new();
    let mut paths = Vec::new();
    let sides = [sides[0].unwrap_or(&empty), ours, theirs];
    let merged = merge_fields("", sides, prefer, &mut paths);
    paths.sort();
    (Some(merged), (!paths.is_empty()).then_some(paths))
}

/// The three sides of each collection, which are all the same if it is decided.
type Works = BTreeMap<&'static str, [Option<Collection>; 3]>;

/// Returns the new names of collections that a side hasn't any more: each is the collection with
/// more than half of its documents that wasn't so before, and has less than half others. Of all
/// such pairs the most similar come first.
fn new_names(
    [base, side]: [&Whole; 2],
    gone: &[&'static str],
    taken: &mut BTreeSet<&'static str>,
) -> BTreeMap<&'static str, &'static str> {
    let mut pairs = Vec::new();
    for name in gone.iter().copied() {
        let before = &base[name];
        for other in COLLECTIONS.into_iter().filter(|other| !taken.contains(other)) {
            let Some(now) = side.get(other).filter(|now| base.get(other) != Some(*now)) else {
                continue;
            };
            if base.get(other).is_some_and(|before| is_same(before, now)) {
                continue;
            }
            let kept = before.iter().filter(|(id, fields)| now.get(*id) == Some(*fields)).count();
            if before.len() < kept * 2 && now.len() < kept * 2 {
                let different = 1.0 - (2 * kept) as f64 / (before.len() + now.len()) as f64;
                pairs.push((different, name, other));
            }
        }
    }
    pairs.sort_by(|one, other| {
        one.0.total_cmp(&other.0).then((one.1, one.2).cmp(&(other.1, other.2)))
    });
    let mut names = BTreeMap::new();
    for (_, name, other) in pairs {
        if !names.contains_key(name) && taken.insert(other) {
            names.insert(name, other);
        }
    }
    names
}

/// Whether they have more than half of the `_id`s of one of them in common, if there were any.
fn is_same(before: &Collection, now: &Collection) -> bool {
    let kept = before.keys().filter(|id| now.contains_key(*id)).count();
    before.is_empty() || before.len().min(now.len()) / 2 < kept
}

/// The names that a side gave to collections of the base which aren't under their own any more,
/// which nothing or another collection of the base has now.
fn renamings(base: &Whole, side: &Whole) -> BTreeMap<&'static str, &'static str> {
    let stays = |name: &&'static str| {
        let sides = base.get(name).zip(side.get(name));
        sides.is_some_and(|(before, now)| is_same(before, now))
    };
    let mut taken: BTreeSet<&'static str> = COLLECTIONS.into_iter().filter(stays).collect();
    let gone = base.keys().copied().filter(|name| !taken.contains(name)).collect::<Vec<_>>();
    let mut renamed = new_names([base, side], &gone, &mut taken);
    for _ in COLLECTIONS {
        let targets: BTreeSet<_> = renamed.values().copied().collect();
        renamed.retain(|name, _| !side.contains_key(name) || targets.contains(name));
    }
    renamed
}

/// Names that renamings connect with one that both sides changed, and that a side gave to another
/// collection.
fn reused(sides: [&Whole; 3]) -> Vec<BTreeSet<&'static str>> {
    let [base, ours, theirs] = sides;
    let found = [renamings(base, ours), renamings(base, theirs)];
    let mut groups: Vec<BTreeSet<&'static str>> = Vec::new();
    for name in COLLECTIONS {
        let [before, our, their] = sides.map(|side| side.get(name));
        let is_changed_by_both = before != our && before != their && our != their;
        let is_reused = [ours, theirs].iter().zip(&found).any(|(side, renamings)| {
            let is_other = before.zip(side.get(name)).is_some_and(|(a, b)| !is_same(a, b));
            is_other && renamings.values().any(|to| *to == name)
        });
        if !is_changed_by_both || !is_reused || groups.iter().any(|group| group.contains(name)) {
            continue;
        }
        let mut group = BTreeSet::from([name]);
        for _ in COLLECTIONS {
            for (from, to) in found.iter().flatten() {
                if group.contains(from) || group.contains(to) {
                    group.extend([*from, *to]);
                }
            }
        }
        groups.push(group);
    }
    groups
}

/// A collection's name and content.
type Named = (&'static str, Collection);

/// The collections that have names of a group on any side: those of the base, and those that were
/// made.
fn origins(sides: [&Whole; 3], group: &BTreeSet<&'static str>) -> Vec<[Option<Named>; 3]> {
    let base = sides[BASE];
    let mut origins = Vec::new();
    for name in group {
        let (mut renamed, mut made) = ([None, None, None], [None, None, None]);
        renamed[BASE] = base.get(name).map(|before| (*name, before.clone()));
        for side in [OURS, THEIRS] {
            let renamings = renamings(base, sides[side]);
            let at = |name: &'static str| Some((name, sides[side].get(name)?.clone()));
            match renamings.get(name) {
                Some(to) => renamed[side] = at(to),
                None if renamings.values().any(|to| to == name) => {}
                None if base.contains_key(name) => renamed[side] = at(name),
                None => {}
            }
            let is_free = !base.contains_key(name) || renamings.contains_key(name);
            if is_free && !renamings.values().any(|to| to == name) {
                made[side] = at(name);
            }
        }
        origins.extend([renamed, made]);
    }
    origins
}

/// The name on which the sides agree; none if the collection is dropped.
fn agreed_name(origin: &[Option<Named>; 3]) -> Result<Option<&'static str>, ()> {
    let names = [0, 1, 2].map(|side| origin[side].as_ref().map(|(name, _)| *name));
    match merge_items(names[0].as_ref(), names[1].as_ref(), names[2].as_ref())? {
        Some(name) => Ok(Some(name)),
        None => {
            let [base, ours, theirs] = origin;
            let left = ours.as_ref().or(theirs.as_ref());
            Ok(left.filter(|left| base.as_ref() != Some(*left)).map(|(name, _)| *name))
        }
    }
}

/// Has the collections of a group merged by what they were. `None` if they have to be decided about
/// as a whole, and aren't.
fn merge_group(
    sides: [&Whole; 3],
    group: &BTreeSet<&'static str>,
    decided: Option<Preferred>,
    works: &mut Works,
) -> Option<()> {
    let origins = origins(sides, group);
    let names: Vec<_> = origins.iter().map(agreed_name).collect();
    let given: Vec<_> = names.iter().filter_map(|name| name.ok().flatten()).collect();
    let is_clear = names.iter().all(Result::is_ok)
        && given.iter().collect::<BTreeSet<_>>().len() == given.len();
    let nothing = [None, None, None];
    works.extend(group.iter().map(|name| (*name, nothing.clone())));
    let content = |named: &Option<Named>| named.as_ref().map(|(_, content)| content.clone());
    if is_clear {
        for (origin, name) in origins.iter().zip(names) {
            if let Ok(Some(name)) = name {
                works.insert(name, origin.each_ref().map(content));
            }
        }
        return Some(());
    }
    let chosen = decided?;
    if chosen == BASE {
        for name in group {
            works.insert(
                name,
                nothing.each_ref().map(|_: &Option<Collection>| sides[BASE].get(name).cloned()),
            );
        }
        return Some(());
    }
    let other = OURS + THEIRS - chosen;
    for origin in &origins {
        let Some((name, here)) = &origin[chosen] else { continue };
        let work = match &origin[other] {
            Some(_) => origin.each_ref().map(content),
            None => [0, 1, 2].map(|_| Some(here.clone())),
        };
        works.insert(name, work);
    }
    for origin in origins.iter().filter(|origin| origin[BASE].is_none() && origin[chosen].is_none())
    {
        let Some((name, there)) = &origin[other] else { continue };
        let here = works[name][chosen].clone();
        let mut work = nothing.clone();
        if here.is_none() {
            work = [0, 1, 2].map(|_| Some(there.clone()));
        } else {
            (work[chosen], work[other]) = (here, Some(there.clone()));
        }
        works.insert(name, work);
    }
    Some(())
}

/// The collections to merge. `None` if the sides don't agree on a collection's name, or one renamed
/// it and the other dropped it, and no side is `decided`.
fn works(sides: [&Whole; 3], decided: Option<Preferred>) -> Option<Works> {
    let [base, ours, theirs] = sides;
    let get = |name: &str| sides.map(|side| side.get(name).cloned());
    let mut works: Works = COLLECTIONS.into_iter().map(|name| (name, get(name))).collect();
    let groups = reused(sides);
    for group in &groups {
        merge_group(sides, group, decided, &mut works)?;
    }
    let taken: BTreeSet<&'static str> = groups.into_iter().flatten().collect();
    let mut taken = [taken.clone(), taken];
    let is_reused = taken[0].clone();
    let gone = |name: &&str| {
        !ours.contains_key(name) && !theirs.contains_key(name) && !is_reused.contains(name)
    };
    let gone: Vec<_> =
        COLLECTIONS.into_iter().filter(|name| base.contains_key(name)).filter(gone).collect();
    let our_names = new_names([base, ours], &gone, &mut taken[0]);
    let their_names = new_names([base, theirs], &gone, &mut taken[1]);
    for name in gone {
        let (our, their) = (our_names.get(name).copied(), their_names.get(name).copied());
        let before = base.get(name).cloned();
        let names = match (our, their) {
            (None, None) => continue,
            (Some(our), Some(their)) if our == their => {
                works.get_mut(our)?[BASE] = before;
                continue;
            }
            names => names,
        };
        let changed = |side: &Whole, name: &str| side.get(name) != base.get(name);
        if our.is_some_and(|our| changed(theirs, our))
            || their.is_some_and(|their| changed(ours, their))
        {
            continue;
        }
        let decided = decided?;
        for renamed in [our, their].into_iter().flatten() {
            works.insert(renamed, [BASE; 3].map(|_| base.get(renamed).cloned()));
        }
        let found = [(our, ours), (their, theirs)];
        let found = found.map(|(renamed, side)| side.get(renamed?).cloned());
        match (decided, names) {
            (BASE, _) => drop(works.insert(name, [BASE; 3].map(|_| before.clone()))),
            (OURS, (Some(to), _)) | (THEIRS, (_, Some(to))) => {
                let [our, their] = found;
                let (our, their) = (our.clone().or(their.clone()), their.or(our));
                // If one side dropped it, it is as the other has it.
                let before = if names.0.and(names.1).is_some() { before } else { our.clone() };
                works.insert(to, [before, our, their]);
            }
            _ => {}
        }
    }
    Some(works)
}

/// Returns a document's content on the three sides of a merge that was decided so.
pub fn document_sides(
    sides: [&Whole; 3],
    (name, id): (&str, i32),
    decided: Option<Preferred>,
) -> [Option<Fields>; 3] {
    let works = works(sides, decided).expect("it was merged");
    works[name].clone().map(|side| side.and_then(|found| found.get(&id).cloned()))
}

/// Merges whole copies. Of a collection that was dropped here and changed or renamed there, or
/// renamed differently, the side `decided` counts; `None` if there is such a collection and none is
/// given.
pub fn merge_wholes(
    sides: [&Whole; 3],
    prefer: Preferred,
    decided: Option<Preferred>,
) -> Option<(Whole, ModelConflicts)> {
    let (mut merged, mut conflicts) = (Whole::new(), ModelConflicts::new());
    for (name, sides) in works(sides, decided)? {
        let [base, ours, theirs] = [0, 1, 2].map(|side| sides[side].as_ref());
        let collection = match (merge_items(base, ours, theirs), ours, theirs) {
            (Ok(collection), ..) => collection,
            (Err(()), Some(ours), Some(theirs)) => {
                let empty = Collection::new();
                let base = base.unwrap_or(&empty);
                let mut merged = Collection::new();
                let ids: BTreeSet<i32> = [base, ours, theirs]
                    .into_iter()
                    .flat_map(|side| side.keys())
                    .copied()
                    .collect();
                for id in ids {
                    let sides = [base, ours, theirs].map(|side| side.get(&id));
                    let (document, conflict) = merge_document(sides, prefer);
                    merged.extend(document.map(|document| (id, document)));
                    conflicts.extend(conflict.map(|paths| (name, id, paths)));
                }
                Some(merged)
            }
            _ => sides[decided?].clone(),
        };
        merged.extend(collection.map(|collection| (name, collection)));
    }
    Some((merged, conflicts))
}
