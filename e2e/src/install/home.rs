//! What the folders around a program of npm tell: the version of a package, and the folder that
//! settings of the server name files in.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::catalogue::INSTALL;

const MODULES: &str = "node_modules";
/// No manifest of a package is larger, in bytes.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// `package.json`, as far as it counts here.
#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
}

/// The version of the npm package `package` that `program` belongs to, or why there is none. Looks
/// where node would: the folders above the program, then those above what it links to.
pub(super) fn package_version(program: &Path, package: &str) -> Result<String, String> {
    let target = program.canonicalize().ok();
    let mut fault = None;
    for folder in std::iter::once(program)
        .chain(target.as_deref())
        .flat_map(|path| path.ancestors().skip(1))
    {
        for manifest in [folder.to_owned(), folder.join(MODULES).join(package)]
            .map(|folder| folder.join("package.json"))
        {
            match read(&manifest) {
                Ok(Some(found)) if found.name == package => return Ok(found.version),
                Ok(_) => {}
                Err(error) => {
                    fault.get_or_insert_with(|| format!("{}: {error}", manifest.display()));
                }
            }
        }
    }
    Err(fault.unwrap_or_else(|| {
        format!("it belongs to no npm package {package}: there is no package.json of it above it")
    }))
}

/// `None` where there is no such file, or one that is no package's.
fn read(path: &Path) -> Result<Option<Manifest>, String> {
    match path.metadata() {
        Err(_) => return Ok(None),
        Ok(metadata) if metadata.len() > LARGEST_MANIFEST => {
            return Err(format!("larger than {LARGEST_MANIFEST} bytes"));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    Ok(serde_json::from_str(&text).ok())
}

/// The folder whose `node_modules` holds what `program` is or links to, the outermost.
pub(super) fn folder_of_modules(program: &Path) -> Option<PathBuf> {
    let target = program.canonicalize().ok()?;
    let modules = target
        .ancestors()
        .filter(|folder| folder.file_name().is_some_and(|name| name == MODULES));
    modules.last()?.parent().map(Path::to_owned)
}

/// `value` with the folder of the installation in every text of it.
pub(super) fn filled(value: &Value, folder: &str) -> Value {
    match value {
        Value::String(text) => text.replace(INSTALL, folder).into(),
        Value::Array(items) => items.iter().map(|item| filled(item, folder)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| (key.clone(), filled(member, folder)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `files`: (path, text).
    fn laid_out(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (folder, root)
    }

    const FOO: &str = r#"{"name": "@of/foo", "version": "1.2.3"}"#;

    #[test]
    fn the_package_above_the_program_tells_the_version() {
        let (_folder, root) = laid_out(&[
            ("node_modules/@of/foo/package.json", FOO),
            (
                "node_modules/@of/foo/bin/package.json",
                r#"{"type": "module"}"#,
            ),
            ("node_modules/@of/foo/bin/foo.js", ""),
            ("node_modules/.bin/foo.cmd", ""),
            ("package.json", r#"{"private": true}"#),
        ]);
        for program in [
            "node_modules/@of/foo/bin/foo.js",
            "node_modules/.bin/foo.cmd",
        ] {
            let version = package_version(&root.join(program), "@of/foo");
            assert_eq!(version.as_deref(), Ok("1.2.3"), "{program}");
        }
        let other = package_version(&root.join("node_modules/.bin/foo.cmd"), "bar").unwrap_err();
        assert!(other.contains("no npm package bar"), "{other}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_leads_to_the_package_and_to_the_folder_of_its_modules() {
        let (_folder, root) = laid_out(&[
            ("lib/node_modules/@of/foo/package.json", FOO),
            ("lib/node_modules/@of/foo/node_modules/bar/bar.js", ""),
            ("lib/node_modules/@of/foo/foo.js", ""),
            ("bin/plain", ""),
        ]);
        let link = root.join("bin/foo");
        let target = root.join("lib/node_modules/@of/foo/foo.js");
        std::os::unix::fs::symlink(target, &link).unwrap();
        assert_eq!(package_version(&link, "@of/foo").as_deref(), Ok("1.2.3"));
        let inner = root.join("lib/node_modules/@of/foo/node_modules/bar/bar.js");
        for program in [link, inner] {
            assert_eq!(folder_of_modules(&program), Some(root.join("lib")));
        }
        assert_eq!(folder_of_modules(&root.join("bin/plain")), None);
        assert_eq!(folder_of_modules(&root.join("bin/none")), None);
    }

    #[test]
    fn a_manifest_that_is_too_large_is_named() {
        let large = format!("{}{FOO}", " ".repeat(1 << 20));
        let (_folder, root) = laid_out(&[("foo/package.json", &large), ("foo/foo.js", "")]);
        let error = package_version(&root.join("foo/foo.js"), "@of/foo").unwrap_err();
        assert!(error.ends_with("larger than 1048576 bytes"), "{error}");
    }

    #[test]
    fn every_text_of_a_value_is_filled_in() {
        let value = json!({"a": ["${install}/lib", 1], "b": {"c": null, "d": "x${install}"}});
        let filled = filled(&value, "/opt");
        assert_eq!(
            filled,
            json!({"a": ["/opt/lib", 1], "b": {"c": null, "d": "x/opt"}})
        );
    }
}
