// view_chip.js: the inside of this GPU. The view has the groups of SMs, the TLB levels, the
// missing parts of the die, and the matrix of SM pairs if it was measured. Groups are colored by
// window for a size from a slider.
import { get, latest, of } from "./api.js";
import { groupBoxes } from "./boxes.js";
import { element, plain, replace } from "./dom.js";
import { bytes, gbps, maybe, ranges } from "./format.js";
import { levelBoxes } from "./levels.js";
import { labeled, live, refusal, section } from "./parts.js";
import { pairMatrix } from "./pairs.js";
import { table } from "./table.js";
import { placementVerdict } from "./verdicts.js";

const STEPS = 240;

// Returns sizes from an eighth of the reach to all of the memory. Each is a little larger than the
// one before, and a multiple of a 32nd of its power of two.
export function sizeSteps(fingerprint) {
    const most = fingerprint.gpu.memory_bytes;
    const least = Math.min(most / 2, (fingerprint.windows.reach_bytes ?? most) / 8);
    const all = Array.from({ length: STEPS }, (_, i) => {
        const exact = least * (most / least) ** (i / STEPS);
        const grain = 2 ** (Math.floor(Math.log2(exact)) - 5);
        return Math.max(1, Math.floor(exact / grain) * grain);
    });
    return [...new Set(all), most].filter((v, i, a) => i === 0 || v > a[i - 1]);
}

function windowTable(p, topology) {
    const rows = p.windows.map((w) => {
        const sms = p.window_of_sm.flatMap((window, sm) => (window === w.index ? [sm] : []));
        const groups = topology.groups.filter((g) => p.window_of_sm[g.sms[0]] === w.index).map((g) => g.id);
        return [String(w.index), bytes(w.first_byte), bytes(w.length_bytes), ranges(groups), ranges(sms)];
    });
    return rows.length > 0 && table("Windows", ["window", "first byte", "length", "groups", "SMs"], rows);
}

function classNotes(topology) {
    const side = (g) => (topology.penalty_classes > 1 && g.penalty_class !== null && g.penalty_class !== undefined
        ? "class " + String.fromCharCode(65 + g.penalty_class) : "");
    const miss = (g) => (g.miss_penalty_cycles ? `miss ${Math.round(g.miss_penalty_cycles)} cycles` : "");
    return (g) => [side(g), miss(g)].filter(Boolean).join(", ");
}

function groupTable(topology) {
    return table("All groups as a table", ["group", "SMs", "SM ids", "a miss costs", "reads alone", "reads out of reach"],
        topology.groups.map((g) => [String(g.id), String(g.sms.length), ranges(g.sms),
            maybe(g, "miss_penalty_cycles", (v) => Math.round(v) + " cycles"),
            maybe(g, "alone_gbps", gbps), maybe(g, "beyond_gbps", gbps)]), { closed: true });
}

// Shows the parts that the chip lacks, compared with a full die.
function lostText(topology) {
    const lost = topology.disabled ?? {};
    if (lost.sm_count === null || lost.sm_count === undefined)
        return "Missing SMs of the full die: " + maybe(lost, "sm_count", String) + ".";
    if (lost.sm_count === 0) return "This chip lacks no SM of the smallest die that explains its groups.";
    const candidates = lost.candidates?.length > 0
        ? ` Ids on the full die: ${lost.candidates.slice(0, 4).map(ranges).join(" or ")}${lost.candidates.length > 4 ? " \u2026" : ""}.` : "";
    return `Crossed boxes: ${lost.sm_count} SMs of the full die's ${topology.full_sm_count ?? "?"} are missing (pattern ${lost.signature}).` + candidates;
}

// Shows any size. Its slider then stands at the nearest step, and its text shows the exact size.
function sizeControl(steps, onchange) {
    const output = element("output", { for: "size" });
    const slider = element("input", { type: "range", id: "size", min: 0, max: steps.length - 1, step: 1 });
    const say = (text) => {
        output.textContent = text;
        slider.setAttribute("aria-valuetext", text);
    };
    slider.addEventListener("input", () => {
        say(bytes(steps[slider.valueAsNumber]));
        onchange(steps[slider.valueAsNumber]);
    });
    return {
        shown: labeled("Bytes that the job accesses at random", element("span", { class: "slider" }, slider, output)),
        say,
        set(size) {
            slider.value = steps.reduce((best, v, i) => (Math.abs(v - size) < Math.abs(steps[best] - size) ? i : best), 0);
            say(bytes(size));
        },
    };
}

export function chip({ gpu, fingerprint, state, change }) {
    const { topology } = fingerprint;
    const said = live("chip-verdict");
    const windows = element("div", { id: "windows" });
    const boxes = element("div", { id: "boxes" });
    const ask = latest();
    const notes = classNotes(topology);

    const show = (p) => {
        control.set(p.bytes);
        replace(said, placementVerdict(p));
        replace(boxes, groupBoxes(topology, p.windows.length > 0 ? p.window_of_sm : null, notes));
        replace(windows, windowTable(p, topology) || []);
        boxes.dataset.bytes = p.bytes;
    };
    const refuse = (error) => {
        replace(said, refusal(error));
        replace(boxes, groupBoxes(topology, null, notes));
        replace(windows);
        boxes.dataset.bytes = "none";
    };
    const move = (size) => {
        change({ bytes: size });
        ask((signal) => get(of(gpu, "placement", { bytes: size }), { signal }), show, refuse);
    };
    const steps = sizeSteps(fingerprint);
    const first = state.bytes ?? gpu.memory_bytes; // as the address has it
    const control = sizeControl(steps, move);

    if (Number(first) > 0) control.set(Number(first));
    else control.say(plain(first, 40));
    move(first);
    return [
        section("Which SM works where", control.shown, said, boxes, element("p", { class: "note" }, lostText(topology)), windows,
            topology.groups.length > 0 && groupTable(topology)),
        section("TLB levels", levelBoxes(fingerprint)),
        pairMatrix(gpu, fingerprint),
    ];
}
