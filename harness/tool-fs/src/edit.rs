//! `edit` (RUN-9).

use async_trait::async_trait;
use dsh_fs::{Expected, FileBytes, Found, FsError};
use dsh_tools::{Card, ContentBlock, ExecContext, Tool, ToolError, ToolResult};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::args::{self, FILE_PATH, object};
use crate::failure::{failure, refused, unread};
use crate::files::Files;
use crate::guard::Known;
use crate::present;
use crate::render::{self, EditValue};
use crate::replace::{self, Edit};

const NAME: &str = "edit";

const DESCRIPTION: &str = "Replaces old_string by new_string in a file. old_string must be exactly \
    as in the file, white space included, without the line numbers of read, and must occur once \
    unless replace_all is set. Line ends are kept as the file has them.";

pub(crate) struct EditTool {
    files: Files,
    /// Most bytes of a file, before and after.
    limit: u64,
}

impl EditTool {
    pub(crate) fn new(files: Files, limit: u64) -> Self {
        Self { files, limit }
    }
}

#[async_trait]
impl Tool for EditTool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        DESCRIPTION
    }

    fn parameters(&self) -> Value {
        let properties = json!({
            "file_path": {"type": "string", "minLength": 1, "description": FILE_PATH},
            "old_string": {
                "type": "string",
                "description": "The text to replace, not empty.",
            },
            "new_string": {
                "type": "string",
                "description": "The text in its place, another than old_string; empty removes it.",
            },
            "replace_all": {
                "type": "boolean",
                "description": "Whether to replace every occurrence. Defaults to false.",
            },
        });
        object(properties, &["file_path", "old_string", "new_string"])
    }

    fn output(&self) -> Value {
        object(
            json!({
                "path": {"type": "string"},
                "replacements": {"type": "integer", "minimum": 1},
                "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            }),
            &["path", "replacements", "lines"],
        )
    }

    fn check_arguments(&self, arguments: &Value) -> Result<(), String> {
        let text = |key| arguments.get(key).and_then(Value::as_str);
        match (text("old_string"), text("new_string")) {
            (Some(""), _) => Err("\"old_string\" is empty; give the text to replace, or use \
                                  write to make a file or to replace all it holds"
                .to_owned()),
            (Some(old), Some(new)) if old == new => Err("\"old_string\" and \"new_string\" are \
                                                         the same, so that nothing would change"
                .to_owned()),
            // The rest is the schema's.
            _ => Ok(()),
        }
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        let given = args::text(&arguments, "file_path");
        let at = self.files.located(given, &context).await?;
        let target = &at.target;
        let path = &target.display_path;
        let known = self.files.known(&at, &context);
        let read = self
            .files
            .fs
            .read_bytes(target, self.limit, &context.cancel);
        let FileBytes { bytes, version } = match read.await {
            Ok(file) => file,
            Err(error) => {
                return Err(self.files.explained(&error, given, target, &context).await);
            }
        };
        match known {
            None => {}
            Some(Known::Version(known)) if known == version => {}
            Some(Known::Version(_)) => return Err(stale(path, Found::Changed)),
            Some(Known::Absent) => return Err(stale(path, Found::Present)),
            Some(Known::Nothing) => return Err(unread(path)),
        }
        let edit = Edit {
            old: args::text(&arguments, "old_string"),
            new: args::text(&arguments, "new_string"),
            all: arguments.get("replace_all").and_then(Value::as_bool) == Some(true),
            limit: self.limit,
        };
        let edited = replace::apply(&bytes, edit).map_err(|why| refused(path, &why, self.limit))?;
        drop(bytes);
        let expected = Expected::Version(version);
        let written = self
            .files
            .fs
            .write(target, edited.bytes, expected, &context.cancel);
        let version = written.await.map_err(|error| failure(&error))?;
        self.files.present(NAME, true, &at, version, &context);
        let value = EditValue {
            path: at.target.display_path,
            replacements: edited.replacements,
            lines: edited.lines,
        };
        Ok(serde_json::to_value(value).expect("strings and numbers are JSON"))
    }

    fn render(&self, _arguments: &Value, value: &Value) -> Vec<ContentBlock> {
        let text = EditValue::deserialize(value).map_or_else(
            |error| format!("the result cannot be shown: {error}"),
            |value| render::edit(&value),
        );
        vec![ContentBlock::text(text)]
    }

    fn present_call(&self, arguments: &Value) -> Option<Card> {
        present::edit_call(arguments)
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<Card> {
        present::edit_result(result)
    }
}

fn stale(path: &str, found: Found) -> ToolError {
    failure(&FsError::Stale {
        path: path.to_owned(),
        found,
    })
}
