// format.js: readable numbers. An unknown number is reported as unknown, with the reason from the
// answer.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// Returns four significant digits, or a whole number for whole and large values.
function digits(value) {
    const whole = Math.abs(value) >= 1000 || Number.isInteger(value);
    return whole ? Math.round(value).toString() : value.toPrecision(4).replace(/\.?0+$/, "");
}

// Returns [amount, unit], in powers of 1024.
function scaled(count) {
    let unit = 0;
    let value = count;
    while (value >= 1024 && unit < UNITS.length - 1) {
        value /= 1024;
        unit++;
    }
    return [value, UNITS[unit]];
}

// Formats 68753031168 as "64.03 GiB".
export function bytes(count) {
    const [value, unit] = scaled(count);
    return digits(value) + " " + unit;
}

// Formats bytes exactly, for requests: "96GiB", or all digits.
export function size(count) {
    const [value, unit] = scaled(count);
    return Number.isInteger(4 * value) ? value + unit : String(count);
}

// Returns a size that is short to read, and at most a quarter of its unit smaller: 150121545728 ->
// 139.75 * 2 ** 30
export function rounded(count) {
    const [value, unit] = scaled(count);
    return Math.floor(4 * value) / 4 * 1024 ** UNITS.indexOf(unit);
}

export const gbps = (value) => digits(value) + " GB/s";
export const cycles = (value) => digits(value) + " cycles";
export const times = (value) => (value >= 9.95 ? Math.round(value) : value.toFixed(1)) + "\u00d7";
export const count = (value) => String(value);

// Returns object[name] in words, or "unknown: not measured" if it is null.
export function maybe(object, name, format) {
    const value = object?.[name];
    if (value !== null && value !== undefined) return format(value);
    const reason = object?.[name + "_reason"] ?? "not reported";
    return "unknown: " + reason.replace("not-observable: ", "").replaceAll("-", " ");
}

// Formats "2026-11-22T16:42:58Z" as "2026-11-22 16:42 UTC".
export function time(text) {
    return text ? text.slice(0, 10) + " " + text.slice(11, 16) + " UTC" : "never";
}

// Formats SM ids as ranges: [0, 1, 2, 5] -> "0-2, 5"
export function ranges(ids) {
    const out = [];
    for (let i = 0; i < ids.length; i++) {
        let last = i;
        while (last + 1 < ids.length && ids[last + 1] === ids[last] + 1) last++;
        out.push(last > i ? ids[i] + "\u2013" + ids[last] : String(ids[i]));
        i = last;
    }
    return out.join(", ");
}
