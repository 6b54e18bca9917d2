// A profile: what was measured when, how noisy it was, what it covers, and what more profiling could bring.

import { post } from "./api.js";
import { origin, profileChoice, profileTitle, select } from "./controls.js";
import { Figure, axisX, axisY, decades, el, line, linear, logarithmic, picture, ramp, rect, svg, text, ticks, titled } from "./draw.js";
import { joules, percent, seconds, whole } from "./format.js";

const HEIGHT = 300;

export function profile(app, place) {
  const facts = el("dl", { class: "cards" });
  const under = el("p", { class: "under" });
  const figures = {
    drift: new Figure("drift", "The device while it was profiled"),
    noise: new Figure("noise", "Noise of each measurement"),
    error: new Figure("error", "Measured against learnt"),
    surface: new Figure("surface", "What was learnt of a kind of layer"),
    uncertainty: new Figure("uncertainty", "Where the uncertainty of an estimate comes from"),
  };
  const kinds = el("div");
  const controls = el("form", { class: "controls", onsubmit: (event) => event.preventDefault() });
  place.append(el("h2", {}, "What is known of the device"), el("div", { class: "explorer" }, controls,
    el("section", { "aria-label": "Profile" }, under, facts, Object.values(figures).map(({ element }) => element))));
  let found = null;
  let closed = false;
  let of = "";
  let kind = null;

  async function ask() {
    const asked = { profile: app.state.profile, network: app.state.network };
    const key = JSON.stringify(asked);
    if (key === of) return;
    of = key;
    const models = app.networks.map(({ id }) => ({ id, title: id }));
    controls.replaceChildren(el("fieldset", {}, el("legend", {}, "Profile"), profileChoice(app, (id) => app.change({ profile: id })),
      select("Uncertainty of", models, app.state.network, (id) => app.change({ network: id, widths: {}, repeats: {}, batch: undefined }))), kinds);
    under.textContent = "Loading …";
    try {
      const answer = await post("profile", asked);
      if (closed || key !== of) return;
      found = answer;
      kind = found.surfaces[0]?.kind ?? null;
      draw();
    } catch (error) {
      under.textContent = error.message;
      app.problem(error);
    }
  }

  function draw() {
    if (!found) return;
    under.replaceChildren(`${profileTitle(found)} `, origin(found.meter));
    const spreads = found.measured.map(({ spread }) => spread).filter((spread) => spread !== null).sort((a, b) => a - b);
    const flagged = found.observations.filter(({ flags }) => flags.length).length;
    const cards = [
      ["Measurements", whole(found.measurements), `${flagged} with a flag`],
      ["Profiling took", seconds(found.profiling_seconds), found.spaces.join(", ")],
      ["Typical noise", spreads.length ? percent(spreads[Math.floor(spreads.length / 2)]) : "–", "between repeats of one measurement"],
      ["Meter", found.meter.name, found.meter.scope],
    ];
    facts.replaceChildren(...cards.map(([name, large, small]) => el("div", {}, el("dt", {}, name), el("dd", {}, large, el("small", {}, small)))));
    drawDrift();
    drawNoise();
    drawError();
    drawSurface();
    drawUncertainty();
  }

  function drawDrift() {
    const rows = found.observations.map((each, i) => ({ number: i + 1, ...each, flags: each.flags.join(" ") })).filter((each) => each.yardstick_seconds);
    const figure = figures.drift;
    figure.element.hidden = rows.length < 2;
    if (rows.length < 2) return;
    const typical = [...rows].sort((a, b) => a.yardstick_seconds - b.yardstick_seconds)[Math.floor(rows.length / 2)].yardstick_seconds;
    const values = rows.map((each) => each.yardstick_seconds / typical);
    const drawn = scatter(figure.width, rows.map((each, i) => [each.number, values[i]]), { x: "measurement", y: "reference step, relative", words: (value) => value.toFixed(2), flagged: rows.map((each) => Boolean(each.flags)) });
    figure.show(drawn, `Seconds of the reference step around each measurement, relative to the typical ${seconds(typical)}. Where it rises the device was slower; orange points carry a flag.`, [
      { key: "number", name: "number", number: true }, { key: "purpose", name: "what" }, { key: "network", name: "network" },
      { key: "yardstick_seconds", name: "reference step", number: true, words: seconds }, { key: "flags", name: "flags" }, { key: "unix_time", name: "unix time", number: true },
    ], rows);
  }

  function drawNoise() {
    const rows = found.measured.filter(({ spread }) => spread !== null);
    const figure = figures.noise;
    figure.element.hidden = rows.length < 2;
    if (rows.length < 2) return;
    const drawn = scatter(figure.width, rows.map((each) => [each.number + 1, each.spread]), { x: "measurement", y: "relative spread", words: percent, least: 0 });
    figure.show(drawn, "How far repeats of one measurement lie apart, relative to its value.", [
      { key: "network", name: "network" }, { key: "layers", name: "layers", number: true }, { key: "spread", name: "spread", number: true, words: percent },
    ], rows);
  }

  function drawError() {
    const rows = found.measured.filter((each) => each.joules > 0 && each.estimated_joules > 0);
    const figure = figures.error;
    figure.element.hidden = rows.length < 2;
    if (rows.length < 2) return;
    const { width } = figure;
    const [left, right, top, floor] = [70, 12, 10, HEIGHT - 40];
    const both = rows.flatMap((each) => [each.joules, each.estimated_joules]);
    const [low, high] = [Math.min(...both) * 0.9, Math.max(...both) * 1.1];
    const x = logarithmic([low, high], [left, width - right]);
    const y = logarithmic([low, high], [floor, top]);
    const drawn = picture(width, HEIGHT, "Measured against learnt", `${rows.length} networks`);
    const marks = decades(low, high, Math.max(2, Math.floor(width / 90)));
    drawn.append(axisX(marks, x, floor, top, joules), axisY(marks, y, left, width - right, joules));
    drawn.append(line(x(low), y(low), x(high), y(high), { stroke: "var(--muted)", "stroke-dasharray": "4 3" }));
    for (const each of rows) {
      const dot = svg("circle", { cx: x(each.joules), cy: y(each.estimated_joules), r: 3.5, fill: "var(--one)", opacity: 0.7 });
      drawn.append(titled(dot, `${each.network || "a network"}: ${joules(each.joules)} measured, ${joules(each.estimated_joules)} learnt`));
    }
    drawn.append(text(width - right, floor + 34, "measured", { "text-anchor": "end" }), text(left, top + 2, "learnt"));
    const errors = rows.map((each) => Math.abs(each.estimated_joules / each.joules - 1)).sort((a, b) => a - b);
    figure.show(drawn, `Each network that was measured, and what the fitted model says of it; the typical difference is ${percent(errors[Math.floor(errors.length / 2)])}. These networks were learnt from: other networks may be off by more, which intervals say.`, [
      { key: "network", name: "network" }, { key: "batch", name: "batch", number: true },
      { key: "joules", name: "measured", number: true, words: joules }, { key: "estimated_joules", name: "learnt", number: true, words: joules },
    ], rows);
  }

  function drawSurface() {
    const figure = figures.surface;
    const surface = found.surfaces.find((each) => each.kind === kind);
    figure.element.hidden = !surface;
    kinds.hidden = !surface;
    if (!surface) return;
    kinds.replaceChildren(select("Kind of layer", found.surfaces.map((each) => ({ id: each.kind, title: each.words })), kind, (id) => {
      kind = id;
      drawSurface();
    }));
    const rows = surface.points.map(([channels_in, channels_out, alone]) => ({ channels_in, channels_out, how: alone ? "alone" : "within a network" }));
    figure.show(heat(figure.width, surface), `${surface.words}, batch ${surface.batch}: colour is the learnt cost of the layer in a training step. White points were trained alone, black ones as a part of a network.`, [
      { key: "channels_in", name: "channels in", number: true }, { key: "channels_out", name: "channels out", number: true }, { key: "how", name: "trained" },
    ], rows);
  }

  function drawUncertainty() {
    const figure = figures.uncertainty;
    const { uncertainty } = found;
    figure.element.hidden = !uncertainty;
    if (!uncertainty) return;
    const rows = [
      { name: "noise of a measurement", share: uncertainty.measuring }, { name: "the network as a whole", share: uncertainty.whole },
      { name: "rest of the step", share: uncertainty.step }, ...uncertainty.layers.slice(0, 12),
    ].sort((a, b) => b.share - a.share);
    const { width } = figure;
    const [left, tall] = [Math.min(260, 0.55 * width), 22];
    const letters = Math.floor((left - 8) / 7);
    const most = Math.max(...rows.map(({ share }) => share), 1e-9);
    const drawn = picture(width, rows.length * tall + 6, "Shares of the variance", rows.slice(0, 3).map(({ name, share }) => `${name} ${percent(share)}`).join(", "));
    rows.forEach(({ name, share }, i) => {
      drawn.append(text(left - 8, i * tall + 16, name.length > letters ? `…${name.slice(1 - letters)}` : name, { "text-anchor": "end" }));
      drawn.append(rect(left, i * tall + 4, ((width - left - 70) * Math.max(0, share)) / most, tall - 8, { fill: "var(--one)", rx: 2 }));
      drawn.append(text(left + 6 + ((width - left - 70) * Math.max(0, share)) / most, i * tall + 16, percent(share)));
    });
    const left_over = Math.sqrt(Math.max(0, uncertainty.measuring));
    figure.show(drawn, `Shares of the variance of the estimate of ${uncertainty.network || app.state.network}. However long the device is profiled, ${percent(left_over)} of the interval stays: the noise of the measurement that checks it. A part that balances others may be below zero.`, [
      { key: "name", name: "part" }, { key: "share", name: "share of the variance", number: true, words: percent },
    ], rows);
  }

  ask();
  return { update: ask, draw, close: () => (closed = true) };
}

function scatter(width, points, { x: wordsX, y: wordsY, words, flagged = [], least = null }) {
  const [left, right, top, floor] = [64, 12, 18, HEIGHT - 40];
  const xs = points.map((each) => each[0]);
  const ys = points.map((each) => each[1]);
  const [low, high] = [least ?? Math.min(...ys), Math.max(...ys)];
  const x = linear([Math.min(...xs), Math.max(...xs)], [left + 6, width - right]);
  const y = linear([low, high + (high - low) * 0.05 || low + 1], [floor, top]);
  const drawn = picture(width, HEIGHT, `${wordsY} over ${wordsX}`, `${points.length} points from ${words(Math.min(...ys))} to ${words(high)}`);
  drawn.append(axisX(ticks(Math.min(...xs), Math.max(...xs), 6), x, floor, top, whole), axisY(ticks(low, high, 4), y, left, width - right, words));
  points.forEach(([at, value], i) => {
    const colour = flagged[i] ? "var(--two)" : "var(--one)";
    drawn.append(titled(svg("circle", { cx: x(at), cy: y(value), r: 3, fill: colour, opacity: 0.75 }), `${wordsX} ${at}: ${words(value)}`));
  });
  drawn.append(text(width - right, floor + 34, wordsX, { "text-anchor": "end" }), text(left, 12, wordsY));
  return drawn;
}

function heat(width, { channels_in: ins, channels_out: outs, joules: values, points }) {
  const [left, right, top, floor] = [64, 12, 18, HEIGHT];
  const cell = { x: (width - left - right) / ins.length, y: (floor - top) / outs.length };
  const flat = values.flat();
  const [low, high] = [Math.min(...flat), Math.max(...flat)];
  const share = (value) => (high > low && low > 0 ? Math.log(value / low) / Math.log(high / low) : 0.5);
  const drawn = picture(width, HEIGHT + 40, "Learnt cost over channels", `from ${joules(low)} to ${joules(high)}`);
  outs.forEach((out, j) => ins.forEach((into, i) => {
    const box = rect(left + i * cell.x, floor - (j + 1) * cell.y, cell.x + 0.5, cell.y + 0.5, { fill: ramp(share(values[j][i])) });
    drawn.append(titled(box, `${into} to ${out} channels: ${joules(values[j][i])}`));
  }));
  const at = (list, value) => {
    const above = list.findIndex((each) => each >= value);
    return above < 0 ? list.length - 1 : above;
  };
  for (const [into, out, alone] of points) {
    drawn.append(svg("circle", { cx: left + (at(ins, into) + 0.5) * cell.x, cy: floor - (at(outs, out) + 0.5) * cell.y, r: 3, fill: alone ? "#ffffff" : "#000000", stroke: alone ? "#000000" : "#ffffff" }));
  }
  const some = (list) => list.filter((_, i) => i % Math.ceil(list.length / 7) === 0);
  for (const into of some(ins)) drawn.append(text(left + (ins.indexOf(into) + 0.5) * cell.x, floor + 16, whole(into), { "text-anchor": "middle" }));
  for (const out of some(outs)) drawn.append(text(left - 6, floor - (outs.indexOf(out) + 0.5) * cell.y + 4, whole(out), { "text-anchor": "end" }));
  drawn.append(text(width - right, floor + 34, "channels in", { "text-anchor": "end" }), text(left, 12, "channels out"));
  return drawn;
}
