// page.entry.js: the page at /ui/. It shows the GPU and the view that the address names after #,
// so that users can send each other the address: #chip?gpu=GPU-1&bytes=103079215104
import "./license.js";
import { get, of } from "./api.js";
import { element, plain, replace } from "./dom.js";
import { bytes, time } from "./format.js";
import { choice, labeled, refusal, section } from "./parts.js";
import { chip } from "./view_chip.js";
import { curves } from "./view_curves.js";
import { history } from "./view_history.js";
import { job } from "./view_job.js";

const VIEWS = { chip: ["Chip", chip], curves: ["Curves", curves], job: ["My job", job], history: ["History", history] };
const POLL_MS = 700;
const RESTING = ["ready", "failed", "lost", "stale", "unknown"];

const node = { hostname: "", routes: [], gpus: [], version: "" };
const main = document.getElementById("main");
let state = {};
let drawing = 0;

function readHash() {
    const [view, query] = location.hash.slice(1).split("?");
    const given = Object.fromEntries(new URLSearchParams(query));
    state = { ...given, view: Object.hasOwn(VIEWS, view) ? view : "chip" };
}

function hashOf(view, more = {}) {
    const { view: _, ...kept } = { ...state, ...more };
    const pairs = Object.entries(kept).filter(([, v]) => v !== undefined && v !== "");
    return "#" + view + (pairs.length > 0 ? "?" + new URLSearchParams(pairs) : "");
}

// Sets a choice within a view. It is in the address, without a separate step in the browser's
// history.
function change(more) {
    state = { ...state, ...more };
    window.history.replaceState(null, "", hashOf(state.view));
    links();
}

// Makes the links to the views once, so that the focus stays in place.
const made = Object.fromEntries(Object.entries(VIEWS).map(([view, [name]]) => [view, element("a", {}, name)]));
function links() {
    for (const [view, link] of Object.entries(made)) {
        link.setAttribute("href", hashOf(view));
        if (view === state.view) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
}

// Returns the GPU that the address names by index or UUID, or undefined if there is no such GPU.
function chosen() {
    const name = state.gpu?.toLowerCase() ?? "0";
    return node.gpus.find((g) => g.uuid.toLowerCase() === name || String(g.index) === name);
}

function picker(uuid) {
    const there = document.querySelector("#picker select");
    if (there?.options.length === node.gpus.length && node.gpus.some((g) => g.uuid === uuid)) {
        there.value = uuid;
        return;
    }
    const names = node.gpus.map((g) => [g.uuid, plain(`${g.index}: ${g.name}${["lost", "failed"].includes(g.state) ? ` (${g.state})` : ""}`, 60)]);
    replace(document.getElementById("picker"), labeled("GPU",
        choice("gpu", names, uuid, (event) => { location.hash = hashOf(state.view, { gpu: event.target.value, bytes: undefined }); })));
}

function about(gpu, fingerprint) {
    const origin = fingerprint?.origin ?? gpu.origin;
    const facts = [plain(gpu.name), `${gpu.sm_count} SMs`, bytes(gpu.memory_bytes), plain(gpu.uuid)];
    return element("div", { class: "about" },
        element("h1", {}, plain(gpu.name)),
        origin !== "measured" && element("p", { class: "badge" }, origin === "simulated" ? "Simulated: not measured on hardware" : "Imported"),
        gpu.fingerprint_stale && element("p", { class: "badge" }, "Stale: a check found a change of the chip or its driver"),
        element("p", { class: "note" }, facts.slice(1).join(" \u00b7 "), fingerprint
            ? ` \u00b7 fingerprint ${fingerprint.id}, depth ${fingerprint.depth}, ${time(fingerprint.taken_at)}` : ""),
        gpu.last_error && element("p", { class: "note", role: "alert" }, plain(`This GPU is ${gpu.state}: ${gpu.last_error.text}. ${gpu.last_error.next_step}`, 500)));
}

const waiting = (gpu) => section("Not measured yet", element("p", { id: "state" }, `This GPU is ${gpu.state}.`),
    element("p", {}, RESTING.includes(gpu.state) ? "History starts a measurement." : "This page shows the result when the measurement ends."));

async function ask() {
    const answer = await get("v1/gpus");
    node.gpus = answer.gpus;
    return answer;
}

// Polls until there is a fingerprint.
function watch(gpu, mine) {
    if (RESTING.includes(gpu.state)) return;
    setTimeout(async () => {
        if (mine !== drawing) return;
        await ask().catch(() => {});
        const now = chosen();
        if (now.fingerprint_id) draw();
        else watch(now, mine);
    }, POLL_MS);
}

async function contentOf(gpu, mine) {
    const fingerprint = gpu.fingerprint_id ? await get(of(gpu, "fingerprint")) : null;
    const context = { gpu, fingerprint, state, change, routes: node.routes, refresh: () => ask().catch(() => {}) };
    const view = fingerprint || state.view === "history" ? await VIEWS[state.view][1](context) : waiting(gpu);
    if (!fingerprint) watch(gpu, mine);
    return [about(gpu, fingerprint), view];
}

async function draw() {
    const mine = ++drawing;
    links();
    const gpu = chosen();
    main.dataset.view = "";
    picker(gpu?.uuid ?? state.gpu);
    if (!gpu) {
        replace(main, refusal({ message: `This node has no GPU "${plain(state.gpu, 80)}".`, nextStep: "Choose a GPU of the node above." }));
        main.dataset.view = "refused";
        return;
    }
    try {
        const content = await contentOf(gpu, mine);
        if (mine !== drawing) return;
        replace(main, content);
    } catch (error) {
        replace(main, refusal(error));
    }
    document.title = `${VIEWS[state.view][0]} \u00b7 ${plain(gpu.name, 40)} \u00b7 reachd`;
    main.dataset.view = state.view;
    main.dataset.gpu = gpu.uuid;
}

function empty(answer) {
    const error = answer.source_error;
    replace(main, section("No GPU", element("p", {}, plain(error?.text ?? "This daemon lists no GPU.", 500)),
        error && element("p", { class: "note" }, plain(error.next_step, 500))));
    main.dataset.view = "none";
}

async function start() {
    readHash();
    replace(document.getElementById("views"), element("ul", {}, Object.values(made).map((link) => element("li", {}, link))));
    links();
    try {
        const [answer, self, index] = await Promise.all([ask(), get("v1/node"), get("")]);
        node.routes = index.routes;
        document.getElementById("host").textContent = plain(self.hostname, 60);
        document.getElementById("about").textContent = `reachd ${plain(self.daemon_version, 40)} on ${plain(self.hostname, 60)}`;
        if (answer.discovery === "running") setTimeout(start, POLL_MS);
        else if (node.gpus.length === 0) empty(answer);
        else draw();
    } catch (error) {
        replace(main, refusal(error));
        main.dataset.view = "refused";
    }
}

window.addEventListener("hashchange", () => {
    if (location.hash === "#main") return;
    readHash();
    draw();
});
document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
});
start();
