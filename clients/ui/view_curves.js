// view_curves.js: throughput over bytes, measured naive and with windows, and predicted with
// scopes. The view also has other kinds of memory, and the chips of the same model in the
// background if there is a reference.
import { get, of } from "./api.js";
import { curve } from "./curve.js";
import { element } from "./dom.js";
import { bytes, gbps, maybe } from "./format.js";
import { section } from "./parts.js";
import { referenceBands } from "./reference.js";
import { table } from "./table.js";

const points = (rows, name) => rows.filter((r) => r[name]).map((r) => ({ x: r.region_bytes, y: r[name] }));

// Returns predictions for passes over scopes, at the sizes of the curve that need more than one
// pass.
async function scopePoints(gpu, rows) {
    const sizes = rows.map((r) => r.region_bytes).filter((b) => b <= gpu.memory_bytes);
    const answers = await Promise.all(sizes.map((b) => get(of(gpu, "scope", { bytes: b }))));
    return answers.filter((a) => a.passes > 1 && a.predicted_gbps).map((a) => ({ x: a.bytes, y: a.predicted_gbps }));
}

function deviceTable(rows, scopes) {
    const predicted = new Map(scopes.map((p) => [p.x, p.y]));
    return table("Device memory, GB/s of random 128-byte reads", ["bytes", "naive", "windows by group", "windows by SM id", "scopes, predicted"],
        rows.map((r) => [bytes(r.region_bytes), maybe(r, "naive_gbps", gbps), maybe(r, "by_group_gbps", gbps),
            maybe(r, "by_sm_gbps", gbps), predicted.has(r.region_bytes) ? gbps(predicted.get(r.region_bytes)) : "\u2013"]), { closed: true });
}

async function device({ gpu, fingerprint, routes }) {
    const rows = fingerprint.throughput.curve;
    if (rows.length === 0)
        return section("Device memory", element("p", {}, fingerprint.depth === "quick" ? "No curve was measured; depth full has it."
            : "No curve was found."));
    const scopes = await scopePoints(gpu, rows);
    const lines = [
        { name: "naive", kind: "l-naive", points: points(rows, "naive_gbps") },
        { name: "windows by group", kind: "l-windows", points: points(rows, "by_group_gbps") },
        { name: "windows by SM id", kind: "l-control", points: points(rows, "by_sm_gbps") },
        { name: "scopes (predicted)", kind: "l-scopes", points: scopes, marks: false },
    ].filter((l) => l.points.length > 0);
    const reach = fingerprint.windows.reach_bytes;
    const { bands, note } = await referenceBands(gpu, routes, rows);
    return section("Device memory",
        curve({ title: "Throughput of random 128-byte reads over the bytes accessed; the table below has the numbers",
            lines, bands, marksAt: reach ? [{ x: reach, name: "reach " + bytes(reach) }] : [] }),
        note && element("p", { class: "note", id: "reference" }, note), deviceTable(rows, scopes));
}

const kindName = (m) => m.kind.replaceAll("-", " ") + (m.peer_uuid ? " " + m.peer_uuid.slice(0, 12) : "");

const NO_KINDS = { quick: "Not measured; depth full measures some kinds, depth memory measures more.", memory: "This GPU has none." };

function kinds(fingerprint) {
    const measured = (fingerprint.memory ?? []).filter((m) => m.curve?.length > 1);
    if (measured.length === 0)
        return section("Other kinds of memory", element("p", {}, NO_KINDS[fingerprint.depth] ?? "No other kind was found; depth memory measures more kinds."));
    const rows = fingerprint.memory.map((m) => [kindName(m), maybe(m, "plateau_gbps", gbps), maybe(m, "reach_bytes", bytes),
        maybe(m, "windows_reach_bytes", bytes), maybe(m, "beyond_gbps", gbps), maybe(m, "sms_to_fill", String)]);
    return section("Other kinds of memory",
        curve({ title: "Throughput of random 128-byte reads by kind of memory; the table below has the numbers", log: true,
            lines: measured.map((m, i) => ({ name: kindName(m), kind: "k" + (i % 8), points: points(m.curve, "naive_gbps") })) }),
        table("Kinds of memory", ["kind", "plateau", "reach", "reach with windows", "out of reach", "SMs that fill the link"], rows));
}

function rates(fingerprint) {
    const all = fingerprint.throughput.rates ?? [];
    return all.length > 0 && section("Other accesses", table("Random accesses within the reach, and over all of the memory",
        ["access", "bytes", "within the reach", "naive, most bytes"],
        all.map((r) => [r.access, bytes(r.transaction_bytes), maybe(r, "plateau_gbps", gbps),
            r.points.length > 0 ? maybe(r.points.at(-1), "naive_gbps", (v) => `${gbps(v)} over ${bytes(r.points.at(-1).region_bytes)}`) : "\u2013"])));
}

export async function curves(context) {
    return [await device(context), kinds(context.fingerprint), rates(context.fingerprint)];
}
