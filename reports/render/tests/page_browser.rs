//! The page of reports in a real browser: nothing on the console, filters and sorting, no sideways
//! scrolling, contrast, and all of it readable without scripts. Without Chromium this is skipped and
//! says so, but for CI, which has to have it.

#[path = "support/browser.rs"]
mod browser;
#[path = "support/servers.rs"]
mod servers;
mod support;

use dsh_reports::render_page;
use serde_json::json;

use browser::{chromium, found, probed};

/// What is asked of the page in the browser, written where the test finds it.
const PROBE: &str = r#"
(() => {
  const root = document.documentElement;
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const seen = (element) => element.getClientRects().length > 0;
  const rows = () => all('.matrix tbody tr').filter(seen).map((row) => row.dataset.part.split(/-script|\./)[0]);
  const set = (selector, value, kind) => {
    const field = document.querySelector(selector);
    field.value = value;
    field.dispatchEvent(new Event(kind, { bubbles: true }));
  };
  const found = { script: root.classList.contains('js'), width: innerWidth };
  // What is not on the screen has no size otherwise.
  for (const part of all('.part, .suite-cases details')) part.style.contentVisibility = 'visible';
  const spill = () => root.scrollWidth - root.clientWidth;
  found.spill = spill();
  found.controls = all('.controls').filter(seen).length;
  found.rows = rows();
  found.parts = all('article.part').filter(seen).length;
  found.cases = all('li.case').filter(seen).length;
  found.pictures = all('.sequence').filter(seen).length;
  found.stray = all('script').length + all('img').length;
  const bars = all('.answers rect').map((bar) => bar.getBoundingClientRect());
  found.bars = bars.length > 0 && bars.every((bar) => bar.width > 0 && bar.height > 0);
  if (found.script) {
    const status = document.querySelector('.overview .count');
    found.count = status.textContent;
    set('.overview input', 'KOTLIN not', 'input');
    found.text = rows();
    found.told = status.textContent;
    found.left = all('article.part:not(.suite)').filter(seen).map((part) => part.id);
    set('.overview input', '', 'input');
    set('.overview select[data-key=verdict]', 'untestable', 'change');
    found.verdict = rows();
    set('.overview select[data-key=verdict]', '', 'change');
    set('.overview select[data-key=language]', 'YAML', 'change');
    found.language = rows();
    document.querySelector('.overview .controls button').click();
    found.reset = rows().length;
    const head = (name) => document.querySelector(`th[data-sort=${name}]`);
    head('ready').querySelector('button').click();
    found.ready = rows();
    found.sorted = head('ready').getAttribute('aria-sort');
    head('ready').querySelector('button').click();
    found.turned = rows();
    set('[data-sort-by]', 'memory', 'change');
    found.memory = rows().slice(0, 3);
    set('[data-sort-by]', 'rank', 'change');
    found.rank = rows().slice(-2);
    set('.suite input', 'can-4', 'input');
    const suite = Array.from(document.querySelector('.suite').querySelectorAll('.suite-cases li'));
    found.suite = suite.filter(seen).length;
    found.areas = new Set(suite.filter(seen).map((item) => item.closest('details'))).size;
    document.querySelector('.suite .controls button').click();
    found.folded = all('.suite-cases details[open]').length;
    location.hash = '#' + document.querySelector('.suite-cases li[id]').id;
    dispatchEvent(new Event('hashchange'));
    found.revealed = seen(document.querySelector('.suite-cases li[id]'));
    for (const fold of all('details')) fold.open = true;
    found.spill = Math.max(found.spill, spill());
  }
  // Each line of a text has a place of its own.
  const lines = (element) => {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    const tops = [];
    while (texts.nextNode()) {
      range.selectNodeContents(texts.currentNode);
      tops.push(...Array.from(range.getClientRects(), (place) => place.top));
    }
    tops.sort((one, other) => one - other);
    return tops.filter((top, index) => index === 0 || top - tops[index - 1] > 6).length;
  };
  // A name that is broken inside of a word cannot be read; behind a hyphen or a dot it can.
  const torn = (element) => {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    const found = [];
    while (texts.nextNode()) {
      for (const part of texts.currentNode.data.matchAll(/[\w{}":]{2,24}/g)) {
        range.setStart(texts.currentNode, part.index);
        range.setEnd(texts.currentNode, part.index + part[0].length);
        if (range.getClientRects().length > 1) found.push(part[0]);
      }
    }
    return found;
  };
  found.torn = all('.matrix td.verdict, .matrix tbody th:not(:has([href*=hostile])), .verdicts li:not(:has([href*=hostile])), .helps').filter(seen).flatMap(torn);
  // The answer is on the first screen, before anything that it is drawn from.
  const answer = document.querySelector('.answer');
  found.answer = [Math.round(answer.querySelector('h2').getBoundingClientRect().bottom + scrollY) < 420, answer.compareDocumentPosition(document.querySelector('.matrix')) === 4];
  const titles = all('.matrix .what').filter(seen);
  found.titles = [titles.length, titles.filter((title) => title.textContent && title.getBoundingClientRect().height <= title.getBoundingClientRect().width).length];
  // Whoever goes by keys sees where: each that can be reached has a ring when it is.
  const reached = ['.skip', '.verdicts a', 'nav a', '.controls input', '.controls select', '.controls button', '.scroll', 'th button', '.clause a', '.cell a', '.matrix tbody th a', '.back', 'summary'];
  found.ringless = reached.filter((selector) => {
    const element = all(selector).find(seen);
    if (!element) return false;
    element.focus({ preventScroll: true });
    const style = getComputedStyle(element);
    return document.activeElement !== element || style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2;
  });
  document.activeElement.blur();
  found.keyed = reached.filter((selector) => all(selector).some(seen)).length;
  // The first that the tab key comes to leads past everything else.
  const stops = all('a[href], button, input, select, summary, [tabindex="0"]');
  found.start = stops[0].className;
  found.unreachable = stops.filter((stop) => stop.tabIndex < 0).length;
  found.landmarks = ['body > header', 'main', 'nav[aria-label]', '[role=search][aria-label]', '[role=region][aria-labelledby]'].filter((selector) => all(selector).length > 0).length;
  const words = (element) => element.textContent.trim().split(/\s+/).length;
  found.squeezed = all('.list th, .list td, .statements td').filter(seen)
    .filter((cell) => cell.offsetWidth > 8 && !/\S{20}/.test(cell.textContent))
    .filter((cell) => words(cell) > 2 && lines(cell) >= words(cell))
    .map((cell) => cell.textContent.slice(0, 60));
  const moments = all('.sequence').filter(seen).map((sequence) => {
    const places = Array.from(sequence.querySelectorAll(':scope > ol > li:not(.pause) > .moment')).map((moment) => {
      const step = moment.parentElement.querySelector('.step').getBoundingClientRect();
      const place = moment.getBoundingClientRect();
      return { left: place.left, over: moment.scrollWidth > moment.clientWidth + 1 || place.right > step.right };
    });
    return places.some((place) => place.over || Math.abs(place.left - places[0].left) > 1);
  });
  found.crooked = moments.filter(Boolean).length;
  const box = document.querySelector('.scroll');
  box.style.maxHeight = '20rem';
  box.scrollTop = 150;
  box.scrollLeft = 150;
  const at = (element) => element.getBoundingClientRect();
  found.scrolled = [box.scrollTop > 100, box.scrollLeft > 100 || box.scrollWidth <= box.clientWidth + 100];
  found.head = Math.round(at(box.querySelector('thead')).top - at(box).top);
  found.first = Math.round(at(box.querySelector('tbody th')).left - at(box).left);
  box.style.maxHeight = '';
  const light = (color) => color.match(/[\d.]+/g).slice(0, 3).map((part) => {
    const light = part / 255;
    return light <= 0.04045 ? light / 12.92 : ((light + 0.055) / 1.055) ** 2.4;
  });
  const luminance = (color) => {
    const [red, green, blue] = light(color);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (color !== 'rgba(0, 0, 0, 0)') return color;
    }
    return 'rgb(255, 255, 255)';
  };
  found.contrast = 21;
  for (const element of all('body *:not(script):not(svg *)')) {
    if (!Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const [one, two] = [luminance(getComputedStyle(element).color), luminance(behind(element))];
    const contrast = Math.max(one, two) / Math.min(one, two);
    if (contrast < found.contrast) [found.contrast, found.faintest] = [contrast, element.className || element.localName];
  }
  found.edges = Math.min(...all('.controls input, .controls select, .controls button').filter(seen).map((field) => {
    const [one, two] = [luminance(getComputedStyle(field).borderTopColor), luminance(behind(field.parentElement))];
    return Math.max(one, two) / Math.min(one, two);
  }), 21);
  found.dark = luminance(getComputedStyle(document.body).backgroundColor) < 0.2;
  // As on paper: what holds in print holds here now, and everything is folded.
  for (const fold of all('details')) fold.open = false;
  const sheet = document.styleSheets[0];
  const printed = Array.from(sheet.cssRules).filter((rule) => rule.media && rule.media.mediaText === 'print');
  for (const rule of printed.flatMap((rule) => Array.from(rule.cssRules))) sheet.insertRule(rule.cssText, sheet.cssRules.length);
  const inside = all('article.part details > :not(summary)');
  found.unprinted = inside.filter((element) => !element.closest('[hidden]') && at(element).height < 1).length;
  found.unfolded = [printed.length, inside.length];
  const out = document.createElement('pre');
  out.id = 'found';
  out.textContent = JSON.stringify(found);
  window.parent.document.body.append(out);
})();
"#;

fn page() -> String {
    let harness = support::report(vec![support::mixed()]);
    let mutants = support::report(vec![support::power()]);
    render_page(&[servers::rich(), harness, mutants]).expect("a page is made of any report")
}

#[test]
fn the_page_is_filtered_and_sorted_at_every_width_light_and_dark() {
    let Some(chromium) = chromium() else {
        return;
    };
    let page = probed(&page(), PROBE, true);
    for (width, dark) in [(400, false), (400, true), (800, true), (1600, false)] {
        let found = found(chromium, "reports", &page, width, dark);
        let at = format!("{width} px, dark: {dark}: {found:#}");
        assert_eq!(found["script"], true, "{at}");
        assert_eq!(found["width"], width, "{at}");
        assert_eq!(found["dark"], dark, "{at}");
        assert_eq!(found["spill"], 0, "{at}");
        assert_eq!(found["stray"], 2, "the page's script and the probe; {at}");
        assert_eq!(found["bars"], true, "{at}");
        assert_eq!(found["controls"], 3, "{at}");
        assert_eq!(found["count"], "8 servers", "{at}");
        assert_eq!(found["text"], json!(["kotlin-language-server"]), "{at}");
        assert_eq!(found["told"], "1 of 8 servers", "{at}");
        assert_eq!(found["left"], json!(["kotlin-language-server"]), "{at}");
        assert_eq!(found["verdict"], json!(["sourcekit-lsp"]), "{at}");
        assert_eq!(found["language"], json!(["yaml-language-server"]), "{at}");
        assert_eq!(found["reset"], 8, "{at}");
        let order = [
            "hostile",
            "yaml-language-server",
            "typescript-language-server",
            "kotlin-language-server",
            "gopls",
            "my-server-stdio",
            "sourcekit-lsp",
            "zls",
        ];
        assert_eq!(found["ready"], json!(order), "{at}");
        assert_eq!(found["sorted"], "ascending", "{at}");
        assert_eq!(found["turned"][7], "hostile", "{at}");
        assert_eq!(found["memory"][0], "hostile", "{at}");
        assert_eq!(found["rank"], json!(["sourcekit-lsp", "zls"]), "{at}");
        assert_eq!(
            (&found["suite"], &found["areas"]),
            (&json!(1), &json!(1)),
            "{at}"
        );
        assert_eq!(found["folded"], 0, "{at}");
        assert_eq!(found["revealed"], true, "{at}");
        assert_eq!(found["squeezed"], json!([]), "{at}");
        assert_eq!(found["crooked"], 0, "{at}");
        assert_eq!(found["scrolled"], json!([true, true]), "{at}");
        assert_eq!(
            (&found["head"], &found["first"]),
            (&json!(0), &json!(0)),
            "{at}"
        );
        assert_eq!(found["unprinted"], 0, "{at}");
        assert_eq!(found["unfolded"][0], 1, "{at}");
        assert!(found["unfolded"][1].as_u64().unwrap() > 10, "{at}");
        assert!(found["contrast"].as_f64().unwrap() >= 4.5, "{at}");
        assert!(found["edges"].as_f64().unwrap() >= 3.0, "{at}");
        assert_eq!(found["torn"], json!([]), "{at}");
        assert_eq!(found["answer"], json!([true, true]), "{at}");
        // Titles stand upright over their columns where there is room for them.
        let columns = if width < 700 { 0 } else { 38 };
        assert_eq!(found["titles"], json!([columns, 0]), "{at}");
        assert_eq!(found["ringless"], json!([]), "{at}");
        assert_eq!(found["keyed"], 13, "{at}");
        assert_eq!(
            (&found["start"], &found["unreachable"]),
            (&json!("skip"), &json!(0)),
            "{at}"
        );
        assert_eq!(found["landmarks"], 5, "{at}");
    }
}

#[test]
fn without_scripts_everything_is_there_and_no_control_is() {
    let Some(chromium) = chromium() else {
        return;
    };
    let page = page();
    let cases = page.matches("class=\"case\"").count();
    let pictures = page.matches("class=\"sequence\"").count();
    assert!(cases > 100 && pictures > 5);
    let found = found(
        chromium,
        "reports-plain",
        &probed(&page, PROBE, false),
        400,
        false,
    );
    assert_eq!(found["script"], false, "{found:#}");
    assert_eq!(found["controls"], 0, "{found:#}");
    assert_eq!(found["rows"].as_array().unwrap().len(), 8, "{found:#}");
    assert_eq!(found["parts"], 10, "{found:#}");
    assert_eq!(found["cases"], cases, "{found:#}");
    // Those of the hostile server lie in what is folded.
    assert!(found["pictures"].as_u64().unwrap() > 5, "{found:#}");
    assert_eq!(found["spill"], 0, "{found:#}");
}
