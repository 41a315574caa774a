//! Server-sent events out of bytes, however they are cut. Pure, linear, bounded.

/// What is wrong with a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SseError {
    /// An event holds more than was agreed.
    TooLong,
    /// A line is not UTF-8.
    NotUtf8,
}

/// The `data` of events, found in bytes as they arrive. Other fields, and comments, are passed over.
#[derive(Debug)]
pub(crate) struct SseParser {
    /// The most bytes that one line, or the data of one event, may have.
    limit: usize,
    /// The line that has no end yet.
    line: Vec<u8>,
    /// The data of the event that has no end yet; none if it has none.
    data: Option<String>,
    /// Whether the last byte was a carriage return, which a line feed may belong to.
    after_return: bool,
    /// Whether a byte order mark may still come.
    at_start: bool,
}

impl SseParser {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: None,
            after_return: false,
            at_start: true,
        }
    }

    /// Takes the next bytes; `event` gets the data of each event that ends in them and tells whether
    /// to go on. After an error, or a stop, the parser is of no further use.
    pub(crate) fn push<E: From<SseError>>(
        &mut self,
        mut bytes: &[u8],
        mut event: impl FnMut(&str) -> Result<bool, E>,
    ) -> Result<bool, E> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.keep(bytes)?;
                break;
            };
            self.keep(&bytes[..end])?;
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            let ended = self.line(&line)?;
            self.line = line;
            self.line.clear();
            if let Some(data) = ended
                && !event(&data)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The stream has ended. An event that was not closed by an empty line counts all the same when
    /// its last line is whole: servers forget the empty line behind their last event.
    pub(crate) fn finish(&mut self) -> Option<String> {
        if self.line.is_empty() {
            self.data.take()
        } else {
            None
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        if self.line.len() + bytes.len() > self.limit {
            return Err(SseError::TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes a whole line; an empty one ends the event.
    fn line(&mut self, line: &[u8]) -> Result<Option<String>, SseError> {
        let mark = std::mem::take(&mut self.at_start);
        let line = if mark {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', value @ ..]) => value.strip_prefix(b" ").unwrap_or(value),
            _ => return Ok(None),
        };
        let value = std::str::from_utf8(value).map_err(|_| SseError::NotUtf8)?;
        match &mut self.data {
            None => self.data = Some(value.to_owned()),
            Some(data) => {
                if data.len() + value.len() >= self.limit {
                    return Err(SseError::TooLong);
                }
                data.push('\n');
                data.push_str(value);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]], limit: usize) -> Result<Vec<String>, SseError> {
        let mut parser = SseParser::new(limit);
        let mut events = Vec::new();
        for piece in pieces {
            parser.push::<SseError>(piece, |data| {
                events.push(data.to_owned());
                Ok(true)
            })?;
        }
        events.extend(parser.finish());
        Ok(events)
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(parse(&[text.as_bytes()], 1000).unwrap(), expected);
    }

    #[test]
    fn data_is_found_between_what_else_there_is() {
        check("data: a\n\ndata:b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\rdata: c\n\r", &["a", "b", "c"]);
        check(": ping\n\nevent: x\nid: 1\ndata: a\nretry: 5\n\n", &["a"]);
        check("data: a\ndata: b\n\n", &["a\nb"]);
        check("data\n\n", &[""]);
        check("data:  a \n\n", &[" a "]);
        check("database: no\n\n", &[]);
        check("\u{feff}data: a\n\n", &["a"]);
        check("\n\n\n", &[]);
    }

    #[test]
    fn an_event_counts_without_its_empty_line_but_not_without_its_line_end() {
        check("data: a\n", &["a"]);
        check("data: a", &[]);
        check("data: a\nda", &[]);
    }

    #[test]
    fn a_line_and_an_event_have_a_limit() {
        assert_eq!(parse(&[b"data: 12345"], 10), Err(SseError::TooLong));
        assert_eq!(
            parse(&[b"data: 1", b"234", b"5"], 10),
            Err(SseError::TooLong)
        );
        assert_eq!(
            parse(&[&b"data: 1\n".repeat(6)], 10),
            Err(SseError::TooLong)
        );
        assert_eq!(parse(&[b": 12345678901"], 10), Err(SseError::TooLong));
        assert!(parse(&[b"data: 1234\n"], 10).is_ok());
    }

    #[test]
    fn what_is_not_text_is_told() {
        assert_eq!(parse(&[b"data: \xFF\n"], 100), Err(SseError::NotUtf8));
        assert_eq!(parse(&[b": \xFF\n"], 100), Ok(vec![]));
    }

    #[test]
    fn a_listener_that_has_enough_ends_it() {
        let mut parser = SseParser::new(100);
        let mut seen = 0;
        let more = parser.push::<SseError>(b"data: a\n\ndata: b\n\n", |_| {
            seen += 1;
            Ok(false)
        });
        assert_eq!((more, seen), (Ok(false), 1));
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            text in "(data: ?[a-zé]{0,3}|:c|id: 1|\u{feff})?(\r|\n|\r\n){0,3}(data:x|dat)?(\r\n|\n\r|\n\n){0,2}",
            cuts in proptest::collection::vec(0_usize..40, 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < bytes.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(parse(&pieces, 1000), parse(&[bytes], 1000));
        }
    }
}
