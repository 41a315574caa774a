'use strict';
(() => {
  const root = document.documentElement;
  const panel = document.getElementById('details');
  const told = document.getElementById('told');
  const links = Array.from(document.querySelectorAll('a[data-item]'));
  const place = new Map(links.map((link, index) => [link.hash.slice(1), index]));
  if (!panel || links.length === 0) return;
  root.classList.add('js');
  const close = document.createElement('button');
  close.type = 'button';
  close.className = 'close';
  close.textContent = 'Close';
  panel.prepend(close);
  let shown = null;

  // A viewer that shows the page in a frame may not allow it an address of its own.
  const remember = (address) => {
    try {
      history.replaceState(null, '', address);
    } catch {
      // The selection is then not in the address, and that is all.
    }
  };

  const show = (id) => {
    const article = document.getElementById(id);
    const index = place.get(id);
    if (!article || index === undefined) return;
    if (shown) {
      shown.article.classList.remove('open');
      shown.link.removeAttribute('aria-current');
    }
    shown = { article, link: links[index], index };
    article.classList.add('open');
    shown.link.setAttribute('aria-current', 'true');
    root.classList.add('reading');
    panel.scrollTop = 0;
    told.textContent = 'Details: ' + article.querySelector('h3').textContent;
    remember('#' + id);
  };

  const go = (index) => {
    const link = links[Math.max(0, Math.min(links.length - 1, index))];
    show(link.hash.slice(1));
    link.focus({ preventScroll: true });
    link.scrollIntoView({ block: 'nearest' });
  };

  const hide = () => {
    root.classList.remove('reading');
    if (!shown) return;
    const { article, link } = shown;
    article.classList.remove('open');
    link.removeAttribute('aria-current');
    shown = null;
    told.textContent = 'Details closed';
    remember(location.pathname + location.search);
    link.focus();
  };

  const turn = (by) => {
    const heads = Array.from(document.querySelectorAll('section.turn'));
    const from = shown ? heads.indexOf(shown.link.closest('section.turn')) : -1;
    for (let at = from + by; at >= 0 && at < heads.length; at += by) {
      const first = heads[at].querySelector('a[data-item]');
      if (first) return go(links.indexOf(first));
    }
  };

  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target === close) return hide();
    const link = event.target.closest('a[href^="#"]');
    if (!link) return;
    const id = link.hash.slice(1);
    if (link.classList.contains('back')) {
      event.preventDefault();
      const at = place.get(id.slice(3));
      if (at !== undefined) go(at);
    } else if (place.has(id)) {
      event.preventDefault();
      if (link.hasAttribute('data-item')) show(id);
      else go(place.get(id));
      if (event.detail === 0 && shown) shown.article.focus();
    }
  });

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const reading = panel.contains(event.target) && event.target !== close;
    if (event.key === 'Escape') return hide();
    if (reading || event.target.closest('details, button, input')) return;
    const now = shown ? shown.index : -1;
    const moves = {
      ArrowDown: () => go(now + 1), j: () => go(now + 1),
      ArrowUp: () => go(now - 1), k: () => go(now - 1),
      ']': () => turn(1), '[': () => turn(-1),
      Home: () => go(0), End: () => go(links.length - 1),
    };
    const move = Object.hasOwn(moves, event.key) && moves[event.key];
    if (move) {
      event.preventDefault();
      move();
    }
  });

  const arrive = () => {
    const id = location.hash.slice(1);
    if (place.has(id)) go(place.get(id));
  };
  window.addEventListener('hashchange', arrive);
  arrive();
})();
