// view_job.js: the recommendation for the user's job: the verdict, the strategies in their order,
// and the same request for curl, C and Python.
import { get, latest, of } from "./api.js";
import { element, replace } from "./dom.js";
import { bytes, gbps, maybe, rounded, size as sizeText, times } from "./format.js";
import { choice, copyable, labeled, live, refusal, section, verdict } from "./parts.js";
import { table } from "./table.js";
import { planVerdict, strategyName } from "./verdicts.js";

const ROWS = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096];
const ACCESSES = [["read", "reads"], ["atomic", "atomics"], ["write", "writes"]];
const LOCATIONS = [["device", "device memory"], ["host", "host memory"], ["any", "either"]];

const SIZE = /^\s*\d+(\.\d+)?\s*([kmgt](i?b)?|b)?\s*$/i;

function strategyTable(plan) {
    return table("Strategies, best first", ["strategy", "GB/s", "of naive", "passes", "windows", "why"], plan.options.map((o) =>
        [strategyName(o.strategy), o.possible ? maybe(o, "gbps", gbps) : "not possible", o.times_naive ? times(o.times_naive) : "\u2013",
            o.possible ? String(o.passes) : "\u2013", o.windows ? String(o.windows) : "\u2013", o.why]));
}

function choiceTable(memory) {
    return table("Choices, best first", ["memory", "strategy", "GB/s", "rests on", "how to allocate it", "why"], memory.choices.map((w) =>
        [w.kind.replaceAll("-", " "), strategyName(w.strategy), maybe(w, "gbps", gbps), w.basis.replaceAll("-", " "), w.allocate, w.why]));
}

function choiceVerdict(memory) {
    const [first, second] = memory.choices;
    const name = (w) => `${w.kind.replaceAll("-", " ")} memory, ${strategyName(w.strategy)}`;
    if (!first.capacity_bytes) return verdict("unknown", `The capacity for this number of bytes is unknown: ${name(first)} comes first.`, memory.reason);
    if (!first.gbps) return verdict("unknown", `Not measured at this size: ${name(first)} comes first.`, memory.reason);
    const more = second?.gbps && first.gbps / second.gbps >= 1.05 ? ` ${times(first.gbps / second.gbps)} as fast as the next choice.` : "";
    return verdict("gain", `${gbps(first.gbps)} with ${name(first)}.${more}`, memory.reason);
}

const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

// Returns the address of the daemon that served this page, perhaps behind a prefix.
const daemon = () => new URL("..", document.baseURI).href.replace(/\/$/, "");

function curlText(gpu, job, what) {
    const query = new URLSearchParams({ bytes: job.bytes, access: job.access, element: job.element });
    if (what === "memory") query.set("location", job.location);
    return `curl -s ${quoted(`${daemon()}/v1/gpus/${encodeURIComponent(gpu.uuid)}/${what}?${query}`)}`;
}

// Returns a whole program. Kinds of memory have no struct, so it prints them as JSON.
function cText(gpu, job, what) {
    const query = new URLSearchParams({ bytes: job.exact, access: job.access, element: job.element, location: job.location });
    const plan = {
        declared: `struct reach_answer *answer = NULL;
    const struct reach_job job = {.size = sizeof(job), .bytes = ${job.exact}, .access = REACH_${job.access.toUpperCase()},
                                  .element_bytes = ${job.element}};`,
        call: `reach_get_plan(reach, ${JSON.stringify(gpu.uuid)}, &job, &answer, &why)`,
        result: "reach_answer_plan(answer)->reason",
        release: "reach_answer_free(answer)",
    };
    const memory = {
        declared: "char *json = NULL;",
        call: `reach_get(reach, ${JSON.stringify(`/v1/gpus/${gpu.uuid}/memory?${query}`)}, &json, &why)`,
        result: "json",
        release: "reach_free(json)",
    };
    const { declared, call, result, release } = what === "plan" ? plan : memory;
    return `/* cc job.c $(pkg-config --cflags --libs reach) */
#include <reach.h>
#include <stdio.h>

int main(void)
{
    struct reach *reach = NULL;
    struct reach_error why;
    ${declared}
    const int failed = reach_open(${JSON.stringify(daemon())}, &reach, &why) != REACH_OK ||
                       ${call} != REACH_OK;

    puts(failed ? why.text : ${result});
    ${release};
    reach_close(reach);
    return failed;
}
`;
}

function pythonText(gpu, job, what) {
    const location = what === "plan" ? "" : `, location="${job.location}"`;
    return `import reach

with reach.Reach(${JSON.stringify(daemon())}) as source:
    answer = source.${what}(${JSON.stringify(gpu.uuid)}, bytes=${job.exact}, access="${job.access}", element=${job.element}${location})
    print(answer.reason)
`;
}

function snippets(gpu, job) {
    const what = job.location === "device" ? "plan" : "memory";
    return [["curl", curlText], ["C", cText], ["Python", pythonText]].map(([name, text]) => copyable(name, text(gpu, job, what)));
}

function form(state, ask) {
    const size = element("input", { name: "bytes", type: "text", value: state.bytes, inputmode: "decimal",
        autocomplete: "off", spellcheck: "false", "aria-describedby": "bytes-hint" });
    const made = element("form", { class: "job", onsubmit: (event) => event.preventDefault() },
        labeled("Bytes accessed at random", size, element("span", { id: "bytes-hint" }, "such as 96GiB; GB is 10\u2079 bytes")),
        labeled("Bytes of a row", choice("element", ROWS.map((r) => [r, bytes(r)]), state.element)),
        labeled("Access", choice("access", ACCESSES, state.access)),
        labeled("The data is in", choice("location", LOCATIONS, state.location)));
    const changed = () => {
        const data = Object.fromEntries(new FormData(made));
        size.setAttribute("aria-invalid", String(!SIZE.test(data.bytes)));
        if (SIZE.test(data.bytes)) ask(data);
    };
    made.addEventListener("input", changed);
    made.addEventListener("change", changed);
    return made;
}

export function job({ gpu, state, change }) {
    const said = live("job-verdict");
    const read = element("p", { id: "bytes-read" });
    const ranked = element("div", { id: "ranked" });
    const copies = element("div", { class: "copies" });
    const question = latest();

    const ask = (data) => {
        const { bytes: size, element: row, access, location } = data;
        const query = { bytes: size.replace(/\s/g, ""), element: row, access };
        const path = location === "device" ? of(gpu, "plan", query) : of(gpu, "memory", { ...query, location });
        question((signal) => get(path, { signal }), (answer) => {
            change({ bytes: answer.bytes, element: row, access, location });
            replace(said, location === "device" ? planVerdict(answer) : choiceVerdict(answer));
            replace(read, `${answer.bytes} bytes, ${bytes(answer.bytes)}`);
            replace(ranked, location === "device" ? strategyTable(answer) : choiceTable(answer));
            replace(copies, snippets(gpu, { bytes: query.bytes, exact: answer.bytes, element: answer.element_bytes, access, location }));
            said.dataset.bytes = answer.bytes;
        }, (error) => {
            replace(said, refusal(error));
            replace(read);
            replace(ranked);
            replace(copies);
            said.dataset.bytes = "none";
        });
    };
    // Sends the value from the address unchanged, even if it is invalid: the daemon then reports
    // the error.
    const asked = state.bytes ?? rounded(gpu.memory_bytes);
    const start = { bytes: Number.isSafeInteger(Number(asked)) ? sizeText(Number(asked)) : asked, element: state.element ?? 128,
        access: state.access ?? "read", location: state.location ?? "device" };
    ask(start);
    return [section("What should my job do?", form(start, ask), said, read, ranked),
        section("The same question from a program", copies)];
}
