// Figures in words, to three digits, as the command line shows them.

function three(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : value.toPrecision(3);
}

function scaled(value, units) {
  const size = Math.abs(value);
  const [factor, unit] = units.find(([least]) => size >= least * 0.9995) ?? units[units.length - 1];
  return `${three(value / factor)}\u00a0${unit}`;
}

const JOULES = [[1e12, "TJ"], [1e9, "GJ"], [1e6, "MJ"], [1e3, "kJ"], [1, "J"], [1e-3, "mJ"], [1e-6, "µJ"]];
const SECONDS = [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
const BYTES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const GRAMS = [[1e6, "t"], [1e3, "kg"], [1, "g"], [1e-3, "mg"]];
const KWH = [[1, "kWh"], [1e-3, "Wh"], [1e-6, "mWh"]];

export const joules = (value) => scaled(value, JOULES);
export const seconds = (value) => scaled(value, SECONDS);
export const bytes = (value) => scaled(value, BYTES);
export const grams = (value) => scaled(value, GRAMS);
export const kwh = (value) => scaled(value, KWH);
export const money = (cost) => `${cost.money >= 1 ? cost.money.toFixed(2) : three(cost.money)} ${cost.currency}`.trim();
export function percent(share) {
  const value = 100 * share;
  const size = Math.abs(value);
  return `${size >= 10 ? value.toFixed(0) : size >= 0.1 || size === 0 ? value.toFixed(1) : value.toPrecision(2)}\u00a0%`;
}
export const whole = (value) => Math.round(value).toLocaleString("en");
export const signed = (share) => `${share >= 0 ? "+" : "−"}${three(Math.abs(100 * share))}\u00a0%`;

export function probability(value) {
  return value > 0.999 ? "over 99.9\u00a0%" : `${(100 * value).toFixed(value > 0.99 ? 1 : 0)}\u00a0%`;
}

// A number on an axis: three digits, never a power of ten.
export const short = (value) => (Math.abs(value) >= 100 ? whole(value) : String(Number(value.toPrecision(3))));

// Words in which a number and its unit stay on one line.
export const glued = (words) => words.replace(/(\d) (?=[mkµnMG]?J\b|[mk]?Wh?\b|[mµ]?s\b|min\b|h\b|days\b|%)/g, "$1\u00a0");

// joules and their unit for an axis whose largest value this is
export function joulesUnit(largest) {
  const [factor, unit] = JOULES.find(([least]) => largest >= least) ?? JOULES[JOULES.length - 1];
  return { factor, unit };
}
