// api.js: requests to the daemon that served this page. Paths are relative to the page, so that
// requests also reach the daemon through a tunnel or behind a prefix. The token is kept while the
// page is open, in memory only.

let token = "";
export const setToken = (text) => { token = text; };

// A refusal by the daemon; detail and next_step are sentences.
export class Refusal extends Error {
    constructor(status, problem) {
        super(problem?.detail ?? "the daemon answered with " + status);
        this.status = status;
        this.slug = problem?.slug ?? "";
        this.nextStep = problem?.next_step ?? "";
    }
}

async function send(method, path, { body, signal } = {}) {
    const headers = token && method !== "GET" ? { Authorization: "Bearer " + token } : {};
    if (body) headers["Content-Type"] = "application/json";
    let response;
    try {
        response = await fetch("../" + path, { method, headers, signal, body: body && JSON.stringify(body) });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Refusal(0, { detail: "The daemon does not answer.", next_step: "Check that the daemon runs and that the tunnel is open." });
    }
    const answer = await response.json().catch(() => null);
    if (!response.ok) throw new Refusal(response.status, answer);
    return answer;
}

export const get = (path, options) => send("GET", path, options);
export const post = (path, body) => send("POST", path, { body });
export const cancel = (path) => send("DELETE", path);

// Returns "v1/gpus/GPU-1/plan" with a query of the parameters that are not empty.
export function of(gpu, what, query = {}) {
    const pairs = Object.entries(query).filter(([, v]) => v !== "" && v !== null && v !== undefined);
    const text = new URLSearchParams(pairs).toString();
    return `v1/gpus/${encodeURIComponent(gpu.uuid)}/${what}` + (text ? "?" + text : "");
}

// Calls `answer` with the result of `ask`, unless a newer call of the same function was made
// meanwhile. Older calls in quick succession (from a slider) are abandoned.
export function latest() {
    let running = null;
    return async (ask, answer, refuse) => {
        running?.abort();
        const mine = running = new AbortController();
        try {
            const value = await ask(mine.signal);
            if (mine === running) answer(value);
        } catch (error) {
            if (mine === running && error.name !== "AbortError") refuse(error);
        }
    };
}
