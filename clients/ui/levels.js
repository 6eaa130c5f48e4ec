// levels.js: the TLB levels of a chip as nested boxes, the outermost first, with the source of each
// number on request.
import { element, plain } from "./dom.js";
import { bytes, count, cycles, maybe } from "./format.js";
import { table } from "./table.js";

const SHARED = { sm: "one in each SM", group: "one for each group of SMs", gpu: "one for the GPU", unknown: "sharing unknown" };

const FACTS = [
    ["Reach", "reach_bytes", bytes],
    ["Entries", "entries", count],
    ["Bytes of an entry", "entry_bytes", bytes],
    ["A miss costs", "miss_penalty_cycles", cycles],
    ["Sets", "sets", count],
    ["Ways", "ways", count],
];

function evidenceTable(level) {
    const rows = Object.entries(level.evidence ?? {}).map(([name, e]) =>
        [name.replaceAll("_", " "), e.method, String(e.repeats), String(e.margin)]);
    return rows.length > 0 && table(`Evidence of level ${level.level}`,
        ["number", "method", "repeats", "margin (0 at the threshold, 1 at the largest distance)"], rows, { closed: true });
}

function levelBox(level, inner) {
    return element("section", { class: "level by-" + level.shared_by, "aria-label": "TLB level " + level.level },
        element("h3", {}, `TLB level ${level.level}`, element("small", {}, SHARED[level.shared_by])),
        element("dl", { class: "facts" }, FACTS.map(([label, name, format]) =>
            element("div", {}, element("dt", {}, label), element("dd", {}, maybe(level, name, format))))),
        evidenceTable(level), inner);
}

// Draws the memory out of reach of the last level, around all levels.
function beyondBox(tlb, inner) {
    const beyond = tlb.beyond ?? {};
    const far = beyond.reach_bytes ? `Next limit at ${bytes(beyond.reach_bytes)}.`
        : `No further limit was found up to ${bytes(beyond.probed_bytes ?? 0)}.`;
    return element("section", { class: "level beyond", "aria-label": "Out of reach of all levels" },
        element("h3", {}, "Out of reach", element("small", {}, far)), inner);
}

export function levelBoxes(fingerprint) {
    const { gpu, tlb } = fingerprint;
    const cache = gpu.l2_cache_bytes && element("p", { class: "cache" },
        `L2 cache ${bytes(gpu.l2_cache_bytes)} (reported by the driver)`);
    const sm = element("p", { class: "cache" }, plain(gpu.sm_count + " SMs"));
    return beyondBox(tlb, [cache, tlb.levels.reduce((inner, level) => levelBox(level, inner), sm)]);
}
