//! The symbols of `textDocument/documentSymbol`, in either of its shapes: pure.

use serde_json::Value;

use super::Symbol;
use crate::samples::Position;

/// The most symbols that are taken of a server.
const MOST: usize = 2_000;
/// How deep symbols within symbols are followed.
const DEPTH: u32 = 16;

/// The symbols in an answer about `file`; none where it is of another shape.
pub(crate) fn read(file: &str, result: &Value) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    list(file, result, DEPTH, &mut symbols);
    symbols
}

fn list(file: &str, value: &Value, depth: u32, symbols: &mut Vec<Symbol>) {
    let Some(items) = value.as_array() else {
        return;
    };
    for item in items {
        if symbols.len() >= MOST {
            return;
        }
        let start = item
            .pointer("/selectionRange/start")
            .or_else(|| item.pointer("/location/range/start"));
        let number = |key: &str| u32::try_from(start?.get(key)?.as_u64()?).ok();
        if let (Some(name), Some(line), Some(character)) =
            (item["name"].as_str(), number("line"), number("character"))
        {
            symbols.push(Symbol {
                name: name.to_owned(),
                file: file.to_owned(),
                position: Position { line, character },
            });
        }
        if let Some(depth) = depth.checked_sub(1) {
            list(file, &item["children"], depth, symbols);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(result: &Value) -> Vec<String> {
        let symbols = read("a.x", result);
        symbols
            .iter()
            .map(|symbol| format!("{} {}:{}", symbol.name, symbol.file, symbol.position))
            .collect()
    }

    #[test]
    fn both_shapes_are_read_children_too() {
        let range = |line: u32| json!({"start": {"line": line, "character": 4}, "end": {"line": line, "character": 9}});
        let tree = json!([{"name": "Shape", "kind": 5, "range": range(0), "selectionRange": range(1),
            "children": [{"name": "area", "kind": 6, "range": range(2), "selectionRange": range(2)}]}]);
        assert_eq!(told(&tree), ["Shape a.x:2:5", "area a.x:3:5"]);
        let flat = json!([{"name": "area", "kind": 12, "location": {"uri": "file:///a.x", "range": range(7)}}]);
        assert_eq!(told(&flat), ["area a.x:8:5"]);
    }

    #[test]
    fn what_is_no_list_of_symbols_gives_none() {
        for result in [
            json!(null),
            json!({}),
            json!([1, {"name": "x"}]),
            json!([{"name": "x", "selectionRange": {"start": {"line": -1, "character": 0}}}]),
        ] {
            assert_eq!(told(&result), Vec::<String>::new(), "{result}");
        }
        let many: Vec<Value> = (0..MOST + 5)
            .map(|_| json!({"name": "x", "location": {"range": {"start": {"line": 0, "character": 0}}}}))
            .collect();
        assert_eq!(read("a.x", &json!(many)).len(), MOST);
    }
}
