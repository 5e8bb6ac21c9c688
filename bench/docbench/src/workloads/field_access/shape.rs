//! The publication's shapes: names `field_001` and so on, values
//! `value_1_padding_to_ensure_reasonable_field_size`.

use bson::{Bson, Document};

/// A shape and the field that is asked for.
pub struct Shape {
    /// As it is reported.
    pub name: &'static str,
    fields: u64,
    /// Counts from 1.
    position: u64,
    /// The number of documents that lie around the innermost one.
    depth: u64,
}

/// All eight.
pub const SHAPES: &[Shape] = &[
    Shape { name: "field 1 of 100", fields: 100, position: 1, depth: 0 },
    Shape { name: "field 50 of 100", fields: 100, position: 50, depth: 0 },
    Shape { name: "field 100 of 100", fields: 100, position: 100, depth: 0 },
    Shape { name: "field 500 of 500", fields: 500, position: 500, depth: 0 },
    Shape { name: "field 1000 of 1000", fields: 1_000, position: 1_000, depth: 0 },
    Shape { name: "depth 1", fields: 20, position: 20, depth: 1 },
    Shape { name: "depth 3", fields: 20, position: 20, depth: 3 },
    Shape { name: "depth 5", fields: 20, position: 20, depth: 5 },
];

impl Shape {
    /// The document: with a depth, each level has the fields, and after them the next level.
    pub fn document(&self) -> Document {
        let mut document = self.level();
        for level in (0..self.depth).rev() {
            let mut outer = self.level();
            outer.insert(name_of_level(level), document);
            document = outer;
        }
        let mut whole = Document::new();
        whole.insert("_id", "document");
        whole.extend(document);
        whole
    }

    fn level(&self) -> Document {
        let value = |number| format!("value_{number}_padding_to_ensure_reasonable_field_size");
        (1..=self.fields)
            .map(|number| (self.name_of(number), Bson::String(value(number))))
            .collect()
    }

    fn name_of(&self, number: u64) -> String {
        let digits = if self.fields < 1_000 { 3 } else { 4 };
        format!("field_{number:0digits$}")
    }

    fn at_level(&self, level: u64, number: u64) -> String {
        let mut path = String::new();
        for outer in 0..level {
            path += &name_of_level(outer);
            path.push('.');
        }
        path + &self.name_of(number)
    }

    /// The field that is asked for, at the innermost level.
    pub fn path(&self) -> String {
        self.at_level(self.depth, self.position)
    }

    /// All fields at all levels.
    pub fn paths(&self) -> Vec<String> {
        let levels = 0..=self.depth;
        levels
            .flat_map(|level| (1..=self.fields).map(move |number| self.at_level(level, number)))
            .collect()
    }
}

fn name_of_level(level: u64) -> String {
    format!("level_{level}")
}

/// The letters that `times` gets over the paths in turn find, or as many scans of all values.
pub fn letters(document: &Document, is_scan: bool, paths: &[String], times: u64) -> u64 {
    if is_scan {
        return all_letters(document) * times;
    }
    let found: Vec<u64> = paths.iter().map(|path| letters_at(document, path)).collect();
    let (rounds, rest) = (times / paths.len() as u64, times % paths.len() as u64);
    found.iter().sum::<u64>() * rounds + found.iter().take(rest as usize).sum::<u64>()
}

fn all_letters(document: &Document) -> u64 {
    let of = |value: &Bson| match value {
        Bson::String(text) => text.len() as u64,
        Bson::Document(inner) => all_letters(inner),
        _ => 0,
    };
    document.values().map(of).sum()
}

fn letters_at(document: &Document, path: &str) -> u64 {
    match path.split_once('.') {
        None => document.get_str(path).map_or(0, |text| text.len() as u64),
        Some((first, rest)) => {
            document.get_document(first).map_or(0, |inner| letters_at(inner, rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_the_publications() {
        for shape in SHAPES {
            let document = shape.document();
            assert_eq!(shape.paths().len() as u64, shape.fields * (shape.depth + 1));
            assert!(letters_at(&document, &shape.path()) > 40, "{}", shape.name);
            let each: u64 = shape.paths().iter().map(|path| letters_at(&document, path)).sum();
            assert_eq!(each + "document".len() as u64, all_letters(&document));
        }
        assert_eq!(SHAPES[4].path(), "field_1000");
        assert_eq!(SHAPES[6].path(), "level_0.level_1.level_2.field_020");
    }

    #[test]
    fn letters_of_some_gets() {
        let document = bson::doc! { "a": "12", "b": { "c": "345" } };
        let paths = ["a".to_owned(), "b.c".to_owned(), "x".to_owned()];
        assert_eq!(letters(&document, false, &paths, 5), 2 + 3 + 2 + 3);
        assert_eq!(letters(&document, true, &paths, 2), 10);
    }
}
