//! The version of a program that does not tell one, from the system's package that it is a file of.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::process::{self, Invocation, RunError};
use super::{LocateError, Machine};

/// The version of the package of Debian, or a descendant of it, that `program` is a file of. None
/// where it is in no package, or there is nothing that could say so.
pub(super) async fn version(
    machine: &Machine,
    program: &Path,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<Option<String>, LocateError> {
    let Some(query) = process::on_path("dpkg-query", &machine.variables)
        .into_iter()
        .next()
    else {
        return Ok(None);
    };
    // Packages own the file that a link of the alternatives leads to.
    let file = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let folder = query.ancestors().last().unwrap_or(&query);
    let ask = async |args: [&std::ffi::OsStr; 3]| {
        let invocation = Invocation::new(&query, args, folder).with("LC_ALL", "C");
        let variables = &machine.variables;
        match process::run(&invocation, variables, Some(limit), &|_| (), cancel).await {
            Ok(finished) if finished.status.success() => Ok(Some(finished.stdout)),
            Err(RunError::Cancelled) => Err(LocateError::Cancelled),
            _ => Ok(None),
        }
    };
    let Some(said) = ask(["--search".as_ref(), "--".as_ref(), file.as_os_str()]).await? else {
        return Ok(None);
    };
    let Some(package) = owner(&said) else {
        return Ok(None);
    };
    let format = "--showformat=${Version}";
    let said = ask(["--show".as_ref(), format.as_ref(), package.as_ref()]).await?;
    Ok(said.as_deref().and_then(upstream))
}

/// The package in `PACKAGE: FILE`, the first where there are several.
fn owner(said: &str) -> Option<&str> {
    let (packages, _) = said
        .lines()
        .filter(|line| !line.starts_with("diversion "))
        .find_map(|line| line.split_once(": "))?;
    packages.split(", ").next()
}

/// The version without its epoch, which says nothing about the program.
fn upstream(version: &str) -> Option<String> {
    let version = version.trim();
    let version = match version.split_once(':') {
        Some((epoch, rest)) if epoch.chars().all(|c| c.is_ascii_digit()) => rest,
        _ => version,
    };
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_file_is_read_from_what_dpkg_says() {
        assert_eq!(owner("gopls: /usr/bin/gopls\n"), Some("gopls"));
        assert_eq!(owner("a:amd64, b: /usr/bin/x\n"), Some("a:amd64"));
        let diverted = "diversion by dash from: /bin/sh\ndash: /bin/sh\n";
        assert_eq!(owner(diverted), Some("dash"));
        assert_eq!(owner(""), None);
    }

    #[test]
    fn a_version_loses_its_epoch_alone() {
        assert_eq!(upstream("1:0.5.0+ds-1").as_deref(), Some("0.5.0+ds-1"));
        assert_eq!(upstream("0.20220729-2\n").as_deref(), Some("0.20220729-2"));
        assert_eq!(upstream(""), None);
        assert_eq!(upstream("none"), None);
    }
}
