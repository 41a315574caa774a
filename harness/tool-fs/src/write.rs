//! `write` (RUN-9).

use async_trait::async_trait;
use dsh_fs::{Expected, FileKind, FsError};
use dsh_tools::{Card, ContentBlock, ExecContext, Tool, ToolError, ToolResult};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::args::{self, FILE_PATH, object};
use crate::failure::{code, failure, quoted, unread};
use crate::files::{Files, Located};
use crate::guard::Known;
use crate::present;
use crate::render::{self, WriteValue};

const NAME: &str = "write";

const DESCRIPTION: &str = "Writes a whole file: makes it, and the directories on the way, or \
    replaces all that it holds. To change a part of a file, use edit.";

pub(crate) struct WriteTool {
    files: Files,
}

impl WriteTool {
    pub(crate) fn new(files: Files) -> Self {
        Self { files }
    }

    /// What the write expects to find, and whether that is nothing.
    async fn expected(
        &self,
        at: &Located,
        context: &ExecContext,
    ) -> Result<(Expected, bool), ToolError> {
        let target = &at.target;
        let known = self.files.known(at, context);
        match known {
            Some(Known::Absent) => return Ok((Expected::Absent, true)),
            Some(Known::Version(version)) => return Ok((Expected::Version(version), false)),
            Some(Known::Nothing) | None => {}
        }
        match self.files.fs.stat(target, &context.cancel).await {
            // What does not exist cannot have been read.
            Err(FsError::Missing { .. }) if known.is_some() => Ok((Expected::Absent, true)),
            Err(FsError::Missing { .. }) => Ok((Expected::Any, true)),
            Err(error) => Err(failure(&error)),
            Ok(stat) if stat.kind == FileKind::File && known.is_some() => {
                Err(unread(&target.display_path))
            }
            Ok(_) => Ok((Expected::Any, false)),
        }
    }
}

#[async_trait]
impl Tool for WriteTool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        DESCRIPTION
    }

    fn parameters(&self) -> Value {
        let properties = json!({
            "file_path": {"type": "string", "minLength": 1, "description": FILE_PATH},
            "content": {
                "type": "string",
                "description": "All that the file is to hold, written as it is.",
            },
        });
        object(properties, &["file_path", "content"])
    }

    fn output(&self) -> Value {
        object(
            json!({
                "path": {"type": "string"},
                "bytes": {"type": "integer", "minimum": 0},
                "created": {"type": "boolean"},
            }),
            &["path", "bytes", "created"],
        )
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        let given = args::text(&arguments, "file_path");
        if given.ends_with('/') {
            return Err(ToolError::new(
                code::NOT_REGULAR,
                format!(
                    "{} names a directory by its slash at the end; name a file in it",
                    quoted(given)
                ),
            ));
        }
        let bytes = args::text(&arguments, "content").as_bytes().to_vec();
        let size = bytes.len() as u64;
        let at = self.files.located(given, &context).await?;
        let (expected, created) = self.expected(&at, &context).await?;
        let written = self
            .files
            .fs
            .write(&at.target, bytes, expected, &context.cancel);
        let version = written.await.map_err(|error| failure(&error))?;
        self.files.present(NAME, true, &at, version, &context);
        let value = WriteValue {
            path: at.target.display_path,
            bytes: size,
            created,
        };
        Ok(serde_json::to_value(value).expect("strings and numbers are JSON"))
    }

    fn render(&self, _arguments: &Value, value: &Value) -> Vec<ContentBlock> {
        let text = WriteValue::deserialize(value).map_or_else(
            |error| format!("the result cannot be shown: {error}"),
            |value| render::write(&value),
        );
        vec![ContentBlock::text(text)]
    }

    fn present_call(&self, arguments: &Value) -> Option<Card> {
        present::write_call(arguments)
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<Card> {
        present::write_result(result)
    }
}
