//! What the tool says of itself: its description and its section of the system prompt.

/// The name the model calls the tool by (TOOL-1).
pub const NAME: &str = "lsp";

/// The description that goes to the model with the schema of the arguments.
pub const DESCRIPTION: &str = "Asks a language server about the symbol at a position: where it is \
    defined, what refers to it (its declaration included), what implements it, or its type and \
    documentation. line and character are one-based; character counts UTF-16 code units.";

/// The section of the system prompt (TOOL-10, TOOL-13). Its first two sentences are fixed.
pub const SECTION: &str = "Use search/read for ordinary navigation. Use lsp when textual matches \
    are ambiguous or before a change requires precise definitions, implementations, or references.\n\
    \n\
    Put line and character on the name of the symbol. Both are one-based, and character counts \
    UTF-16 code units: most characters are one, characters outside the Basic Multilingual Plane \
    (most emoji) are two. findReferences includes the declaration. What a language server returns \
    depends on what it has loaded, so a short or empty answer is no proof that there is nothing \
    more.";

/// Where the section stands among those of other plugins: behind general ones, which have small
/// numbers.
pub const SECTION_ORDER: i32 = 112;

#[cfg(test)]
mod tests {
    use super::*;

    /// TOOL-10: when to use the tool, word for word, the coordinates, and the declaration.
    #[test]
    fn the_section_says_when_and_how() {
        assert!(SECTION.contains(
            "Use search/read for ordinary navigation. Use lsp when textual matches are ambiguous \
             or before a change requires precise definitions, implementations, or references."
        ));
        for text in [SECTION, DESCRIPTION] {
            assert!(
                text.contains("one-based") && text.contains("UTF-16"),
                "{text}"
            );
            assert!(text.contains("declaration"), "{text}");
        }
        insta::assert_snapshot!(SECTION);
    }

    /// TOOL-13: neither text promises a complete answer.
    #[test]
    fn nothing_promises_completeness() {
        for text in [SECTION, DESCRIPTION] {
            for claim in [
                "all references",
                "every reference",
                "complete",
                "guarantee",
                "always",
            ] {
                assert!(!text.to_lowercase().contains(claim), "{claim}: {text}");
            }
        }
    }
}
