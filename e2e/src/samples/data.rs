//! A sample as its folder says it, with every marker resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::markers::{Annotated, Position};
use super::part::Part;
use crate::data::{self, DataError};

/// The four operations, by their names at the seam.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// `textDocument/definition`.
    GoToDefinition,
    /// `textDocument/references`, the declaration included.
    FindReferences,
    /// `textDocument/implementation`.
    GoToImplementation,
    /// `textDocument/hover`.
    Hover,
}

impl Operation {
    /// All four, in the order they are reported.
    pub const ALL: [Self; 4] = [
        Self::GoToDefinition,
        Self::FindReferences,
        Self::GoToImplementation,
        Self::Hover,
    ];

    /// The name at the seam, e.g. `goToDefinition`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GoToDefinition => "goToDefinition",
            Self::FindReferences => "findReferences",
            Self::GoToImplementation => "goToImplementation",
            Self::Hover => "hover",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A sample workspace and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The name of its folder.
    pub name: String,
    /// The language, as people write it.
    pub language: String,
    /// One sentence on what the workspace is.
    pub summary: String,
    /// The files to lay out, by path.
    pub files: Vec<SampleFile>,
    /// Questions with known answers; at least one for each operation the language knows.
    pub questions: Vec<Question>,
    /// Questions about a changed text of a file (QUA-5).
    pub reopened: Vec<Reopened>,
    /// Questions behind a character outside the basic plane on the same line (QUA-12).
    pub columns: Vec<Question>,
    /// Questions in, or answered by, files whose path has a space and letters outside ASCII
    /// (QUA-13).
    pub paths: Vec<Question>,
    /// Questions about one file whose answer lies in another that changed on disk (QUA-18).
    pub changed: Vec<Changed>,
    /// What the language has nothing for, with the reason.
    pub without: BTreeMap<Part, String>,
    /// Why no name of the language is known outside the file that defines it, where that is so:
    /// then nothing is asked across files.
    pub within_one_file: Option<String>,
}

/// A file of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFile {
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// The text without markers, with the line ends it is laid out with; may hold `${workspace}`.
    pub text: String,
    /// Marker name → position.
    pub markers: BTreeMap<String, Position>,
}

/// A marked place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, relative to the workspace, with `/`.
    pub file: String,
    /// The marker.
    pub marker: String,
    /// Where it stands.
    pub position: Position,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

/// A question and its known answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub operation: Operation,
    /// Where it is asked.
    pub at: Place,
    /// What is true.
    pub answer: Answer,
}

/// A known answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Places.
    Locations(ExpectedLocations),
    /// Text.
    Hover(ExpectedHover),
}

/// The places that make an answer right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedLocations {
    /// Each of these has to be there.
    pub all: Vec<Place>,
    /// These may be there too; nothing else may.
    pub may: Vec<Place>,
    /// How a range is compared with a place.
    pub matching: Matching,
}

/// The text that makes a hover right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedHover {
    /// Each of these has to be part of the contents.
    pub contains: Vec<String>,
}

/// How an answered range is compared with a marked place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Matching {
    /// The range starts at the place.
    #[default]
    Start,
    /// The range starts at the place, or before it in the same line or the lines above, and ends
    /// behind it: for servers that answer with the whole declaration.
    Covers,
}

/// A file with a changed text, and a question that only the changed text answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reopened {
    /// The file that changes, relative to the workspace.
    pub file: String,
    /// Its new text without markers; may hold `${workspace}`.
    pub text: String,
    /// The question; places in `file` are those of the new text.
    pub question: Question,
}

/// A file that changes on disk while another one is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The file that changes, relative to the workspace.
    pub file: String,
    /// Its new text without markers; may hold `${workspace}`.
    pub text: String,
    /// The question, about a file that stays as it is; places in `file` are those of the new text.
    pub question: Question,
}

/// A place as data writes it: `file@marker`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
struct MarkerRef {
    file: String,
    marker: String,
}

impl TryFrom<String> for MarkerRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.rsplit_once('@') {
            Some((file, marker)) if !file.is_empty() && !marker.is_empty() => Ok(Self {
                file: file.to_owned(),
                marker: marker.to_owned(),
            }),
            _ => Err(format!("\"{text}\" is no place: write file@marker")),
        }
    }
}

impl From<MarkerRef> for String {
    fn from(place: MarkerRef) -> Self {
        format!("{}@{}", place.file, place.marker)
    }
}

/// `sample.yaml`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "Sample workspace", rename = "Sample")]
pub(super) struct SampleData {
    /// The language, as people write it.
    language: String,
    /// One sentence on what the workspace is.
    summary: String,
    /// Questions with known answers.
    questions: Vec<QuestionData>,
    /// Questions about a changed text of a file.
    reopened: Vec<ReopenedData>,
    /// Questions behind a character outside the basic plane on the same line.
    #[serde(default)]
    columns: Vec<QuestionData>,
    /// Questions in, or answered by, files whose path has a space and letters outside ASCII.
    #[serde(default)]
    paths: Vec<QuestionData>,
    /// Questions about one file whose answer lies in another that changed on disk.
    #[serde(default)]
    changed: Vec<ReopenedData>,
    /// Files that are laid out with CR LF at the end of every line.
    #[serde(default)]
    crlf: BTreeSet<String>,
    /// What the language has nothing for, with the reason.
    #[serde(default)]
    without: BTreeMap<Part, String>,
    /// Why no name of the language is known outside the file that defines it, where that is so:
    /// then nothing is asked across files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within_one_file: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Question")]
struct QuestionData {
    /// What is asked.
    operation: Operation,
    /// Where it is asked: `file@marker`.
    at: MarkerRef,
    /// What is true.
    answer: AnswerData,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Reopened")]
struct ReopenedData {
    /// The file that changes.
    file: String,
    /// The annotated new text: a file below `reopened/` or `changed/`.
    text: String,
    /// What is asked.
    operation: Operation,
    /// Where it is asked; places in the file that changes are those of the new text.
    at: MarkerRef,
    /// What is true.
    answer: AnswerData,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Answer")]
enum AnswerData {
    /// Places.
    Locations(LocationsData),
    /// Text.
    Hover(HoverData),
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ExpectedLocations")]
struct LocationsData {
    /// Each of these has to be there.
    all: Vec<MarkerRef>,
    /// These may be there too; nothing else may.
    #[serde(default)]
    may: Vec<MarkerRef>,
    /// How a range is compared with a place.
    #[serde(default)]
    matching: Matching,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ExpectedHover")]
struct HoverData {
    /// Each of these has to be part of the contents.
    contains: Vec<String>,
}

impl Sample {
    /// Reads the sample `name` from its files: (path below the sample's folder with `/`, text).
    pub fn parse<'a>(
        name: &str,
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, DataError> {
        let mut folder = Folder {
            name,
            ..Folder::default()
        };
        for (path, text) in files {
            folder.add(path, text)?;
        }
        folder.finish()
    }

    /// The file at `path`, relative to the workspace.
    pub fn file(&self, path: &str) -> Option<&SampleFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// The files of a sample's folder, sorted by what they are for.
#[derive(Default)]
struct Folder<'a> {
    name: &'a str,
    data: Option<&'a str>,
    workspace: BTreeMap<&'a str, Annotated>,
    reopened: BTreeMap<&'a str, Annotated>,
    changed: BTreeMap<&'a str, Annotated>,
}

const DATA: &str = "sample.yaml";

impl<'a> Folder<'a> {
    fn origin(&self, path: &str) -> String {
        format!("samples/{}/{path}", self.name)
    }

    fn error(&self, path: &str, message: impl Into<String>) -> DataError {
        DataError::whole(&self.origin(path), message)
    }

    fn add(&mut self, path: &'a str, text: &'a str) -> Result<(), DataError> {
        if path == DATA {
            self.data = Some(text);
        } else if let Some(relative) = path.strip_prefix("workspace/") {
            let annotated = self.annotated(path, text)?;
            self.workspace.insert(relative, annotated);
        } else if let Some(relative) = path.strip_prefix("reopened/") {
            let annotated = self.annotated(path, text)?;
            self.reopened.insert(relative, annotated);
        } else if let Some(relative) = path.strip_prefix("changed/") {
            let annotated = self.annotated(path, text)?;
            self.changed.insert(relative, annotated);
        } else {
            let message = "belongs to nothing: a sample is sample.yaml, workspace/, reopened/ and \
                           changed/";
            return Err(self.error(path, message));
        }
        Ok(())
    }

    fn annotated(&self, path: &str, text: &str) -> Result<Annotated, DataError> {
        let annotated = Annotated::parse(text).map_err(|error| DataError {
            origin: self.origin(path),
            line: u64::from(error.position().line) + 1,
            column: u64::from(error.position().character) + 1,
            message: error.to_string(),
        })?;
        if annotated.text.contains(super::layout::WORKSPACE) && !annotated.markers.is_empty() {
            let message = "has both ${workspace} and markers: the folder's name moves them";
            return Err(self.error(path, message));
        }
        Ok(annotated)
    }

    fn finish(mut self) -> Result<Sample, DataError> {
        let text = self.data.ok_or_else(|| self.error(DATA, "is missing"))?;
        let data: SampleData = data::parse(&self.origin(DATA), text)?;
        let all = |questions: Vec<QuestionData>| {
            let questions = questions.into_iter();
            questions
                .map(|q| self.question(q.operation, &q.at, q.answer, None))
                .collect::<Result<Vec<_>, _>>()
        };
        let (questions, columns, paths) =
            (all(data.questions)?, all(data.columns)?, all(data.paths)?);
        let crlf = &data.crlf;
        if let Some(unknown) = crlf
            .iter()
            .find(|f| !self.workspace.contains_key(f.as_str()))
        {
            let message = format!("there is no workspace/{unknown} to lay out with CR LF");
            return Err(self.error(DATA, message));
        }
        let reopened = data.reopened.into_iter();
        let reopened = reopened
            .map(|r| self.reopening(r, crlf))
            .collect::<Result<Vec<_>, _>>()?;
        let changed = data.changed.into_iter();
        let changed = changed
            .map(|c| self.change(c, crlf))
            .collect::<Result<Vec<_>, _>>()?;
        let files = std::mem::take(&mut self.workspace).into_iter();
        Ok(Sample {
            name: self.name.to_owned(),
            language: data.language,
            summary: data.summary,
            files: files
                .map(|(path, annotated)| SampleFile {
                    path: path.to_owned(),
                    text: with_ends(path, &annotated.text, crlf),
                    markers: annotated.markers,
                })
                .collect(),
            questions,
            reopened,
            columns,
            paths,
            changed,
            without: data.without,
            within_one_file: data.within_one_file,
        })
    }

    fn reopening(
        &self,
        data: ReopenedData,
        crlf: &BTreeSet<String>,
    ) -> Result<Reopened, DataError> {
        let annotated = self.new_text("reopened", &self.reopened, &data)?;
        if data.at.file != data.file {
            let message = format!("a question about {} is asked elsewhere", data.file);
            return Err(self.error(DATA, message));
        }
        let changed = Some((data.file.as_str(), annotated));
        let question = self.question(data.operation, &data.at, data.answer, changed)?;
        Ok(Reopened {
            text: with_ends(&data.file, &annotated.text, crlf),
            file: data.file,
            question,
        })
    }

    fn change(&self, data: ReopenedData, crlf: &BTreeSet<String>) -> Result<Changed, DataError> {
        let annotated = self.new_text("changed", &self.changed, &data)?;
        if data.at.file == data.file {
            let message = format!(
                "{} changes and is asked about: ask in another file, or write it under reopened",
                data.file
            );
            return Err(self.error(DATA, message));
        }
        let changed = Some((data.file.as_str(), annotated));
        let question = self.question(data.operation, &data.at, data.answer, changed)?;
        Ok(Changed {
            text: with_ends(&data.file, &annotated.text, crlf),
            file: data.file,
            question,
        })
    }

    /// The annotated new text of a file that changes.
    fn new_text<'t>(
        &self,
        folder: &str,
        texts: &'t BTreeMap<&'a str, Annotated>,
        data: &ReopenedData,
    ) -> Result<&'t Annotated, DataError> {
        if !self.workspace.contains_key(data.file.as_str()) {
            let message = format!("there is no workspace/{} that could change", data.file);
            return Err(self.error(DATA, message));
        }
        texts
            .get(data.text.as_str())
            .ok_or_else(|| self.error(DATA, format!("there is no {folder}/{}", data.text)))
    }

    fn question(
        &self,
        operation: Operation,
        at: &MarkerRef,
        answer: AnswerData,
        changed: Option<(&str, &Annotated)>,
    ) -> Result<Question, DataError> {
        let places = |places: &[MarkerRef]| {
            places
                .iter()
                .map(|place| self.place(place, changed))
                .collect::<Result<Vec<_>, _>>()
        };
        let at = self.place(at, changed)?;
        let answer = match (operation, answer) {
            (Operation::Hover, AnswerData::Hover(hover)) if !hover.contains.is_empty() => {
                Answer::Hover(ExpectedHover {
                    contains: hover.contains,
                })
            }
            (Operation::Hover, _) => {
                return Err(self.error(DATA, "a hover is answered by text: hover: {contains: […]}"));
            }
            (_, AnswerData::Locations(locations)) if !locations.all.is_empty() => {
                Answer::Locations(ExpectedLocations {
                    all: places(&locations.all)?,
                    may: places(&locations.may)?,
                    matching: locations.matching,
                })
            }
            (operation, _) => {
                let message = format!("{operation} is answered by places: locations: {{all: […]}}");
                return Err(self.error(DATA, message));
            }
        };
        Ok(Question {
            operation,
            at,
            answer,
        })
    }

    fn place(
        &self,
        place: &MarkerRef,
        changed: Option<(&str, &Annotated)>,
    ) -> Result<Place, DataError> {
        let annotated = match changed {
            Some((file, annotated)) if file == place.file => annotated,
            _ => self.workspace.get(place.file.as_str()).ok_or_else(|| {
                let known = self.workspace.keys().copied();
                let hint = data::nearest(&place.file, known)
                    .map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
                self.error(DATA, format!("there is no workspace/{}{hint}", place.file))
            })?,
        };
        let Some(position) = annotated.markers.get(&place.marker) else {
            let known = annotated.markers.keys().map(String::as_str);
            let hint = data::nearest(&place.marker, known)
                .map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
            let message = format!("{} has no marker \"{}\"{hint}", place.file, place.marker);
            return Err(self.error(DATA, message));
        };
        Ok(Place {
            file: place.file.clone(),
            marker: place.marker.clone(),
            position: *position,
        })
    }
}

/// The text with the line ends that the file is laid out with.
fn with_ends(file: &str, text: &str, crlf: &BTreeSet<String>) -> String {
    if crlf.contains(file) {
        text.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        text.to_owned()
    }
}
