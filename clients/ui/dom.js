// dom.js: elements of the page. A text reaches the document only as a text node, so a name with
// markup in it is shown unchanged.

const SVG = "http://www.w3.org/2000/svg";

// Characters that are invisible or change the order of others: controls, bidirectional marks.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// Returns a text from outside: invisible characters become a box, and text beyond `most` characters
// is cut.
export function plain(text, most = 120) {
    const seen = String(text).replace(UNSEEN, "\ufffd");
    return seen.length > most ? seen.slice(0, most - 1) + "\u2026" : seen;
}

// Returns a child that is a text, with its line breaks unchanged.
const child = (c) => (typeof c === "string" ? c.replace(UNSEEN, (u) => (u === "\n" ? u : "\ufffd")) : c);

function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
        else if (value === true) node.setAttribute(name, "");
        else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false).map(child));
    return node;
}

// Makes an element with attributes and children. Functions of "on..." are listeners; null and false
// omit an attribute. Children are nodes, texts, or lists of them.
export function element(name, attributes, ...children) {
    return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
}

export function replace(node, ...children) {
    node.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
}
