//! `failCommand`: which commands fail, and how.

use std::time::Duration;

use frond_db::Error;
use frond_doc::{Document, DocumentBuf};
use frond_query::Code;

use crate::fail_points::CommandFault;
use crate::fields::Fields;

/// The command that turns fail points on and off is never hit.
const NEVER_HIT: &str = "configureFailPoint";

/// A command that may fail.
pub struct FaultedCommand<'a> {
    /// Its name in the table, and its aliases.
    pub names: (&'a str, &'a [&'a str]),
    /// `database.collection`.
    pub namespace: &'a str,
    /// The name that the client's application gives itself.
    pub app_name: Option<&'a str>,
}

/// The commands that fail, and how.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FailCommand {
    commands: Vec<String>,
    all_commands: bool,
    app_name: Option<String>,
    namespace: Option<String>,
    block: Option<Duration>,
    closes: bool,
    code: Option<Code>,
    concern_error: Option<DocumentBuf>,
    labels: Option<Vec<String>>,
}

impl FailCommand {
    /// Reads `data`.
    ///
    /// # Errors
    /// Those of fields of commands; `InvalidOptions` if a command is to be blocked for no time.
    pub fn read(data: Document<'_>) -> Result<FailCommand, Error> {
        let mut fields = Fields::of_part("configureFailPoint.data", data)?;
        let commands = strings(&mut fields, "failCommands")?;
        let all_commands = fields.boolean("failAllCommands")?;
        // All clients are applications here.
        fields.boolean("failInternalCommands")?;
        let app_name = fields.string("appName")?.map(str::to_owned);
        let namespace = fields.string("namespace")?.map(str::to_owned);
        let blocks = fields.boolean("blockConnection")?;
        let millis = fields.count("blockTimeMS")?;
        let closes = fields.boolean("closeConnection")?;
        let code = read_code(&mut fields, "errorCode")?;
        let concern_error = fields.document("writeConcernError")?.map(|error| error.to_buf());
        let labels = strings(&mut fields, "errorLabels")?;
        fields.finish()?;
        let block = match (blocks, millis) {
            (false, _) => None,
            (true, Some(millis)) => Some(Duration::from_millis(millis)),
            (true, None) => {
                let message = "must specify 'blockTimeMS' when 'blockConnection' is true";
                return Err(Error::invalid(Code::InvalidOptions, message));
            }
        };
        Ok(FailCommand {
            commands: commands.unwrap_or_default(),
            all_commands,
            app_name,
            namespace,
            block,
            closes,
            code,
            concern_error,
            labels,
        })
    }

    /// Whether a command is one of those that fail.
    pub fn is_for(&self, command: &FaultedCommand<'_>) -> bool {
        let (name, aliases) = command.names;
        let is_named = |wanted: &String| wanted == name || aliases.contains(&wanted.as_str());
        name != NEVER_HIT
            && (self.all_commands || self.commands.iter().any(is_named))
            && self.app_name.as_deref().is_none_or(|wanted| command.app_name == Some(wanted))
            && self.namespace.as_deref().is_none_or(|wanted| command.namespace == wanted)
    }

    /// Returns the actions on a command that fails.
    pub fn hit(self) -> CommandFault {
        let message = "Failing command via 'failCommand' failpoint";
        CommandFault {
            block: self.block,
            closes: self.closes,
            error: self.code.map(|code| Error::invalid(code, message)),
            concern_error: self.concern_error,
            labels: self.labels,
        }
    }
}

/// Takes an error's code; 0 is none.
///
/// # Errors
/// `BadValue` if no error has such a code.
pub fn read_code(fields: &mut Fields<'_>, name: &str) -> Result<Option<Code>, Error> {
    let Some(number) = fields.integer(name)?.filter(|number| *number != 0) else { return Ok(None) };
    match i32::try_from(number) {
        Ok(number) if number > 0 => Ok(Some(Code::of(number))),
        _ => Err(Error::invalid(Code::BadValue, format!("{name} {number} isn't an error's code"))),
    }
}

fn strings(fields: &mut Fields<'_>, name: &str) -> Result<Option<Vec<String>>, Error> {
    let Some(array) = fields.array(name)? else { return Ok(None) };
    let mut strings = Vec::new();
    for value in array.iter() {
        match value.as_str() {
            Some(string) => strings.push(string.to_owned()),
            None => return Err(fields.wrong_type(name, value, "type 'string'")),
        }
    }
    Ok(Some(strings))
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    fn read(data: DocumentBuf) -> Result<FailCommand, i32> {
        FailCommand::read(data.view()).map_err(|error| error.code.number())
    }

    fn list(of: &[&str]) -> DocumentBuf {
        let mut builder = frond_doc::DocumentBuilder::new();
        builder.begin_array("failCommands");
        for name in of {
            builder.push(frond_doc::Value::String(name));
        }
        builder.end();
        builder.build()
    }

    #[test]
    fn commands_are_chosen_by_name_application_and_namespace() {
        let command = |name, aliases, app_name| FaultedCommand {
            names: (name, aliases),
            namespace: "shop.items",
            app_name,
        };
        let named = read(list(&["find", "ismaster", "configureFailPoint"])).expect("read");
        assert!(named.is_for(&command("find", &[], None)));
        assert!(named.is_for(&command("isMaster", &["ismaster"], None)));
        assert!(!named.is_for(&command("insert", &[], None)));
        assert!(!named.is_for(&command("configureFailPoint", &[], None)));
        let by_app = FailCommand { app_name: Some("app".to_owned()), ..named.clone() };
        assert!(by_app.is_for(&command("find", &[], Some("app"))));
        assert!(!by_app.is_for(&command("find", &[], Some("other"))));
        assert!(!by_app.is_for(&command("find", &[], None)));
        for (namespace, expected) in [("shop.items", true), ("shop.other", false)] {
            let of = FailCommand { namespace: Some(namespace.to_owned()), ..named.clone() };
            assert_eq!(of.is_for(&command("find", &[], None)), expected);
        }
    }

    #[test]
    fn unknown_fail_points_are_refused() {
        for (data, code) in [
            (document! { "blockConnection": true }, 72),
            (document! { "errorCode": -5_i32 }, 2),
            (document! { "errorCode": "x" }, 14),
            (document! { "failCommands": 1_i32 }, 14),
            (document! { "writeConcernError": 1_i32 }, 14),
            (document! { "errorExtraInfo": 1_i32 }, 40415),
        ] {
            assert_eq!(read(data.clone()), Err(code), "{data:?}");
        }
        let data =
            document! { "blockConnection": true, "blockTimeMS": 5_i32, "errorCode": 10107_i32 };
        let hit = read(data).expect("read").hit();
        assert_eq!(hit.block, Some(Duration::from_millis(5)));
        assert_eq!(hit.error.map(|error| error.code), Some(Code::NotWritablePrimary));
    }
}
