// reference.js: the chips of the same kind behind a curve, from GET compare; a daemon without that route
// shows none.
import { get, of } from "./api.js";

const hasRoute = (routes, path) => routes.some((r) => r.path === path);

// Returns {bands, note}: the range of the naive curve among the chips of this kind, and the note of
// compare.
export async function referenceBands(gpu, routes, rows) {
    if (!hasRoute(routes, "/v1/gpus/{gpu}/compare")) return { bands: [], note: "" };
    const compared = await get(of(gpu, "compare")).catch(() => null);
    if (!compared) return { bands: [], note: "" };
    const numbers = compared.numbers.filter((n) => /^throughput\.curve\[.*\]\.naive_gbps$/.test(n.name));
    const points = rows.flatMap((row) => {
        const n = numbers.find((m) => m.value === row.naive_gbps && m.least !== null && m.most !== null);
        return n ? [{ x: row.region_bytes, low: n.least, high: n.most }] : [];
    });
    return { bands: points.length > 1 ? [{ kind: "kin", points }] : [], note: compared.sentence };
}
