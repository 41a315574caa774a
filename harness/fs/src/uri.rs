//! `file:` URIs of absolute paths (HST-8).
//!
//! Everything but RFC 3986's unreserved characters (letters, digits, `-`, `.`, `_`, `~`) and the
//! separator `/` is percent-encoded. The RFC would let the sub-delimiters, `:` and `@` stand in a
//! path. They are encoded all the same: servers exist that take a bare `+` for a blank, and a
//! server that decodes at all decodes these too. Bytes that are not UTF-8 are encoded one by one,
//! so that each path has exactly one URI and no two paths share one.

use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// What is escaped within one path segment, or within a whole path whose separators are `/`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The `file:` URI of an absolute path, percent-encoded (HST-8).
///
/// There is no trailing slash unless the path has one. The path is taken as it is: no link is
/// followed and no `..` is folded. Of a relative path the result is no URI that means anything.
///
/// ```
/// # #[cfg(unix)]
/// assert_eq!(
///     dsh_fs::file_uri("/tmp/c++ #1/é.rs".as_ref()),
///     "file:///tmp/c%2B%2B%20%231/%C3%A9.rs"
/// );
/// ```
pub fn file_uri(path: &Path) -> String {
    platform::file_uri(path)
}

#[cfg(unix)]
mod platform {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use percent_encoding::percent_encode;

    pub(super) fn file_uri(path: &Path) -> String {
        let bytes = path.as_os_str().as_bytes();
        let mut uri = String::with_capacity("file://".len() + bytes.len() + 16);
        uri.push_str("file://");
        uri.extend(percent_encode(bytes, super::ESCAPED));
        uri
    }
}

#[cfg(not(unix))]
mod platform {
    use std::path::Path;

    pub(super) fn file_uri(path: &Path) -> String {
        // Windows paths are UTF-16; an unpaired surrogate has no encoding in a URI and is replaced.
        super::windows_uri(&path.to_string_lossy())
    }
}

/// The URI of a Windows path: `C:\x` is `file:///C:/x`, `\\server\share\x` is
/// `file://server/share/x`, and the verbatim forms (`\\?\C:\x`, `\\?\UNC\server\share\x`) count as
/// the plain ones. The colon of the drive stays, as RFC 8089 writes it.
#[cfg(any(not(unix), test))]
fn windows_uri(path: &str) -> String {
    use percent_encoding::utf8_percent_encode;

    let slashed = crate::locate::without_verbatim(path).replace('\\', "/");
    let escape = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
    if let Some(share) = slashed.strip_prefix("//") {
        return format!("file://{}", escape(share));
    }
    match slashed.split_once(':') {
        Some((drive, rest)) if drive.len() == 1 => format!("file:///{drive}:{}", escape(rest)),
        _ => format!("file://{}", escape(&slashed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[track_caller]
    fn check(path: &str, uri: &str) {
        assert_eq!(file_uri(Path::new(path)), uri);
    }

    /// HST-8
    #[cfg(unix)]
    #[test]
    fn reserved_characters_are_percent_encoded() {
        check("/", "file:///");
        check("/a/b-c_d~e.f", "file:///a/b-c_d~e.f");
        check("/a b/#%?", "file:///a%20b/%23%25%3F");
        check("/é/𝕏", "file:///%C3%A9/%F0%9D%95%8F");
        check("/q\"'\n\\", "file:///q%22%27%0A%5C");
        check("/c++/v1/a:b@c", "file:///c%2B%2B/v1/a%3Ab%40c");
        check(
            "/[x]!$&(),;=*|^`{}<>",
            "file:///%5Bx%5D%21%24%26%28%29%2C%3B%3D%2A%7C%5E%60%7B%7D%3C%3E",
        );
    }

    /// HST-8
    #[cfg(unix)]
    #[test]
    fn bytes_that_are_not_utf8_are_percent_encoded() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(OsStr::from_bytes(b"/a\xff\xc3/b"));
        assert_eq!(file_uri(path), "file:///a%FF%C3/b");
    }

    #[test]
    fn windows_paths_have_their_own_forms() {
        assert_eq!(windows_uri(r"C:\a b\é.ts"), "file:///C:/a%20b/%C3%A9.ts");
        assert_eq!(windows_uri(r"\\?\C:\a"), "file:///C:/a");
        assert_eq!(
            windows_uri(r"\\server\share\x y"),
            "file://server/share/x%20y"
        );
        assert_eq!(
            windows_uri(r"\\?\UNC\server\share\x"),
            "file://server/share/x"
        );
    }

    #[cfg(unix)]
    mod properties {
        use std::ffi::OsStr;
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        use std::path::PathBuf;

        use proptest::collection::vec;
        use proptest::prelude::*;

        use super::*;

        /// Any byte a path segment may hold, with the troublesome ones often.
        fn segment() -> impl Strategy<Value = Vec<u8>> {
            let byte = prop_oneof![
                proptest::sample::select(&b" #%?+:@[]|\\\"'~.&=;"[..]),
                (1_u8..=255).prop_filter("no separator", |byte| *byte != b'/'),
            ];
            vec(byte, 1..12).prop_filter("dot segments are folded", |s| s != b"." && s != b"..")
        }

        fn path() -> impl Strategy<Value = PathBuf> {
            let path = vec(segment(), 0..6).prop_map(|segments| {
                let mut path = PathBuf::from("/");
                path.extend(segments.iter().map(|segment| OsStr::from_bytes(segment)));
                path
            });
            // The url crate takes `x:` and `x|` at the end for a drive and adds a slash.
            path.prop_filter("no drive at the end", |path| {
                let bytes = path.as_os_str().as_bytes();
                !matches!(bytes, [.., letter, b':' | b'|'] if letter.is_ascii_alphabetic())
            })
        }

        proptest! {
            /// HST-8
            #[test]
            fn any_path_comes_back_as_the_same_bytes(path in path()) {
                let uri = file_uri(&path);
                let back = url::Url::parse(&uri).expect("a URI").to_file_path().expect("a path");
                prop_assert_eq!(back.into_os_string().into_vec(), path.into_os_string().into_vec());
            }

            /// HST-8
            #[test]
            fn only_unreserved_characters_separators_and_escapes_appear(path in path()) {
                let uri = file_uri(&path);
                let rest = uri.strip_prefix("file:///").expect("an absolute path");
                prop_assert!(rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~/%".contains(&b)));
            }

            /// HST-8
            #[test]
            fn the_uri_is_already_in_normal_form(path in path()) {
                let uri = file_uri(&path);
                let parsed = url::Url::parse(&uri).expect("a URI");
                prop_assert_eq!(parsed.as_str(), uri.as_str());
            }
        }
    }
}
