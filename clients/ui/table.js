// table.js: what a picture shows, as a table: for screen readers, for copying, for grep.
import { element } from "./dom.js";

// `head`: texts; `rows`: lists of texts or nodes, the first cell names the row. `options.closed`: a
// button opens it.
export function table(caption, head, rows, options = {}) {
    const body = rows.map((cells) => element("tr", {}, cells.map((cell, i) =>
        element(i ? "td" : "th", i ? {} : { scope: "row" }, cell))));
    const made = element("table", {},
        element("caption", { class: options.closed ? "hidden" : null }, caption),
        element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col" }, text)))),
        element("tbody", {}, body));
    const scroller = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
    return options.closed ? element("details", {}, element("summary", {}, caption), scroller) : scroller;
}
