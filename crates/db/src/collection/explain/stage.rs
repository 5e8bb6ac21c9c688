//! The stages of a plan as a tree, and as `winningPlan` and `executionStages` show them.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

/// A stage of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    name: &'static str,
    details: DocumentBuf,
    inputs: Vec<Stage>,
    returned: u64,
    /// Further counters, as `executionStages` names them.
    counters: Vec<(&'static str, u64)>,
    /// Whether it isn't one of MongoDB's executor, which counts works and yields.
    is_express: bool,
}

impl Stage {
    /// A stage that reads a collection or an index.
    pub fn leaf(name: &'static str, details: DocumentBuf, returned: u64) -> Stage {
        Stage {
            name,
            details,
            inputs: Vec::new(),
            returned,
            counters: Vec::new(),
            is_express: false,
        }
    }

    /// The only stage of a search that goes beside MongoDB's planner.
    pub fn express(name: &'static str, details: DocumentBuf, returned: u64) -> Stage {
        Stage { is_express: true, ..Stage::leaf(name, details, returned) }
    }

    /// A stage over another one, from which everything comes out.
    pub fn over(name: &'static str, details: DocumentBuf, input: Stage) -> Stage {
        let returned = input.returned;
        Stage { inputs: vec![input], ..Stage::leaf(name, details, returned) }
    }

    /// A stage over several.
    pub fn over_all(name: &'static str, inputs: Vec<Stage>, returned: u64) -> Stage {
        Stage { inputs, ..Stage::leaf(name, DocumentBuf::empty(), returned) }
    }

    /// This stage, which gave so many documents.
    pub fn returning(mut self, returned: u64) -> Stage {
        self.returned = returned;
        self
    }

    /// This stage, with a counter.
    pub fn counting(mut self, name: &'static str, count: u64) -> Stage {
        self.counters.push((name, count));
        self
    }

    /// This stage, with more details.
    pub fn detailed(mut self, more: DocumentBuf) -> Stage {
        let mut details = DocumentBuilder::new();
        for (name, value) in self.details.iter().chain(more.iter()) {
            details.append(name, value);
        }
        self.details = details.build();
        self
    }

    /// This tree, with stages of one name called another.
    pub fn renamed(mut self, from: &str, to: &'static str) -> Stage {
        if self.name == from {
            self.name = to;
        }
        self.inputs = self.inputs.into_iter().map(|input| input.renamed(from, to)).collect();
        self
    }

    /// Returns how many documents came out.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// The tree as `winningPlan` shows it.
    pub fn plan(&self) -> DocumentBuf {
        let mut builder = self.head();
        self.append_inputs(&mut builder, &Stage::plan);
        builder.build()
    }

    /// The tree as `executionStages` shows it. Times are those of the whole query.
    pub fn execution(&self, millis: i64) -> DocumentBuf {
        let mut builder = self.head();
        let works = self.counters.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let works = works.max(self.returned).saturating_add(1);
        if self.is_express {
            for (name, count) in &self.counters {
                builder.append(name, number(*count));
            }
            builder.append("nReturned", number(self.returned));
            return builder.build();
        }
        builder.append("nReturned", number(self.returned));
        builder.append("executionTimeMillisEstimate", Value::Int64(millis));
        builder.append("works", number(works));
        builder.append("advanced", number(self.returned));
        builder.append("needTime", number(works - 1 - self.returned.min(works - 1)));
        builder.append("needYield", number(0));
        builder.append("saveState", number(0));
        builder.append("restoreState", number(0));
        builder.append("isEOF", Value::Int32(1));
        for (name, count) in &self.counters {
            builder.append(name, number(*count));
        }
        self.append_inputs(&mut builder, &|input| input.execution(millis));
        builder.build()
    }

    fn head(&self) -> DocumentBuilder {
        let mut builder = DocumentBuilder::new();
        builder.append("stage", Value::String(self.name));
        for (name, value) in self.details.iter() {
            builder.append(name, value);
        }
        builder
    }

    fn append_inputs(
        &self,
        builder: &mut DocumentBuilder,
        describe: &dyn Fn(&Stage) -> DocumentBuf,
    ) {
        match &self.inputs[..] {
            [] => {}
            [input] => {
                builder.append("inputStage", Value::from(&describe(input)));
            }
            inputs => {
                builder.begin_array("inputStages");
                for input in inputs {
                    builder.push(Value::from(&describe(input)));
                }
                builder.end();
            }
        }
    }
}

/// A counter.
pub(crate) fn number(number: u64) -> Value<'static> {
    i32::try_from(number)
        .map_or_else(|_| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)), Value::Int32)
}

/// A filter as MongoDB shows it once it is parsed: every condition with its operator.
pub(crate) fn parsed_query(filter: Document<'_>) -> DocumentBuf {
    let mut conditions = Vec::new();
    for (name, value) in filter.iter() {
        match value {
            Value::Array(branches) if matches!(name, "$and" | "$or" | "$nor") => {
                let mut parsed = DocumentBuilder::new();
                parsed.begin_array(name);
                for branch in branches.iter().filter_map(|branch| branch.as_document()) {
                    parsed.push(Value::from(&parsed_query(branch)));
                }
                parsed.end();
                conditions.push(parsed.build());
            }
            Value::Document(operators) if !name.starts_with('$') && has_operators(operators) => {
                let options = operators.get("$options");
                for (operator, operand) in operators.iter().filter(|(name, _)| *name != "$options")
                {
                    let mut parsed = DocumentBuilder::new();
                    parsed.begin_document(name).append(operator, operand);
                    if let (Some(options), "$regex") = (options, operator) {
                        parsed.append("$options", options);
                    }
                    parsed.end();
                    conditions.push(parsed.build());
                }
            }
            _ if name.starts_with('$') => {
                let mut parsed = DocumentBuilder::new();
                parsed.append(name, value);
                conditions.push(parsed.build());
            }
            _ => conditions.push(equality(name, value)),
        }
    }
    match &conditions[..] {
        [] => DocumentBuf::empty(),
        [only] => only.clone(),
        _ => {
            let mut parsed = DocumentBuilder::new();
            parsed.begin_array("$and");
            for condition in &conditions {
                parsed.push(Value::from(condition));
            }
            parsed.end();
            parsed.build()
        }
    }
}

/// The condition that a field has a value, or a text that a regular expression matches.
fn equality(name: &str, value: Value<'_>) -> DocumentBuf {
    let mut condition = DocumentBuilder::new();
    condition.begin_document(name);
    match value {
        Value::Regex(regex) => {
            condition.append("$regex", Value::String(regex.pattern));
            if !regex.options.is_empty() {
                condition.append("$options", Value::String(regex.options));
            }
        }
        _ => {
            condition.append("$eq", value);
        }
    }
    condition.end();
    condition.build()
}

fn has_operators(document: Document<'_>) -> bool {
    document
        .iter()
        .next()
        .is_some_and(|(name, _)| name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db"))
}
