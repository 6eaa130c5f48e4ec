// pairs.js: the matrix of SM pairs: the additional cost of a load of one SM after another SM has
// evicted. The matrix is computed on request from the raw observations, which take a megabyte.
import { get, of } from "./api.js";
import { amountColor } from "./color.js";
import { element, replace } from "./dom.js";
import { ranges } from "./format.js";
import { live, refusal, section } from "./parts.js";
import { table } from "./table.js";

const MIN_CELL = 2;
const WIDTH = 660;
const PAGE = 1000;

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

async function pairObservations(gpu) {
    const rows = [];
    let cursor;
    do {
        const page = await get(of(gpu, "observations", { limit: PAGE, cursor }));
        rows.push(...page.observations.filter((o) => o.kind === "pairs"));
        cursor = page.next;
    } while (cursor && rows.length === 0);
    const run = rows[0]?.run;
    return Promise.all(rows.filter((o) => o.run === run).map((o) => get(of(gpu, "observations/" + o.id))));
}

// Adds rows to the matrix: for each SM that evicted, the cycles that each SM then lost.
function addRows(matrix, o) {
    const [pivots, kinds, sms, pages] = o.shape;
    for (let p = 0; p < pivots; p++) {
        const row = Array.from({ length: sms }, (_, sm) => {
            const of = (thrashed) => median(o.values.slice(((p * kinds + thrashed) * sms + sm) * pages).slice(0, pages));
            return of(1) - of(0);
        });
        matrix.rows.set(o.probe.sms[p], row);
    }
    matrix.sms = o.sm_ids;
}

// Makes one matrix for each stride, which is the entry size of the probed level. Returns the
// matrix with the most rows.
function fullest(observations) {
    const byStride = new Map();
    for (const o of observations) {
        const stride = o.probe.stride_bytes;
        if (!byStride.has(stride)) byStride.set(stride, { stride, rows: new Map(), sms: [] });
        addRows(byStride.get(stride), o);
    }
    return [...byStride.values()].sort((a, b) => b.rows.size - a.rows.size)[0];
}

function heatMap(matrix, order, most) {
    const cell = Math.max(MIN_CELL, Math.floor(WIDTH / order.length));
    const canvas = element("canvas", { width: cell * order.length, height: cell * order.length, class: "heat", role: "img",
        "aria-label": "Matrix of SM pairs; the table below has the partners of each SM" });
    const pen = canvas.getContext("2d");
    order.forEach((pivot, y) => order.forEach((sm, x) => {
        const lost = matrix.rows.get(pivot)?.[matrix.sms.indexOf(sm)];
        pen.fillStyle = lost === undefined ? "#888" : amountColor(lost / most);
        pen.fillRect(x * cell, y * cell, cell, cell);
    }));
    return canvas;
}

function partnerTable(matrix, order) {
    const most = matrix.sms.map((_, i) => Math.max(...[...matrix.rows.values()].map((row) => row[i])));
    const rows = order.filter((pivot) => matrix.rows.has(pivot)).map((pivot) => {
        const lost = matrix.rows.get(pivot);
        const partners = matrix.sms.filter((sm, i) => sm !== pivot && lost[i] > most[i] / 2).sort((a, b) => a - b);
        return [String(pivot), ranges(partners)];
    });
    return table("SMs that lose more than half of their largest loss, by the SM that evicts", ["SM", "partners"], rows, { closed: true });
}

function show(observations, topology) {
    const matrix = fullest(observations);
    if (!matrix) return element("p", {}, "The daemon has no observation of pairs.");
    const grouped = topology.groups.flatMap((g) => g.sms);
    const order = [...grouped, ...matrix.sms.filter((sm) => !grouped.includes(sm))];
    const most = Math.max(1, ...[...matrix.rows.values()].flat());
    return [
        element("p", {}, `${matrix.rows.size} of ${matrix.sms.length} SMs have evicted; an SM lost up to ${Math.round(most)} cycles a load. `,
            "Row: the SM that evicts; column: the SM that then loads; in the order of the groups. Dark: nothing lost; bright: the most."),
        heatMap(matrix, order, most), partnerTable(matrix, order),
    ];
}

const hasMatrix = (fingerprint) => fingerprint.depth === "matrix" || (fingerprint.kept ?? []).some((k) => k.depth === "matrix");

export function pairMatrix(gpu, fingerprint) {
    if (!hasMatrix(fingerprint))
        return section("SM pairs", element("p", { class: "note" }, "A measurement of depth matrix has the matrix of all SM pairs; History can start it."));
    const shown = live("pairs");
    const button = element("button", { type: "button" }, "Show the matrix");
    button.addEventListener("click", async () => {
        replace(shown, element("p", {}, "Reading the observations."));
        try {
            replace(shown, show(await pairObservations(gpu), fingerprint.topology));
        } catch (error) {
            replace(shown, refusal(error));
        }
    });
    return section("SM pairs", button, shown);
}
