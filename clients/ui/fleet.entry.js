// fleet.entry.js: the script of `reachctl survey report --format html`. The page has every number
// as text in its tables; this script reads the table of all GPUs and draws it.
import "./license.js";
import { element, replace } from "./dom.js";
import { distanceColor, FARTHEST, heatMap, letters, orders, percent } from "./heat.js";

// Returns a table as objects: a column of numbers gives a number, or null for an empty cell.
function rowsOf(table) {
    const heads = [...table.querySelectorAll("thead th")].map((th) => [th.textContent.trim(), th.dataset.kind !== "t"]);
    return [...table.tBodies[0].rows].map((row, at) => ({ row: at, ...Object.fromEntries(heads.map(([name, isNumber], i) => {
        const text = row.cells[i].textContent.trim();
        return [name, !isNumber ? text : text === "" ? null : Number(text)];
    })) }));
}

const NUMBERS = {
    whole_memory_gbps: "naive over the whole memory, GB/s",
    plateau_gbps: "within the reach, GB/s",
    miss_penalty_cycles: "miss penalty, cycles",
    window_bytes: "window, bytes",
};

const select = (label, options, onchange) => {
    const control = element("select", {}, options.map(([value, text]) => element("option", { value }, text)));
    control.addEventListener("change", onchange);
    return [element("label", {}, label + " ", control), control];
};

function scale() {
    const steps = [-1, -0.5, 0, 0.5, 1].map((part) => distanceColor(part * FARTHEST));
    const bar = element("span", { class: "scale", role: "img", "aria-label": "orange is below the median, purple above" });
    bar.style.backgroundImage = `linear-gradient(90deg, ${steps.join(", ")})`;
    return element("span", { class: "key" }, element("span", {}, percent(-FARTHEST).replace(" ", "\u00a0")), bar, element("span", {}, percent(FARTHEST) + " of the median of the model"));
}

const key = (classes, text) => element("span", { class: "key" }, element("span", { class: "cell " + classes, "aria-hidden": "true" }), text);

function legend(gpus) {
    const maps = [...letters(gpus)].slice(0, 6).map(([map, { letter, count }]) =>
        element("span", { class: "key" }, element("b", {}, letter), `map ${map.slice(3)}, ${count} GPUs`));
    return [element("div", { class: "bar" }, scale(), key("", "not known"), key("stale", "stale or disturbed"),
        key("simulated", "simulated"), key("odd", "odd in a metric")),
    element("div", { class: "bar" }, maps, letters(gpus).size > 6 && element("span", { class: "key" },
        `${letters(gpus).size} maps in all; * stands for maps after Z`))];
}

function draw(gpus) {
    const told = element("p", { class: "told", role: "status", "aria-label": "The selected cell" });
    const place = element("div", {});
    const known = Object.entries(NUMBERS).filter(([name]) => gpus.some((gpu) => gpu[name] !== null));
    const show = () => replace(place, heatMap(gpus, number.value, order.value));
    const [numberLabel, number] = select("Number", known, () => show());
    const [orderLabel, order] = select("Hosts by", orders.map((text) => [text, text]), () => show());
    place.addEventListener("click", (event) => {
        const cell = event.target.closest(".cell");
        if (!cell) return;
        told.textContent = cell.title;
        table.querySelector("tr.chosen")?.classList.remove("chosen");
        const row = table.tBodies[0].rows[cell.dataset.row];
        row.classList.add("chosen");
        const scroller = row.closest(".scroll");
        scroller.scrollTop = row.offsetTop - scroller.clientHeight / 2;
    });
    show();
    return element("section", { id: "heat" }, element("h2", {}, "Hosts and slots"),
        element("div", { class: "bar" }, numberLabel, orderLabel), legend(gpus), told, place,
        element("p", { class: "note" }, "The letter is the kind of group map. A click shows the row of a GPU. The same data as text: ",
            element("a", { href: "#gpus" }, "every GPU"), "."));
}

// Shows a percentage also as a bar behind its number.
function drawBars(table) {
    const column = [...table.querySelectorAll("thead th")].findIndex((th) => th.dataset.kind === "p");
    for (const row of table.tBodies[0].rows) {
        row.cells[column].classList.add("share");
        row.cells[column].style.setProperty("--share", row.cells[column].textContent.trim());
    }
}

const started = performance.now();
const signatures = document.querySelector("#signatures table");
if (signatures) drawBars(signatures);
const table = document.querySelector("#gpus table");
const gpus = table ? rowsOf(table) : [];
if (gpus.length > 0) {
    const first = document.getElementById("changes") ?? document.getElementById("hosts-names");
    if (first) first.after(draw(gpus));
    else document.querySelector("main").prepend(draw(gpus));
    document.documentElement.dataset.drawnMs = Math.round(performance.now() - started);
}
