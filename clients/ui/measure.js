// measure.js: starts a measurement and follows it. It asks the user for the token if the daemon
// requires one.
import { cancel, get, of, post, setToken } from "./api.js";
import { element, replace } from "./dom.js";
import { choice, labeled, live, refusal } from "./parts.js";

const DEPTHS = [["quick", "quick: levels and groups"], ["full", "full: and the curves"], ["memory", "memory: and host memory"],
    ["matrix", "matrix: and all SM pairs"]];
const POLL_MS = 400;
const UNAUTHORIZED = 401;

const over = (m) => m.state === "done" || m.state === "failed";

function progress(m) {
    const percent = Math.round(100 * (m.progress ?? 0));
    const outcome = m.state === "failed" ? `Failed: ${m.error?.text ?? m.message ?? ""} ${m.error?.next_step ?? ""}` : m.message ?? "";
    return element("div", { class: "progress " + m.state, "data-state": m.state },
        element("p", {}, element("strong", {}, `${m.id}: ${m.state}`), ` ${outcome}`),
        element("progress", { max: 100, value: m.state === "done" ? 100 : percent, "aria-label": "Progress of the measurement" }, percent + " %"),
        !over(m) && element("button", { type: "button", onclick: () => cancel("v1/measurements/" + m.id).catch(() => {}) }, "End it"));
}

async function follow(id, shown, ended) {
    const m = await get("v1/measurements/" + id);
    replace(shown, progress(m));
    if (over(m)) ended();
    else if (shown.isConnected) setTimeout(() => follow(id, shown, ended).catch((e) => replace(shown, refusal(e))), POLL_MS);
}

function tokenField(again) {
    const field = element("input", { type: "password", name: "token", autocomplete: "off", required: true });
    const form = element("form", { class: "job token" },
        element("p", { role: "alert" }, "This daemon requires a token for a measurement. The token is the text of its token file."),
        labeled("Token", field), element("button", { type: "submit" }, "Measure with this token"));
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        setToken(field.value);
        again();
    });
    queueMicrotask(() => field.focus());
    return form;
}

export function measureForm(gpu, ended) {
    const shown = live("progress");
    const depth = choice("depth", DEPTHS, "full");
    const start = async () => {
        try {
            const m = await post(of(gpu, "measurements"), { depth: depth.value });
            await follow(m.id, shown, ended);
        } catch (error) {
            replace(shown, error.status === UNAUTHORIZED ? tokenField(start) : refusal(error));
        }
    };
    const form = element("form", { class: "job" }, labeled("Depth", depth), element("button", { type: "submit", id: "measure" }, "Measure now"));
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        start();
    });
    return [form, shown];
}
