// What a reader sees of a page: an expression whose value `page_measures.py` reads.
(() => {
  const root = document.documentElement;
  const shown = element => element.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const first = document.querySelector("#first");
  const measures = {
    height: root.scrollHeight,
    first: first ? Math.max(...[...first.querySelectorAll("*")].filter(shown)
      .map(element => element.getBoundingClientRect().bottom + scrollY)) : null,
    tables: [...document.querySelectorAll("table")]
      .filter(table => !table.closest("details") && shown(table)).length,
    ids: [...document.querySelectorAll("[id]")].map(element => element.id),
    links: [...new Set([...document.querySelectorAll("a[href], link[href], img[src], script[src]")]
      .map(element => element.getAttribute("href") ?? element.getAttribute("src")))],
  };
  // Every fold is opened: what lies in one must be readable, too.
  document.querySelectorAll("details").forEach(fold => { fold.open = true; });
  measures.width = root.scrollWidth;
  measures.window = root.clientWidth;

  const frames = new Map();  // element → the part of the page in which its content is shown
  const frame = element => {
    if (!element || element === root || element === document.body)
      return {left: 0, top: 0, right: Infinity, bottom: Infinity};
    if (!frames.has(element)) {
      let own = frame(element.parentElement);
      if (getComputedStyle(element).overflow !== "visible") {
        const box = element.getBoundingClientRect();
        own = {left: Math.max(own.left, box.left), top: Math.max(own.top, box.top + scrollY),
          right: Math.min(own.right, box.right), bottom: Math.min(own.bottom, box.bottom + scrollY)};
      }
      frames.set(element, own);
    }
    return frames.get(element);
  };
  const boxes = [], cut = [], range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement, text = node.textContent.trim();
    if (!text || parent.closest("script, style, template") || !shown(parent)) continue;
    range.selectNodeContents(node);
    const around = frame(parent);
    for (const box of range.getClientRects()) {
      // The ink of a line: about the middle 60 % of its box.
      const room = 0.2 * box.height;
      const ink = {text, node, left: Math.max(box.left, around.left),
        right: Math.min(box.right, around.right),
        top: Math.max(box.top + scrollY + room, around.top),
        bottom: Math.min(box.bottom + scrollY - room, around.bottom)};
      if (ink.right - ink.left > 1 && ink.bottom - ink.top > 1) boxes.push(ink);
      const drawing = parent.ownerSVGElement?.getBoundingClientRect();
      if (drawing && (box.left < drawing.left - 1 || box.right > drawing.right + 1
          || box.top + room < drawing.top - 1 || box.bottom - room > drawing.bottom + 1))
        cut.push(text.slice(0, 60));
    }
  }
  boxes.sort((one, other) => one.top - other.top);
  const pairs = [];
  let open = [];
  for (const box of boxes) {
    open = open.filter(other => other.bottom > box.top + 1);
    for (const other of open) {
      const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
      const down = Math.min(box.bottom, other.bottom) - box.top;
      // A halo is the same text drawn twice at one place.
      const halo = box.text === other.text && Math.abs(box.left - other.left) < 1;
      if (across > 1 && down > 1 && box.node !== other.node && !halo)
        pairs.push([other.text.slice(0, 60), box.text.slice(0, 60),
          Math.round(box.left), Math.round(box.top)]);
    }
    open.push(box);
  }
  measures.overlaps = pairs;
  measures.cut = cut;
  return measures;
})()
