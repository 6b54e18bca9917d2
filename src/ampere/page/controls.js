// Controls that several views share.

import { el } from "./draw.js";

let number = 0;
const fresh = () => `control-${(number += 1)}`;

export function select(words, options, value, changed) {
  const list = el("select", { onchange: () => changed(list.value) },
    options.map(({ id, title }) => el("option", { value: id, selected: id === value }, title)));
  const label = el("label", {}, words, list);
  label.list = list;
  return label;
}

// A slider and a box for one whole number; `changed` is called with the number and whether it is settled.
export function slider(words, value, largest, changed) {
  const id = fresh();
  const range = el("input", { type: "range", min: 1, max: largest, step: 1, value, "aria-labelledby": id });
  const box = el("input", { type: "number", min: 1, max: largest, step: 1, value, "aria-labelledby": id });
  const settle = (given, settled) => {
    const whole = Math.round(Number(given));
    if (!Number.isFinite(whole) || given === "") return;
    const inside = Math.max(1, Math.min(largest, whole));
    range.value = inside;
    if (document.activeElement !== box || settled) box.value = inside;
    changed(inside, settled);
  };
  range.addEventListener("input", () => settle(range.value, false));
  range.addEventListener("change", () => settle(range.value, true));
  box.addEventListener("change", () => settle(box.value, true));
  const row = el("div", { class: "slide" }, el("span", { id }, words), range, box);
  row.set = (given) => {
    for (const input of [range, box]) if (document.activeElement !== input && input.value !== String(given)) input.value = given;
  };
  row.range = range;
  return row;
}

export function field(words, kind, value, hint, changed) {
  const box = el("input", { type: kind, value: value ?? "", placeholder: hint, onchange: () => changed(box.value.trim()) });
  if (kind === "number") box.min = 0;
  return el("label", {}, words, box);
}

export function checks(words, options, chosen, changed) {
  const boxes = options.map(({ id, title }) => {
    const box = el("input", { type: "checkbox", value: id, checked: chosen.includes(id) });
    box.addEventListener("change", () => changed(boxes.filter((each) => each.box.checked).map((each) => each.id)));
    return { id, box, label: el("label", {}, box, title) };
  });
  return el("fieldset", {}, el("legend", {}, words), el("div", { class: "checks" }, boxes.map(({ label }) => label)));
}

const FACETS = [
  { words: "Device", of: (profile) => profile.device },
  { words: "Runtime", of: (profile) => profile.setup.runtime },
  { words: "Optimizer", of: (profile) => profile.setup.optimizer },
  { words: "Precision", of: (profile) => profile.setup.dtype },
  { words: "Trained on", of: (profile) => profile.setup.on ?? "cpu" },
  { words: "Threads", of: (profile) => String(profile.setup.threads) },
  { words: "Method", of: (profile) => [profile.method, profile.timing].join(", ") },
];

// One control for each thing in which the stored profiles differ; together they choose a profile.
export function profileChoice(app, changed) {
  const now = app.profile;
  const differ = FACETS.filter(({ of, words }) => words === "Device" || new Set(app.profiles.map(of)).size > 1);
  return differ.map(({ words, of }) => {
    const options = [...new Set(app.profiles.map(of))].sort().map((each) => ({ id: each, title: each }));
    return select(words, options, of(now), (chosen) => {
      const alike = (profile) => FACETS.filter((facet) => facet.of(profile) === facet.of(now)).length;
      const fitting = app.profiles.filter((profile) => of(profile) === chosen);
      changed(fitting.sort((a, b) => alike(b) - alike(a))[0].id);
    });
  });
}

export function profileTitle(profile) {
  const { setup } = profile;
  const usual = profile.method === "additive" && profile.timing === "yardstick" ? "" : `, ${profile.method} ${profile.timing}`;
  return `${profile.device}: ${setup.runtime}, ${setup.optimizer}, ${setup.dtype}, ${setup.threads} thread${setup.threads > 1 ? "s" : ""}${usual}`;
}

export function origin(meter) {
  const kind = meter.measured ? "measured" : meter.simulated ? "simulated" : "modelled";
  return el("span", { class: `origin ${kind}`, title: `${meter.name}: ${meter.scope}` }, `${kind} joules`);
}
