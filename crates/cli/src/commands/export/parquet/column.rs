//! Columns of Parquet, and the rows whose values they hold.
//!
//! Each value carries two levels, as in Dremel (Melnik et al., 2010): how many of the optional and
//! repeated parts of its path are there, and which of the repeated ones began anew. All columns are
//! optional; an array is the three-level list of Parquet's specification.

use std::collections::HashMap;
use std::sync::Arc;

use frond_doc::extended_json::Form;
use frond_doc::{Document, Value};
use parquet::basic::{LogicalType, Repetition};
use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::commands::export::parquet::kind::{Kind, Names, Typing};
use crate::commands::export::parquet::leaf::{Leaf, Levels};
use crate::input::parquet::{DECIMAL, OBJECT_ID};

/// Columns whose texts stand for something else: by path, without the names of lists' parts.
pub type Texts = Vec<(Vec<String>, &'static str)>;

/// The columns of a file, and rows that aren't written yet.
pub struct Columns {
    fields: Fields,
    form: Form,
    /// The types that texts stand for.
    pub texts: Texts,
    /// About what the rows take.
    pub bytes: usize,
    /// The number of rows.
    pub rows: usize,
}

/// Columns by name.
struct Fields {
    all: Vec<(String, Column)>,
    positions: HashMap<String, usize>,
}

enum Column {
    Fields(Fields),
    List(Box<Column>),
    Leaf(Leaf),
}

impl Columns {
    /// The columns for all that was noted.
    pub fn of(root: Kind, typing: &Typing) -> Columns {
        let mut texts = Vec::new();
        let names = if let Kind::Document(names) = root { names } else { Names::default() };
        let fields = Fields::of(names, &mut Vec::new(), &mut texts);
        Columns { fields, form: typing.form, texts, bytes: 0, rows: 0 }
    }

    /// The schema of the file.
    ///
    /// # Errors
    /// An error of the library.
    pub fn schema(&self) -> Result<TypePtr> {
        let fields = self.fields.types()?;
        Ok(Arc::new(Type::group_type_builder("documents").with_fields(fields).build()?))
    }

    /// Adds a document as the next row.
    pub fn add(&mut self, document: Document<'_>) {
        self.bytes += document.as_bytes().len();
        self.rows += 1;
        self.fields.add(Some(document), Levels::default(), self.form);
    }

    /// Writes the rows as a group, and has none then.
    ///
    /// # Errors
    /// An error of the library; what writing fails with.
    pub fn write(&mut self, writer: &mut SerializedFileWriter<Vec<u8>>) -> Result<()> {
        let mut group = writer.next_row_group()?;
        for leaf in self.fields.leaves() {
            let mut column = group.next_column()?.expect("as many columns as leaves");
            leaf.write(&mut column)?;
            column.close()?;
        }
        group.close()?;
        (self.bytes, self.rows) = (0, 0);
        Ok(())
    }
}

impl Fields {
    fn of(names: Names, path: &mut Vec<String>, texts: &mut Texts) -> Fields {
        let column = |(name, kind): (String, Kind)| {
            path.push(name.clone());
            let column = Column::of(kind, path, texts);
            path.pop();
            (name, column)
        };
        let all = names.all.into_iter().map(column).collect();
        Fields { all, positions: names.positions }
    }

    fn types(&self) -> Result<Vec<TypePtr>> {
        self.all.iter().map(|(name, column)| column.type_of(name)).collect()
    }

    fn leaves(&mut self) -> Vec<&mut Leaf> {
        self.all.iter_mut().flat_map(|(_, column)| column.leaves()).collect()
    }

    fn add(&mut self, document: Option<Document<'_>>, levels: Levels, form: Form) {
        let mut values = vec![None; self.all.len()];
        for (name, value) in document.iter().flat_map(Document::iter) {
            if let Some(position) = self.positions.get(name) {
                values[*position] = Some(value);
            }
        }
        for ((_, column), value) in self.all.iter_mut().zip(values) {
            column.add(value, levels, form);
        }
    }
}

impl Column {
    fn of(kind: Kind, path: &mut Vec<String>, texts: &mut Texts) -> Column {
        match kind {
            // A group of no columns isn't allowed.
            Kind::Document(names) if names.all.is_empty() => Column::Leaf(Leaf::of(&Kind::Json)),
            Kind::Document(names) => Column::Fields(Fields::of(names, path, texts)),
            Kind::Array(inner) => Column::List(Box::new(Column::of(*inner, path, texts))),
            plain => {
                match plain {
                    Kind::ObjectId => texts.push((path.clone(), OBJECT_ID)),
                    Kind::Decimal => texts.push((path.clone(), DECIMAL)),
                    _ => {}
                }
                Column::Leaf(Leaf::of(&plain))
            }
        }
    }

    fn type_of(&self, name: &str) -> Result<TypePtr> {
        let group = || Type::group_type_builder(name).with_repetition(Repetition::OPTIONAL);
        let built = match self {
            Column::Fields(fields) => group().with_fields(fields.types()?).build()?,
            Column::List(inner) => {
                let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
                let list = list.with_fields(vec![inner.type_of("element")?]).build()?;
                let group = group().with_logical_type(Some(LogicalType::List));
                group.with_fields(vec![Arc::new(list)]).build()?
            }
            Column::Leaf(leaf) => leaf.type_of(name)?,
        };
        Ok(Arc::new(built))
    }

    fn leaves(&mut self) -> Vec<&mut Leaf> {
        match self {
            Column::Fields(fields) => fields.leaves(),
            Column::List(inner) => inner.leaves(),
            Column::Leaf(leaf) => vec![leaf],
        }
    }

    fn add(&mut self, value: Option<Value<'_>>, levels: Levels, form: Form) {
        let value = value.filter(|value| !matches!(value, Value::Null | Value::Undefined));
        match (self, value) {
            (Column::Fields(fields), Some(Value::Document(document))) => {
                fields.add(Some(document), levels.there(), form);
            }
            (Column::Fields(fields), _) => fields.add(None, levels, form),
            (Column::List(inner), Some(Value::Array(array))) if !array.is_empty() => {
                let first = levels.there().first_element();
                for (position, value) in array.iter().enumerate() {
                    let levels = if position == 0 { first } else { first.next_element() };
                    inner.add(Some(value), levels, form);
                }
            }
            (Column::List(inner), value) => {
                let levels = if value.is_some() { levels.there() } else { levels };
                inner.leaves().into_iter().for_each(|leaf| leaf.push_absent(levels));
            }
            (Column::Leaf(leaf), Some(value)) => leaf.push(value, levels.there(), form),
            (Column::Leaf(leaf), None) => leaf.push_absent(levels),
        }
    }
}
