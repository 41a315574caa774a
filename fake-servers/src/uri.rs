//! `file:` URIs, as far as the server needs them.

/// The bytes of the path a `file:` URI names, percent-decoded; none for another scheme.
pub(crate) fn path_of(uri: &str) -> Option<Vec<u8>> {
    let rest = uri
        .get(..5)
        .filter(|scheme| scheme.eq_ignore_ascii_case("file:"))?;
    let rest = &uri[rest.len()..];
    // The authority, if there is one, is this machine.
    let path = match rest.strip_prefix("//") {
        Some(rest) => &rest[rest.find('/')?..],
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let decoded = match (byte, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(h, l)| h * 16 + l),
            _ => None,
        };
        bytes.push(decoded.unwrap_or(*byte));
        rest = if decoded.is_some() {
            &after[2..]
        } else {
            after
        };
    }
    Some(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// The URI of a path below the folder of `root`, which is a URI as the client wrote it.
pub(crate) fn below(root: &str, path: &[u8]) -> String {
    let mut uri = root.trim_end_matches('/').to_owned();
    uri.push('/');
    encode(path, &mut uri);
    uri
}

/// The URI of an absolute path.
pub(crate) fn of(path: &[u8]) -> String {
    let mut uri = "file://".to_owned();
    encode(path, &mut uri);
    uri
}

/// Percent-encodes a path; slashes stay.
fn encode(path: &[u8], uri: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in path {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push('%');
            uri.push(char::from(HEX[usize::from(byte >> 4)]));
            uri.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_uris_name_each_other() {
        for (path, uri) in [
            (
                "/w/a b/größe#1%.ts",
                "file:///w/a%20b/gr%C3%B6%C3%9Fe%231%25.ts",
            ),
            ("/w/x?y", "file:///w/x%3Fy"),
        ] {
            assert_eq!(of(path.as_bytes()), uri);
            assert_eq!(path_of(uri).as_deref(), Some(path.as_bytes()));
        }
        assert_eq!(path_of("file://localhost/a%2"), Some(b"/a%2".to_vec()));
        assert_eq!(path_of("FILE:/a"), Some(b"/a".to_vec()));
        assert_eq!(path_of("untitled:1"), None);
        assert_eq!(path_of("file"), None);
        assert_eq!(below("file:///w%20/", b"a b"), "file:///w%20/a%20b");
    }
}
