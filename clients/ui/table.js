// table.js: what a picture shows, as a table: for screen readers, for copying, for grep. On a narrow screen
// each row is a block in which a cell stands behind the head of its column (page.css).
import { element } from "./dom.js";

// A cell that gets a line of its own on a narrow screen.
const LONG = 24;

const isLong = (cell) => (cell?.textContent ?? String(cell)).length > LONG;
const isNumber = (cell) => /^[0-9]/.test(cell);

// `head`: texts; `rows`: lists of texts or nodes, the first cell names the row. `options.closed`: a
// button opens it.
export function table(caption, head, rows, options = {}) {
    const body = rows.map((cells) => element("tr", {}, cells.map((cell, i) =>
        i ? element("td", { "data-head": head[i], class: isLong(cell) && "long" }, cell)
            : element("th", { scope: "row", "data-head": isNumber(cell) && head[0] }, cell))));
    const made = element("table", {},
        element("caption", { class: options.closed ? "hidden" : null }, caption),
        element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col" }, text)))),
        element("tbody", {}, body));
    const scroller = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
    return options.closed ? element("details", {}, element("summary", {}, caption), scroller) : scroller;
}
