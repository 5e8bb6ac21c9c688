//! Documents in SQL: a table for each collection, `id` its key, `doc` the document as JSON.
//!
//! [`SqlDocuments`] gives any [`SqlSession`] the document operations of a [`Session`]. The
//! statements are those that the database's manual recommends:
//!
//! - PostgreSQL: `jsonb`, expression indexes, `jsonb_set`, `jsonb_insert`, `#-`;
//! - SQLite: JSONB in a `blob`, expression indexes, `jsonb_set`;
//! - MySQL and Dolt: `json`, computed columns that are indexed, `json_set`, `json_array_insert`;
//! - MariaDB: the same over text.
//!
//! MariaDB and Dolt don't find an index by the expression, so that a query must name the column:
//! [`Columns`] remembers which paths have one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bson::Bson;
use bytes::Bytes;

use crate::query::{Answer, Change, CollectionSpec, Comparison, Direction, IndexSpec, Kind, Query};
use crate::sql::{Dialect, SqlSession, SqlValue};
use crate::target::{Encoded, Failure, Session};

/// Rows in one `insert`.
const ROWS_MAX: usize = 500;

/// The indexed columns of all collections; shared by a target's sessions.
#[derive(Clone, Default)]
pub struct Columns {
    by_path: Arc<Mutex<BTreeMap<(String, String), String>>>,
}

impl Columns {
    fn get(&self, collection: &str, path: &str) -> Option<String> {
        let by_path = self.by_path.lock().unwrap_or_else(PoisonError::into_inner);
        by_path.get(&(collection.to_owned(), path.to_owned())).cloned()
    }

    fn add(&self, collection: &str, path: &str, column: &str) {
        let mut by_path = self.by_path.lock().unwrap_or_else(PoisonError::into_inner);
        by_path.insert((collection.to_owned(), path.to_owned()), column.to_owned());
    }

    fn forget(&self, collection: &str) {
        let mut by_path = self.by_path.lock().unwrap_or_else(PoisonError::into_inner);
        by_path.retain(|(other, _), _| other != collection);
    }
}

/// The document operations of a connection.
pub struct SqlDocuments<S> {
    sql: S,
    columns: Columns,
}

impl<S: SqlSession> SqlDocuments<S> {
    /// Makes one on a connection.
    pub fn new(sql: S, columns: Columns) -> SqlDocuments<S> {
        SqlDocuments { sql, columns }
    }

    fn dialect(&self) -> Dialect {
        self.sql.dialect()
    }

    /// The column of an indexed field, made if it isn't there; only where expressions aren't
    /// indexed.
    fn column(&mut self, collection: &str, path: &str, kind: Kind) -> Result<String, Failure> {
        if let Some(column) = self.columns.get(collection, path) {
            return Ok(column);
        }
        let column = format!("field_{}", path.replace('.', "_"));
        let field = self.dialect().field(path, kind);
        let kind = self.dialect().column_type(kind);
        if self.sql.computes_columns() {
            self.sql.run(&format!(
                "alter table {collection} add column {column} {kind} generated always as ({field}) \
                 virtual"
            ))?;
        } else {
            self.fill_column(collection, &column, kind, &field)?;
        }
        self.columns.add(collection, path, &column);
        Ok(column)
    }

    /// A column that triggers keep, for an engine that computes none.
    fn fill_column(
        &mut self,
        collection: &str,
        column: &str,
        kind: &str,
        field: &str,
    ) -> Result<(), Failure> {
        self.sql.run(&format!("alter table {collection} add column {column} {kind}"))?;
        let of_new = field.replace("(doc,", "(new.doc,");
        for event in ["insert", "update"] {
            self.sql.run(&format!(
                "create trigger {collection}_{column}_{event} before {event} on {collection} \
                 for each row set new.{column} = {of_new}"
            ))?;
        }
        self.sql.run(&format!("update {collection} set {column} = {field}"))
    }

    /// A field as it is compared and sorted: its column if it has one.
    fn field(&self, collection: &str, path: &str, kind: Kind) -> String {
        if path == "_id" {
            return "id".into();
        }
        let column = self.columns.get(collection, path);
        column.unwrap_or_else(|| self.dialect().field(path, kind))
    }

    fn statement(&self, query: &Query) -> (String, Vec<SqlValue>) {
        let answer = self.dialect().answer(&query.answer);
        let mut statement = format!("select {answer} from {}", query.collection);
        let mut parameters = Vec::new();
        for (position, condition) in query.conditions.iter().enumerate() {
            let values = match &condition.value {
                Bson::Array(values) => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            let is_text = matches!(values.first(), Some(Bson::String(_)));
            let kind = if is_text { Kind::Text } else { Kind::Integer };
            let field = self.field(&query.collection, &condition.path, kind);
            let comparison = match condition.comparison {
                Comparison::Equal => "= ?".to_owned(),
                Comparison::AtLeast => ">= ?".to_owned(),
                Comparison::Less => "< ?".to_owned(),
                Comparison::AnyOf => format!("in ({})", vec!["?"; values.len()].join(", ")),
            };
            let word = if position == 0 { "where" } else { "and" };
            statement += &format!(" {word} {field} {comparison}");
            parameters.extend(values.iter().map(scalar));
        }
        if let Some(sort) = &query.sort {
            let field = self.field(&query.collection, &sort.path, sort.kind);
            let direction = match sort.direction {
                Direction::Ascending => "",
                Direction::Descending => " desc",
            };
            statement += &format!(" order by {field}{direction}");
        }
        if let Some(limit) = query.limit {
            statement += &format!(" limit {limit}");
        }
        (statement, parameters)
    }
}

/// A scalar as a parameter.
fn scalar(value: &Bson) -> SqlValue {
    match value {
        Bson::Null => SqlValue::Null,
        Bson::Int32(value) => SqlValue::Integer(i64::from(*value)),
        Bson::Int64(value) => SqlValue::Integer(*value),
        Bson::Boolean(value) => SqlValue::Integer(i64::from(*value)),
        Bson::Double(value) => SqlValue::Real(*value),
        Bson::String(text) => SqlValue::Text(text.clone()),
        other => SqlValue::Text(json(other)),
    }
}

/// A value as JSON text.
pub fn json(value: &Bson) -> String {
    let mut text = String::new();
    write_json(value, &mut text);
    text
}

fn write_json(value: &Bson, text: &mut String) {
    match value {
        Bson::Array(values) => {
            text.push('[');
            for (position, value) in values.iter().enumerate() {
                text.push_str(if position == 0 { "" } else { "," });
                write_json(value, text);
            }
            text.push(']');
        }
        Bson::Document(fields) => {
            text.push('{');
            for (position, (name, value)) in fields.iter().enumerate() {
                text.push_str(if position == 0 { "" } else { "," });
                text.push_str(&serde_json::Value::from(name.as_str()).to_string());
                text.push(':');
                write_json(value, text);
            }
            text.push('}');
        }
        Bson::String(string) => {
            text.push_str(&serde_json::Value::from(string.as_str()).to_string());
        }
        Bson::Int32(number) => text.push_str(&number.to_string()),
        Bson::Int64(number) => text.push_str(&number.to_string()),
        Bson::Double(number) => text.push_str(&serde_json::Value::from(*number).to_string()),
        Bson::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
        // Workloads use no other types: see the head of `crate::query`.
        _ => text.push_str("null"),
    }
}

impl<S: SqlSession> Session for SqlDocuments<S> {
    fn create(&mut self, collection: &CollectionSpec) -> Result<(), Failure> {
        let dialect = self.dialect();
        self.columns.forget(&collection.name);
        self.sql.run(&format!("drop table if exists {}", collection.name))?;
        let statement = format!(
            "create table {} (id {} primary key, doc {} not null){}",
            collection.name,
            dialect.column_type(collection.id),
            dialect.document_type(),
            self.sql.table_options(),
        );
        self.sql.run(&statement)?;
        for index in &collection.indexes {
            self.create_index(&collection.name, index)?;
        }
        Ok(())
    }

    fn create_index(&mut self, collection: &str, index: &IndexSpec) -> Result<(), Failure> {
        let mut fields = Vec::new();
        for (path, kind) in &index.fields {
            fields.push(if self.dialect().indexes_columns() {
                self.column(collection, path, *kind)?
            } else {
                format!("({})", self.dialect().field(path, *kind))
            });
        }
        let name = format!("{collection}_{}", index.name);
        self.sql.run(&format!("create index {name} on {collection} ({})", fields.join(", ")))
    }

    fn insert(&mut self, collection: &str, documents: &[Encoded]) -> Result<(), Failure> {
        let row = format!("(?, {})", self.dialect().document_parameter());
        let several = documents.len() > ROWS_MAX;
        if several {
            self.sql.begin()?;
        }
        for part in documents.chunks(ROWS_MAX) {
            let rows = vec![row.as_str(); part.len()].join(", ");
            let mut parameters = Vec::with_capacity(part.len() * 2);
            for document in part {
                parameters.push(scalar(&document.id));
                let text = std::str::from_utf8(&document.bytes).map_err(Failure::other)?;
                parameters.push(SqlValue::Text(text.to_owned()));
            }
            let statement = format!("insert into {collection} (id, doc) values {rows}");
            self.sql.execute(&statement, &parameters)?;
        }
        if several { self.sql.commit() } else { Ok(()) }
    }

    fn get(&mut self, collection: &str, id: &Bson) -> Result<Option<Bytes>, Failure> {
        let answer = self.dialect().answer(&Answer::Documents);
        let statement = format!("select {answer} from {collection} where id = ?");
        let mut found = None;
        self.sql.query(&statement, &[scalar(id)], &mut |row| {
            found = Some(Bytes::from(first(row)?.text()?.to_owned()));
            Ok(())
        })?;
        Ok(found)
    }

    fn find(
        &mut self,
        query: &Query,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let (statement, parameters) = self.statement(query);
        let mut count = 0;
        let only_count = matches!(query.answer, Answer::Count);
        self.sql.query(&statement, &parameters, &mut |row| {
            if only_count {
                count = first(row)?.integer()? as u64;
                return Ok(());
            }
            count += 1;
            each(first(row)?.text()?.as_bytes())
        })?;
        Ok(count)
    }

    fn update(&mut self, collection: &str, id: &Bson, changes: &[Change]) -> Result<u64, Failure> {
        let (mut document, mut parameters) = ("doc".to_owned(), Vec::new());
        for change in changes {
            document = self.dialect().changed(&document, change, &mut parameters)?;
        }
        parameters.push(scalar(id));
        let statement = format!("update {collection} set doc = {document} where id = ?");
        self.sql.execute(&statement, &parameters)
    }

    fn copy(&mut self, from: &str, to: &str, change: &Change) -> Result<(), Failure> {
        let mut parameters = Vec::new();
        let document = self.dialect().changed("doc", change, &mut parameters)?;
        let statement = format!("insert into {to} (id, doc) select id, {document} from {from}");
        self.sql.execute(&statement, &parameters)?;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.sql.begin()
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.sql.commit()
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.sql.rollback()
    }

    fn sql(&mut self) -> Option<&mut dyn SqlSession> {
        Some(&mut self.sql)
    }
}

fn first(row: &[SqlValue]) -> Result<&SqlValue, Failure> {
    row.first().ok_or_else(|| Failure::Wrong("a row without columns".into()))
}
