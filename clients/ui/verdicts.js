// verdicts.js: an answer of the planner, in one sentence. "Nothing to gain" is an answer, too.
import { bytes, gbps, times } from "./format.js";
import { verdict } from "./parts.js";

const CHOICES = {
    naive: "read it as it is", scopes: "passes over scopes", windows: "windows by SM group",
    "filtered-windows": "windows by SM group, each filtering the input",
    "partitioned-windows": "windows by SM group, the input partitioned first",
    sides: "each SM on its own side of the L2",
};
export const strategyName = (slug) => CHOICES[slug] ?? slug;

const passes = (n) => (n === 1 ? "one pass" : n + " passes");

function windowsSentence(p) {
    const speed = p.predicted_gbps && p.naive_gbps
        ? `: ${times(p.predicted_gbps / p.naive_gbps)} as fast, ${gbps(p.predicted_gbps)} instead of ${gbps(p.naive_gbps)}` : "";
    return `${bytes(p.bytes)} in ${p.window_count} windows${speed}.`;
}

// Returns the sentence for GET placement.
export function placementVerdict(p) {
    const sentences = {
        "nothing-to-do": () => verdict("none", `Nothing to gain: ${bytes(p.bytes)} are within the reach of every SM.`, p.reason),
        "no-limit-seen": () => verdict("none", "Nothing to gain: no limit was found on this GPU.", p.reason),
        windows: () => verdict("gain", windowsSentence(p), p.reason),
        "not-enough-groups": () => verdict("unknown", `Windows do not help at ${bytes(p.bytes)}: there are not enough groups.`, p.reason),
    };
    return sentences[p.advice]?.() ?? verdict("unknown", p.reason);
}

// Returns the sentence for GET plan.
export function planVerdict(plan) {
    const best = plan.options[0];
    if (best.strategy === "naive")
        return verdict("none", "Nothing to gain: " + strategyName("naive") + ".", plan.reason);
    const gain = best.times_naive ? `${times(best.times_naive)} as fast with ` : "Faster with ";
    const how = best.strategy === "scopes" ? `${passes(best.passes)} over scopes of ${bytes(best.scope_bytes)}`
        : best.windows ? `${best.windows} ${strategyName(best.strategy)}` : strategyName(best.strategy);
    return verdict("gain", gain + how + ".", plan.reason);
}
