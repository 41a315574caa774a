//! Scripts that want more than they may have, and scripts that are none.

use super::fixture::Fixture;
use crate::code;
use serde_json::json;

#[tokio::test]
async fn what_is_no_script_is_told_with_its_place() {
    let fixture = Fixture::new();
    for (script, part) in [
        ("return 1;\nlet = = 2", "script.js:2"),
        ("import fs from 'fs'", ""),
        ("}", ""),
        ("return 1 })(); (() => { 2", "braces"),
        ("\u{0}", ""),
        ("'unclosed", ""),
        ("await", ""),
        (&"(".repeat(100_000), ""),
    ] {
        let result = fixture.run(script).await;
        let found = result.code.as_deref();
        let shown: String = script.chars().take(30).collect();
        assert!(
            matches!(
                found,
                Some(code::SCRIPT_SYNTAX | code::SCRIPT_STACK_OVERFLOW)
            ),
            "{shown}: {found:?} {}",
            result.text()
        );
        assert!(result.text().contains(part), "{shown}: {}", result.text());
        assert!(result.text().len() < 2000, "{shown}");
    }
}

#[tokio::test]
async fn whatever_is_thrown_is_told() {
    let fixture = Fixture::new();
    for (script, part) in [
        ("throw new RangeError('r')", "RangeError: r"),
        ("\n\nnull.x", "script.js:3"),
        ("throw 'text'", "no Error: text"),
        ("throw { a: 1 }", "no Error: {\"a\":1}"),
        ("throw undefined", "no Error: undefined"),
        ("throw Object.create(null)", "no Error: {}"),
        (
            "throw { toString() { throw 1 }, toJSON() { throw 2 } }",
            "cannot be shown",
        ),
        (
            "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { throw 1 } }); throw e",
            "cannot be shown",
        ),
        (
            "throw new Proxy({}, { get() { throw 1 } })",
            "cannot be shown",
        ),
        ("return Promise.reject(new Error('late'))", "Error: late"),
        ("setTimeout(() => {}, 1)", "setTimeout"),
        ("await tools.echo({ a: 1 }, 2)", "one object"),
        ("await tools.echo(() => 1)", "no JSON value"),
        (
            "await tools.echo({ get a() { throw new Error('got') } })",
            "Error: got",
        ),
        ("const a = {}; a.a = a; await tools.echo(a)", "TypeError"),
        ("await tools.echo({ a: 1n })", "TypeError"),
        (
            "let a = {}; for (let i = 0; i < 500; i++) a = { a }; await tools.echo(a)",
            "recursion",
        ),
        ("tools.echo = 1", "TypeError"),
        ("console.log = 1", "TypeError"),
        ("delete tools.echo", "TypeError"),
    ] {
        let text = fixture.failure(script, code::SCRIPT_THREW).await;
        assert!(text.contains(part), "{script}: {text}");
    }
}

#[tokio::test]
async fn what_is_no_value_is_told() {
    let fixture = Fixture::new();
    for (script, part) in [
        ("const a = []; a.push(a); return a", "circular"),
        ("return 1n", "BigInt"),
        (
            "return { get a() { throw new Error('got') } }",
            "Error: got",
        ),
        ("return { toJSON() { throw 'x' } }", "no Error: x"),
        (
            "let a = []; for (let i = 0; i < 500; i++) a = [a]; return a",
            "recursion",
        ),
        (
            "return new Proxy({}, { ownKeys() { throw 1 } })",
            "no Error: 1",
        ),
    ] {
        let text = fixture.failure(script, code::SCRIPT_RESULT).await;
        assert!(
            text.to_lowercase().contains(&part.to_lowercase()),
            "{script}: {text}"
        );
    }
}

#[tokio::test]
async fn a_script_that_waits_in_vain_is_told() {
    let fixture = Fixture::new();
    for script in [
        "await new Promise(() => {})",
        "await tools.echo({}); await { then() {} }",
        "await Promise.race([])",
        "Object.defineProperty(Promise.prototype, 'then', { value() {} }); await { then() {} }",
    ] {
        fixture.failure(script, code::SCRIPT_DEADLOCK).await;
    }
}

#[tokio::test]
async fn a_script_that_does_not_end_is_ended() {
    let fixture = Fixture::with(|config| config.wall_ms = 50);
    for script in [
        "for (;;) {}",
        "for (;;) { try { for (;;) {} } catch {} finally { for (;;) {} } }",
        "for (;;) await null",
        "const f = () => Promise.resolve().then(f); await f()",
        "const f = () => ({ then(done) { done(f()) } }); await f()",
        "const f = () => { queueMicrotask(f) }; f(); await new Promise(() => {})",
        "await tools.hold({})",
        "return { get a() { for (;;) {} } }",
        "throw { toString() { for (;;) {} }, toJSON() { for (;;) {} } }",
        "console.log({ toJSON() { for (;;) {} } })",
        "/(a+)+$/.test('a'.repeat(50) + 'b'); for (;;) {}",
        "[...function* () { for (;;) yield }()]; for (;;) {}",
        "eval('for (;;) {}')",
        "new Function('for (;;) {}')()",
        "[1].sort(() => { for (;;) {} }); for (;;) {}",
    ] {
        let result = fixture.run(script).await;
        let found = result.code.as_deref();
        // Filling the memory may be quicker than the clock.
        let memory = script.contains("yield") && found == Some(code::SCRIPT_OUT_OF_MEMORY);
        assert!(
            memory || found == Some(code::SCRIPT_TIMEOUT),
            "{script}: {found:?} {}",
            result.text()
        );
        if !memory {
            assert!(
                result.text().contains("50 ms"),
                "{script}: {}",
                result.text()
            );
        }
    }
}

#[tokio::test]
async fn a_script_that_takes_too_much_memory_is_ended() {
    let fixture = Fixture::with(|config| config.memory_bytes = 8 << 20);
    for script in [
        "const a = []; for (;;) a.push(new Array(1000).fill(7))",
        "const a = []; for (;;) a.push('x'.repeat(1000) + a.length)",
        "return 'x'.repeat(64 << 20)",
        "return new Uint8Array(64 << 20).length",
        "const a = []; for (;;) a.push({})",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, i)",
    ] {
        let text = fixture.failure(script, code::SCRIPT_OUT_OF_MEMORY).await;
        assert!(text.contains("8388608 bytes"), "{script}: {text}");
    }
    // The interpreter says no more when it has no memory for an error.
    let text = fixture
        .failure("throw null", code::SCRIPT_OUT_OF_MEMORY)
        .await;
    assert!(text.contains("threw null: it did so itself, or"), "{text}");
    // One that copes goes on.
    let value = fixture
        .value("try { 'x'.repeat(64 << 20).length } catch (e) { return 'coped' } return 'no limit'")
        .await;
    assert_eq!(value, json!("coped"));
}

/// An interpreter without memory drops jobs in silence: what waits for them waits for memory, not for
/// a promise that nobody settles.
#[tokio::test]
async fn a_chain_of_jobs_without_an_end_ends_at_the_memory() {
    let fixture = Fixture::with(|config| config.memory_bytes = 4 << 20);
    for script in [
        "const f = () => Promise.resolve().then(f); await f()",
        "const f = async () => { await null; return f() }; await f()",
        "const f = () => new Promise((done) => queueMicrotask(() => done(f()))); await f()",
        "const f = () => Promise.resolve().then(() => Promise.all([f(), 1])); await f()",
        "const f = () => Promise.reject(1).catch(f); await f()",
        "const f = () => Promise.resolve().finally(f); await f()",
        "const f = (a) => Promise.resolve().then(() => f({ a })); await f()",
        "const f = (a) => Promise.resolve().then(() => f(new Array(20).fill(a))); await f()",
        "const f = (a) => Promise.resolve().then(() => f(a + 'x'.repeat(5000))); await f('')",
        "const fork = () => { queueMicrotask(fork); queueMicrotask(fork) }; fork(); await new Promise(() => {})",
        "const f = () => Promise.resolve().then(f); tools.hold({}).catch(() => 1); await f()",
        "const f = () => Promise.resolve().then(f); f(); tools.hold({}); return 1",
    ] {
        let text = fixture.failure(script, code::SCRIPT_OUT_OF_MEMORY).await;
        assert!(text.contains("4194304 bytes"), "{script}: {text}");
    }
}

#[tokio::test]
async fn a_script_that_recurses_too_deep_is_ended() {
    let fixture = Fixture::new();
    for script in [
        "const f = () => f() + 1; f()",
        "const f = async () => { await f() }; await f()",
        "let a = []; for (let i = 0; i < 100000; i++) a = [a]; JSON.stringify(a)",
        "JSON.parse('['.repeat(100000))",
        "eval('('.repeat(100000))",
        "new RegExp('('.repeat(100000))",
        "const o = { get a() { return this.a } }; o.a",
        "const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.a",
    ] {
        let result = fixture.run(script).await;
        assert!(
            matches!(
                result.code.as_deref(),
                Some(code::SCRIPT_STACK_OVERFLOW | code::SCRIPT_THREW | code::SCRIPT_OUT_OF_MEMORY)
            ),
            "{script}: {}",
            result.text()
        );
    }
    fixture
        .failure("const f = () => f() + 1; f()", code::SCRIPT_STACK_OVERFLOW)
        .await;
}

#[tokio::test]
async fn a_script_makes_so_many_calls_and_no_more() {
    let fixture = Fixture::with(|config| config.max_calls = 3);
    let text = fixture
        .failure("for (;;) await tools.echo({})", code::SCRIPT_THREW)
        .await;
    assert!(text.contains("at most 3 calls"), "{text}");
    assert_eq!(fixture.results.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn code_has_a_size() {
    let fixture = Fixture::with(|config| config.max_code_bytes = 10);
    let text = fixture
        .failure("return 1234567", dsh_tools::code::INVALID_ARGS)
        .await;
    assert!(
        text.contains("14 bytes") && text.contains("at most 10"),
        "{text}"
    );
}

/// There is the language, `tools` and `console`; nothing that reaches out.
#[tokio::test]
async fn a_script_finds_nothing_ambient() {
    let fixture = Fixture::new();
    let value = fixture
        .value(
            "const names = ['require', 'process', 'fetch', 'XMLHttpRequest', 'WebSocket', 'Deno',\n\
               'std', 'os', 'bjson', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask',\n\
               'performance', 'print', 'scriptArgs', 'load', 'loadScript', 'navigator', 'Worker',\n\
               'dispatch', 'mounted', 'gc'];\n\
             return names.filter((name) => {\n\
               try { return (0, eval)('typeof ' + name) !== 'undefined' } catch { return true } })",
        )
        .await;
    let left = value.as_array().expect("a list").clone();
    // The language's own queue of jobs, which a script empties before it is waited for.
    assert!(left.iter().all(|name| name == "queueMicrotask"), "{value}");
    for script in [
        "await import('fs')",
        "await import('/etc/passwd')",
        "await import('./prelude.js')",
        "await import('data:text/javascript,export default 1')",
    ] {
        fixture.failure(script, code::SCRIPT_THREW).await;
    }
    let value = fixture
        .value(
            "return Object.getOwnPropertyNames(globalThis).filter((n) => /^[a-z]/.test(n)).sort()",
        )
        .await;
    let names: Vec<&str> = value
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|name| name.as_str())
        .collect();
    for name in &names {
        let plain = [
            "console",
            "decodeURI",
            "decodeURIComponent",
            "encodeURI",
            "encodeURIComponent",
            "escape",
            "eval",
            "globalThis",
            "isFinite",
            "isNaN",
            "parseFloat",
            "parseInt",
            "queueMicrotask",
            "tools",
            "undefined",
            "unescape",
        ];
        assert!(plain.contains(name), "{name} is new: what can it reach?");
    }
}

/// Whatever a script does to the built-in objects, the table and what goes through it stay right.
#[tokio::test]
async fn games_with_prototypes_change_nothing() {
    let fixture = Fixture::new();
    for script in [
        "Object.prototype.then = function () {};\n\
           delete Object.prototype.then; return (await tools.echo({ n: 7 })).n",
        "JSON.stringify = () => '{\"n\":0}'; JSON.parse = () => 0;\n\
           return (await tools.echo({ n: 7 })).n",
        "Array.prototype[Symbol.iterator] = null; Array.prototype.map = null;\n\
           Object.create = Object.freeze = Reflect.apply = null; console.log('x', 'y');\n\
           return (await tools.echo({ n: 7 })).n",
        "globalThis.Promise = globalThis.Error = globalThis.String = null;\n\
           return (await tools.echo({ n: 7 })).n",
        "Object.prototype.code = Object.prototype.resolve = 1; Object.prototype.id = 'x';\n\
           return (await tools.echo({ n: 7 })).n",
        "Object.prototype.evil = () => 1; let caught = 0;\n\
           try { tools.evil } catch { caught = 7 } return caught",
        "return typeof tools.constructor === 'undefined' && Object.getPrototypeOf(tools) === null\n\
           && (await tools.__proto__({ n: 7 })).n",
        "let caught = 0; for (const change of [() => { tools.echo = 1 }, () => { delete tools.echo },\n\
           () => Object.setPrototypeOf(tools, {}), () => Object.defineProperty(tools, 'x', {}),\n\
           () => { tools.echo.x = 1 }, () => { globalThis.tools = 1 }, () => { globalThis.console = 1 }])\n\
           { try { change() } catch { caught += 1 } } return caught",
        "const { tools: t } = globalThis; const { echo } = t; return (await echo.call(null, { n: 7 })).n",
    ] {
        assert_eq!(fixture.value(script).await, json!(7), "{script}");
    }
    let value = fixture.value("return Object.keys(tools)").await;
    assert_eq!(
        value,
        json!([
            "__proto__",
            "alone",
            "echo",
            "fail",
            "hold",
            "meet",
            "web_search"
        ])
    );
}

/// One script leaves nothing to the next one.
#[tokio::test]
async fn scripts_share_nothing() {
    let fixture = Fixture::new();
    fixture
        .value("globalThis.left = 1; Object.prototype.left = 1; return 1")
        .await;
    let value = fixture
        .value("return [typeof left, typeof ({}).left]")
        .await;
    assert_eq!(value, json!(["undefined", "undefined"]));
}
