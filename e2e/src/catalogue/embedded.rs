//! The entries that are part of the binary. A test holds the list equal to the folder.

macro_rules! entries {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../servers/", $name)))),*]
    };
}

/// (file name, text), one a server.
pub(super) const ENTRIES: &[(&str, &str)] = entries! {
    "bash-language-server.yaml"
    "clangd.yaml"
    "pyright.yaml"
    "rust-analyzer.yaml"
    "typescript-language-server.yaml"
};
