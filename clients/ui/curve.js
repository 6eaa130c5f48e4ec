// curve.js: a chart of lines over bytes, logarithmic in bytes and, if speeds differ by much, in
// GB/s. Lines differ in color and dash. Each has its name at its end, or below a narrow chart.
import { scaleLinear, scaleLog } from "d3-scale";
import { area, line } from "d3-shape";
import { element, replace, svg } from "./dom.js";
import { bytes } from "./format.js";

// A wider chart is this chart, enlarged, also on paper. A narrower chart is drawn with its own
// pixels, so that its texts keep their size.
const WIDEST = 760;
const NARROW = 560;
const TICK_WIDTH = 62;
const LABEL_HEIGHT = 15;

function frameOf(width) {
    const named = width >= NARROW;
    const height = Math.round(Math.max(240, 0.47 * width));
    return { width, height, named, left: 58, right: width - (named ? 168 : 24), top: 24, bottom: height - 44 };
}

function powersOfTwo(low, high, most) {
    const all = [];
    for (let p = Math.ceil(Math.log2(low)); p <= Math.floor(Math.log2(high)); p++) all.push(2 ** p);
    const every = Math.ceil(all.length / most);
    return all.filter((_, i) => (all.length - 1 - i) % every === 0);
}

// Ticks of a logarithmic axis are 1, 3, 10, 30 and so on.
const FIRST_DIGITS = ["1", "3"];
const ticksOf = (y, log) => (log ? y.ticks(20).filter((v) => FIRST_DIGITS.includes(v.toExponential()[0])) : y.ticks(5));

function axes(frame, x, y, log, unit) {
    const { left, right, top, bottom } = frame;
    const most = Math.min(8, Math.floor((right - left) / TICK_WIDTH));
    const ticks = ticksOf(y, log);
    return [
        ticks.map((v) => [
            svg("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }),
            svg("text", { class: "tick end", x: left - 8, y: y(v) + 4 }, String(v))]),
        powersOfTwo(...x.domain(), most).map((v) => [
            svg("line", { class: "grid", x1: x(v), x2: x(v), y1: top, y2: bottom }),
            svg("text", { class: "tick middle", x: x(v), y: bottom + 18 }, bytes(v))]),
        svg("text", { class: "tick end", x: right, y: bottom + 38 }, "bytes accessed at random"),
        svg("text", { class: "tick", x: 4, y: 10 }, unit)];
}

// Moves labels at the ends of lines down if they would overlap.
function labels(frame, lines, y) {
    const ends = lines.map((l, i) => ({ l, i, p: l.points.at(-1) })).filter((e) => e.p);
    let next = 0;
    return ends.sort((a, b) => y(a.p.y) - y(b.p.y)).map(({ l, p }) => {
        const at = Math.max(y(p.y) + 4, next);
        next = at + LABEL_HEIGHT;
        return svg("text", { class: "label " + l.kind, x: frame.right + 8, y: at }, l.name);
    });
}

function drawn(l, x, y) {
    const path = line().x((p) => x(p.x)).y((p) => y(p.y))(l.points);
    const marks = l.marks === false ? [] : l.points.map((p) => svg("circle", { class: "mark " + l.kind, cx: x(p.x), cy: y(p.y), r: 3 }));
    return [svg("path", { class: "line " + l.kind, d: path }), marks];
}

const legend = (lines) => element("ul", { class: "legend", "aria-hidden": "true" }, lines.map((l) =>
    element("li", { class: l.kind }, svg("svg", { viewBox: "0 0 28 8" }, svg("path", { class: "line " + l.kind, d: "M0 4H28" })), l.name)));

function picture({ title, lines, bands, marksAt, log, unit }, frame) {
    const all = [...lines.flatMap((l) => l.points), ...bands.flatMap((b) => b.points.map((p) => ({ x: p.x, y: p.high })))];
    const x = scaleLog().domain([Math.min(...all.map((p) => p.x)), Math.max(...all.map((p) => p.x))])
        .range([frame.left, frame.right]);
    const y = (log ? scaleLog() : scaleLinear()).domain([log ? Math.min(...all.map((p) => p.y)) : 0, Math.max(...all.map((p) => p.y))])
        .nice().range([frame.bottom, frame.top]);
    const band = area().x((p) => x(p.x)).y0((p) => y(p.low)).y1((p) => y(p.high));
    return svg("svg", { class: "curve", viewBox: `0 0 ${frame.width} ${frame.height}`, role: "img", "aria-label": title },
        axes(frame, x, y, log, unit),
        bands.map((b) => svg("path", { class: "band " + b.kind, d: band(b.points) })),
        marksAt.filter((m) => m.x >= x.domain()[0] && m.x <= x.domain()[1]).map((m) => [
            svg("line", { class: "reach", x1: x(m.x), x2: x(m.x), y1: frame.top, y2: frame.bottom }),
            svg("text", { class: "tick end", x: x(m.x) - 4, y: frame.bottom - 6 }, m.name)]),
        lines.map((l) => drawn(l, x, y)), frame.named && labels(frame, lines, y));
}

// Draws the chart. `lines` are {name, kind (a class: color and dash), points: [{x: bytes, y:
// GB/s}]}, ascending in x. `bands` are {kind, points: [{x, low, high}]}. `marksAt` are vertical
// lines: [{x, name}]. `log` makes the GB/s axis logarithmic.
export function curve({ title, lines, bands = [], marksAt = [], log = false, unit = "GB/s" }) {
    const made = element("div", { class: "chart" });
    let drawn = 0;
    const draw = (width) => {
        if (width === drawn) return;
        drawn = width;
        const frame = frameOf(width);
        replace(made, picture({ title, lines, bands, marksAt, log, unit }, frame), !frame.named && legend(lines));
    };
    draw(WIDEST);
    new ResizeObserver(([entry]) => {
        const width = Math.round(entry.contentRect.width);
        if (width > 0) requestAnimationFrame(() => draw(Math.min(WIDEST, width)));
    }).observe(made);
    return made;
}
