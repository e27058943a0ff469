// The one script of a report: it sorts and filters the table of all results, and copies texts.
// It builds no markup from data, loads nothing and sends nothing; without it the page is whole.
"use strict";
(() => {
  const FIRST = 25;
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function explore(part) {
    const table = part.querySelector("table");
    const body = table.tBodies[0];
    const heads = Array.from(table.tHead.rows[0].cells);
    const selects = Array.from(part.querySelectorAll("select[data-column]"));
    const search = part.querySelector("input[type=search]");
    const status = part.querySelector("[role=status]");
    const sortBy = part.querySelector("select.sort-by");
    const direction = part.querySelector("button.direction");
    const more = part.querySelector("button.more-rows");
    const every = part.querySelector("button.every-row");
    const rows = Array.from(body.rows).map((row) => ({
      row,
      texts: Array.from(row.cells, (cell) => cell.textContent),
      numbers: Array.from(row.cells, (cell) => ("v" in cell.dataset ? Number(cell.dataset.v) : NaN)),
      words: row.textContent.toLowerCase(),
    }));
    const numeric = heads.map((head) => head.classList.contains("number"));
    let order = rows.slice();
    let limit = FIRST;
    let sorted = { column: -1, descending: false };

    function matches(one) {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      return selects.every((select) =>
        select.value === "" || one.texts[Number(select.dataset.column)] === select.options[select.selectedIndex].textContent)
        && wanted.every((word) => one.words.includes(word));
    }

    function show() {
      let found = 0;
      let shown = 0;
      for (const one of order) {
        const fits = matches(one);
        found += fits;
        const visible = fits && shown < limit;
        shown += visible;
        one.row.classList.toggle("away", !visible);
      }
      const all = rows.length.toLocaleString("en");
      const which = found === rows.length ? "" : `${found.toLocaleString("en")} match, of `;
      const how = sorted.column < 0 ? "" :
        ` Sorted by ${heads[sorted.column].textContent.trim()}, ${sorted.descending ? "descending" : "ascending"}.`;
      status.textContent = `${shown.toLocaleString("en")} rows shown; ${which}${all} in all.${how}`;
      more.hidden = every.hidden = shown === found;
    }

    function sort(column, descending) {
      const sign = descending ? -1 : 1;
      order = rows.slice().sort((one, other) => {
        if (!numeric[column])
          return sign * collator.compare(one.texts[column], other.texts[column]);
        const [first, second] = [one.numbers[column], other.numbers[column]];
        // Rows without a number come last either way.
        if (Number.isNaN(first) || Number.isNaN(second))
          return Number(Number.isNaN(first)) - Number(Number.isNaN(second));
        return sign * (first - second);
      });
      sorted = { column, descending };
      heads.forEach((head, at) =>
        head.setAttribute("aria-sort", at !== column ? "none" : descending ? "descending" : "ascending"));
      sortBy.value = String(column);
      direction.textContent = descending ? "Descending" : "Ascending";
      body.append(...order.map((one) => one.row));
      show();
    }

    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      // The first press shows what is sought first: the largest number, the first word.
      button.addEventListener("click", () =>
        sort(column, sorted.column === column ? !sorted.descending : numeric[column]));
    });
    sortBy.addEventListener("change", () => {
      if (sortBy.value !== "") sort(Number(sortBy.value), numeric[Number(sortBy.value)]);
    });
    direction.addEventListener("click", () => {
      if (sorted.column >= 0) sort(sorted.column, !sorted.descending);
    });
    for (const select of selects) select.addEventListener("change", () => { limit = FIRST; show(); });
    search.addEventListener("input", () => { limit = FIRST; show(); });
    more.addEventListener("click", () => { limit += 100; show(); });
    every.addEventListener("click", () => { limit = rows.length; show(); });
    part.querySelector("button.reset").addEventListener("click", () => {
      for (const select of selects) select.value = "";
      search.value = "";
      limit = FIRST;
      show();
    });
    for (const one of part.querySelectorAll("[hidden]")) one.hidden = false;
    part.open = true;
    show();
  }

  function copies(button) {
    const source = document.getElementById(button.dataset.copy);
    const said = button.parentElement.querySelector("[role=status]");
    button.parentElement.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent.trim());
        said.textContent = "Copied.";
      } catch {
        // Where the browser gives no access to the clipboard, the text is at least selected.
        getSelection().selectAllChildren(source);
        said.textContent = "Selected: copy it with your keyboard.";
      }
    });
  }

  document.querySelectorAll("details.explore").forEach(explore);
  document.querySelectorAll("button[data-copy]").forEach(copies);
})();
