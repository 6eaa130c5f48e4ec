// page.entry.js: the page at /ui/.
import "./license.js";
import { element, plain, replace } from "./dom.js";
import { curve } from "./curve.js";
import { groupBoxes } from "./boxes.js";
import { amountColor } from "./color.js";
replace(document.getElementById("main"), element("p", {}, plain("soon"), amountColor(0), String(curve), String(groupBoxes)));
