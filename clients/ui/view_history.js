// view_history.js: the measurements of this GPU, the changes between two of them, and the start of
// a new one.
import { get, of } from "./api.js";
import { changes } from "./changes.js";
import { element, plain, replace } from "./dom.js";
import { bytes, gbps, maybe, time } from "./format.js";
import { measureForm } from "./measure.js";
import { live, refusal, section } from "./parts.js";
import { table } from "./table.js";

const SHOWN = 12;
const MOST_NUMBERS = 40;

const cell = (value) => (value === undefined ? "not there" : plain(String(value), 60));

function changeList({ facts, numbers }, older, newer) {
    const head = element("p", {}, `${time(older.taken_at)} compared with ${time(newer.taken_at)}: `,
        facts.length === 0 ? "nothing about the chip has changed." : `${facts.length} facts differ.`);
    const factRows = facts.map((f) => [f.path, cell(f.was), cell(f.is)]);
    const numberRows = numbers.slice(0, MOST_NUMBERS).map((n) => [n.path, cell(n.was), cell(n.is), (100 * n.share).toFixed(1) + " %"]);
    return [head, factRows.length > 0 && table("Facts that differ", ["what", "was", "is"], factRows),
        numberRows.length > 0 && table("Measured numbers, the largest difference first", ["what", "was", "is", "difference"], numberRows)];
}

function historyTable(rows, compare) {
    return table("Measurements, newest first",
        ["taken", "depth", "plateau", "whole memory", "reach", "pattern of missing SMs", "fingerprint", "served as", "what changed"],
        rows.map(({ row, fingerprint: f }, i) => [
            element("time", { datetime: row.taken_at }, time(row.taken_at)), row.depth,
            maybe(f.throughput, "plateau_gbps", gbps), maybe(f.throughput, "whole_memory_gbps", gbps),
            maybe(f.windows, "reach_bytes", bytes), plain(f.topology.disabled?.signature ?? "none"), row.id,
            row.served.length === 0 ? "not kept" : row.served[0] === row.id ? "the same" : row.served[0],
            i + 1 < rows.length ? element("button", { type: "button", onclick: () => compare(i + 1, i),
                "aria-label": "Changes since the previous measurement " + time(row.taken_at) }, "Compare") : "first"]));
}

async function past(gpu) {
    const page = await get(of(gpu, "history", { limit: SHOWN }));
    return Promise.all(page.fingerprints.map(async (row) => ({ row, fingerprint: await get(of(gpu, "fingerprint", { at: row.id })) })));
}

// Fills the list of measurements, and again when a measurement has ended.
async function fill(gpu, list, differences) {
    try {
        const rows = await past(gpu);
        const compare = (older, newer) => replace(differences,
            changeList(changes(rows[older].fingerprint, rows[newer].fingerprint), rows[older].row, rows[newer].row));
        replace(list, rows.length > 0 ? historyTable(rows, compare) : element("p", {}, "No measurement yet."));
        list.dataset.count = rows.length;
    } catch (error) {
        replace(list, refusal(error));
    }
}

export function history({ gpu, refresh }) {
    const list = element("div", { id: "history" }, "Loading.");
    const differences = live("differences");
    fill(gpu, list, differences);
    const ended = () => {
        fill(gpu, list, differences);
        refresh();
    };
    return [section("Measure this GPU", measureForm(gpu, ended)), section("History", list, differences)];
}
