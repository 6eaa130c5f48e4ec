// heat.js: hosts and slots as colored cells: the color is the distance from the median of the
// model, and the letter is the group map. The name of a cell contains all that it shows.
import { interpolatePuOr } from "d3-scale-chromatic";
import { median } from "d3-array";
import { element, plain } from "./dom.js";

// The distance with the darkest color, as a part of the median.
export const FARTHEST = 0.1;

// Orange is below the median and purple above. People with any color vision can distinguish them,
// and black letters stay readable at the ends.
export const distanceColor = (distance) => interpolatePuOr(0.5 - 0.32 * Math.max(-1, Math.min(1, distance / FARTHEST)));

// Returns the kind of a GPU. Simulated GPUs are never compared with measured ones.
const kindOf = (gpu) => gpu.model + "\n" + gpu.origin;

// Maps each kind to the median of a number.
export function medians(gpus, name) {
    const values = new Map();
    for (const gpu of gpus) {
        if (gpu[name] === null) continue;
        const kind = kindOf(gpu);
        if (!values.has(kind)) values.set(kind, []);
        values.get(kind).push(gpu[name]);
    }
    return new Map([...values].map(([kind, list]) => [kind, median(list)]));
}

// Returns null if the distance is not known.
export function distance(gpu, name, of) {
    const middle = of.get(kindOf(gpu));
    return gpu[name] === null || !middle ? null : gpu[name] / middle - 1;
}

export const percent = (part) => (part < 0 ? "\u2212" : "+") + Math.abs(100 * part).toFixed(1) + " %";

// Assigns A, B, ... to the most common maps, and * to all other maps.
export function letters(gpus) {
    const counts = new Map();
    for (const gpu of gpus) if (gpu.map) counts.set(gpu.map, (counts.get(gpu.map) ?? 0) + 1);
    const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    return new Map(sorted.map(([map, count], i) => [map, { letter: i < 26 ? String.fromCharCode(65 + i) : "*", count }]));
}

const isUnsure = (gpu) => gpu.state === "stale" || (gpu.verdict && gpu.verdict !== "clean");

// Returns "n17 slot 3: H200 (simulated), 749 (+0.1 % of the median), map A, stale".
function nameOf(gpu, name, away, letter) {
    return [
        `${plain(gpu.host)} slot ${gpu.slot}: ${plain(gpu.model)}` + (gpu.origin === "measured" ? "" : ` (${gpu.origin})`),
        gpu[name] === null ? "not known" : `${gpu[name]}` + (away === null ? "" : ` (${percent(away)} of the median)`),
        letter ? `map ${letter}` : "map not known",
        ...(gpu.state === "ready" ? [] : [gpu.state]),
        ...(gpu.verdict && gpu.verdict !== "clean" ? [gpu.verdict] : []),
        ...(gpu.odd_in > 0 ? [`odd in ${gpu.odd_in} metrics`] : []),
    ].join(", ");
}

function cell(gpu, name, of, kinds) {
    const away = distance(gpu, name, of);
    const letter = kinds.get(gpu.map)?.letter ?? "";
    const made = element("span", {
        class: "cell" + (isUnsure(gpu) ? " stale" : "") + (gpu.origin === "simulated" ? " simulated" : "") +
            (gpu.odd_in > 0 ? " odd" : ""),
        "data-row": gpu.row, role: "img", title: nameOf(gpu, name, away, letter), "aria-label": nameOf(gpu, name, away, letter),
    }, letter || "\u00b7");
    if (away !== null) made.style.backgroundColor = distanceColor(away);
    return made;
}

const ORDERS = {
    "the survey": () => 0,
    "name": (a, b) => (a.name < b.name ? -1 : 1),
    "the farthest from the median": (a, b) => b.farthest - a.farthest,
};
export const orders = Object.keys(ORDERS);

// Draws one line for each host, in an order of `orders`.
export function heatMap(gpus, name, order) {
    const of = medians(gpus, name);
    const kinds = letters(gpus);
    const hosts = new Map();
    for (const gpu of gpus) {
        if (!hosts.has(gpu.host)) hosts.set(gpu.host, { name: gpu.host, gpus: [], farthest: 0 });
        const host = hosts.get(gpu.host);
        host.gpus.push(gpu);
        host.farthest = Math.max(host.farthest, Math.abs(distance(gpu, name, of) ?? 0));
    }
    const sorted = [...hosts.values()].sort(ORDERS[order]);
    return element("div", { class: "heat", role: "list" }, sorted.map((host) =>
        element("div", { class: "host", role: "listitem" },
            element("span", { title: plain(host.name) }, plain(host.name, 60)),
            host.gpus.map((gpu) => cell(gpu, name, of, kinds)))));
}
