//! Outermost fields of a document, one or several, in one walk.
//!
//! A filter asks for its fields one after the other, and often stops after the first. So the walk
//! stops where the field that is asked for is found, remembers the others that it passed, and goes
//! on from there when the next one is asked for: never more than one walk, and never further than
//! needed. Where documents have the same fields in the same order, a walk compares names with those
//! that it expects (`layout`).

mod layout;

use std::fmt;

use crate::document::Document;
use crate::document::value::Value;
use crate::element_type::ElementType;
use crate::name_walk::{Head, Walk};
use crate::raw::{RawElement, element_at};
use layout::{Layout, LayoutExit, LearnedLayout, Progress, ScannedField};

/// Names of at most so many fields are collected; others are looked for by themselves.
pub const SCANNED_NAMES_MAX: usize = 8;

/// The names that will be asked for, each once.
#[derive(Clone, Default, Debug)]
pub struct ScannedNames {
    heads: Vec<Head>,
    names: Vec<Box<[u8]>>,
    learned: LearnedLayout,
}

/// A walk over one document.
pub struct FieldScan<'a> {
    names: &'a ScannedNames,
    /// From where on nothing is expected.
    walk: Walk<'a>,
    /// The expected next element as long as all elements were as expected, and how many were.
    layout: Option<&'a Layout>,
    progress: Progress,
    /// The place where the first field of each name begins, by number; 0 if the walk has not passed
    /// it. Small, since one is made for each document.
    found: [u32; SCANNED_NAMES_MAX],
}

impl ScannedNames {
    /// The names, by number.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }

    /// The number by which to ask for `name`; `None` if there are too many already.
    pub fn add(&mut self, name: &str) -> Option<u8> {
        let name = name.as_bytes();
        if let Some(position) = self.names.iter().position(|known| **known == *name) {
            return Some(position as u8);
        }
        if self.names.len() == SCANNED_NAMES_MAX || name.contains(&0) {
            return None;
        }
        self.names.push(name.into());
        self.heads.push(Head::of(name));
        self.learned = LearnedLayout::default();
        Some(self.names.len() as u8 - 1)
    }
}

/// The places of fields with some names in a document: for a caller that needs all of them.
pub struct FieldPlaces<'a> {
    names: &'a ScannedNames,
    bytes: &'a [u8],
    /// The place of each field by number; 0 where there is none.
    found: [u32; SCANNED_NAMES_MAX],
}

impl ScannedNames {
    /// Looks all of them up in one walk, which ends where the last one is found. `None` if that is
    /// no better than asking the document: there are no names, or it has an index.
    #[inline]
    pub fn places<'a>(&'a self, document: Document<'a>) -> Option<FieldPlaces<'a>> {
        if self.names.is_empty() || document.is_indexed() {
            return None;
        }
        let mut scan = FieldScan::new(document, self);
        for number in 0..self.names.len() {
            if scan.found[number] == 0 {
                scan.walk_to(number);
            }
        }
        Some(FieldPlaces { names: self, bytes: scan.walk.bytes, found: scan.found })
    }
}

impl<'a> FieldPlaces<'a> {
    /// The value of the first field with the name of that number.
    #[inline]
    pub fn get(&self, number: u8) -> Option<Value<'a>> {
        let number = usize::from(number);
        match *self.found.get(number)? {
            0 => None,
            offset => {
                let name_bytes = self.names.names.get(number)?.len();
                element_at(self.bytes, offset as usize, name_bytes)?.decode()
            }
        }
    }
}

impl fmt::Debug for FieldPlaces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FieldPlaces").field(self.names).finish()
    }
}

impl<'a> FieldScan<'a> {
    /// Begins a walk over `document` for `names`.
    pub fn new(document: Document<'a>, names: &'a ScannedNames) -> FieldScan<'a> {
        let bytes = document.as_bytes();
        FieldScan {
            names,
            walk: Walk::over(bytes),
            layout: names.learned.layout(bytes, names),
            progress: Progress::START,
            found: [0; SCANNED_NAMES_MAX],
        }
    }

    /// Shows each field that is asked for to `visit`, in the document's order, until it says
    /// `true`: its number, its type and its value's bytes. Returns whether it did; if not, what
    /// wasn't shown isn't there. To be called before any field is asked for.
    #[inline]
    pub fn visit_all(&mut self, mut visit: impl FnMut(u8, ElementType, &'a [u8]) -> bool) -> bool {
        let mut open = self.names.names.len();
        let mut is_stopped = false;
        self.visit(|field| {
            open -= 1;
            is_stopped = visit(field.number, field.kind, field.value);
            is_stopped || open == 0
        });
        is_stopped
    }

    /// The first field with the name of that number, undecoded.
    #[inline]
    pub fn get(&mut self, number: u8) -> Option<RawElement<'a>> {
        let number = usize::from(number);
        let offset = match *self.found.get(number)? {
            0 => self.walk_to(number)?,
            offset => offset,
        };
        let name_bytes = self.names.names.get(number)?.len();
        element_at(self.walk.bytes, offset as usize, name_bytes)
    }

    /// Returns where the first field with the name of that number begins.
    fn walk_to(&mut self, number: usize) -> Option<u32> {
        self.visit(|field| usize::from(field.number) == number);
        self.found.get(number).copied().filter(|offset| *offset != 0)
    }

    /// Walks on, and shows each field that is asked for and is the first of its name to `visit`,
    /// until it says `true`.
    #[inline(always)]
    fn visit(&mut self, mut visit: impl FnMut(ScannedField<'a>) -> bool) {
        let found = &mut self.found;
        let mut visit = |field: ScannedField<'a>| {
            let place = &mut found[usize::from(field.number) % SCANNED_NAMES_MAX];
            let is_first = *place == 0;
            if is_first {
                *place = field.offset as u32;
            }
            is_first && visit(field)
        };
        if let Some(layout) = self.layout {
            match layout.follow(self.walk.bytes, &mut self.progress, &mut visit) {
                LayoutExit::Stopped => return,
                LayoutExit::Unexpected(offset) => self.walk.offset = offset,
            }
            self.layout = None;
        }
        search(self.names, &mut self.walk, &mut visit);
    }
}

/// Walks on from where nothing is expected, until `visit` says `true`.
fn search<'a>(
    names: &ScannedNames,
    walk: &mut Walk<'a>,
    visit: &mut dyn FnMut(ScannedField<'a>) -> bool,
) {
    // A copy stays in registers.
    let mut here = walk.clone();
    loop {
        let offset = here.offset;
        let Some(field) = here.next() else { break };
        if !names.heads.contains(&field.head) {
            continue;
        }
        let Some(position) = names.position(field.head, field.name) else { continue };
        let field =
            ScannedField { number: position as u8, offset, kind: field.kind, value: field.value };
        if visit(field) {
            break;
        }
    }
    *walk = here;
}

impl ScannedNames {
    /// The number of a name that begins like one of them.
    #[inline]
    fn position(&self, head: Head, name: &[u8]) -> Option<usize> {
        match head.is_whole() {
            true => self.heads.iter().position(|wanted| *wanted == head),
            false => self.names.iter().position(|wanted| **wanted == *name),
        }
    }
}
