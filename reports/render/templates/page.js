'use strict';
(() => {
  const root = document.documentElement;
  const told = document.getElementById('told');

  // What an address names may lie in something that is folded.
  const reveal = () => {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      // Then it is taken as it is.
    }
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let at = target; at; at = at.parentElement) {
      if (at.localName === 'details') at.open = true;
      at.hidden = false;
    }
    target.scrollIntoView();
  };

  const controls = (bar) => {
    const scope = bar.closest('.suite, .overview');
    const items = Array.from(scope.querySelectorAll(bar.dataset.items));
    const parts = new Map(items.map((item) => [item, document.getElementById(item.dataset.part)]));
    const folds = Array.from(scope.querySelectorAll('.suite-cases details'));
    const texts = new Map();
    const text = bar.querySelector('input');
    const chosen = Array.from(bar.querySelectorAll('select[data-key]'));
    const order = bar.querySelector('select[data-sort-by]');
    const count = bar.querySelector('.count');

    const found = (item, words) => {
      if (words.length === 0) return true;
      if (!texts.has(item)) texts.set(item, item.dataset.find ?? item.textContent.toLowerCase());
      return words.every((word) => texts.get(item).includes(word));
    };

    const filter = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const wanted = chosen.filter((select) => select.value);
      let shown = 0;
      for (const item of items) {
        const fits = wanted.every((select) => item.dataset[select.dataset.key] === select.value) && found(item, words);
        item.hidden = !fits;
        const part = parts.get(item);
        if (part) part.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      const filtered = words.length > 0 || wanted.length > 0;
      for (const fold of folds) {
        const any = fold.querySelector('li:not([hidden])') !== null;
        fold.hidden = filtered && !any;
        if (filtered) fold.open = any && shown <= 200;
      }
      const noun = items.length === 1 ? bar.dataset.one : bar.dataset.many;
      count.textContent = shown === items.length ? `${shown} ${noun}` : `${shown} of ${items.length} ${noun}`;
    };

    const sort = (by, down) => {
      const value = (item) => (by === 'name' ? item.dataset.name.toLowerCase() : Number(item.dataset[by]));
      const compare = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
      const sorted = items.map((item, index) => [item, index]);
      sorted.sort(([a, i], [b, j]) => (down ? -compare(a, b) : compare(a, b)) || i - j);
      for (const [item] of sorted) item.parentElement.append(item);
      for (const head of scope.querySelectorAll('th[data-sort]')) {
        if (head.dataset.sort === by) head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        else head.removeAttribute('aria-sort');
      }
      if (order) order.value = by;
    };

    for (const head of order ? scope.querySelectorAll('th[data-sort]') : []) {
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        sort(head.dataset.sort, down);
        told.textContent = `Sorted by ${button.textContent}, ${down ? 'descending' : 'ascending'}`;
      });
    }
    if (order) {
      order.addEventListener('change', () => sort(order.value, false));
      sort('name', false);
    }
    text.addEventListener('input', filter);
    for (const select of chosen) select.addEventListener('change', filter);
    bar.querySelector('button').addEventListener('click', () => {
      text.value = '';
      for (const select of chosen) select.value = '';
      for (const fold of folds) fold.open = false;
      filter();
      if (order) sort('name', false);
      text.focus();
    });
    filter();
  };

  for (const bar of document.querySelectorAll('.controls')) controls(bar);
  root.classList.add('js');
  addEventListener('hashchange', reveal);
  reveal();
})();
