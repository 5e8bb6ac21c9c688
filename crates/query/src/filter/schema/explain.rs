//! Explains why a value doesn't keep a schema, in the form of MongoDB's `errInfo.details`.

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};

use super::{Dependency, Rule, Schema, Test};
use crate::filter::evaluate::Run;

impl Schema {
    /// The `details` of a document that doesn't match.
    pub(crate) fn details(&self, document: Document<'_>, run: &Run<'_>) -> DocumentBuf {
        let mut details = DocumentBuilder::new();
        details.append("operatorName", Value::String("$jsonSchema"));
        self.append_annotations(&mut details);
        self.append_failures(
            &mut details,
            "schemaRulesNotSatisfied",
            Value::Document(document),
            run,
        );
        details.build()
    }

    fn append_annotations(&self, out: &mut DocumentBuilder) {
        for (name, text) in [("title", &self.title), ("description", &self.description)] {
            if let Some(text) = text {
                out.append(name, Value::String(text));
            }
        }
    }

    /// Appends the rules that aren't kept, as an array.
    fn append_failures(
        &self,
        out: &mut DocumentBuilder,
        name: &str,
        value: Value<'_>,
        run: &Run<'_>,
    ) {
        out.begin_array(name);
        for rule in self.rules.iter().filter(|rule| !rule.test.is_kept(value, run)) {
            out.push_begin_document();
            rule.append_failure(out, value, run);
            out.end();
        }
        out.end();
    }
}

impl Rule {
    fn append_failure(&self, out: &mut DocumentBuilder, value: Value<'_>, run: &Run<'_>) {
        out.append("operatorName", Value::String(&self.keyword));
        if !matches!(
            self.test,
            Test::Properties(_)
                | Test::PatternProperties(_)
                | Test::Items(_)
                | Test::ItemsInOrder(_)
                | Test::All(_)
                | Test::Any(_)
                | Test::One(_)
                | Test::Not(_)
                | Test::Dependencies(_)
        ) {
            out.begin_document("specifiedAs")
                .append(&self.keyword, self.specified.as_value())
                .end();
        }
        match (&self.test, value) {
            (Test::All(schemas) | Test::Any(schemas) | Test::One(schemas), _) => {
                append_branches(out, schemas, matches!(self.test, Test::One(_)), value, run);
            }
            (_, Value::Document(document)) => self.append_document(out, document, run),
            (_, Value::Array(array)) => self.append_array(out, array, run),
            _ => self.append_reason(out, value),
        }
    }

    /// Appends the fields of a document that fail.
    fn append_document(&self, out: &mut DocumentBuilder, document: Document<'_>, run: &Run<'_>) {
        match &self.test {
            Test::Properties(properties) => {
                out.begin_array("propertiesNotSatisfied");
                for (name, schema) in properties {
                    let found = document.get(name).filter(|value| !schema.matches(*value, run));
                    if let Some(value) = found {
                        append_property(out, name, schema, value, run);
                    }
                }
                out.end();
            }
            Test::PatternProperties(patterns) => {
                out.begin_array("details");
                for (name, value) in document.iter() {
                    for (pattern, schema) in patterns {
                        if super::names(pattern, name, run) && !schema.matches(value, run) {
                            append_property(out, name, schema, value, run);
                        }
                    }
                }
                out.end();
            }
            Test::OtherProperties { .. } => {
                out.begin_array("additionalProperties");
                for (name, _) in document.iter().filter(|(name, _)| self.test.is_other(name, run)) {
                    out.push(Value::String(name));
                }
                out.end();
            }
            Test::Required(names) => {
                append_missing(out, "missingProperties", names, document);
            }
            Test::PropertyCount(_) => {
                let count = i32::try_from(document.iter().count()).unwrap_or(i32::MAX);
                let reason = "specified number of properties was not satisfied";
                out.append("reason", Value::String(reason));
                out.append("numberOfProperties", Value::Int32(count));
            }
            Test::Dependencies(dependencies) => {
                out.begin_array("failingDependencies");
                for (name, dependency) in dependencies {
                    if document.get(name).is_some() && !dependency.is_kept(document, run) {
                        append_dependency(out, (name, dependency), document, run);
                    }
                }
                out.end();
            }
            _ => self.append_reason(out, Value::Document(document)),
        }
    }

    /// Appends the items of an array that fail.
    fn append_array(&self, out: &mut DocumentBuilder, array: Array<'_>, run: &Run<'_>) {
        match &self.test {
            Test::Items(schema) => {
                let failing =
                    array.iter().enumerate().find(|(_, item)| !schema.matches(*item, run));
                append_item(out, schema, failing, run);
            }
            Test::ItemsInOrder(schemas) => {
                let mut pairs = array.iter().zip(schemas).enumerate();
                let failing = pairs.find(|(_, (item, schema))| !schema.matches(*item, run));
                if let Some((place, (item, schema))) = failing {
                    append_item(out, schema, Some((place, item)), run);
                }
            }
            Test::OtherItems(after, _) => {
                out.append("reason", Value::String("found additional items"));
                out.begin_array("additionalItems");
                array.iter().skip(*after).for_each(|item| {
                    out.push(item);
                });
                out.end();
            }
            _ => self.append_reason(out, Value::Array(array)),
        }
    }

    /// The failures that are reported by a sentence and the value.
    fn append_reason(&self, out: &mut DocumentBuilder, value: Value<'_>) {
        let reason = match &self.test {
            Test::Type(_) => "type did not match",
            Test::Enum(_) => "value was not found in enum",
            Test::Bound { .. } => "comparison failed",
            Test::MultipleOf(_) => "considered value is not a multiple of the specified value",
            Test::Length(_) => "specified string length was not satisfied",
            Test::Pattern(_) => "regular expression did not match",
            Test::ItemCount(_) => "array did not match specified length",
            Test::UniqueItems => "found a duplicate item",
            Test::Not(_) => "child expression matched",
            _ => return,
        };
        out.append("reason", Value::String(reason));
        if matches!(self.test, Test::Not(_)) {
            return;
        }
        out.append("consideredValue", value);
        match (&self.test, value) {
            (Test::Type(_), _) => {
                out.append("consideredType", Value::String(value.element_type().alias()));
            }
            (Test::UniqueItems, Value::Array(array)) => {
                if let Some(item) = super::duplicate(array) {
                    out.append("duplicatedValue", item);
                }
            }
            _ => {}
        }
    }
}

/// Appends the fields that a document lacks and the property `name` requires.
fn append_dependency(
    out: &mut DocumentBuilder,
    (name, dependency): (&str, &Dependency),
    document: Document<'_>,
    run: &Run<'_>,
) {
    out.push_begin_document();
    out.append("conditionalProperty", Value::String(name));
    match dependency {
        Dependency::Properties(names) => append_missing(out, "missingProperties", names, document),
        Dependency::Schema(schema) => {
            schema.append_failures(out, "details", Value::Document(document), run);
        }
    }
    out.end();
}

fn append_property(
    out: &mut DocumentBuilder,
    name: &str,
    schema: &Schema,
    value: Value<'_>,
    run: &Run<'_>,
) {
    out.push_begin_document();
    out.append("propertyName", Value::String(name));
    schema.append_annotations(out);
    schema.append_failures(out, "details", value, run);
    out.end();
}

fn append_missing(
    out: &mut DocumentBuilder,
    field: &str,
    names: &[String],
    document: Document<'_>,
) {
    out.begin_array(field);
    for name in names.iter().filter(|name| document.get(name).is_none()) {
        out.push(Value::String(name));
    }
    out.end();
}

fn append_item(
    out: &mut DocumentBuilder,
    schema: &Schema,
    failing: Option<(usize, Value<'_>)>,
    run: &Run<'_>,
) {
    let Some((place, item)) = failing else { return };
    out.append("reason", Value::String("At least one item did not match the sub-schema"));
    out.append("itemIndex", Value::Int32(i32::try_from(place).unwrap_or(i32::MAX)));
    schema.append_failures(out, "details", item, run);
}

/// The branches of `allOf`, `anyOf` or `oneOf`: of the last, several may have matched.
fn append_branches(
    out: &mut DocumentBuilder,
    schemas: &[Schema],
    is_one: bool,
    value: Value<'_>,
    run: &Run<'_>,
) {
    let number = |place: usize| Value::Int32(i32::try_from(place).unwrap_or(i32::MAX));
    let matching: Vec<usize> =
        (0..schemas.len()).filter(|place| schemas[*place].matches(value, run)).collect();
    if is_one && !matching.is_empty() {
        out.append("reason", Value::String("more than one subschema matched"));
        out.begin_array("matchingSchemaIndexes");
        for place in &matching {
            out.push(number(*place));
        }
        out.end();
        return;
    }
    out.begin_array("schemasNotSatisfied");
    for (place, schema) in
        schemas.iter().enumerate().filter(|(_, schema)| !schema.matches(value, run))
    {
        out.push_begin_document().append("index", number(place));
        schema.append_failures(out, "details", value, run);
        out.end();
    }
    out.end();
}
