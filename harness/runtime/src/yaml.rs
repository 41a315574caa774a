//! YAML as a tree whose every key and value knows its place in the text.
//!
//! The tree is read before any configuration type sees it, so that errors of those types, which
//! name a key, can be shown with line and column. What `off`, `No`, `0755` and the like are is
//! decided here as well: strings, as in YAML 1.2.

mod words;

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location, NonFiniteFloatPolicy, Spanned};

/// The deepest nesting that is read, in lists and tables: reading is recursive, and a thread that is
/// not the first one of its process has 2 MB of stack.
const MAX_DEPTH: usize = 24;
/// The most values that are read: scalars, lists and tables, with what aliases stand for.
const MAX_VALUES: usize = 250_000;

/// A place in the text; both one-based, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Self {
            line: location.line(),
            column: location.column(),
        }
    }
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Place,
    pub(crate) tree: Tree,
}

#[derive(Clone, Debug)]
pub(crate) enum Tree {
    /// Null, a boolean, a number or a string.
    Scalar(Value),
    /// A number that JSON has none for, as YAML writes it: `.nan`, `.inf` or `-.inf`.
    NotFinite(&'static str),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table, and what stands there.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Place,
    pub(crate) node: Node,
}

/// Why a text is not such a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: Place,
    pub(crate) problem: String,
}

/// Reads one YAML document.
pub(crate) fn read(text: &str) -> Result<Node, SyntaxError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_VALUES,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| explain(text, &error))
}

impl Node {
    /// The first number in it that is not finite, with the keys that lead there.
    pub(crate) fn not_finite(&self) -> Option<(Vec<String>, &'static str)> {
        let below = |step: String, node: &Self| {
            let (mut path, written) = node.not_finite()?;
            path.insert(0, step);
            Some((path, written))
        };
        match &self.tree {
            Tree::Scalar(_) => None,
            Tree::NotFinite(written) => Some((Vec::new(), written)),
            Tree::List(items) => items
                .iter()
                .enumerate()
                .find_map(|(index, node)| below(index.to_string(), node)),
            Tree::Table(entries) => entries
                .iter()
                .find_map(|entry| below(entry.key.clone(), &entry.node)),
        }
    }

    /// The value without its places. A number that is not finite is the string that writes it.
    pub(crate) fn to_value(&self) -> Value {
        match &self.tree {
            Tree::Scalar(value) => value.clone(),
            Tree::NotFinite(written) => (*written).into(),
            Tree::List(items) => items.iter().map(Self::to_value).collect(),
            Tree::Table(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.node.to_value()))
                    .collect(),
            ),
        }
    }

    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.tree {
            Tree::Scalar(Value::Null) => "nothing",
            Tree::Scalar(Value::Bool(_)) => "a boolean",
            Tree::Scalar(Value::Number(_)) | Tree::NotFinite(_) => "a number",
            Tree::Scalar(_) => "a string",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
        }
    }

    /// The place of what `path` leads to, or of the last part of the way that exists. With
    /// `of_key`, the place of the last key itself instead of its value.
    pub(crate) fn place(&self, path: &[String], of_key: bool) -> Place {
        let mut here = self;
        let mut at = self.at;
        for step in path {
            let found = here.step(step).or_else(|| {
                // `args.0` is one step of some messages.
                let (key, index) = step.rsplit_once('.')?;
                here.step(key)?.1.step(index)
            });
            let Some((key_at, node)) = found else { break };
            at = if of_key { key_at } else { node.at };
            here = node;
        }
        at
    }

    fn step(&self, step: &str) -> Option<(Place, &Self)> {
        match &self.tree {
            Tree::Table(entries) => {
                let entry = entries.iter().find(|entry| entry.key == step)?;
                Some((entry.at, &entry.node))
            }
            Tree::List(items) => {
                let item = items.get(step.parse::<usize>().ok()?)?;
                Some((item.at, item))
            }
            Tree::Scalar(_) | Tree::NotFinite(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Tree>::deserialize(deserializer)?;
        Ok(Self {
            at: spanned.referenced.into(),
            tree: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Tree, E> {
        self.big(&value)
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Tree, E> {
        self.big(&value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tree, E> {
        Ok(match Number::from_f64(value) {
            Some(number) => Tree::Scalar(number.into()),
            None if value.is_nan() => Tree::NotFinite(".nan"),
            None if value > 0.0 => Tree::NotFinite(".inf"),
            None => Tree::NotFinite("-.inf"),
        })
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_none<E: de::Error>(self) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = table.next_key::<Spanned<String>>()? {
            let (at, key) = (key.referenced.into(), key.value);
            entries.push(Entry {
                key,
                at,
                node: table.next_value()?,
            });
        }
        Ok(Tree::Table(entries))
    }
}

impl TreeVisitor {
    /// An integer that no configuration key takes, as the nearest JSON number.
    fn big<E: de::Error>(self, value: &impl ToString) -> Result<Tree, E> {
        let value = value.to_string().parse().map_err(E::custom)?;
        self.visit_f64(value)
    }
}

/// What is wrong, and what most probably was meant.
fn explain(text: &str, error: &Error) -> SyntaxError {
    let at = error
        .location()
        .map_or(Place { line: 1, column: 1 }, Place::from);
    let mut root = error.without_snippet();
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = root {
        root = error;
    }
    match root {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key
                .as_deref()
                .map(|key| format!(" {key:?}"))
                .unwrap_or_default();
            let problem = format!("the key{key} stands here a second time; keep one of them");
            return SyntaxError { at, problem };
        }
        Error::MultipleDocuments { .. } => {
            let problem = "a second document begins; keep one in the file".to_owned();
            return SyntaxError { at, problem };
        }
        Error::Budget { breach, .. } => {
            let problem = too_much(breach);
            return SyntaxError { at, problem };
        }
        // The reader below has a bound of its own for `[[[…`, and no kind of error for it.
        other if other.to_string().contains("recursion limit exceeded") => {
            let problem = too_much(&BudgetBreach::Depth { depth: MAX_DEPTH });
            return SyntaxError { at, problem };
        }
        _ => {}
    }
    if let Some(at) = tab_near(text, at.line) {
        let problem = "a tab is used for indentation, which YAML forbids; use spaces".to_owned();
        return SyntaxError { at, problem };
    }
    if let Some(value) = unquoted(text, at) {
        let problem = format!("a value that begins with `@` must be quoted: \"{value}\"");
        return SyntaxError { at, problem };
    }
    let told = words::ours(root);
    let problem = match words::key_at(text, at.line) {
        Some(key) => format!("at the key {key:?}: {told}"),
        None => told,
    };
    SyntaxError { at, problem }
}

/// Which limit the text is beyond, and what to do about it.
fn too_much(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => {
            format!("it is nested deeper than {MAX_DEPTH} lists and tables; write it flatter")
        }
        BudgetBreach::Aliases { .. }
        | BudgetBreach::Anchors { .. }
        | BudgetBreach::AliasAnchorRatio { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. }
        | BudgetBreach::MergeKeys { .. } => {
            "it has too many anchors and aliases (`&a`, `*a`); write out what they stand for"
                .to_owned()
        }
        _ => format!(
            "it has more than {MAX_VALUES} values, with what aliases (`*a`) stand for; shorten it"
        ),
    }
}

/// The first tab in the indentation of the line, or of the next one that is not blank: a scalar
/// that a tab breaks off is reported where it begins.
fn tab_near(text: &str, line: u64) -> Option<Place> {
    let first = usize::try_from(line.saturating_sub(1)).ok()?;
    let mut numbered = (1..).zip(text.lines()).skip(first);
    let mut candidates: Vec<_> = numbered.next().into_iter().collect();
    candidates.extend(numbered.find(|(_, text)| !text.trim().is_empty()));
    candidates.into_iter().find_map(|(line, text)| {
        let indentation = text.chars().take_while(|c| c.is_whitespace());
        let column = (1..).zip(indentation).find(|(_, c)| *c == '\t')?.0;
        Some(Place { line, column })
    })
}

/// The value that begins with `@` at this place.
fn unquoted(text: &str, at: Place) -> Option<String> {
    let line = text
        .lines()
        .nth(usize::try_from(at.line.checked_sub(1)?).ok()?)?;
    let start = usize::try_from(at.column.checked_sub(1)?).ok()?;
    let rest: String = line.chars().skip(start).collect();
    rest.starts_with('@').then(|| {
        rest.split([' ', '#', ','])
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

/// Nothing: what a key without a value stands for.
pub(crate) fn empty_table() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn wrong(text: &str) -> (u64, u64, String) {
        let error = read(text).expect_err("it is wrong");
        (error.at.line, error.at.column, error.problem)
    }

    #[test]
    fn words_that_look_like_booleans_or_odd_numbers_stay_strings() {
        let text = "a: off\nb: No\nc: yes\nd: true\ne: 0755\nf: 1_000\ng:\nh: 1e3\ni: [1, -1]\n";
        let expected = json!({
            "a": "off", "b": "No", "c": "yes", "d": true, "e": "0755", "f": "1_000", "g": null,
            "h": 1000.0, "i": [1, -1],
        });
        assert_eq!(read(text).unwrap().to_value(), expected);
    }

    #[test]
    fn keys_and_values_know_their_places() {
        let tree = read("a:\n  bé: 1\n  c: [x,  y]\n").unwrap();
        let place = |path: &[&str], of_key| {
            let path: Vec<_> = path.iter().map(|step| (*step).to_owned()).collect();
            let place = tree.place(&path, of_key);
            (place.line, place.column)
        };
        assert_eq!(place(&["a", "bé"], true), (2, 3));
        assert_eq!(place(&["a", "bé"], false), (2, 7));
        assert_eq!(place(&["a", "c", "1"], false), (3, 11));
        assert_eq!(place(&["a", "c.1"], false), (3, 11));
        assert_eq!(
            place(&["a", "c", "7"], false),
            (3, 6),
            "the last part that exists"
        );
        assert_eq!(place(&["nothing"], false), (1, 1));
    }

    #[test]
    fn a_tab_in_the_indentation_is_said_to_be_a_tab() {
        for (text, line) in [
            ("- name: x\n\tconfig: {}\n", 2),
            ("- name: x\n\n\tconfig: {}\n", 3),
            ("- name: x\n  config:\n\ta: 1\n", 3),
        ] {
            let (at, column, problem) = wrong(text);
            assert_eq!((at, column), (line, 1), "{text:?}: {problem}");
            assert!(
                problem.contains("a tab") && problem.contains("use spaces"),
                "{problem}"
            );
        }
    }

    #[test]
    fn an_unquoted_at_sign_is_said_to_need_quotes() {
        let (line, column, problem) = wrong("- name: @deepseek-ai/dsh-lsp # seam\n");
        assert_eq!((line, column), (1, 9));
        assert!(
            problem.contains("must be quoted: \"@deepseek-ai/dsh-lsp\""),
            "{problem}"
        );
    }

    #[test]
    fn a_key_that_stands_twice_is_named() {
        let (line, column, problem) = wrong("a: 1\nb: 2\na: 3\n");
        assert_eq!((line, column), (3, 1));
        assert_eq!(
            problem,
            "the key \"a\" stands here a second time; keep one of them"
        );
    }

    /// Nothing of the reader's own words is left, which say what it was doing and not what to do.
    #[test]
    fn other_syntax_errors_are_told_in_our_words_with_the_key() {
        assert!(wrong("- a: 1\n---\n- b: 2\n").2.contains("second document"));
        let at_a = |words: &'static str| (1, 6, words);
        let expected = [
            ("- a: 'x\n", at_a("at the key \"a\": a quote is opened")),
            ("- a: \"x\n", at_a("at the key \"a\": a quote is opened")),
            (
                "- a: [x\n",
                at_a("at the key \"a\": a `[` or `{` is opened"),
            ),
            (
                "- a: {x: y\n",
                at_a("at the key \"a\": a `[` or `{` is opened"),
            ),
            ("- a: ]\n", at_a("at the key \"a\": a bracket is closed")),
            (
                "- a: \"\\q\"\n",
                at_a("at the key \"a\": after a backslash"),
            ),
            ("- a: *x\n", at_a("at the key \"a\": `*name` stands for")),
            ("- a: &  x\n", at_a("at the key \"a\": `*name` stands for")),
            (
                "- a: |0\n   x\n",
                at_a("at the key \"a\": the lines of a text"),
            ),
            ("- a: `x\n", at_a("at the key \"a\": no value begins with")),
            ("- a: %x\n", at_a("at the key \"a\": no value begins with")),
            ("- a: ,x\n", at_a("at the key \"a\": no value begins with")),
            (
                "- a: - x\n",
                at_a("at the key \"a\": a `- ` is not expected"),
            ),
            (
                "- a: b: c\n",
                (1, 7, "at the key \"a\": a `: ` is not expected"),
            ),
            (
                "- a: x\n b: y\n",
                (2, 2, "at the key \"b\": a row that begins with"),
            ),
            (
                "- a: x\n    b: y\n",
                (2, 6, "at the key \"b\": a `: ` is not expected"),
            ),
            ("- a: x\nfoo\n", (2, 1, "`key: value` is expected here")),
            ("- <<: 3\n", (1, 7, "behind `<<:` a table")),
            (
                "- null: x\n",
                (1, 3, "at the key \"null\": a key is expected to be a text"),
            ),
            ("[a]: b\n", (1, 1, "a key is expected to be a text")),
            ("%x\n", (2, 1, "a line that begins with `%`")),
        ];
        for (text, (line, column, words)) in expected {
            let told = wrong(text);
            assert_eq!((told.0, told.1), (line, column), "{text:?}: {}", told.2);
            assert!(told.2.starts_with(words), "{text:?}: {}", told.2);
        }
    }

    #[test]
    fn a_text_beyond_a_limit_names_the_limit_and_the_way_out() {
        let nested = |depth: usize| format!("a: {}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(&nested(MAX_DEPTH - 1)).is_ok());
        for deep in [MAX_DEPTH, 10_000] {
            let (line, _, problem) = wrong(&nested(deep));
            assert_eq!(line, 1);
            assert_eq!(
                problem,
                "it is nested deeper than 24 lists and tables; write it flatter"
            );
        }
        let long = "- a\n".repeat(MAX_VALUES);
        assert!(wrong(&long).2.contains("more than 250000 values"));
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let aliases = vec![format!("*a{}", n - 1); 9].join(", ");
            laughs = format!("{laughs}a{n}: &a{n} [{aliases}]\n");
        }
        let problem = wrong(&laughs).2;
        assert!(problem.contains("aliases"), "{problem}");
    }

    #[test]
    fn a_number_too_large_for_any_key_is_still_a_number() {
        let value = read("a: 99999999999999999999999999\n").unwrap().to_value();
        assert_eq!(value, json!({"a": 1e26}));
    }
}
