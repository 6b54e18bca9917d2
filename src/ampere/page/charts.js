// The kinds of charts that views and reports share: each draws a record of data at any width.
//
// bars          shares         histogram     scatter        heatmap        curve
// name |===|-|  |====|==|=|    |             |   . /        |:::|          |   ___--
// name |=|-|    a   b  c       |_#_#|#_      | . /.         |:|#|          |_--

import { axisX, axisY, decades, linear, line, logarithmic, picture, ramp, rect, room, svg, text, ticks, tipped } from "./draw.js";
import { joules, joulesUnit, percent, short, whole } from "./format.js";

const [BAR, ROW, NARROW_ROW] = [15, 25, 44]; // heights
const [NAME, VALUE] = [13, 12.5]; // sizes of letters
const NARROW = 600; // pixels, below which names stand above their bars
const BAND = 1.1; // estimates within a tenth of the measurement
const SAID = 5; // data that a picture's text alternative names
const colour = (role) => (role.startsWith("#") ? role : `var(--${role})`);

function datum(tip, ...shapes) {
  return tipped(svg("g", { class: "datum" }, ...shapes), tip);
}

// A list of data in words, for those who do not see the picture.
function said(tips) {
  const more = tips.length - SAID;
  return tips.slice(0, SAID).join("; ") + (more > 0 ? `; and ${more} more, in the table` : "");
}

// Horizontal bars with names, values, and intervals across their ends. `drawn.order` puts them into another order.
export function bars(width, { bars: rows, reference = null }, title) {
  const narrow = width < NARROW;
  const most = (of) => Math.max(0, ...rows.map(of));
  const [values, details] = [most((each) => room(each.label, VALUE)), most((each) => room(each.detail ?? "", 12))];
  const names = narrow ? width - values - 8 : Math.min(most((each) => room(each.name, NAME)) + 10, 0.36 * width);
  const tall = narrow ? NARROW_ROW : ROW;
  const left = narrow ? 1 : names + (details ? details + 8 : 0);
  const right = narrow ? width - 6 : Math.max(left + 40, width - values - 12);
  const at = narrow ? 20 : (ROW - BAR) / 2; // of the bar in its row
  const base = narrow ? 14 : ROW / 2 + 4.5;
  const top = reference ? 26 : 2;
  const scale = linear([0, Math.max(most((each) => Math.max(each.value, each.high ?? 0)), reference?.value ?? 0) || 1], [left, right]);
  const height = top + tall * rows.length + 2;
  const drawn = picture(width, height, title, said(rows.map((each) => each.tip)));
  if (!narrow) drawn.append(line(left, top, left, height - 2));
  const shown = shortNames(rows.map((each) => each.name), narrow ? names : names - 8, NAME);
  const places = rows.map((each, i) => {
    const group = datum(each.tip, text(0, base, shown[i], { "font-size": NAME, fill: "var(--ink)" }));
    let start = 0;
    for (const [role, value] of each.parts?.length ? each.parts : [[each.colour ?? "one", each.value]]) {
      const x = scale(start);
      const look = { fill: colour(role), stroke: colour(role), rx: 1.5, opacity: each.hollow ? 0.35 : null };
      group.append(rect(x, at, Math.max(scale(start + value) - x, 1), BAR, look));
      start += value;
    }
    group.append(text(width, base, each.label, { "font-size": VALUE, fill: "var(--ink)", "text-anchor": "end" }));
    const detail = narrow ? room(shown[i], NAME) + 6 : names;
    if (each.detail && room(each.detail) <= (narrow ? names : left) - detail) group.append(text(detail, base, each.detail));
    if (typeof each.low === "number" && typeof each.high === "number") group.append(...whisker(scale(Math.max(0, each.low)), scale(each.high), at + BAR / 2));
    drawn.append(group);
    return { group, row: i, others: each.other_rows ?? {} };
  });
  drawn.order = (name) => {
    for (const { group, row, others } of places) group.setAttribute("transform", `translate(0 ${top + tall * (others[name] ?? row)})`);
  };
  drawn.order("");
  if (reference) {
    const x = scale(reference.value);
    const beyond = x + room(reference.label) > width;
    drawn.append(text(beyond ? width : x, 13, reference.label, { fill: "var(--ink)", "text-anchor": beyond ? "end" : "start" }));
    rows.forEach((_, row) => {
      const y = top + row * tall + at; // in the bars' part of each row, never through a name
      drawn.append(line(x, narrow ? y : y - 5, x, y + BAR + 5, { stroke: "var(--ink)", "stroke-width": 1.4 }));
    });
  }
  return drawn;
}

// An interval, with a rim that keeps it visible on its bar.
function whisker(low, high, middle) {
  const path = `M${low} ${middle}H${high}M${low} ${middle - 3.5}v7M${high} ${middle - 3.5}v7`;
  return [["card", 3.6], ["ink", 1.4]].map(([role, width]) => svg("path", { d: path, fill: "none", stroke: colour(role), "stroke-width": width }));
}

// One bar cut into shares that sum to 1, with every share named below it.
export function shares(width, { shares: parts }, title) {
  const strip = 34;
  const shapes = [];
  let [x, chipX, chipY] = [0, 0, strip + 22];
  for (const { name, share, label, tip, colour: role } of parts) {
    const words = `${name} ${label}`;
    const needs = room(words, NAME) + 30;
    if (chipX && chipX + needs > width + 12) [chipX, chipY] = [0, chipY + 24];
    shapes.push(datum(tip,
      rect(x, 0, Math.max(share * width - 2, 0.8), strip, { fill: colour(role), rx: 2 }),
      rect(chipX, chipY - 10, 11, 11, { fill: colour(role), rx: 2 }),
      text(chipX + 17, chipY, words, { "font-size": NAME, fill: "var(--ink)" })));
    [x, chipX] = [x + share * width, chipX + needs];
  }
  const drawn = picture(width, chipY + 8, title, said(parts.map(({ tip }) => tip)));
  drawn.append(...shapes);
  return drawn;
}

// How often shares of each size were seen; the last bin also holds what lies beyond it.
export function histogram(width, { counts, edges, median, label, things }, title) {
  const [left, right, top, floor] = [40, width - 12, 34, 34 + 0.5 * width];
  const x = linear([edges[0], edges[edges.length - 1]], [left, right]);
  const y = linear([0, 1.18 * Math.max(1, ...counts)], [floor, top]);
  const note = `half are below ${percent(median)}`;
  const drawn = picture(width, floor + 44, title, `${counts.reduce((sum, each) => sum + each, 0)} ${things}; ${note}`);
  drawn.append(axisY(ticks(0, Math.max(1, ...counts), 4).filter(Number.isInteger), y, left, right, whole), text(4, top - 12, things));
  counts.forEach((count, i) => {
    if (!count) return;
    const bar = rect(x(edges[i]) + 0.5, y(count), x(edges[i + 1]) - x(edges[i]) - 1, floor - y(count), { fill: "var(--one)" });
    drawn.append(datum(`${percent(edges[i])} to ${percent(edges[i + 1])}: ${count} ${things}`, bar));
  });
  drawn.append(axisX(ticks(edges[0], edges[edges.length - 1], width < 380 ? 3 : 5), x, floor, floor, percent), line(left, floor, right, floor, { stroke: "var(--muted)" }));
  drawn.append(text((left + right) / 2, floor + 36, label, { "text-anchor": "middle" }));
  const middle = x(Math.min(median, edges[edges.length - 1]));
  const beyond = middle + 5 + room(note, 11.5) > width;
  drawn.append(line(middle, top - 4, middle, floor, { stroke: "var(--ink)", "stroke-dasharray": "4 3" }));
  drawn.append(text(beyond ? middle - 5 : middle + 5, top + 6, note, { "font-size": 11.5, fill: "var(--ink)", "text-anchor": beyond ? "end" : "start" }));
  return drawn;
}

const SHAPES = {
  square: (x, y, r) => `M${x - 0.9 * r} ${y - 0.9 * r}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`,
  diamond: (x, y, r) => `M${x} ${y - 1.25 * r}l${1.25 * r} ${1.25 * r}l${-1.25 * r} ${1.25 * r}l${-1.25 * r} ${-1.25 * r}z`,
  triangle: (x, y, r) => `M${x} ${y - 1.25 * r}l${1.2 * r} ${2.15 * r}h${-2.4 * r}z`,
};

function dot(x, y, radius, { colour: role, shape = "circle" }) {
  const look = { fill: colour(role), stroke: "var(--paper)" };
  return SHAPES[shape] ? svg("path", { d: SHAPES[shape](x, y, radius), ...look }) : svg("circle", { cx: x, cy: y, r: radius, ...look });
}

// Estimated against measured joules on logarithmic axes; later series lie on top.
export function scatter(width, { series }, title) {
  const spots = series.flatMap((one) => one.spots);
  const all = spots.flatMap(({ measured, estimated }) => [measured, estimated]).filter((value) => value > 0);
  const [low, high] = [Math.min(...all) / 1.15, Math.max(...all) * 1.15];
  const { factor, unit } = joulesUnit(spots.map(({ measured }) => measured).sort((a, b) => a - b)[Math.floor(spots.length / 2)]);
  const side = Math.min(width, 560);
  const [left, right, top] = [54, side - 10, 34];
  const floor = top + side - 60;
  const [x, y] = [logarithmic([low, high], [left, right]), logarithmic([low, high], [floor, top])];
  const errors = spots.map(({ measured, estimated }) => Math.abs(estimated / measured - 1)).sort((a, b) => a - b);
  const drawn = picture(side, floor + 44, title, `${spots.length} points; half are less than ${percent(errors[Math.floor(errors.length / 2)])} off`);
  const band = [[low, low], [low, low * BAND], [high / BAND, high], [high, high], [high, high / BAND], [low * BAND, low]];
  drawn.append(svg("path", { d: `M${band.map(([a, b]) => `${x(a)} ${y(b)}`).join("L")}z`, fill: "var(--band)" }));
  const marks = decades(low, high, Math.max(2, Math.floor(side / 80)));
  const words = (value) => short(value / factor);
  drawn.append(axisX(marks, x, floor, top, words), axisY(marks, y, left, right, words), line(x(low), y(low), x(high), y(high), { stroke: "var(--muted)" }));
  drawn.append(text((left + right) / 2, floor + 36, `measured, ${unit}`, { "text-anchor": "middle" }), text(4, top - 12, `estimated, ${unit}`));
  for (const one of series) for (const { measured, estimated, tip } of one.spots) drawn.append(datum(tip, dot(x(measured), y(estimated), 3.6, one)));
  [...series].reverse().forEach((one, row) => {
    const below = top + 14 + 19 * row;
    drawn.append(dot(left + 14, below - 4, 4.2, one), text(left + 24, below, one.label, { fill: "var(--ink)" }));
  });
  drawn.append(text(right - 4, floor - 8, "shaded: within 10 %", { "font-size": 11.5, "text-anchor": "end" }));
  return drawn;
}

// Joules in colours over two numbers of channels, with what was measured. Cells are equally large, whatever lies between them.
export function heatmap(width, { xs, ys, values, seen }, title) {
  const [left, right, top] = [50, width - 12, 74];
  const floor = top + Math.min(380, 0.72 * (width - 58));
  const cell = { x: (right - left) / xs.length, y: (floor - top) / ys.length };
  const flat = values.flat();
  const low = Math.max(Math.min(...flat), 1e-12);
  const high = Math.max(Math.max(...flat), low * 1.01);
  const share = (value) => Math.log(Math.max(value, low) / low) / Math.log(high / low);
  const drawn = picture(width, floor + 46, title, `from ${joules(low)} to ${joules(high)}; ${seen.length} places were measured`);
  drawn.append(...key(left, right, low, high, share));
  const cells = svg("g", { "shape-rendering": "crispEdges" });
  ys.forEach((out, j) => xs.forEach((into, i) => {
    const box = rect(left + i * cell.x, floor - (j + 1) * cell.y, cell.x + 0.5, cell.y + 0.5, { fill: ramp(share(values[j][i])) });
    cells.append(tipped(box, `${whole(into)} → ${whole(out)} channels: ${joules(values[j][i])}`));
  }));
  drawn.append(cells);
  const [x, y] = [(value) => left + (between(xs, value) + 0.5) * cell.x, (value) => floor - (between(ys, value) + 0.5) * cell.y];
  for (const each of seen) {
    const look = each.alone ? { r: 4.2, fill: "#ffffff", stroke: "#101418" } : { r: 2.8, fill: "#101418", stroke: "#ffffff" };
    drawn.append(datum(each.tip, svg("circle", { cx: x(each.x), cy: y(each.y), ...look })));
  }
  const some = (list, size, least) => list.filter((_, i) => i % Math.max(1, Math.ceil(least / size)) === 0);
  for (const into of some(xs, cell.x, 42)) drawn.append(text(x(into), floor + 17, whole(into), { "text-anchor": "middle" }));
  for (const out of some(ys, cell.y, 24)) drawn.append(text(left - 7, y(out) + 4, whole(out), { "text-anchor": "end" }));
  drawn.append(text((left + right) / 2, floor + 36, "channels in", { "text-anchor": "middle" }), text(4, top - 12, "channels out"));
  return drawn;
}

// Where a value lies among rising ones: 1.5 is half way between the second and the third.
function between(list, value) {
  const above = list.findIndex((each) => each >= value);
  if (above <= 0) return above < 0 ? list.length - 1 : 0;
  return above - (list[above] - value) / (list[above] - list[above - 1]);
}

// What the colours mean.
function key(left, right, low, high, share) {
  const parts = 26;
  const wide = (right - left) / parts;
  const { factor, unit } = joulesUnit(high / 3);
  const boxes = Array.from({ length: parts }, (_, i) => rect(left + i * wide, 2, wide + 0.5, 9, { fill: ramp((i + 0.5) / parts), "shape-rendering": "crispEdges" }));
  const marks = decades(low, high, Math.floor((right - left) / 60));
  const words = (marks.length > 1 ? marks : [low, high]).map((value) => text(left + share(value) * (right - left), 26, short(value / factor), { "font-size": 11.5, "text-anchor": "middle" }));
  return [...boxes, ...words, text(4, 11, unit)];
}

// Joules with their 90 % band over one number of channels, and where it was measured.
export function curve(width, { xs, values, lows, highs, seen, label }, title) {
  const most = Math.max(...highs, ...seen.map((each) => each.y)) * 1.05 || 1;
  const { factor, unit } = joulesUnit(Math.max(...highs));
  const [left, right, top] = [50, width - 12, 34];
  const floor = top + Math.min(380, 0.72 * (width - 58)) + 40;
  const [x, y] = [linear([xs[0], xs[xs.length - 1]], [left, right]), linear([0, most], [floor, top])];
  const drawn = picture(width, floor + 46, title, `from ${joules(values[0])} at ${whole(xs[0])} to ${joules(values[values.length - 1])} at ${whole(xs[xs.length - 1])} ${label}`);
  const marks = ticks(xs[0], xs[xs.length - 1], width < 380 ? 4 : 6).filter(Number.isInteger);
  drawn.append(axisX(marks, x, floor, floor, whole), axisY(ticks(0, most / factor, 6), (value) => y(value * factor), left, right, short));
  drawn.append(line(left, floor, right, floor, { stroke: "var(--muted)" }), text((left + right) / 2, floor + 36, label, { "text-anchor": "middle" }), text(4, top - 12, `energy, ${unit}`));
  const path = (heights) => xs.map((each, i) => `${x(each)} ${y(Math.max(0, heights[i]))}`);
  drawn.append(svg("path", { d: `M${[...path(highs), ...path(lows).reverse()].join("L")}z`, fill: "var(--one)", opacity: 0.22 }));
  drawn.append(svg("path", { d: `M${path(values).join("L")}`, fill: "none", stroke: "var(--one)", "stroke-width": 2.2 }));
  for (const each of seen) {
    // What was trained within a network has no height of its own, only a place on the axis.
    drawn.append(datum(each.tip, each.alone
      ? svg("circle", { cx: x(each.x), cy: y(each.y), r: 4, fill: "var(--paper)", stroke: "var(--ink)" })
      : rect(x(each.x) - 0.75, floor - 8, 1.5, 8, { fill: "var(--ink)" })));
  }
  return drawn;
}

export const CHARTS = { bars, shares, histogram, scatter, heatmap, curve };

// Names cut to the room that they have and still different from each other. Of a module path, parts that most of the
// names share are left out first.
export function shortNames(names, pixels, size = 12) {
  const most = Math.max(5, Math.floor(pixels / room("x", size)));
  const common = new Map();
  for (const name of new Set(names)) for (const part of name.split(".")) common.set(part, (common.get(part) ?? 0) + 1);
  const shown = [...names];
  names.forEach((name, i) => {
    if (name.length <= most) return;
    shown[i] = shortened(name, most, common, new Set(shown.filter((_, k) => names[k] !== name)));
  });
  return shown;
}

function shortened(name, most, common, taken) {
  let parts = name.split(".");
  const droppable = parts.slice(0, -1).map((_, k) => k).filter((k) => !/^\d+$/.test(parts[k]));
  for (const place of droppable.sort((a, b) => common.get(parts[b]) - common.get(parts[a]) || a - b)) {
    if (joined(parts).length <= most) break;
    const shorter = parts.map((part, k) => (k === place ? "" : part));
    if (!taken.has(joined(shorter))) parts = shorter;
  }
  const cut = joined(parts);
  if (cut.length <= most) return cut;
  const end = Math.floor(most / 2);
  const cuts = [`${cut.slice(0, most - 1 - end)}…${cut.slice(-end)}`, `…${cut.slice(1 - most)}`, `${cut.slice(0, most - 1)}…`];
  return cuts.find((each) => !taken.has(each)) ?? name;
}

// A path whose empty parts were left out: `…layers.0…linear1`.
const joined = (parts) => parts.map((part) => part || "…").join(".").replace(/\.?…[.…]*/g, "…");
