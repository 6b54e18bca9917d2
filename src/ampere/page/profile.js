// A profile: what was measured when, how noisy it was, what it covers, and what more profiling could bring.

import { post } from "./api.js";
import { bars, heatmap, scatter } from "./charts.js";
import { origin, profileChoice, profileTitle, select } from "./controls.js";
import { Figure, axisX, axisY, el, linear, picture, svg, text, ticks, tipped } from "./draw.js";
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
    more: new Figure("more", "What one more minute of profiling would bring"),
  };
  const kinds = el("div");
  const controls = el("form", { class: "controls", onsubmit: (event) => event.preventDefault() });
  place.append(el("h2", {}, "What is known of the device"), el("div", { class: "explorer" }, controls,
    el("section", { "aria-label": "Profile" }, under, facts, Object.values(figures).map(({ element }) => element))));
  let found = null;
  let closed = false;
  let of = "";
  let kind = null;
  for (const { element } of Object.values(figures)) element.hidden = true; // until there is something to see

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
    drawMore();
  }

  function drawDrift() {
    const rows = found.observations.map((each, i) => ({ number: i + 1, ...each, flags: each.flags.join(" ") })).filter((each) => each.yardstick_seconds);
    const figure = figures.drift;
    figure.element.hidden = rows.length < 2;
    if (rows.length < 2) return;
    const typical = [...rows].sort((a, b) => a.yardstick_seconds - b.yardstick_seconds)[Math.floor(rows.length / 2)].yardstick_seconds;
    const values = rows.map((each) => each.yardstick_seconds / typical);
    const drawn = points(figure.width, rows.map((each, i) => [each.number, values[i]]), { x: "measurement", y: "reference step, relative", words: (value) => value.toFixed(2), flagged: rows.map((each) => Boolean(each.flags)) });
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
    const drawn = points(figure.width, rows.map((each) => [each.number + 1, each.spread]), { x: "measurement", y: "relative spread", words: percent, least: 0 });
    figure.show(drawn, "How far repeats of one measurement lie apart, relative to its value.", [
      { key: "network", name: "network" }, { key: "layers", name: "layers", number: true }, { key: "spread", name: "spread", number: true, words: percent },
    ], rows);
  }

  function drawError() {
    const rows = found.measured.filter((each) => each.joules > 0 && each.estimated_joules > 0);
    const figure = figures.error;
    figure.element.hidden = rows.length < 2;
    if (rows.length < 2) return;
    const spots = rows.map((each) => ({
      measured: each.joules, estimated: each.estimated_joules,
      tip: `${each.network || "a network"}: ${joules(each.joules)} measured, ${joules(each.estimated_joules)} learnt`,
    }));
    const drawn = scatter(figure.width, { series: [{ label: `measured networks (${rows.length})`, spots, colour: "one" }] }, "Measured against learnt");
    const errors = rows.map((each) => Math.abs(each.estimated_joules / each.joules - 1)).sort((a, b) => a - b);
    figure.show(drawn, `Each network that was measured, and what the fitted model says of it; joules that a slow meter did not read follow from the time and from its other readings. The typical difference is ${percent(errors[Math.floor(errors.length / 2)])}. These networks were learnt from: other networks may be off by more, which intervals say.`, [
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
    const seen = surface.points.map(([x, y, alone]) => ({ x, y, alone, tip: `${whole(x)} → ${whole(y)} channels: trained ${alone ? "alone" : "within a network"}` }));
    const plot = { xs: surface.channels_in, ys: surface.channels_out, values: surface.joules, seen };
    figure.show(heatmap(figure.width, plot, `Learnt cost of ${surface.words}`), `${surface.words}, batch ${surface.batch}: colour is the learnt cost of the layer in a training step. White points were trained alone, black ones as a part of a network.`, [
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
      { name: "rest of the step", share: uncertainty.step }, ...uncertainty.layers.slice(0, 12).map(({ name, share }) => ({ name: /^\d+$/.test(name) ? `layer ${name}` : name, share })),
    ].sort((a, b) => b.share - a.share);
    const drawn = bars(figure.width, { bars: rows.map(({ name, share }) => ({
      name, value: Math.max(0, share), label: percent(share), tip: `${name}: ${percent(share)} of the variance`, colour: "four",
    })) }, "Shares of the variance");
    const left_over = Math.sqrt(Math.max(0, uncertainty.measuring));
    figure.show(drawn, `Shares of the variance of the estimate of ${uncertainty.network || app.state.network}. However long the device is profiled, ${percent(left_over)} of the interval stays: the noise of the measurement that checks it. A part that balances others may be below zero.`, [
      { key: "name", name: "part" }, { key: "share", name: "share of the variance", number: true, words: percent },
    ], rows);
  }

  function drawMore() {
    const figure = figures.more;
    const rows = found.uncertainty?.more_profiling ?? [];
    figure.element.hidden = rows.length < 2 || !rows[rows.length - 1].measurements;
    if (figure.element.hidden) return;
    const least = found.uncertainty.least_interval90;
    const [now, after] = [rows[0].interval90, rows[rows.length - 1].interval90];
    const words = ({ seconds: more, measurements }) => (more ? `${more} s more, ${measurements} measurements` : "now");
    const drawn = bars(figure.width, {
      bars: rows.map((each) => ({ name: words(each), value: each.interval90, label: `± ${percent(each.interval90)}`, tip: `${words(each)}: ± ${percent(each.interval90)}`, colour: each.seconds ? "three" : "rest" })),
      reference: { value: least, label: `least: ± ${percent(least)}` },
    }, "Half of the 90 % interval, relative to the estimate");
    const what = found.uncertainty.network || app.state.network;
    figure.show(drawn, `The 90 % interval of ${what} is ± ${percent(now)} now, and ± ${percent(after)} expected after one more minute that measures ${what} and others with random widths, as fast as so far. Computed from where these measurements would be made, with the noise and the calibration that were learnt so far; a longer profile learns both anew, which can change the interval by more than this. No profiling is below the upright line.`, [
      { key: "seconds", name: "more seconds", number: true }, { key: "measurements", name: "measurements", number: true },
      { key: "interval90", name: "90 % interval, ±", number: true, words: percent },
    ], rows);
  }

  ask();
  return { update: ask, draw, close: () => (closed = true) };
}

function points(width, places, { x: wordsX, y: wordsY, words, flagged = [], least = null }) {
  const [left, right, top, floor] = [64, 12, 18, HEIGHT - 40];
  const xs = places.map((each) => each[0]);
  const ys = places.map((each) => each[1]);
  const [low, high] = [least ?? Math.min(...ys), Math.max(...ys)];
  const x = linear([Math.min(...xs), Math.max(...xs)], [left + 6, width - right]);
  const y = linear([low, high + (high - low) * 0.05 || low + 1], [floor, top]);
  const drawn = picture(width, HEIGHT, `${wordsY} over ${wordsX}`, `${places.length} points from ${words(Math.min(...ys))} to ${words(high)}`);
  drawn.append(axisX(ticks(Math.min(...xs), Math.max(...xs), 6), x, floor, top, whole), axisY(ticks(low, high, 4), y, left, width - right, words));
  places.forEach(([at, value], i) => {
    const colour = flagged[i] ? "var(--two)" : "var(--one)";
    drawn.append(tipped(svg("circle", { cx: x(at), cy: y(value), r: 3, fill: colour, opacity: 0.75 }), `${wordsX} ${at}: ${words(value)}`));
  });
  drawn.append(text(width - right, floor + 34, wordsX, { "text-anchor": "end" }), text(left, 12, wordsY));
  return drawn;
}
