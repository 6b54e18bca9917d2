// Turn a knob, see the joules: a network as a strip of layers, and what changing it costs.

import { file, post, search } from "./api.js";
import { field, origin, profileChoice, select, slider } from "./controls.js";
import { Boxes, Figure, axisY, el, fitting, line, picture, ramp, rect, save, svg, text, ticks, tipped } from "./draw.js";
import { bytes, grams, joules, joulesUnit, kwh, money, percent, seconds, signed, whole } from "./format.js";
import { question, withRun } from "./state.js";

const Z90 = 1.6449;
const MANY = 300; // layers: no words on each, no whiskers, no tips
const MANY_SLIDERS = 50; // of which only those in sight are laid out
const MEMORY_MILLISECONDS = 250; // after the last change
const CANDIDATES = 300_000;

export function explorer(app, place) {
  return new Explorer(app, place);
}

class Explorer {
  constructor(app, place) {
    this.app = app;
    this.answer = null; // of the network as it is changed
    this.original = null; // the ghost: as it was traced
    this.controls = el("form", { class: "controls", "aria-label": "What to change", onsubmit: (event) => event.preventDefault() });
    this.headline = el("p", { class: "headline" }, "…");
    this.under = el("p", { class: "under" });
    this.cards = el("dl", { class: "cards" });
    this.notes = el("div");
    this.strip = new Figure("layers", "Layers: their width, and their joules");
    this.command = el("code");
    const results = el("section", { class: "results", "aria-label": "What it costs" },
      this.headline, this.under, this.cards, this.strip.element, this.notes,
      el("details", {}, el("summary", {}, "The same figures on the command line"),
        el("p", {}, this.command),
        el("div", { class: "buttons" },
          this.button("Copy", () => navigator.clipboard?.writeText(this.command.textContent)),
          this.button("Save the network", () => this.saveNetwork()))));
    place.append(el("h2", {}, "What if?"), el("div", { class: "explorer" }, this.controls, results));
    this.build();
    this.ask();
  }

  button(words, act, disabled = false) {
    return el("button", { type: "button", disabled, onclick: act }, words);
  }

  close() {
    this.closed = true;
    clearTimeout(this.memoryTimer);
  }

  // Controls.

  build() {
    const { app } = this;
    const { state, network } = app;
    const { may_change: may } = network;
    this.built = `${state.network} ${state.profile}`;
    this.sliders = new Map();
    this.set = null; // the state that they show
    const slide = (key, words, value, largest, changed) => {
      const row = slider(words, value, largest, changed);
      this.sliders.set(key, row);
      return row;
    };
    const map = (key, name) => (value, settled) => app.change({ [key]: { ...app.state[key], [name]: value } }, settled);
    const widths = may.widths.map(({ name, kind, value, largest, layers }) =>
      slide(`widths ${name}`, `${called({ name, kind })} · was ${value}${layers.length > 1 ? `, in ${layers.length} layers` : ""}`,
        state.widths[name] ?? value, largest, map("widths", name)));
    const repeats = may.repeats.map(({ name, value, largest }) =>
      slide(`repeats ${name}`, `blocks ${name} · was ${value}`, state.repeats[name] ?? value, largest, map("repeats", name)));
    const batch = slide("batch", `batch · was ${may.batch.value}`, state.batch ?? may.batch.value, may.batch.largest,
      (value, settled) => app.change({ batch: value }, settled));
    const models = app.networks.map(({ id, title, origin: from }) => ({ id, title: from === "family" ? `${id}: ${title}` : title }));
    this.undo = this.button("Undo", () => app.undo(), !app.undone.length);
    this.undo.dataset.undo = "";
    this.controls.replaceChildren(
      el("fieldset", {}, el("legend", {}, "Model and device"),
        select("Model", models, state.network, (id) => app.change({ network: id, widths: {}, repeats: {}, batch: undefined })),
        profileChoice(app, (id) => app.change({ profile: id })),
        select("Training loop", [{ id: "system", title: "plain, the system's allocator" }, { id: "tuned", title: "an allocator that keeps its memory" }],
          state.allocator ?? "system", (id) => app.change({ allocator: id === "system" ? undefined : id })),
        this.upload()),
      el("div", { class: "buttons" }, this.undo,
        this.button("As traced", () => app.change({ widths: {}, repeats: {}, batch: undefined })),
        this.button("Widest at this budget", () => this.better("widest"), !widths.length),
        this.button("Cheapest at this width", () => this.better("cheapest"), !widths.length)),
      el("fieldset", { class: widths.length > MANY_SLIDERS ? "many" : null }, el("legend", {}, "Widths"),
        widths.length ? widths : el("p", {}, "The trace does not say which layers share a width, so none may change.")),
      el("fieldset", {}, el("legend", {}, repeats.length ? "Depth and batch" : "Batch"), repeats, batch),
      el("fieldset", {}, el("legend", {}, "The whole run"),
        field("Iterations", "number", state.iterations, "10000", (given) => app.change({ iterations: given ? Number(given) : undefined })),
        field("Battery", "text", state.battery, "15Wh", (given) => app.change({ battery: given || undefined })),
        field("Grid: a country, or g CO₂e a kWh", "text", state.grid, "DE or 400g/kWh", (given) => app.change({ grid: given || undefined })),
        field("Price of a kWh", "text", state.price, "0.30 EUR", (given) => app.change({ price: given || undefined }))));
  }

  upload() {
    const input = el("input", { type: "file", accept: ".json,application/json" });
    input.addEventListener("change", async () => {
      try {
        const known = await post("networks", JSON.parse(await input.files[0].text()));
        await this.app.load();
        this.app.change({ network: known.id, widths: {}, repeats: {}, batch: undefined });
      } catch (error) {
        this.app.problem(error instanceof SyntaxError ? new Error("that file is no JSON: choose one of `ampere trace --out`") : error);
      }
    });
    return el("label", {}, "Add a network (a file of ampere trace)", input);
  }

  update() {
    const { app } = this;
    if (this.built !== `${app.state.network} ${app.state.profile}`) {
      app.settle();
      const had = document.activeElement;
      const place = [...this.controls.elements].indexOf(had);
      this.build();
      if (place >= 0) this.controls.elements[place]?.focus();
    }
    const { may_change: may } = app.network;
    for (const [what, list] of [["widths", may.widths], ["repeats", may.repeats]]) {
      const [then, now] = [this.set?.[what], app.state[what]];
      for (const { name, value } of list) {
        if (!then || then[name] !== now[name]) this.sliders.get(`${what} ${name}`).set(now[name] ?? value);
      }
    }
    this.set = app.state;
    this.sliders.get("batch").set(app.state.batch ?? may.batch.value);
    this.undo.disabled = !app.undone.length;
    this.ask();
  }

  // Questions: one at a time, always about the newest state.

  async ask() {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    do {
      this.again = false;
      try {
        const { state } = this.app;
        await this.askOriginal(state);
        const answer = await post("what-if", withRun(question(state), state));
        if (this.closed) return;
        this.answer = answer;
        this.draw();
      } catch (error) {
        this.app.problem(error);
      }
    } while (this.again && !this.closed);
    this.asking = false;
    clearTimeout(this.memoryTimer);
    this.memoryTimer = setTimeout(() => this.askMemory(), MEMORY_MILLISECONDS);
  }

  async askOriginal(state) {
    const { network, profile, allocator } = state;
    const key = JSON.stringify([network, profile, allocator]);
    if (this.originalOf === key) return;
    this.original = await post("what-if", allocator ? { network, profile, allocator } : { network, profile });
    this.originalOf = key;
  }

  async askMemory() {
    const asked = question(this.app.state);
    const key = JSON.stringify(asked);
    const { app } = this;
    if (this.closed || this.memoryOf === key) return;
    if (!app.memoryFollowed || app.profile.setup.runtime !== "torch") {
      this.memory = null;
      return;
    }
    this.memoryOf = key;
    try {
      this.memory = await post("memory", asked);
    } catch (error) {
      this.memory = null; // without torch on the server, say
    }
    if (!this.closed && this.memoryOf === key && this.answer) this.drawCards();
  }

  async better(kind) {
    const { app, answer } = this;
    if (!answer) return;
    const asked = { ...question(app.state), candidates: CANDIDATES };
    delete asked.widths;
    if (kind === "widest") asked.budget_joules = answer.joules_per_iteration;
    else asked.least_capacity = answer.shape.capacity;
    try {
      const found = await search(asked, ({ words }) => app.say(`searching: ${words}`));
      const best = found[kind];
      const gain = best && (kind === "widest" ? best.capacity > answer.shape.capacity : best.joules < answer.joules_per_iteration);
      if (!gain) {
        app.say(`of ${whole(found.candidates)} networks none is ${kind === "widest" ? "wider at these joules" : "cheaper at this width"}`);
        return;
      }
      app.change({ widths: best.widths });
      const words = kind === "widest" ? "the widest of" : "the cheapest of";
      app.say(`${words} ${whole(found.candidates)} networks, at ${joules(best.joules)} per iteration`);
    } catch (error) {
      app.problem(error);
    }
  }

  async saveNetwork() {
    const asked = question(this.app.state);
    delete asked.profile;
    delete asked.allocator;
    try {
      save("network.json", await file("network-file", asked));
    } catch (error) {
      this.app.problem(error);
    }
  }

  // Drawing.

  draw() {
    const { answer, original } = this;
    if (!answer || !original) return;
    const [low, high] = answer.joules_interval90;
    const change = answer.joules_per_iteration / original.joules_per_iteration - 1;
    this.headline.textContent = `${joules(answer.joules_per_iteration)} per iteration`;
    const beside = Math.abs(change) < 1e-9 ? "as traced" : `${signed(change)} compared with ${joules(original.joules_per_iteration)} as traced`;
    this.under.replaceChildren(`90 %: ${joules(low)} to ${joules(high)}; ${beside} `, origin(answer.meter));
    this.drawCards();
    this.drawStrip();
    this.drawNotes();
    this.command.textContent = this.commandLine();
  }

  drawCards() {
    const { answer, original, memory } = this;
    const ratio = (now, before) => (Math.abs(now / before - 1) < 1e-9 ? "" : signed(now / before - 1));
    const cards = [
      ["Time per iteration", seconds(answer.seconds_per_iteration), ratio(answer.seconds_per_iteration, original.seconds_per_iteration)],
      ["Capacity", answer.shape.capacity.toFixed(1), "sum of log₂ of the layers' widths"],
    ];
    if (memory) cards.push(["Memory at its peak", bytes(memory.peak_bytes), memory.interval90_bytes.map(bytes).join(" to ")]);
    const { run } = answer;
    if (run) {
      cards.push(["The whole run", joules(run.joules), `${seconds(run.seconds)}; 90 %: ${run.joules_interval90.map(joules).join(" to ")}`]);
      const more = run.carbon.map((each) => `${grams(each.grams)} CO₂e (${each.region})`);
      if (run.cost) more.unshift(money(run.cost));
      cards.push(["Energy", kwh(run.kwh), more.join("; ")]);
      if (run.battery_share !== null) cards.push(["Of the battery", percent(run.battery_share), run.verdict]);
    }
    this.cards.replaceChildren(...cards.map(([name, large, small]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, large, small ? el("small", {}, small) : null))));
  }

  drawStrip() {
    const { answer, original, strip } = this;
    const layers = answer.layers.filter(({ kind }) => kind !== "step");
    const before = ghosts(layers, original);
    const { width } = strip;
    const left = 56;
    const right = 8;
    const [top, tall, low, floor] = [8, 150, 190, 330]; // widths from top, joules down to the floor
    const cell = (width - left - right) / layers.length;
    const gap = Math.min(3, 0.15 * cell);
    const channels = answer.shape.channels;
    const widest = Math.max(...channels.map((each) => each[1]), ...original.shape.channels.map((each) => each[1]));
    const most = Math.max(...layers.map((each) => each.joules + Z90 * each.stddev), ...before.map((each) => each?.joules ?? 0), 1e-12);
    const largest = Math.max(...layers.map((each) => each.joules), 1e-12);
    const height = (value) => Math.max(3, (tall * value) / widest);
    const { factor, unit } = joulesUnit(most);
    const up = (value) => floor - ((floor - low) * value) / most;
    const words = `${layers.length} layers, from ${layers[0]?.name || "the first"} to ${layers[layers.length - 1]?.name || "the last"}`;
    const drawn = picture(width, floor + 28, "Layers of the network", words);
    drawn.append(text(4, top + tall / 2 + 4, "width"), text(4, low - 8, unit));
    drawn.append(axisY(ticks(0, most / factor, 3), (value) => up(value * factor), left - 4, width - right, (value) => String(Number(value.toPrecision(3)))));
    const shapes = svg("g");
    const many = layers.length > MANY;
    const boxes = new Boxes();
    const box = (look, tip, ...place) => (many ? boxes.add(look, ...place) : shapes.append(tipped(rect(...place, look), tip)));
    layers.forEach((layer, i) => {
      const x = left + i * cell;
      const [into, out] = channels[i];
      const tip = many ? "" : `${layer.name || layer.kind} (${layer.kind}, ${into} to ${out}): ${joules(layer.joules)}, ${percent(layer.joules / answer.joules_per_iteration)}`;
      const size = height(out);
      const ghost = before[i];
      const share = layer.joules / largest;
      const fill = ramp(many ? Math.round(24 * share) / 24 : share);
      const rx = many ? null : Math.min(3, cell / 4);
      box({ fill, rx }, tip, x + gap / 2, top + (tall - size) / 2, cell - gap, size);
      box({ fill }, tip, x + gap / 2, up(layer.joules), cell - gap, floor - up(layer.joules));
      if (ghost && ghost.channels !== out) {
        const was = height(ghost.channels);
        box({ fill: "none", stroke: "var(--muted)", "stroke-dasharray": "3 2", rx }, tip, x + gap / 2, top + (tall - was) / 2, cell - gap, was);
      }
      if (ghost && Math.abs(ghost.joules / layer.joules - 1) > 1e-6) box({ fill: "var(--two)" }, tip, x, up(ghost.joules) - 1, cell, 2);
      if (many) return;
      if (cell > 7) {
        const middle = x + cell / 2;
        shapes.append(line(middle, up(layer.joules + Z90 * layer.stddev), middle, up(Math.max(0, layer.joules - Z90 * layer.stddev)), { stroke: "var(--ink)" }));
      }
      if (cell > 44) shapes.append(text(x + cell / 2, floor + 18, fitting(called(layer), cell, 11), { "text-anchor": "middle", "font-size": 11 }));
    });
    shapes.append(...boxes.shapes());
    drawn.append(shapes, line(left, floor, width - right, floor, { stroke: "var(--muted)" }));
    const step = answer.layers.find(({ kind }) => kind === "step");
    const caption = `Above, heights are the layers' widths to scale; below, bars are their joules with 90 % intervals, which colours follow. Dashed and orange: as traced.${step ? ` The rest of the step costs ${joules(step.joules)}.` : ""}`;
    const rows = layers.map((layer, i) => ({
      name: layer.name, kind: layer.kind, channels_in: channels[i][0], channels_out: channels[i][1], joules: layer.joules,
      stddev: layer.stddev, joules_as_traced: before[i]?.joules ?? null,
    }));
    strip.show(drawn, caption, [
      { key: "name", name: "layer" }, { key: "kind", name: "kind" },
      { key: "channels_in", name: "channels in", number: true }, { key: "channels_out", name: "out", number: true },
      { key: "joules", name: "energy", number: true, words: joules }, { key: "stddev", name: "±", number: true, words: joules },
      { key: "joules_as_traced", name: "as traced", number: true, words: (value) => (value === null ? "" : joules(value)) },
    ], rows);
  }

  drawNotes() {
    const { answer, app } = this;
    const some = (names) => `${names.slice(0, 4).join(", ")}${names.length > 4 ? " …" : ""}`;
    const notes = [];
    if (answer.unprofiled.length) notes.push(`Not profiled: ${some(answer.unprofiled)}. No layer of that kind was measured; estimated from its arithmetic alone.`);
    if (answer.extrapolated.length) notes.push(`Extrapolated: ${some(answer.extrapolated)}. Far larger or smaller than any layer that was measured.`);
    notes.push(...app.network.notes);
    this.notes.replaceChildren(...notes.map((words) => el("p", { class: "warning" }, words)));
  }

  commandLine() {
    const { state, network, profile } = this.app;
    const changed = Object.keys(state.widths).length || Object.keys(state.repeats).length || state.batch;
    const model = network.origin === "family" && !changed ? state.network : "network.json";
    const flags = ["battery", "grid", "price"].filter((key) => state[key]).map((key) => ` --${key} ${quoted(state[key])}`);
    const run = state.iterations ? ` --iterations ${state.iterations}${flags.join("")}` : "";
    const loop = state.allocator ? ` --allocator ${state.allocator}` : "";
    return `ampere estimate ${model} --profile ${quoted(profile.path)} --threads ${profile.setup.threads} --allow-other-device${loop}${run}`;
  }
}

// For each layer the one that it was before: by place where there are as many, else by name.
function ghosts(layers, original) {
  const before = original.layers.filter(({ kind }) => kind !== "step").map((layer, i) => ({ ...layer, channels: original.shape.channels[i][1] }));
  if (before.length === layers.length) return before;
  const named = new Map(before.map((layer) => [layer.name, layer]));
  return layers.map(({ name }) => named.get(name));
}

// A layer by its name, and by its kind where the name is only a number.
function called({ name, kind }) {
  return /^\d*$/.test(name) ? `${kind} ${name}`.trim() : name;
}

function quoted(path) {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'"'"'`)}'`;
}
