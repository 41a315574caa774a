//! What the YAML reader stumbled over, in words that say what to do.

use serde_saphyr::Error;

/// Words of the reader, any of which tells the mistake, and ours. The first that fits counts.
const TOLD: [(&[&str], &str); 14] = [
    (
        &["unclosed quote", "quoted scalar, found unexpected"],
        "a quote is opened and not closed; close it",
    ),
    (
        &["unclosed bracket", "flow mapping", "flow sequence"],
        "a `[` or `{` is opened and not closed, or a comma is missing in it; close it, or put the \
         value in quotes",
    ),
    (
        &["misplaced bracket"],
        "a bracket is closed that is not open; take it out, or put the value in quotes",
    ),
    (
        &["escape", "hexadecimal", "surrogate"],
        "after a backslash in double quotes an escape is expected, `\\n` for instance; write `\\\\` \
         for the backslash itself, or use single quotes",
    ),
    (
        &["mapping values are not allowed"],
        "a `: ` is not expected here; put a value that has one in quotes, and a key in line with \
         the keys beside it",
    ),
    (
        &["block sequence entries are not allowed"],
        "a `- ` is not expected here; begin the list on a line of its own, or put the value in \
         quotes",
    ),
    (
        &["unknown anchor", "anchor or alias"],
        "`*name` stands for a value that is marked `&name` above, and none is; put a value that \
         begins with `*` or `&` in quotes",
    ),
    (
        &["block collection", "block mapping, did not"],
        "a row that begins with `- `, or a key in line with the keys above, is expected here; mend \
         the indentation",
    ),
    (
        &["simple key"],
        "`key: value` is expected here; add the `: `, or indent the line below its key",
    ),
    (
        &["block scalar"],
        "the lines of a text behind `|` or `>` must be indented deeper than its key, all alike",
    ),
    (
        &[
            "unexpected character",
            "plain scalar cannot start",
            "EOF while parsing a block",
        ],
        "no value begins with this character; put the value in quotes",
    ),
    (
        &["directive", "<document start>"],
        "a line that begins with `%` is no row; put the value in quotes, or make it a comment \
         with `#`",
    ),
    (
        &["tag", "handle"],
        "a `!` begins the name of a type, and this is none; put the value in quotes",
    ),
    (
        &["tabs", "tab "],
        "a tab stands where YAML wants spaces; use spaces",
    ),
];

/// The mistake in words of ours.
pub(super) fn ours(error: &Error) -> String {
    match error {
        Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            "behind `<<:` a table or a list of tables is expected, for instance `*name` of one; \
             write the keys out"
                .to_owned()
        }
        Error::NullIntoString { .. } => {
            "a key is expected to be a text, and this is nothing; put it in quotes".to_owned()
        }
        Error::Unexpected { .. } | Error::UnexpectedContainerEndWhileReadingKeyNode { .. } => {
            "a key is expected to be a text, and this is a list or a table; put it in quotes"
                .to_owned()
        }
        Error::UnknownAnchor { .. } => by_words("unknown anchor"),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias (`*a`) stands for too much, or for itself; write out what it stands for"
                .to_owned()
        }
        Error::FoldedBlockScalarMustIndentContent { .. } => by_words("block scalar"),
        other => by_words(&other.to_string()),
    }
}

fn by_words(told: &str) -> String {
    let fits = |words: &[&str]| words.iter().any(|word| told.contains(word));
    let found = TOLD.iter().find(|(words, _)| fits(words));
    found
        .map_or(
            "this cannot be read; look at the quotes, the brackets and the indentation of the line",
            |(_, ours)| ours,
        )
        .to_owned()
}

/// The key whose value stands on this line, if one can be told.
pub(super) fn key_at(text: &str, line: u64) -> Option<&str> {
    let line = text
        .lines()
        .nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
    let mut rest = line.trim_start();
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start();
    }
    let (key, _) = rest.split_once(':')?;
    let key = key.trim_matches(['"', '\'']);
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    (!key.is_empty() && key.chars().count() <= 80 && key.chars().all(plain)).then_some(key)
}
