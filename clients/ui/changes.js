// changes.js: the differences between two fingerprints, by the path of each number. Values of the
// measurement that do not describe the chip are left out.

const LEFT_OUT = /(^|\.)(id|taken_at|duration_ms|probe_ms|evidence|group_evidence|curve_evidence|point_evidence|conditions|kept|dropped|measurement_id|measurement_depth|depth|gpu|origin|confidence)(\.|$)|_reason$/;

// Members that name the elements of lists, so that an additional size does not move the other
// sizes.
const NAMES = ["level", "region_bytes", "kind"];
function keyOf(value, i) {
    const name = NAMES.find((n) => value !== null && typeof value === "object" && n in value);
    return name ? String(value[name]) : String(i);
}

export function flatten(value, path = "", out = new Map()) {
    if (LEFT_OUT.test(path)) return out;
    if (Array.isArray(value) && !value.some((v) => v !== null && typeof v === "object"))
        out.set(path, value.join(" "));
    else if (Array.isArray(value))
        value.forEach((v, i) => flatten(v, `${path}[${keyOf(v, i)}]`, out));
    else if (value !== null && typeof value === "object")
        Object.entries(value).forEach(([k, v]) => flatten(v, path ? path + "." + k : k, out));
    else if (value !== null) out.set(path, value);
    return out;
}

// Returns {facts, numbers}. `facts` are texts and whole numbers that differ, and paths that only
// one fingerprint has. `numbers` are measured values with their difference, the largest first.
export function changes(older, newer) {
    const [a, b] = [flatten(older), flatten(newer)];
    const facts = [];
    const numbers = [];
    for (const path of new Set([...a.keys(), ...b.keys()])) {
        const [was, is] = [a.get(path), b.get(path)];
        if (was === is) continue;
        const measured = typeof was === "number" && typeof is === "number" && /_(gbps|cycles|ns|ratio)(\]|$)/.test(path);
        if (measured) numbers.push({ path, was, is, share: was ? is / was - 1 : Infinity });
        else facts.push({ path, was, is });
    }
    return { facts, numbers: numbers.sort((x, y) => Math.abs(y.share) - Math.abs(x.share)) };
}
