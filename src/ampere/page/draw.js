// Drawing: elements, scales, axes, and figures with their table and exports, tips. Colours are roles of the style sheet.

const NS = "http://www.w3.org/2000/svg";

function make(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const el = (name, attributes = {}, ...children) => make(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) => make(document.createElementNS(NS, name), attributes, children);

// Viridis without its darkest end: colour-blind readers see its order, and it is seen on light and dark ground.
const RAMP = ["#46327e", "#3f4788", "#365c8d", "#2e6e8e", "#277f8e", "#21918c", "#1fa187", "#2db27d", "#4ac16d", "#73d056", "#a0da39", "#d0e11c", "#fde725"];

export function ramp(share) {
  const place = Math.max(0, Math.min(1, share)) * (RAMP.length - 1);
  const low = Math.min(RAMP.length - 2, Math.floor(place));
  const mix = place - low;
  const part = (colour, at) => parseInt(colour.slice(at, at + 2), 16);
  const each = [1, 3, 5].map((at) => Math.round(part(RAMP[low], at) * (1 - mix) + part(RAMP[low + 1], at) * mix));
  return `rgb(${each.join(",")})`;
}

export const onRamp = (share) => (share > 0.45 ? "#1b2027" : "#ffffff");

export function linear([low, high], [from, to]) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

export function logarithmic([low, high], range) {
  const inner = linear([Math.log10(low), Math.log10(high)], range);
  return (value) => inner(Math.log10(value));
}

export function ticks(low, high, count = 5) {
  if (!(high - low > 1e-9 * Math.abs(high))) return [low]; // no number lies between them
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(value);
  return found;
}

// 1, 2 and 5 of every decade, or only some of them where these would be too many.
export function decades(low, high, most = 7) {
  const found = [];
  const tens = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const each of [1, 2, 5]) {
      const value = each * 10 ** power;
      if (value < low * 0.999 || value > high * 1.001) continue;
      found.push(value);
      if (each === 1) tens.push(value);
    }
  }
  if (found.length <= most) return found;
  const few = tens.length > 1 ? tens : found;
  const step = Math.max(1, Math.ceil(few.length / most));
  return few.filter((_, i) => i % step === 0);
}

export function text(x, y, words, attributes = {}) {
  return svg("text", { x, y, "font-size": 12, fill: "var(--muted)", ...attributes }, words);
}

export function line(x1, y1, x2, y2, attributes = {}) {
  return svg("line", { x1, y1, x2, y2, stroke: "var(--faint)", ...attributes });
}

export function rect(x, y, width, height, attributes = {}) {
  return svg("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...attributes });
}

// About how many pixels wide words are, on the safe side for the fonts that pages and papers use.
export const room = (words, size = 12) => 0.58 * size * words.length;

// As many letters of some words as fit.
export function fitting(words, pixels, size = 12) {
  const most = Math.max(3, Math.floor(pixels / room("x", size)));
  return words.length <= most ? words : `${words.slice(0, most - 1)}…`;
}

// A shape that says its figure when it is pointed at or touched.
export function tipped(shape, words) {
  shape.setAttribute("data-tip", words);
  return shape;
}

// Shows tips at once, also on touch screens, which a browser's own tips do not.
export function tips() {
  const tip = el("div", { id: "tip", hidden: true });
  document.body.append(tip);
  document.addEventListener("pointerover", (event) => {
    const shape = event.target.closest?.("[data-tip]");
    tip.hidden = !shape;
    if (!shape) return;
    tip.textContent = shape.getAttribute("data-tip");
    const box = shape.getBoundingClientRect();
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
  });
  addEventListener("scroll", () => (tip.hidden = true), { passive: true });
}

// Many rectangles as one path for each look: a thousand layers are then few shapes, drawn anew in every frame.
export class Boxes {
  constructor() {
    this.paths = new Map();
  }

  add(look, x, y, width, height) {
    const key = JSON.stringify(look);
    if (!this.paths.has(key)) this.paths.set(key, { look, parts: [] });
    this.paths.get(key).parts.push(`M${x.toFixed(2)} ${y.toFixed(2)}h${width.toFixed(2)}v${height.toFixed(2)}h${(-width).toFixed(2)}z`);
  }

  shapes() {
    return [...this.paths.values()].map(({ look, parts }) => svg("path", { d: parts.join(""), ...look }));
  }
}

// Horizontal axis at y, vertical axis at x: ticks with words, and faint lines across.
export function axisX(values, place, y, top, words) {
  return svg("g", {}, values.flatMap((value) => [
    line(place(value), y, place(value), top),
    text(place(value), y + 16, words(value), { "text-anchor": "middle" }),
  ]));
}

export function axisY(values, place, x, right, words) {
  return svg("g", {}, values.flatMap((value) => [
    line(x, place(value), right, place(value)),
    text(x - 6, place(value) + 4, words(value), { "text-anchor": "end" }),
  ]));
}

export function picture(width, height, title, words) {
  return svg("svg", {
    class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${title}. ${words}`,
  });
}

// A table of records, and its exports.

export function table(columns, rows, caption = "", more = 0) {
  const head = el("tr", {}, columns.map(({ name, number }) => el("th", { scope: "col", class: number ? "n" : null }, name)));
  const body = rows.map((row) => el("tr", {}, columns.map(({ key, number, words }) =>
    el("td", { class: number ? "n" : null }, String(words ? words(row[key], row) : row[key] ?? "")))));
  const grid = el("table", {}, caption ? el("caption", {}, caption) : null, el("thead", {}, head), el("tbody", {}, body));
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption || "figures" }, grid,
    more ? el("p", {}, `and ${more.toLocaleString("en")} more rows`) : null);
}

function quoted(value) {
  const words = value === null || value === undefined ? "" : String(value);
  return /[",\n\r]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}

export function csv(columns, rows) {
  const lines = [columns.map(({ key }) => quoted(key)), ...rows.map((row) => columns.map(({ key }) => quoted(row[key])))];
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

export function save(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const saveText = (name, kind, words) => save(name, new Blob([words], { type: kind }));

// A picture that stands alone: colours of the page as it is now, and a ground.
export function standalone(drawn) {
  const copy = drawn.cloneNode(true);
  for (const each of copy.querySelectorAll("[data-tip]")) {
    each.append(svg("title", {}, each.getAttribute("data-tip")));
    each.removeAttribute("data-tip");
  }
  const style = getComputedStyle(document.documentElement);
  for (const each of copy.querySelectorAll("*")) {
    for (const name of ["fill", "stroke"]) {
      const role = /^var\((--[\w-]+)\)$/.exec(each.getAttribute(name) ?? "");
      if (role) each.setAttribute(name, style.getPropertyValue(role[1]).trim());
    }
  }
  const [, , width, height] = copy.getAttribute("viewBox").split(" ");
  copy.prepend(rect(0, 0, Number(width), Number(height), { fill: style.getPropertyValue("--paper").trim() }));
  copy.setAttribute("xmlns", NS);
  copy.setAttribute("font-family", "Helvetica, Arial, 'Liberation Sans', sans-serif");
  return new XMLSerializer().serializeToString(copy);
}

async function png(drawn) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([standalone(drawn)], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = el("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

const button = (words, act) => el("button", { type: "button", onclick: act }, words);

// Save a table, of which `found` gives the columns and rows.
export function tableButtons(key, found) {
  return [
    button("CSV", () => saveText(`${key}.csv`, "text/csv", csv(found().columns, found().rows))),
    button("JSON", () => saveText(`${key}.json`, "application/json", JSON.stringify(found().rows, null, 1))),
  ];
}

// A figure: a picture that can be drawn again, its table folded away, and both as files.
export class Figure {
  constructor(key, title) {
    this.key = key;
    this.title = title;
    this.tableTitle = title; // one of its own for every table of a page
    this.drawn = null;
    this.columns = [];
    this.rows = [];
    this.heading = el("h3", {}, title);
    this.place = el("div", { class: "drawn" });
    this.caption = el("figcaption");
    this.details = el("details", {}, el("summary", {}, "The figures"));
    this.details.addEventListener("toggle", () => this.fill());
    this.element = el("figure", { id: key },
      this.heading,
      this.place, this.caption,
      el("div", { class: "exports", role: "group", "aria-label": `Save ${title} as` },
        button("SVG", () => this.drawn && saveText(`${key}.svg`, "image/svg+xml", standalone(this.drawn))),
        button("PNG", async () => this.drawn && save(`${key}.png`, await png(this.drawn))),
        tableButtons(key, () => this)),
      this.details);
  }

  get width() {
    return Math.max(300, Math.min(1100, this.place.clientWidth || 860));
  }

  // `more` says how many rows there are beyond these.
  show(drawn, caption, columns, rows, more = 0) {
    this.drawn = drawn;
    this.columns = columns;
    this.rows = rows;
    this.more = more;
    this.place.replaceChildren(drawn);
    if (this.caption.textContent !== caption) this.caption.textContent = caption;
    this.fill();
  }

  // A table of many rows is only made while it is looked at.
  fill() {
    for (const old of this.details.querySelectorAll(".table")) old.remove();
    if (this.details.open) this.details.append(table(this.columns, this.rows, this.tableTitle, this.more));
  }
}
