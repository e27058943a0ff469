// The one script of the page: it sorts and filters chunks, and shows some at a time.
// It builds no markup from data, loads nothing and sends nothing; without it the page is whole.
"use strict";
(() => {
  const FIRST = 25;
  const part = document.querySelector(".explore");
  const table = part.querySelector("table");
  const heads = Array.from(table.tHead.rows[0].cells);
  const only = part.querySelector("input[type=checkbox]");
  const search = part.querySelector("input[type=search]");
  const sortBy = part.querySelector("select.sort-by");
  const direction = part.querySelector("button.direction");
  const status = part.querySelector("[role=status]");
  const more = part.querySelector("button.more-rows");
  const every = part.querySelector("button.every-row");
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const chunks = Array.from(table.tBodies, (body, place) => ({
    body,
    place,
    name: body.rows[0].cells[0].textContent.trim(),
    numbers: Array.from(body.rows[0].cells, (cell) => ("v" in cell.dataset ? Number(cell.dataset.v) : NaN)),
    suspicious: body.classList.contains("suspicious"),
    text: null,
  }));
  let order = chunks.slice();
  let limit = FIRST;
  // The file has the most suspicious first.
  let sorted = { column: 1, descending: true };

  // The texts of a thousand chunks are read once somebody searches them.
  function words(one) {
    one.text ??= one.body.textContent.toLowerCase();
    return one.text;
  }

  function show() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    let shown = 0;
    for (const one of order) {
      const fits = (!only.checked || one.suspicious) && wanted.every((word) => words(one).includes(word));
      found += fits;
      const visible = fits && shown < limit;
      shown += visible;
      one.body.classList.toggle("away", !visible);
    }
    const which = found === chunks.length ? "" : `${found.toLocaleString("en")} match, of `;
    const name = heads[sorted.column].textContent.trim();
    status.textContent = `${shown.toLocaleString("en")} chunks shown; ${which}${chunks.length.toLocaleString("en")} in all.`
      + ` Sorted by ${name}, ${sorted.descending ? "descending" : "ascending"}.`;
    more.hidden = every.hidden = shown === found;
  }

  function mark() {
    heads.forEach((head, at) => head.setAttribute("aria-sort",
      at !== sorted.column ? "none" : sorted.descending ? "descending" : "ascending"));
    sortBy.value = String(sorted.column);
    direction.textContent = sorted.descending ? "Descending" : "Ascending";
  }

  function sort(column, descending) {
    const sign = descending ? -1 : 1;
    order = chunks.slice().sort((one, other) => {
      if (column === 0) return sign * collator.compare(one.name, other.name);
      const [first, second] = [one.numbers[column], other.numbers[column]];
      // Chunks without a number come last either way.
      if (Number.isNaN(first) || Number.isNaN(second))
        return Number(Number.isNaN(first)) - Number(Number.isNaN(second)) || one.place - other.place;
      return sign * (first - second) || one.place - other.place;
    });
    sorted = { column, descending };
    table.append(...order.map((one) => one.body));
    mark();
    show();
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () =>
      sort(column, sorted.column === column ? !sorted.descending : column > 0));
  });
  sortBy.addEventListener("change", () => sort(Number(sortBy.value), sortBy.value !== "0"));
  direction.addEventListener("click", () => sort(sorted.column, !sorted.descending));
  only.addEventListener("change", () => { limit = FIRST; show(); });
  search.addEventListener("input", () => { limit = FIRST; show(); });
  more.addEventListener("click", () => { limit += 100; show(); });
  every.addEventListener("click", () => { limit = chunks.length; show(); });
  part.querySelector("button.unfold").addEventListener("click", () => {
    const folds = chunks.filter((one) => !one.body.classList.contains("away"))
      .flatMap((one) => Array.from(one.body.querySelectorAll("details")));
    const open = !folds.every((one) => one.open);
    for (const one of folds) one.open = open;
  });
  for (const one of part.querySelectorAll("[hidden]")) one.hidden = false;
  mark();
  show();
})();
