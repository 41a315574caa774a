//! How a location's URI is shown to the model (TOOL-6).
//!
//! The decision rests on the two URIs alone, never on the path rules of the machine this runs on:
//! the language server may live in another world than we do. What a `file:` URI names is compared
//! decoded, since servers spell the same file in different ways (`%5B` or `[`, `%c3%a9`, `%C3%A9`
//! or `é`, `c%3A` or `C:`).
//!
//! As received stays what is not the plain name of one file: other schemes, a path that is not
//! absolute, a stray `%`, an escape that is not UTF-8, an escaped separator or NUL, a raw backslash,
//! a query or a fragment. Raw characters that RFC 3986 wants escaped are taken for themselves,
//! since servers send them.
//!
//! Characters that would end the line are percent-escaped in whatever is shown, so that one
//! location is one line. That is the one place where two different files can look alike.

use std::borrow::Cow;
use std::fmt::Write as _;

use percent_encoding::percent_decode_str;

use crate::text::breaks_lines;

/// What a `file:` URI names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileUri {
    /// The host of a UNC path, as it was spelt; none for this machine.
    host: Option<String>,
    /// The path began with two slashes, an old way to write a UNC path.
    double_slash: bool,
    /// Decoded, without empty ones, `.` and `..`.
    segments: Vec<String>,
}

impl FileUri {
    /// Reads a `file:` URI; `None` for anything that is not the plain name of one file.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let (scheme, rest) = uri.split_once(':')?;
        if !scheme.eq_ignore_ascii_case("file") || rest.contains(['?', '#', '\\']) {
            return None;
        }
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/')?),
            None => ("", rest),
        };
        let path = path.strip_prefix('/')?;
        let host = host(authority)?;
        let double_slash = host.is_none() && path.starts_with('/');
        let mut segments: Vec<String> = Vec::new();
        for raw in path.split('/') {
            let segment = decoded(raw)?;
            match segment.as_str() {
                "" | "." => {}
                // As on every file system, the parent of the root is the root; a drive is a root.
                ".." => {
                    if !(segments.len() == 1 && is_drive(&segments[0])) {
                        segments.pop();
                    }
                }
                _ => segments.push(segment),
            }
        }
        let this = Self {
            host,
            double_slash,
            segments,
        };
        // An escaped backslash is a letter of a POSIX name but a separator in a Windows path.
        let splits = this.is_windows() && this.segments.iter().any(|part| part.contains('\\'));
        (!splits).then_some(this)
    }

    /// Whether the URI has the shape of a Windows path: a drive or a host.
    fn is_windows(&self) -> bool {
        self.host.is_some() || self.segments.first().is_some_and(|first| is_drive(first))
    }

    /// The parts that tell one file from another; Windows does not tell upper from lower case.
    fn identity(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let fold = self.is_windows();
        self.segments.iter().map(move |segment| {
            if fold {
                Cow::Owned(segment.to_lowercase())
            } else {
                Cow::Borrowed(segment.as_str())
            }
        })
    }

    fn host_identity(&self) -> Option<String> {
        self.host.as_deref().map(str::to_lowercase)
    }

    /// The segments below `workspace`; `None` for a file outside of it.
    fn below(&self, workspace: &Self) -> Option<&[String]> {
        let inside = self.host_identity() == workspace.host_identity()
            && self.segments.len() >= workspace.segments.len()
            && self
                .identity()
                .zip(workspace.identity())
                .all(|(ours, theirs)| ours == theirs);
        inside.then(|| &self.segments[workspace.segments.len()..])
    }

    fn absolute(&self) -> String {
        let mut path = match &self.host {
            Some(host) => format!("//{host}/"),
            None if self.double_slash => "//".to_owned(),
            None if self.is_windows() => String::new(),
            None => "/".to_owned(),
        };
        path.push_str(&self.segments.join("/"));
        if self.host.is_none() && self.is_windows() && self.segments.len() == 1 {
            path.push('/');
        }
        path
    }
}

/// A URI as the model sees it, and what makes two of them the same file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The text in front of `:line:character`.
    pub(crate) text: String,
    /// Equal for two spellings of one file.
    pub(crate) identity: String,
}

/// How the location's `uri` is shown, given the provider's workspace where its URI could be read.
pub(crate) fn shown(uri: &str, workspace: Option<&FileUri>) -> Shown {
    let Some(file) = FileUri::parse(uri) else {
        // An identity never starts like this one for a file that could be read.
        return Shown {
            text: on_one_line(uri),
            identity: format!("uri {uri}"),
        };
    };
    let text = match workspace.and_then(|workspace| file.below(workspace)) {
        Some([]) => ".".to_owned(),
        Some(segments) => segments.join("/"),
        None => file.absolute(),
    };
    let mut identity = format!("file {}/", file.host_identity().unwrap_or_default());
    for part in file.identity() {
        identity.push('/');
        identity.push_str(&part);
    }
    Shown {
        text: on_one_line(&text),
        identity,
    }
}

/// `None` for an authority that is not a host, `Some(None)` for this machine.
#[expect(
    clippy::option_option,
    reason = "a bad authority and the local machine differ"
)]
fn host(authority: &str) -> Option<Option<String>> {
    if authority.is_empty() || authority.eq_ignore_ascii_case("localhost") {
        return Some(None);
    }
    let host = decoded(authority)?;
    let address = host.starts_with('[') && host.ends_with(']');
    let plain = !host.contains(['@', '\\', ' ']) && (address || !host.contains([':', '[', ']']));
    (plain && !host.chars().any(breaks_lines)).then_some(Some(host))
}

/// A percent-decoded segment, if it is text and one segment still.
fn decoded(raw: &str) -> Option<String> {
    let mut rest = raw.as_bytes();
    while let Some(at) = memchr_percent(rest) {
        let digits = rest.get(at + 1..at + 3)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        rest = &rest[at + 3..];
    }
    let text = percent_decode_str(raw).decode_utf8().ok()?;
    (!text.contains(['/', '\0'])).then(|| text.into_owned())
}

fn memchr_percent(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'%')
}

/// `C:`, and nothing more.
fn is_drive(segment: &str) -> bool {
    matches!(segment.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic())
}

/// The text with everything that would end its line percent-escaped.
fn on_one_line(text: &str) -> String {
    if !text.contains(breaks_lines) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len() + 8);
    let mut buffer = [0; 4];
    for character in text.chars() {
        if breaks_lines(character) {
            for byte in character.encode_utf8(&mut buffer).bytes() {
                write!(line, "%{byte:02X}").expect("a string can always be written to");
            }
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(uri: &str, workspace: &str) -> String {
        shown(uri, FileUri::parse(workspace).as_ref()).text
    }

    #[track_caller]
    fn renders(workspace: &str, cases: &[(&str, &str)]) {
        for (uri, expected) in cases {
            assert_eq!(text(uri, workspace), *expected, "{uri} in {workspace}");
        }
    }

    /// TOOL-6: inside the workspace relative to it, the root itself as a dot.
    #[test]
    fn a_file_in_the_workspace_is_relative() {
        renders(
            "file:///home/me/ws",
            &[
                ("file:///home/me/ws/src/a.ts", "src/a.ts"),
                ("file:///home/me/ws", "."),
                ("file:///home/me/ws/", "."),
                ("file:///home/me/ws/.", "."),
                ("file:///home/me/ws//src///a.ts", "src/a.ts"),
                ("file:/home/me/ws/a.ts", "a.ts"),
                ("FILE:///home/me/ws/a.ts", "a.ts"),
                ("file://localhost/home/me/ws/a.ts", "a.ts"),
                ("file:///home/me/ws/..name", "..name"),
                ("file:///home/me/ws/..name/a.ts", "..name/a.ts"),
                ("file:///home/me/ws/src/../b.ts", "b.ts"),
                ("file:///home/me/ws/%2e%2E/ws/b.ts", "b.ts"),
                ("file:///home/me/ws/a%20b%23c%3Fd%25.ts", "a b#c?d%.ts"),
                ("file:///home/me/ws/[id]/%5Bid%5D.ts", "[id]/[id].ts"),
                ("file:///home/me/ws/a%5Cb.ts", "a\\b.ts"),
                ("file:///home/me/ws/C:/a.ts", "C:/a.ts"),
            ],
        );
        renders(
            "file:///home/me/ws/",
            &[("file:///home/me/ws/a.ts", "a.ts")],
        );
        renders("file:///", &[("file:///etc/x", "etc/x"), ("file:///", ".")]);
    }

    /// TOOL-6: outside of it the absolute path from the URI; a shared prefix of a name is outside.
    #[test]
    fn a_file_outside_the_workspace_is_absolute() {
        renders(
            "file:///home/me/ws",
            &[
                ("file:///home/me/ws2/a.ts", "/home/me/ws2/a.ts"),
                ("file:///home/me", "/home/me"),
                ("file:///home/me/ws/../other/a.ts", "/home/me/other/a.ts"),
                (
                    "file:///home/me/ws/%2E%2e/other/a.ts",
                    "/home/me/other/a.ts",
                ),
                ("file:///../../etc/passwd", "/etc/passwd"),
                ("file:///HOME/me/ws/a.ts", "/HOME/me/ws/a.ts"),
                ("file:///", "/"),
                ("file:////srv/share/a.ts", "//srv/share/a.ts"),
            ],
        );
    }

    /// TOOL-6: Windows URIs, wherever this runs: drives, their letter's case, hosts.
    #[test]
    fn windows_uris_render_right_everywhere() {
        renders(
            "file:///c%3A/Users/me/ws",
            &[
                ("file:///C:/Users/me/ws/src/a.ts", "src/a.ts"),
                ("file:///c%3a/users/ME/ws/src/a.ts", "src/a.ts"),
                ("file:///C:/Users/me/ws", "."),
                ("file:///D:/lib/a.ts", "D:/lib/a.ts"),
                ("file:///d%3A/lib/a.ts", "d:/lib/a.ts"),
                ("file:///C:", "C:/"),
                ("file:///C:/../../x", "C:/x"),
                ("file://server/share/x", "//server/share/x"),
                ("file:///usr/include/x.h", "/usr/include/x.h"),
                (
                    "file:///C:/Users/me/ws/..%5C..%5Cx",
                    "file:///C:/Users/me/ws/..%5C..%5Cx",
                ),
            ],
        );
        renders("file:///home/me/ws", &[("file:///C:/x/a.ts", "C:/x/a.ts")]);
        renders(
            "file://Server/share/ws",
            &[
                ("file://server/share/ws/a.ts", "a.ts"),
                ("file://server/share/b.ts", "//server/share/b.ts"),
                ("file://other/share/ws/a.ts", "//other/share/ws/a.ts"),
                ("file:///share/ws/a.ts", "/share/ws/a.ts"),
                ("file://wsl%24/Debian/home/a.rs", "//wsl$/Debian/home/a.rs"),
            ],
        );
    }

    /// TOOL-6: what a URI names is compared decoded.
    #[test]
    fn spellings_of_one_name_are_one_file() {
        let workspace = FileUri::parse("file:///w/caf%C3%A9");
        let spellings = [
            "file:///w/café/[a].ts",
            "file:///w/caf%c3%a9/%5Ba%5D.ts",
            "file:///w/caf%C3%A9/[a%5d.ts",
        ];
        for uri in spellings {
            let one = shown(uri, workspace.as_ref());
            assert_eq!(one, shown(spellings[0], workspace.as_ref()), "{uri}");
            assert_eq!(one.text, "[a].ts");
        }
        assert_eq!(
            shown("file:///C:/A.ts", None).identity,
            shown("file:///c%3A/a.ts", None).identity
        );
        assert_ne!(
            shown("file:///A.ts", None).identity,
            shown("file:///a.ts", None).identity
        );
    }

    /// TOOL-6: what is malformed, or no `file:` URI, is shown as received.
    #[test]
    fn what_is_no_plain_file_is_kept() {
        for uri in [
            "untitled:Untitled-1",
            "jdt://contents/java.base/String.class?=x",
            "deno:/asset/lib.d.ts",
            "src/a.ts",
            "/w/a.ts",
            "C:\\w\\a.ts",
            "",
            "file:",
            "file:a.ts",
            "file://",
            "file://server",
            "file:///w/%zz.ts",
            "file:///w/%",
            "file:///w/%4",
            "file:///w/%FF.ts",
            "file:///w/a%2Fb.ts",
            "file:///w/a%00b.ts",
            "file:///w\\a.ts",
            "file:///w/a.ts?x",
            "file:///w/a.ts#L1",
            "file://me@server/w/a.ts",
            "file://C:/w/a.ts",
            "file://server:80/w/a.ts",
        ] {
            assert_eq!(text(uri, "file:///w"), uri);
        }
    }

    /// TOOL-5, TOOL-6: a name with a line break in it stays on its line.
    #[test]
    fn line_breaks_are_escaped_again() {
        renders(
            "file:///w",
            &[
                ("file:///w/a%0Ab.ts", "a%0Ab.ts"),
                ("file:///w/a\nb.ts", "a%0Ab.ts"),
                ("file:///w/a%E2%80%A8b.ts", "a%E2%80%A8b.ts"),
                ("file:///x/%1b[31m.ts", "/x/%1B[31m.ts"),
                ("x:a\r\nb", "x:a%0D%0Ab"),
            ],
        );
    }

    /// TOOL-6: a workspace whose URI cannot be read holds nothing.
    #[test]
    fn without_a_readable_workspace_paths_are_absolute() {
        renders("nonsense", &[("file:///w/a.ts", "/w/a.ts")]);
    }

    fn name() -> impl Strategy<Value = String> {
        "[^/\0]{1,6}".prop_filter("no dots", |name| name != "." && name != "..")
    }

    fn encoded(name: &str) -> String {
        name.bytes().fold(String::new(), |mut uri, byte| {
            write!(uri, "%{byte:02x}").unwrap();
            uri
        })
    }

    proptest! {
        /// TOOL-6: no URI panics, and all are shown on one line.
        #[test]
        fn any_uri_is_one_line(
            uri in prop_oneof![any::<String>(), "(file|FILE):/{0,4}[a-zA-Z.:%/\\\\\n]{0,12}"],
            workspace in "file:/{0,4}[a-zA-Z.:%/]{0,8}",
        ) {
            let shown = text(&uri, &workspace);
            prop_assert!(!shown.contains(breaks_lines));
        }

        /// TOOL-6: whatever a file below the workspace is called, its name comes back.
        #[test]
        fn a_name_below_the_workspace_survives(names in prop::collection::vec(name(), 1..4)) {
            let path: Vec<String> = names.iter().map(|name| encoded(name)).collect();
            let uri = format!("file:///some/place/{}", path.join("/"));
            prop_assert_eq!(
                text(&uri, "file:///some/place"),
                on_one_line(&names.join("/"))
            );
        }
    }
}
