//! Reading a stored report.

use serde::Deserialize;

use crate::model::{FORMAT, Report};

/// Why a text is not a report that this version reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The text is not JSON, or not an object with the fields of a report.
    #[error("not a report of the form {FORMAT} ({0}); was the file cut, or is it something else?")]
    Malformed(#[from] serde_json::Error),
    /// It says it is a report, of another version.
    #[error(
        "the report has the format {found:?}, this program reads {FORMAT:?}; \
         render it with the version of dsh-conform that wrote it, or run the check again"
    )]
    OtherVersion {
        /// What it says.
        found: String,
    },
}

/// Reads a report, refusing every format but [`FORMAT`].
pub fn read(text: &str) -> Result<Report, ReadError> {
    // The version is looked at first, so that a newer report is named as such and not shown as a
    // list of fields that this version does not know.
    #[derive(Deserialize)]
    struct Header {
        format: String,
    }
    let header: Header = serde_json::from_str(text)?;
    if header.format != FORMAT {
        return Err(ReadError::OtherVersion {
            found: header.format,
        });
    }
    Ok(serde_json::from_str(text)?)
}
