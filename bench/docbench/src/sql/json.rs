//! The words of each dialect for what is inside a JSON document.

use crate::query::{Answer, Change, Kind};
use crate::sql::documents::json;
use crate::sql::{Dialect, SqlValue};
use crate::target::Failure;

impl Dialect {
    /// The type of a key or of an indexed column.
    pub fn column_type(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Dialect::Sqlite, Kind::Integer) => "integer",
            (_, Kind::Integer) => "bigint",
            (Dialect::Postgres | Dialect::Sqlite, Kind::Text) => "text",
            // RocksDB in MariaDB has keys of 767 bytes at most, four a letter.
            (_, Kind::Text) => "varchar(180)",
        }
    }

    /// The type of a document's column.
    pub fn document_type(self) -> &'static str {
        match self {
            Dialect::Postgres => "jsonb",
            Dialect::MariaDb | Dialect::MySql => "json",
            Dialect::Sqlite => "blob",
        }
    }

    /// A document's parameter, given as text.
    pub fn document_parameter(self) -> &'static str {
        match self {
            Dialect::Postgres => "?::text::jsonb",
            Dialect::MariaDb | Dialect::MySql => "?",
            Dialect::Sqlite => "jsonb(?)",
        }
    }

    /// Whether indexes are on columns, not on expressions.
    pub fn indexes_columns(self) -> bool {
        matches!(self, Dialect::MariaDb | Dialect::MySql)
    }

    /// A field as a value that can be compared.
    pub fn field(self, path: &str, kind: Kind) -> String {
        match (self, kind) {
            (Dialect::Postgres, Kind::Integer) => format!("(doc #>> '{}')::bigint", braces(path)),
            (Dialect::Postgres, Kind::Text) => format!("(doc #>> '{}')", braces(path)),
            (Dialect::Sqlite, _) => format!("json_extract(doc, '{}')", dollar(path)),
            (Dialect::MariaDb, Kind::Integer) => {
                format!("cast(json_value(doc, '{}') as signed)", dollar(path))
            }
            (Dialect::MariaDb, Kind::Text) => format!("json_value(doc, '{}')", dollar(path)),
            (Dialect::MySql, Kind::Integer) => {
                format!("cast(json_extract(doc, '{}') as signed)", dollar(path))
            }
            (Dialect::MySql, Kind::Text) => {
                format!("json_unquote(json_extract(doc, '{}'))", dollar(path))
            }
        }
    }

    /// Returns the expression to select.
    pub fn answer(self, answer: &Answer) -> String {
        match (answer, self) {
            (Answer::Count, _) => "count(*)".into(),
            (Answer::Documents, Dialect::Postgres) => "doc::text".into(),
            (Answer::Documents, Dialect::Sqlite) => "json(doc)".into(),
            (Answer::Documents, Dialect::MariaDb | Dialect::MySql) => "doc".into(),
            (Answer::Fields(paths), _) => self.object(paths),
        }
    }

    /// A JSON object of fields, each named by the last part of its path.
    fn object(self, paths: &[String]) -> String {
        let mut fields = Vec::new();
        for path in paths {
            let name = path.rsplit('.').next().unwrap_or_default();
            let value = match self {
                Dialect::Postgres => format!("doc #> '{}'", braces(path)),
                Dialect::Sqlite => format!("doc -> '{}'", dollar(path)),
                Dialect::MariaDb | Dialect::MySql => {
                    format!("json_extract(doc, '{}')", dollar(path))
                }
            };
            fields.push(format!("'{name}', {value}"));
        }
        let fields = fields.join(", ");
        match self {
            Dialect::Postgres => format!("jsonb_build_object({fields})::text"),
            _ => format!("json_object({fields})"),
        }
    }

    /// The document `document` with a change; its parameters are added in the order of their `?`.
    pub fn changed(
        self,
        document: &str,
        change: &Change,
        parameters: &mut Vec<SqlValue>,
    ) -> Result<String, Failure> {
        let value = match self {
            Dialect::Postgres => "?::text::jsonb",
            Dialect::Sqlite => "json(?)",
            Dialect::MariaDb => "json_extract(?, '$')",
            Dialect::MySql => "cast(? as json)",
        };
        Ok(match change {
            Change::Set(path, set) => {
                parameters.push(SqlValue::Text(json(set)));
                self.set(document, path, value)
            }
            Change::Add(path, number) => {
                parameters.push(SqlValue::Integer(*number));
                let field = self.field(path, Kind::Integer);
                match self {
                    Dialect::Postgres => {
                        self.set(document, path, &format!("to_jsonb({field} + ?::bigint)"))
                    }
                    _ => self.set(document, path, &format!("{field} + ?")),
                }
            }
            Change::InsertAt { path, position, value: inserted } => {
                parameters.push(SqlValue::Text(json(inserted)));
                let place = format!("{path}.{position}");
                match self {
                    Dialect::Postgres => {
                        format!("jsonb_insert({document}, '{}', {value})", braces(&place))
                    }
                    Dialect::Sqlite => {
                        let reason = "SQLite has no function that inserts into an array";
                        return Err(Failure::Unsupported(reason.into()));
                    }
                    _ => format!("json_array_insert({document}, '{}', {value})", dollar(&place)),
                }
            }
            Change::RemoveAt { path, position, .. } => {
                let place = format!("{path}.{position}");
                match self {
                    Dialect::Postgres => format!("{document} #- '{}'", braces(&place)),
                    Dialect::Sqlite => format!("jsonb_remove({document}, '{}')", dollar(&place)),
                    _ => format!("json_remove({document}, '{}')", dollar(&place)),
                }
            }
        })
    }

    fn set(self, document: &str, path: &str, value: &str) -> String {
        match self {
            Dialect::Postgres => format!("jsonb_set({document}, '{}', {value})", braces(path)),
            Dialect::Sqlite => format!("jsonb_set({document}, '{}', {value})", dollar(path)),
            _ => format!("json_set({document}, '{}', {value})", dollar(path)),
        }
    }
}

/// `a.b.0` as PostgreSQL writes a path.
fn braces(path: &str) -> String {
    format!("{{{}}}", path.replace('.', ","))
}

/// `a.b.0` as SQL/JSON writes a path.
fn dollar(path: &str) -> String {
    let mut text = "$".to_owned();
    for part in path.split('.') {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            text += &format!("[{part}]");
        } else {
            text += &format!(".{part}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, in_braces, with_dollar) in
            [("a", "{a}", "$.a"), ("a.b.0.c", "{a,b,0,c}", "$.a.b[0].c")]
        {
            assert_eq!(braces(path), in_braces);
            assert_eq!(dollar(path), with_dollar);
        }
    }
}
