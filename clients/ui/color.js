// color.js: colors that people with any color vision can distinguish: Okabe and Ito's for kinds
// (2008), viridis for amounts. Kinds always have their number or name beside the color.
import { interpolateViridis } from "d3-scale-chromatic";

// Number of the classes c0 ... c7 of colors.css. If there are more kinds, they share colors.
const KINDS = 8;
export const kindClass = (i) => "c" + (i % KINDS);

// Returns a color for a share of 0 ... 1.
export const amountColor = (share) => interpolateViridis(Math.min(1, Math.max(0, share)));
