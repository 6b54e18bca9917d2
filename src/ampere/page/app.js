// The page: which view is shown, and what all views share.

import { get, watch } from "./api.js";
import { compare } from "./compare.js";
import { el, tips } from "./draw.js";
import { explorer } from "./explorer.js";
import { pareto } from "./pareto.js";
import { profile } from "./profile.js";
import { runs } from "./runs.js";
import { address, read } from "./state.js";

const VIEWS = { explorer, compare, pareto, profile, runs };
const SHOWN_SECONDS = 8;
const NOTED_MILLISECONDS = 200; // after a slider's last step
const place = document.getElementById("figures");
const message = document.getElementById("message");

class App {
  constructor() {
    this.profiles = [];
    this.networks = [];
    this.state = read();
    this.undone = [];
    this.view = null;
  }

  async load() {
    const [profiles, networks] = await Promise.all([get("profiles"), get("networks")]);
    this.all = profiles.profiles;
    this.profiles = this.all.filter((each) => each.problem === null);
    this.networks = networks.networks;
    this.memoryFollowed = profiles.memory_followed; // by the server, which needs torch for it
  }

  // What an address leaves open, or names and is not there any more.
  settle() {
    const { state } = this;
    if (!VIEWS[state.view]) state.view = "explorer";
    if (!this.networks.some(({ id }) => id === state.network)) {
      state.network = (this.networks.find(({ origin }) => origin === "given") ?? this.networks.find(({ id }) => id === "cnn5") ?? this.networks[0])?.id;
      state.widths = {};
      state.repeats = {};
    }
    if (!this.profiles.some(({ id }) => id === state.profile)) {
      const usual = this.profiles.find(({ method, timing }) => method === "additive" && timing === "yardstick");
      state.profile = (usual ?? this.profiles[0])?.id;
    }
    const may = this.network?.may_change ?? { widths: [], repeats: [] };
    const known = (found, list) => Object.fromEntries(Object.entries(found).filter(([name]) => list.some((each) => each.name === name)));
    state.widths = known(state.widths, may.widths);
    state.repeats = known(state.repeats, may.repeats);
  }

  get network() {
    return this.networks.find(({ id }) => id === this.state.network);
  }

  get profile() {
    return this.profiles.find(({ id }) => id === this.state.profile);
  }

  // Changes the state. A slider that moves makes one entry of the browser's history, and one that can be undone.
  change(changed, settled = true) {
    const first = !this.before;
    if (settled) {
      const before = this.before ?? this.state;
      this.undone.push(before);
      if (this.undone.length > 200) this.undone.shift();
      this.before = null;
    } else {
      this.before ??= this.state;
    }
    this.state = { ...this.state, ...changed };
    clearTimeout(this.noting);
    if (first || settled) this.note(first);
    else this.noting = setTimeout(() => this.note(false), NOTED_MILLISECONDS);
    this.view?.update?.();
  }

  // Writes the state into the address. Browsers allow some 200 times in half a minute: not for every step of a slider.
  note(entry) {
    const there = address(this.state);
    if (entry && there !== location.hash) history.pushState(null, "", there);
    else history.replaceState(null, "", there);
    this.link();
  }

  undo() {
    const before = this.undone.pop();
    if (!before) return;
    this.state = before;
    history.replaceState(null, "", address(before));
    this.show();
    document.querySelector("[data-undo]")?.focus();
  }

  say(words) {
    message.textContent = words;
    clearTimeout(this.timer);
    if (words) this.timer = setTimeout(() => (message.textContent = ""), 1000 * SHOWN_SECONDS);
  }

  problem(error) {
    const away = error instanceof TypeError && /fetch|network/i.test(error.message);
    if (error instanceof TypeError && !away) console.error(error); // a mistake of ours
    this.say(away ? "the server does not answer: start it again with `ampere serve`" : error.message);
  }

  show() {
    clearTimeout(this.noting);
    this.settle();
    const { view } = this.state;
    this.view?.close?.();
    this.view = null;
    history.replaceState(null, "", address(this.state));
    this.link();
    document.title = `${view[0].toUpperCase()}${view.slice(1)} · Ampere`;
    if (!this.profiles.length && view !== "runs") {
      place.replaceChildren(this.nothing());
      return;
    }
    place.replaceChildren();
    this.view = VIEWS[view](this, place);
  }

  // The other views are opened with the same state.
  link() {
    for (const link of document.querySelectorAll("nav a")) {
      link.href = address({ ...this.state, view: link.dataset.view });
      if (link.dataset.view === this.state.view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  nothing() {
    const broken = (this.all ?? []).filter(({ problem }) => problem);
    return el("section", {},
      el("h2", {}, "No profile is stored here yet"),
      el("p", {}, "A profile says what layers cost on a device. Make one in a minute, then load this page again:"),
      el("p", {}, el("code", {}, "ampere profile cnn5")),
      broken.length ? el("details", {}, el("summary", {}, `${broken.length} stored files cannot be used`),
        el("ul", {}, broken.map(({ problem }) => el("li", {}, problem)))) : null);
  }
}

async function start() {
  const app = new App();
  try {
    await app.load();
  } catch (error) {
    app.problem(error);
    place.replaceChildren(el("p", { class: "warning" }, error.message));
    return;
  }
  app.show();
  tips();
  addEventListener("popstate", () => {
    app.state = read();
    app.show();
  });
  addEventListener("resize", () => app.view?.draw?.());
  addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input[type=number], input[type=text]");
    if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) {
      event.preventDefault();
      app.undo();
    }
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    place.focus();
  });
  const changed = async () => {
    try {
      await app.load();
      app.say("stored profiles have changed: the figures are up to date");
      app.show();
    } catch (error) {
      app.problem(error);
    }
  };
  watch(changed, (running) => app.view?.running?.(running));
}

start();
