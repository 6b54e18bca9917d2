// A million candidates of a network as a density, with the front of those that no other one beats.

import { search } from "./api.js";
import { profileChoice, select } from "./controls.js";
import { Figure, axisX, axisY, decades, el, linear, logarithmic, picture, ramp, svg, text, ticks, tipped } from "./draw.js";
import { joules, whole } from "./format.js";
import { question } from "./state.js";

const CANDIDATES = 1_000_000;
const HEIGHT = 460;

export function pareto(app, place) {
  const figure = new Figure("pareto", "Joules against capacity");
  const progress = el("progress", { max: 1, value: 0, "aria-label": "Search" });
  const under = el("p", { class: "under" });
  const choice = el("div");
  const controls = el("form", { class: "controls", onsubmit: (event) => event.preventDefault() });
  place.append(el("h2", {}, "How much width do the joules buy?"), el("div", { class: "explorer" }, controls,
    el("section", { "aria-label": "Candidates" }, under, progress, figure.element)));
  let found = null;
  let closed = false;
  let turn = 0;
  let of = "";

  function build() {
    const models = app.networks.filter(({ may_change: may }) => may.widths.length).map(({ id }) => ({ id, title: id }));
    controls.replaceChildren(el("fieldset", {}, el("legend", {}, "Space"),
      select("All widths of", models, app.state.network, (id) => app.change({ network: id, widths: {}, repeats: {}, batch: undefined })),
      profileChoice(app, (id) => app.change({ profile: id }))), choice);
  }

  async function ask() {
    const asked = { ...question(app.state), candidates: CANDIDATES };
    delete asked.widths;
    const key = JSON.stringify(asked);
    if (key === of) return;
    of = key;
    turn += 1;
    const own = turn;
    build();
    progress.hidden = false;
    under.textContent = "Estimating …";
    try {
      const answer = await search(asked, ({ share }) => own === turn && (progress.value = share));
      if (closed || own !== turn) return;
      found = answer;
      draw();
    } catch (error) {
      under.textContent = error.message;
      app.problem(error);
    } finally {
      if (own === turn) progress.hidden = true;
    }
  }

  function open(candidate) {
    app.change({ view: "explorer", widths: candidate.widths });
    app.show();
  }

  function draw() {
    if (!found) return;
    const { front, original } = found;
    under.textContent = `${whole(found.candidates)} networks, of which ${whole(front.length)} are on the front: no other one is wider and cheaper.`;
    const words = ({ widths }) => Object.values(widths).join(", ");
    const rows = front.map((each) => ({ joules: each.joules, capacity: each.capacity, widths: words(each) }));
    figure.show(density(figure.width, found, open), "Lighter areas hold more networks. The line is the front; choose a point to open it in the explorer. The cross is the network as traced. Capacity is the sum of log₂(1 + width) over the layers.", [
      { key: "joules", name: "energy per iteration", number: true, words: joules },
      { key: "capacity", name: "capacity", number: true, words: (value) => value.toFixed(2) },
      { key: "widths", name: "widths" },
    ], rows);
    const step = Math.max(1, Math.floor(front.length / 40));
    const some = front.filter((_, i) => i % step === 0);
    const options = [{ id: "", title: "choose …" }, ...some.map((each, i) => ({ id: String(i), title: `${joules(each.joules)}: ${words(each)}` }))];
    choice.replaceChildren(select("Open a network of the front", options, "", (id) => id !== "" && open(some[Number(id)])));
    const saved = original.joules;
    const same = front.find((each) => each.capacity >= original.capacity - 1e-9);
    if (same && same.joules < saved) choice.append(el("p", { class: "under" }, `As wide as traced from ${joules(same.joules)}.`));
  }

  ask();
  return { update: ask, draw, close: () => (closed = true) };
}

function density(width, { density: grid, front, original }, open) {
  const [left, right, top, floor] = [64, 12, 10, HEIGHT - 40];
  const xs = grid.joules_edges;
  const ys = grid.capacity_edges;
  const placeX = logarithmic([xs[0], xs[xs.length - 1]], [left, width - right]);
  const placeY = linear([ys[0], ys[ys.length - 1]], [floor, top]);
  const most = Math.max(...grid.counts.flat());
  const drawn = picture(width, HEIGHT, "Joules against capacity", `${front.length} networks on the front`);
  drawn.append(axisX(decades(xs[0], xs[xs.length - 1], Math.floor(width / 80)), placeX, floor, top, joules), axisY(ticks(ys[0], ys[ys.length - 1], 6), placeY, left, width - right, (value) => String(Number(value.toPrecision(4)))));
  const paths = new Map(); // one path for each of a few shades, so that thousands of cells stay quick
  grid.counts.forEach((column, i) => column.forEach((count, j) => {
    if (!count) return;
    const shade = Math.round(9 * (Math.log(1 + count) / Math.log(1 + most)));
    const [x, y] = [placeX(xs[i]), placeY(ys[j + 1])];
    const cell = `M${x.toFixed(1)} ${y.toFixed(1)}H${placeX(xs[i + 1]).toFixed(1)}V${placeY(ys[j]).toFixed(1)}H${x.toFixed(1)}z`;
    paths.set(shade, (paths.get(shade) ?? "") + cell);
  }));
  for (const [shade, d] of [...paths].sort((a, b) => a[0] - b[0])) {
    drawn.append(svg("path", { d, fill: ramp(shade / 9), "shape-rendering": "crispEdges" }));
  }
  const points = front.map((each) => `${placeX(each.joules).toFixed(1)} ${placeY(each.capacity).toFixed(1)}`);
  drawn.append(svg("path", { d: `M${points.join("L")}`, fill: "none", stroke: "var(--ink)", "stroke-width": 2 }));
  const step = Math.max(1, Math.floor(front.length / 120));
  front.filter((_, i) => i % step === 0).forEach((each) => {
    const dot = svg("circle", { class: "front", cx: placeX(each.joules), cy: placeY(each.capacity), r: 4.5, fill: "var(--two)", stroke: "var(--paper)", onclick: () => open(each) });
    drawn.append(tipped(dot, `${joules(each.joules)}: ${Object.entries(each.widths).map(([name, value]) => `${name} ${value}`).join(", ")}`));
  });
  const [x, y] = [placeX(original.joules), placeY(original.capacity)];
  drawn.append(tipped(svg("path", { d: `M${x - 6} ${y}h12M${x} ${y - 6}v12`, stroke: "var(--ink)", "stroke-width": 2, fill: "none" }), `as traced: ${joules(original.joules)}`));
  drawn.append(text(width - right, floor + 34, "joules per iteration", { "text-anchor": "end" }), text(left, top + 2, "capacity", {}));
  return drawn;
}
