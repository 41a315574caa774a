//! Sample workspaces with known answers, as data.
//!
//! A sample is a folder under `samples/`: `sample.yaml` with the questions and their answers,
//! `workspace/` with the files a server is asked about, and `reopened/` with a changed text of one
//! of them. Sources are annotated: `⟦name⟧` stands right before the place it marks, and is gone
//! from the file that is laid out.

mod data;
mod embedded;
mod judge;
mod layout;
mod markers;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

pub use crate::data::DataError;
pub use data::{
    Answer, ExpectedHover, ExpectedLocations, Matching, Operation, Place, Question, Reopened,
    Sample, SampleFile,
};
pub use judge::{FoundLocation, Judgement};
pub use layout::{LaidOut, LayoutError};
pub use markers::{Annotated, Position};

/// The samples that are part of this binary, by name.
pub fn builtin() -> &'static [Sample] {
    static BUILTIN: OnceLock<Vec<Sample>> = OnceLock::new();
    BUILTIN.get_or_init(|| {
        embedded::SAMPLES
            .iter()
            .map(|(name, files)| Sample::parse(name, files.iter().copied()))
            .collect::<Result<_, _>>()
            .expect("a test reads every sample that is part of the binary")
    })
}

/// The sample of that name.
pub fn sample(name: &str) -> Option<&'static Sample> {
    builtin().iter().find(|sample| sample.name == name)
}

/// The JSON Schema of a `sample.yaml`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(data::SampleData).to_value()
}
