//! Sample workspaces with known answers, as data.
//!
//! A sample is a folder under `samples/`: `sample.yaml` with the questions and their answers,
//! `workspace/` with the files a server is asked about, `reopened/` with a changed text of one of
//! them, and `changed/` with one of a file that changes on disk while another is asked about. Sources are annotated: `⟦name⟧` stands right before the place it marks, and is gone
//! from the file that is laid out.

mod data;
mod judge;
mod layout;
mod markers;
mod part;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

pub use crate::data::DataError;
pub use data::{
    Answer, Changed, ExpectedHover, ExpectedLocations, Matching, Operation, Place, Question,
    Reopened, Sample, SampleFile,
};
pub use judge::{FoundLocation, Judgement};
pub use layout::{LaidOut, LayoutError};
pub use markers::{Annotated, Position};
pub use part::Part;

/// The samples that are part of this binary, by name.
pub fn builtin() -> &'static [Sample] {
    static BUILTIN: OnceLock<Vec<Sample>> = OnceLock::new();
    BUILTIN.get_or_init(|| own().expect("a test reads every sample that is part of the binary"))
}

fn own() -> Result<Vec<Sample>, DataError> {
    let files = crate::embedded::SAMPLES.all()?;
    let mut folders: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in &files {
        if let Some((folder, path)) = path.split_once('/') {
            folders.entry(folder).or_default().push((path, text));
        }
    }
    let folders = folders.into_iter();
    folders
        .map(|(name, files)| Sample::parse(name, files))
        .collect()
}

/// The sample of that name.
pub fn sample(name: &str) -> Option<&'static Sample> {
    builtin().iter().find(|sample| sample.name == name)
}

/// Reads the sample in `folder`, which is kept as long as the program runs: for samples that a
/// user's own entries name, each read once.
pub fn kept(folder: &Path) -> Result<&'static Sample, DataError> {
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    let files = crate::embedded::read_folder(folder)?;
    let files = files
        .iter()
        .map(|(path, text)| (path.as_ref(), text.as_ref()));
    let sample = Sample::parse(&name.to_string_lossy(), files)?;
    Ok(Box::leak(Box::new(sample)))
}

/// The JSON Schema of a `sample.yaml`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(data::SampleData).to_value()
}
