// Models on devices: a heat map, and bars with intervals and the probability of the order.

import { post } from "./api.js";
import { checks, profileTitle } from "./controls.js";
import { Figure, el, fitting, line, linear, onRamp, picture, ramp, rect, text, tipped } from "./draw.js";
import { joules, probability } from "./format.js";
import { question } from "./state.js";

const MOST = 12;
const CHANGED = "(as changed now)";
const SERIES = ["--one", "--two", "--three", "--four", "--five", "--six"];

export function compare(app, place) {
  const { state } = app;
  const networks = state.networks.length ? state.networks : app.networks.slice(0, 3).map(({ id }) => id);
  const profiles = state.profiles.length ? state.profiles : app.profiles.slice(0, 4).map(({ id }) => id);
  const changed = Object.keys(state.widths).length || Object.keys(state.repeats).length || state.batch;
  const models = app.networks.map(({ id, title, origin }) => ({ id, title: origin === "family" ? `${id}: ${title}` : title }));
  if (changed) models.unshift({ id: CHANGED, title: `${state.network} ${CHANGED}` });
  const heat = new Figure("heat", "Joules of each model on each device");
  const bars = new Figure("bars", "Cheapest first, with 90 % intervals");
  const sentences = el("div");
  const controls = el("form", { class: "controls", "aria-label": "What to compare", onsubmit: (event) => event.preventDefault() },
    checks("Models", models, networks, (chosen) => choose({ networks: chosen })),
    checks("Profiles", app.profiles.map((each) => ({ id: each.id, title: profileTitle(each) })), profiles, (chosen) => choose({ profiles: chosen })));
  place.append(el("h2", {}, "Which is cheaper?"), el("div", { class: "explorer" }, controls,
    el("section", { "aria-label": "Comparison" }, sentences, heat.element, bars.element)));

  let found = null;
  let closed = false;

  function choose(changed) {
    if (Object.values(changed)[0].length) app.change(changed);
    else app.say("choose at least one model and one profile");
  }

  async function ask() {
    const some = app.state.networks.length ? app.state.networks : networks;
    const on = app.state.profiles.length ? app.state.profiles : profiles;
    const known = some.filter((id) => models.some((model) => model.id === id)).slice(0, MOST);
    const asked = known.map((id) => (id === CHANGED ? asChanged() : id));
    try {
      const answer = await post("compare", { networks: asked, profiles: on.slice(0, MOST) });
      if (closed) return;
      found = answer.devices ? many(answer) : one(answer, known[0]);
      draw();
    } catch (error) {
      app.problem(error);
    }
  }

  function asChanged() {
    const { profile, allocator, ...changes } = question(app.state);
    return { ...changes, label: `${app.state.network} ${CHANGED}` };
  }

  function draw() {
    if (!found) return;
    sentences.replaceChildren(...found.sentences.map((words) => el("p", {}, words)));
    const columns = [
      { key: "device", name: "device" }, { key: "model", name: "model" },
      { key: "joules", name: `energy per ${found.per}`, number: true, words: joules },
      { key: "low", name: "90 % from", number: true, words: joules }, { key: "high", name: "to", number: true, words: joules },
      { key: "probability", name: "costs more than the cheapest", number: true, words: (value) => (value === null ? "" : probability(value)) },
    ];
    heat.show(heatMap(heat.width, found), `Joules per ${found.per}; lighter costs more, on a logarithmic scale.`, columns, found.rows);
    bars.show(barChart(bars.width, found), `Joules per ${found.per} with 90 % intervals, on a scale from zero for each device. The percentage is the probability that it costs more than the cheapest on that device.`, columns, found.rows);
  }

  ask();
  return { update: ask, draw, close: () => (closed = true) };
}

function row(device, entry, cheapest) {
  const scale = entry.joules / entry.estimate.joules_per_iteration;
  const [low, high] = entry.estimate.joules_interval90;
  return {
    device, model: entry.name, joules: entry.joules, low: low * scale, high: high * scale,
    probability: cheapest ? null : entry.probability,
  };
}

function many(answer) {
  const rows = answer.devices.flatMap((device) => device.ranking.map((entry, i) => row(device.name, entry, i === 0)));
  const sentences = answer.devices.map((device) => `${device.name}: ${device.sentence}.`);
  return { per: answer.per, models: answer.models, devices: answer.devices.map(({ name }) => name), rows, sentences };
}

function one(answer, model) {
  const rows = answer.ranking.map((entry, i) => ({ ...row(entry.name, entry, i === 0), model }));
  const sentences = answer.ranking.length > 1 ? [`${answer.sentence}.`] : [];
  return { per: "iteration", models: [model], devices: answer.ranking.map(({ name }) => name), rows, sentences };
}

function heatMap(width, { models, devices, rows, per }) {
  const left = Math.min(220, 0.35 * width);
  const [top, tall] = [26, 40];
  const cell = (width - left - 8) / models.length;
  const values = rows.map((each) => each.joules);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const share = (value) => (high > low ? Math.log(value / low) / Math.log(high / low) : 0.5);
  const drawn = picture(width, top + tall * devices.length + 8, "Joules of each model on each device", `${models.length} models on ${devices.length} devices, per ${per}`);
  models.forEach((model, i) => drawn.append(text(left + (i + 0.5) * cell, 16, fitting(model, cell), { "text-anchor": "middle" })));
  devices.forEach((device, j) => {
    const y = top + j * tall;
    drawn.append(tipped(text(0, y + tall / 2 + 4, fitting(device, left), { fill: "var(--ink)" }), device));
    models.forEach((model, i) => {
      const found = rows.find((each) => each.device === device && each.model === model);
      if (!found) return;
      const at = share(found.joules);
      const box = rect(left + i * cell + 1, y + 1, cell - 2, tall - 2, { fill: ramp(at), rx: 3 });
      drawn.append(tipped(box, `${model} on ${device}: ${joules(found.joules)}`));
      if (cell > 52) drawn.append(text(left + (i + 0.5) * cell, y + tall / 2 + 4, joules(found.joules), { "text-anchor": "middle", fill: onRamp(at) }));
    });
  });
  return drawn;
}

// Each device has a scale of its own, from zero: a phone and a server would not both be seen on one.
function barChart(width, { models, devices, rows }) {
  const left = Math.min(180, 0.26 * width);
  const right = Math.min(170, 0.45 * width);
  const [tall, head] = [24, 34];
  const height = rows.length * tall + devices.length * head;
  const drawn = picture(width, height, "Bars with intervals", `${rows.length} estimates, on ${devices.length} devices`);
  let y = 0;
  for (const device of devices) {
    const own = rows.filter((found) => found.device === device);
    const place = linear([0, Math.max(...own.map((each) => each.high))], [left, width - right]);
    drawn.append(text(0, y + 22, fitting(device, width), { fill: "var(--ink)", "font-weight": 600 }));
    y += head;
    for (const each of own) {
      const colour = `var(${SERIES[models.indexOf(each.model) % SERIES.length]})`;
      const middle = y + tall / 2;
      drawn.append(text(left - 8, middle + 4, fitting(each.model, left - 8), { "text-anchor": "end" }));
      const bar = rect(left, y + 3, place(each.joules) - left, tall - 6, { fill: colour, rx: 2 });
      drawn.append(tipped(bar, `${each.model} on ${device}: ${joules(each.joules)} (90 %: ${joules(each.low)} to ${joules(each.high)})`));
      drawn.append(line(place(each.low), middle, place(each.high), middle, { stroke: "var(--ink)", "stroke-width": 1.5 }));
      const more = each.probability === null ? "" : `, ${probability(each.probability)}`;
      drawn.append(text(place(each.high) + 6, middle + 4, `${joules(each.joules)}${more}`));
      y += tall;
    }
    drawn.append(line(left, y - own.length * tall, left, y, { stroke: "var(--muted)" }));
  }
  return drawn;
}
