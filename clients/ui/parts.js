// parts.js: small parts that all views share.
import { element, plain } from "./dom.js";

export const section = (title, ...content) =>
    element("section", { class: "card" }, element("h2", {}, title), ...content);

// Shows the conclusion in one sentence. `kind` is gain, none or unknown. A screen reader reads it
// when it changes.
export const verdict = (kind, sentence, reason) =>
    element("div", { class: "verdict " + kind, "data-verdict": kind },
        element("p", { class: "sentence" }, sentence), reason && element("p", { class: "why" }, reason));

export const live = (id) => element("div", { id, "aria-live": "polite" });

export const refusal = (error) =>
    element("div", { class: "verdict refused", role: "alert" },
        element("p", { class: "sentence" }, error.message), error.nextStep && element("p", { class: "why" }, error.nextStep));

// Makes a control with its label before it.
export const labeled = (text, control, hint) =>
    element("label", { class: "field" }, element("span", {}, text), control, hint && element("small", {}, hint));

// Makes a choice of `options`: [value, text]. A chosen value that is not among them (an address can
// name it) becomes an additional option, so the control shows the requested value.
export function choice(name, options, chosen, onchange) {
    const known = options.some(([value]) => String(value) === String(chosen));
    return element("select", { name, onchange }, (known ? options : [...options, [chosen, plain(chosen, 60)]]).map(([value, text]) =>
        element("option", { value, selected: String(value) === String(chosen) }, text)));
}

// Makes a text to copy: it can be selected, and a button copies it.
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
