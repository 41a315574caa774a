//! `read` (RUN-8).

use async_trait::async_trait;
use dsh_fs::{FileKind, FsError, FsTarget, FsVersion};
use dsh_tools::{Card, ContentBlock, ExecContext, Tool, ToolError, ToolResult};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::args::{self, FILE_PATH, Range, object};
use crate::config::ToolFsConfig;
use crate::failure::{beyond_end, not_text};
use crate::files::Files;
use crate::present;
use crate::render::{self, ReadValue};
use crate::window::{NotText, Shown, Window};

const NAME: &str = "read";

const DESCRIPTION: &str = "Reads a text file and shows its lines with their numbers. Long files \
    come in parts: the last line of the answer says how many lines there are and with which offset \
    to go on. The numbers are no part of the file.";

pub(crate) struct ReadTool {
    files: Files,
    config: ToolFsConfig,
}

/// Why a file was not read.
enum Unread {
    Fs(FsError),
    NotText(NotText),
}

impl From<FsError> for Unread {
    fn from(error: FsError) -> Self {
        Self::Fs(error)
    }
}

impl ReadTool {
    pub(crate) fn new(files: Files, config: ToolFsConfig) -> Self {
        Self { files, config }
    }

    async fn read(
        &self,
        target: &FsTarget,
        range: Range,
        context: &ExecContext,
    ) -> Result<(Shown, FsVersion), Unread> {
        let (fs, cancel) = (&self.files.fs, &context.cancel);
        let stat = fs.stat(target, cancel).await?;
        if stat.kind != FileKind::File {
            return Err(Unread::Fs(FsError::NotRegular {
                path: target.display_path.clone(),
                kind: stat.kind,
            }));
        }
        let mut window = Window::new(range, &self.config);
        let most = self.config.stream_min_size;
        if stat.size.is_some_and(|size| size < most) {
            match fs.read_bytes(target, most, cancel).await {
                Ok(file) => {
                    window.feed(&file.bytes).map_err(Unread::NotText)?;
                    return Ok((window.finish(), file.version));
                }
                // The size was no more than a hint, or the file has grown.
                Err(FsError::TooLarge { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut stream = fs.stream_text(target, cancel).await?;
        while let Some(piece) = stream.next().await {
            window.feed(&piece?).map_err(Unread::NotText)?;
        }
        Ok((window.finish(), stream.version().clone()))
    }
}

#[async_trait]
impl Tool for ReadTool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        DESCRIPTION
    }

    fn parameters(&self) -> Value {
        let most = self.config.limit;
        let properties = json!({
            "file_path": {"type": "string", "minLength": 1, "description": FILE_PATH},
            "offset": {
                "type": "integer",
                "minimum": 1,
                "description": "The first line to show, one-based. Defaults to 1.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": most,
                "description": format!("How many lines to show at most. Defaults to {most}."),
            },
        });
        object(properties, &["file_path"])
    }

    fn output(&self) -> Value {
        let line = object(
            json!({
                "number": {"type": "integer", "minimum": 1},
                "text": {"type": "string"},
            }),
            &["number", "text"],
        );
        object(
            json!({
                "path": {"type": "string"},
                "offset": {"type": "integer", "minimum": 1},
                "lines": {"type": "array", "items": line},
                "totalLines": {"type": "integer", "minimum": 0},
            }),
            &["path", "offset", "lines", "totalLines"],
        )
    }

    fn check_arguments(&self, arguments: &Value) -> Result<(), String> {
        args::check_offset(arguments)
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        let given = args::text(&arguments, "file_path");
        let range = Range::of(&arguments, &self.config);
        let at = self.files.located(given, &context).await?;
        let target = &at.target;
        let (shown, version) = match self.read(target, range, &context).await {
            Ok(read) => read,
            Err(Unread::NotText(why)) => return Err(not_text(&target.display_path, why)),
            Err(Unread::Fs(error)) => {
                if matches!(error, FsError::Missing { .. }) {
                    self.files.absent(NAME, &at, &context);
                }
                return Err(self.files.explained(&error, given, target, &context).await);
            }
        };
        if range.offset > shown.total_lines.max(1) {
            return Err(beyond_end(
                &target.display_path,
                range.offset,
                shown.total_lines,
            ));
        }
        self.files.present(NAME, false, &at, version, &context);
        let value = ReadValue {
            path: at.target.display_path,
            offset: range.offset,
            lines: shown.lines,
            total_lines: shown.total_lines,
        };
        Ok(serde_json::to_value(value).expect("strings and numbers are JSON"))
    }

    fn render(&self, arguments: &Value, value: &Value) -> Vec<ContentBlock> {
        let limit = Range::of(arguments, &self.config).limit;
        // A stage behind the tool may have put another value in its place, which fits the schema
        // and still is none of ours: a line beyond 64 bits, say.
        let text = ReadValue::deserialize(value).map_or_else(
            |error| format!("the result cannot be shown: {error}"),
            |value| render::read(&value, limit),
        );
        vec![ContentBlock::text(text)]
    }

    fn is_concurrency_safe(&self, _arguments: &Value) -> bool {
        true
    }

    fn present_call(&self, arguments: &Value) -> Option<Card> {
        present::read_call(arguments)
    }

    fn present_result(&self, _arguments: &Value, result: &ToolResult) -> Option<Card> {
        present::read_result(result)
    }
}
