// What the page shows, in its address: a link shares it, and the back button undoes.

const NUMBERS = ["batch", "iterations"];
const RUN = ["battery", "grid", "price"]; // of a whole run, as texts
const TEXTS = ["view", "network", "profile", "allocator", ...RUN];
const LISTS = ["networks", "profiles"];
const MAPS = { w: "widths", r: "repeats" };

export function read(hash = location.hash) {
  const state = { view: "explorer", widths: {}, repeats: {}, networks: [], profiles: [] };
  for (const [key, value] of new URLSearchParams(hash.slice(1))) {
    const map = MAPS[key.slice(0, key.indexOf("."))];
    if (map && /^\d{1,6}$/.test(value)) state[map][key.slice(key.indexOf(".") + 1)] = Number(value);
    else if (NUMBERS.includes(key) && Number(value) >= 0) state[key] = Number(value);
    else if (TEXTS.includes(key)) state[key] = value;
    else if (LISTS.includes(key)) state[key].push(value);
  }
  return state;
}

export function address(state) {
  const found = new URLSearchParams();
  for (const key of [...TEXTS, ...NUMBERS]) {
    if (state[key] !== undefined && state[key] !== null && state[key] !== "") found.append(key, state[key]);
  }
  for (const key of LISTS) for (const value of state[key] ?? []) found.append(key, value);
  for (const [short, key] of Object.entries(MAPS)) {
    for (const [name, value] of Object.entries(state[key] ?? {})) found.append(`${short}.${name}`, value);
  }
  return `#${found}`;
}

// A question to the server about the network as it is changed now.
export function question(state) {
  const asked = { network: state.network, profile: state.profile };
  if (Object.keys(state.widths).length) asked.widths = state.widths;
  if (Object.keys(state.repeats).length) asked.repeats = state.repeats;
  if (state.batch) asked.batch = state.batch;
  if (state.allocator) asked.allocator = state.allocator;
  return asked;
}

export function withRun(asked, state) {
  const run = { ...asked };
  if (!state.iterations) return run;
  run.iterations = state.iterations;
  for (const key of RUN) if (state[key]) run[key] = state[key];
  return run;
}
