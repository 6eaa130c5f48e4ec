// boxes.js: the SMs of a chip as boxes, one box around each group, colored by window. The boxes
// are lists in the document, so that a screen reader reads them in the visible order.
import { kindClass } from "./color.js";
import { element } from "./dom.js";

const lostBox = () => element("li", { class: "sm lost" }, element("span", { class: "hidden" }, "lost SM"), "\u00d7");

// Returns the window of a group by `windowOf` (SM id -> window or null). All SMs of a group have
// the same window.
function groupWindow(group, windowOf) {
    return windowOf ? windowOf[group.sms[0]] ?? null : undefined;
}

function heading(group, window, notes) {
    const place = window === undefined ? "" : window === null ? "no window" : "window " + window;
    return element("h3", {}, "Group " + group.id, place && element("span", { class: "place" }, place),
        notes && element("small", {}, notes));
}

// Draws one group: its SMs, and a crossed box for each SM that only the full die has. `options` are
// window (undefined means no color), lost and notes.
export function groupBox(group, { window, lost = 0, notes = "" } = {}) {
    const kind = window === undefined || window === null ? "" : " " + kindClass(window);
    return element("li", { class: "group" + kind },
        heading(group, window, notes),
        element("ul", { class: "sms", "aria-label": "SMs of group " + group.id },
            group.sms.map((sm) => element("li", { class: "sm" }, String(sm))),
            Array.from({ length: lost }, lostBox)));
}

// Draws all groups of a fingerprint's topology. `windowOf` is placement.window_of_sm, or null if
// there is none.
export function groupBoxes(topology, windowOf, notesOf = () => "") {
    const lost = new Map((topology.disabled?.by_group ?? []).map((row) => [row.group, row.sms]));
    return element("ol", { class: "groups" }, topology.groups.map((group) => groupBox(group, {
        window: groupWindow(group, windowOf), lost: lost.get(group.id), notes: notesOf(group) })));
}
