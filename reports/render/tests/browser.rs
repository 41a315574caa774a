//! The page of a session in a real browser: that its script is allowed to run and works, and that
//! nothing scrolls sideways. Without Chromium this is skipped and says so, but for CI, which has to
//! have it.

#[path = "support/browser.rs"]
mod browser;
#[path = "support/session.rs"]
mod session;

use serde_json::json;

use browser::{chromium, found, probed};
use session::{Log, page};

/// What is asked of the page in the browser, written where the test finds it.
const PROBE: &str = r"
(() => {
  const root = document.documentElement;
  const links = Array.from(document.querySelectorAll('a[data-item]'));
  const open = () => Array.from(document.querySelectorAll('article.open'), (article) => article.id);
  const key = (name) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  const seen = (element) => element.getClientRects().length > 0;
  const found = { script: root.classList.contains('js'), width: innerWidth };
  const spill = () => root.scrollWidth - root.clientWidth;
  found.spill = spill();
  found.details = Array.from(document.querySelectorAll('#details article')).filter(seen).length;
  if (found.script) {
    links[0].click();
    found.entered = document.activeElement.id;
    links[0].focus();
    links[0].dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 }));
    found.clicked = open();
    key('j'); key('ArrowDown');
    found.moved = open();
    found.current = document.querySelectorAll('a[aria-current]').length;
    found.reading = Array.from(document.querySelectorAll('#details article')).filter(seen).length;
    found.spill = Math.max(found.spill, spill());
    key('k');
    found.back = open();
    key(']');
    found.turn = open();
    found.told = document.getElementById('told').textContent;
    key('Escape');
    found.closed = open();
    found.focus = document.activeElement.hasAttribute('data-item');
  }
  const pixels = (color) => color.match(/[\d.]+/g).slice(0, 3).map((part) => {
    const light = part / 255;
    return light <= 0.04045 ? light / 12.92 : ((light + 0.055) / 1.055) ** 2.4;
  });
  const luminance = ([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (color !== 'rgba(0, 0, 0, 0)') return color;
    }
    return 'rgb(255, 255, 255)';
  };
  found.contrast = 21;
  for (const element of document.querySelectorAll('body *:not(script):not(svg *)')) {
    const text = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim());
    if (!text) continue;
    const [one, two] = [getComputedStyle(element).color, behind(element)].map((color) => luminance(pixels(color)) + 0.05);
    found.contrast = Math.min(found.contrast, Math.max(one, two) / Math.min(one, two));
  }
  const out = document.createElement('pre');
  out.id = 'found';
  out.textContent = JSON.stringify(found);
  window.parent.document.body.append(out);
})();
";

fn sample() -> Vec<u8> {
    let mut log = Log::eventful();
    for call in 0..12 {
        log.call(
            &format!("p{call}"),
            "a_tool_with_a_long_name",
            &json!({"text": "x".repeat(5000)}),
            None,
        );
    }
    log.after(30);
    for call in 0..12 {
        log.result(
            &format!("p{call}"),
            "a_tool_with_a_long_name",
            &"y".repeat(5000),
        );
    }
    log.message("prompt", &"漢".repeat(3000));
    log.step(2);
    log.bytes()
}

#[test]
fn a_click_opens_the_details_and_keys_move_at_every_width_light_and_dark() {
    let Some(chromium) = chromium() else {
        return;
    };
    let page = probed(&page(&sample()), PROBE, true);
    for (width, dark) in [(400, false), (400, true), (800, true), (1600, false)] {
        let found = found(chromium, "script", &page, width, dark);
        let at = format!("{width} px, dark: {dark}: {found}");
        assert_eq!(found["script"], true, "{at}");
        assert_eq!(found["width"], width, "{at}");
        assert_eq!(found["spill"], 0, "{at}");
        assert_eq!(found["details"], 0, "{at}");
        assert_eq!(found["entered"], "e4", "{at}");
        assert_eq!(found["clicked"], json!(["e4"]), "{at}");
        assert_eq!(found["moved"], json!(["e5"]), "{at}");
        assert_eq!(found["back"], json!(["e5-prompt"]), "{at}");
        assert_eq!(
            (&found["current"], &found["reading"]),
            (&json!(1), &json!(1)),
            "{at}"
        );
        assert_eq!(found["turn"], json!(["e11"]), "{at}");
        assert!(
            found["told"]
                .as_str()
                .unwrap()
                .starts_with("Details: compaction"),
            "{at}"
        );
        assert_eq!(
            (&found["closed"], &found["focus"]),
            (&json!([]), &json!(true)),
            "{at}"
        );
        assert!(found["contrast"].as_f64().unwrap() >= 4.5, "{at}");
    }
}

#[test]
fn without_scripts_all_details_are_on_the_page() {
    let Some(chromium) = chromium() else {
        return;
    };
    let page = page(&sample());
    let details = page.matches("<article id=").count();
    let found = found(chromium, "plain", &probed(&page, PROBE, false), 400, false);
    assert_eq!(found["script"], false, "{found}");
    assert_eq!(found["details"], details, "{found}");
    assert_eq!(found["spill"], 0, "{found}");
}
