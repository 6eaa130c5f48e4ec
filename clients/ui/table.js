// table.js: the contents of a picture as a table, for screen readers, for copying, and for grep. On
// a narrow screen each row is a block in which a cell stands behind the head of its column
// (page.css).
import { element } from "./dom.js";

// A longer cell gets its own line on a narrow screen.
const LONG = 24;

const isLong = (cell) => (cell?.textContent ?? String(cell)).length > LONG;
const isNumber = (cell) => /^[0-9]/.test(cell);

// `head` is a list of texts. `rows` are lists of texts or nodes; the first cell names the row. With
// `options.closed` a button opens the table.
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
