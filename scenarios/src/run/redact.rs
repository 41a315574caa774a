//! What differs from run to run, taken out of texts that are compared with snapshots.

use super::fill::{Places, uri_of};

/// Puts templates where the case's own folders stand.
pub(crate) fn redact(text: &str, places: &Places) -> String {
    let workspace = places.workspace.display().to_string();
    let root = places.root.display().to_string();
    // The longer ones first: the root is part of the workspace.
    text.replace(&uri_of(&places.workspace), "${workspaceUri}")
        .replace(&workspace, "${workspace}")
        .replace(&uri_of(&places.root), "${rootUri}")
        .replace(&root, "${root}")
}
