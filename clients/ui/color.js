// color.js: colors that people with any color vision tell apart: Okabe and Ito's for kinds (2008),
// viridis for amounts. Kinds always have their number or name beside the color.
import { interpolateViridis } from "d3-scale-chromatic";

// The classes c0 ... c7 of colors.css; more kinds than that share colors.
const KINDS = 8;
export const kindClass = (i) => "c" + (i % KINDS);

// A color for a share of 0 ... 1.
export const amountColor = (share) => interpolateViridis(Math.min(1, Math.max(0, share)));
