// parts.js: small parts that all views have.
import { element, plain } from "./dom.js";

export const section = (title, ...content) =>
    element("section", { class: "card" }, element("h2", {}, title), ...content);

// What was concluded, in one sentence: `kind` is gain, none or unknown. Read out when it changes.
export const verdict = (kind, sentence, reason) =>
    element("div", { class: "verdict " + kind, "data-verdict": kind },
        element("p", { class: "sentence" }, sentence), reason && element("p", { class: "why" }, reason));

export const live = (id) => element("div", { id, "aria-live": "polite" });

export const refusal = (error) =>
    element("div", { class: "verdict refused", role: "alert" },
        element("p", { class: "sentence" }, error.message), error.nextStep && element("p", { class: "why" }, error.nextStep));

// A control with its label before it.
export const labeled = (text, control, hint) =>
    element("label", { class: "field" }, element("span", {}, text), control, hint && element("small", {}, hint));

// `options`: [value, text]. What is chosen and is none of them, as an address can name it, is one more: the
// control shows what is asked.
export function choice(name, options, chosen, onchange) {
    const known = options.some(([value]) => String(value) === String(chosen));
    return element("select", { name, onchange }, (known ? options : [...options, [chosen, plain(chosen, 60)]]).map(([value, text]) =>
        element("option", { value, selected: String(value) === String(chosen) }, text)));
}

// A text to copy: it can be selected, and a button does both.
export function copyable(title, text) {
    const box = element("pre", { tabindex: "0", role: "region", "aria-label": title }, text);
    const said = element("span", { role: "status" });
    const button = element("button", { type: "button", class: "copy", "aria-label": "Copy " + title }, "Copy");
    button.addEventListener("click", async () => {
        getSelection().selectAllChildren(box);
        try {
            await navigator.clipboard.writeText(text);
            said.textContent = "copied";
        } catch {
            said.textContent = "selected: copy it with the keyboard";
        }
    });
    return element("div", { class: "copyable" }, element("h3", {}, title), button, said, box);
}
