// A report: the same figures as the explorer's, from data that is frozen into the page. It asks nobody for anything.

import { CHARTS } from "./charts.js";
import { Figure, el, table, tableButtons, tips } from "./draw.js";
import { glued } from "./format.js";

const words = (sentences) => sentences.map((sentence) => el("p", {}, glued(sentence)));
const facts = (pairs) => (pairs.length ? el("dl", { class: "facts" }, pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, glued(value))])) : null);
const figures = []; // all that are drawn, to draw them again at another width

// Columns whose name begins with `>` hold numbers.
function columnsOf(names) {
  return names.map((name) => ({ key: name.replace(">", ""), name: name.replace(">", ""), number: name.startsWith(">"), words: glued }));
}

function recordsOf({ columns, rows }) {
  return rows.map((row) => Object.fromEntries(row.map((cell, i) => [columns[i].replace(">", ""), cell])));
}

class Chart {
  constructor(chart, about) {
    this.chart = chart;
    this.about = about; // which section it is in
    this.order = "";
    this.figure = new Figure(chart.key, chart.title);
    this.figure.tableTitle = `${chart.title}: ${about}`;
    this.element = this.figure.element;
    this.element.className = chart.full ? "full" : "half";
    for (const [order, name] of chart.orders) this.figure.heading.append(" ", this.orderButton(order, name));
    this.element.append(...chart.inside.map((inner) => this.folded(inner)));
    figures.push(this);
  }

  draw() {
    const { chart, figure } = this;
    if (!figure.place.clientWidth) return; // folded away, or of the other basis
    figure.show(CHARTS[chart.plot.kind](figure.width, chart.plot, chart.title), glued(chart.caption), columnsOf(chart.table.columns), recordsOf(chart.table), chart.table.more);
    figure.drawn.order?.(this.order);
  }

  orderButton(order, name) {
    const button = el("button", { type: "button", "aria-pressed": "false", onclick: () => {
      this.order = this.order === order ? "" : order;
      button.setAttribute("aria-pressed", String(this.order === order));
      this.figure.drawn?.order(this.order);
    } }, name);
    return button;
  }

  // What a part is made of: drawn when it is opened.
  folded(inner) {
    const part = new Chart(inner, this.about);
    const place = el("details", { class: "inside" }, el("summary", {}, inner.title), part.element);
    place.addEventListener("toggle", () => part.draw());
    return place;
  }
}

const charts = (found, about) => (found.length ? el("div", { class: "charts" }, found.map((chart) => new Chart(chart, about).element)) : null);

// The same figures per iteration or per sample.
function bases(found, about) {
  if (!found.length) return [];
  const parts = found.map((basis, i) => el("div", { hidden: i > 0 }, words(basis.words), charts(basis.charts, about)));
  const buttons = found.map(({ key }, i) => el("button", { type: "button", "aria-pressed": String(i === 0), onclick: () => {
    parts.forEach((part, k) => (part.hidden = k !== i));
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(k === i)));
    draw();
  } }, `per ${key}`));
  return [el("div", { class: "switch", role: "group", "aria-label": "Energy per" }, buttons), ...parts];
}

function section({ key, title, figures: large, bases: both, words: sentences, charts: drawn, table: rows, facts: pairs }) {
  return el("section", { id: key },
    el("h2", {}, glued(title)),
    large.length ? el("div", { class: "figures" }, large.map(([number, about]) => el("div", {}, el("b", {}, glued(number)), el("span", {}, glued(about))))) : null,
    bases(both, title), words(sentences), charts(drawn, title),
    rows ? tabled(key, title, columnsOf(rows.columns), recordsOf(rows), rows.more) : null,
    facts(pairs));
}

function tabled(key, title, columns, rows, more) {
  return el("div", {}, table(columns, rows, title, more),
    el("div", { class: "exports", role: "group", "aria-label": `Save ${title} as` }, tableButtons(key, () => ({ columns, rows }))));
}

function draw() {
  for (const figure of figures) figure.draw();
}

function show(report) {
  const origin = el("span", { class: `origin ${report.origin.split(" ").pop()}` }, `${report.origin} joules`);
  const place = document.getElementById("figures");
  place.replaceChildren(
    el("header", {}, el("h1", {}, glued(report.title)), el("p", { class: "lead" }, glued(report.lead), " ", origin), facts(report.facts),
      el("details", {}, el("summary", {}, "More about the device"), facts(report.more_facts))),
    ...report.sections.map(section),
    el("footer", {}, `Made by Ampere. All joules in this report are ${report.origin}; this file loads nothing from a network.`));
  draw();
  tips();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) draw();
    width = innerWidth;
  });
}

show(JSON.parse(document.getElementById("report").textContent));
