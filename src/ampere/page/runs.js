// Recorded training runs: what was estimated, and what was spent. New ones appear as they are recorded.

import { get } from "./api.js";
import { profileTitle } from "./controls.js";
import { Figure, axisX, el, line, linear, picture, svg, text, ticks, tipped } from "./draw.js";
import { joules, joulesUnit, seconds, signed, whole } from "./format.js";

// What 90 % of a cost lie between, as ampere.estimation.interval has it.
function interval90(mean, stddev) {
  const variance = Math.log1p((stddev / mean) ** 2);
  const apart = 1.6449 * Math.sqrt(variance);
  return [mean * Math.exp(-variance / 2 - apart), mean * Math.exp(-variance / 2 + apart)];
}

export function runs(app, place) {
  const list = el("section", { "aria-label": "Runs" }, el("p", {}, "Loading …"));
  const now = el("section", { "aria-label": "Running now" });
  place.append(el("h2", {}, "Forecast and spent"), now, list);
  let figures = [];
  let closed = false;

  async function ask() {
    try {
      const answer = await get("runs");
      if (closed) return;
      running(answer.running);
      figures = answer.runs.map((run, i) => ({ run, figure: new Figure(`run-${i + 1}`, title(app, run)) })).reverse();
      list.replaceChildren(...(figures.length ? figures.map(({ figure }) => figure.element) : nothing()));
      draw();
    } catch (error) {
      app.problem(error);
    }
  }

  function draw() {
    for (const { run, figure } of figures) drawRun(run, figure);
  }

  function running(jobs) {
    now.replaceChildren(...jobs.map(job));
  }

  ask();
  return { draw, running, close: () => (closed = true) };
}

// A job that runs now: what it spent of its budget, and what it will spend.
function job({ network, steps, iterations, joules_budget: budget, joules_spent: spent, joules_forecast: forecast, joules_per_step: each }) {
  const done = iterations ? `${whole(steps)} of ${whole(iterations)} iterations` : `${whole(steps)} iterations`;
  const whole_job = forecast === null ? "" : `; ${joules(forecast)} forecast for the whole job`;
  const title = network || "a network";
  return el("div", { class: "job" },
    el("h3", {}, `${title} is being trained`),
    el("progress", { max: budget, value: spent, "aria-label": `Joules that ${title} spent of its budget` }),
    el("p", { class: forecast > budget ? "warning" : "under" },
      `${joules(spent)} of ${joules(budget)} spent in ${done}, ${joules(each)} in the last one${whole_job}`));
}

function nothing() {
  return [
    el("p", {}, "No run is recorded yet. A budget in a training loop records what an iteration really costs:"),
    el("p", {}, el("code", {}, "with ampere.Budget(joules, network=ampere.trace(model, inputs), record=True) as budget: …")),
  ];
}

function title(app, run) {
  const profile = app.profiles.find(({ id }) => id === run.profile);
  const when = run.unix_time ? new Date(1000 * run.unix_time).toLocaleString() : "at an unknown time";
  return `${run.network || "a network"}, ${when}${profile ? `; ${profileTitle(profile)}` : ""}`;
}

function drawRun(run, figure) {
  const { width } = figure;
  const each = run.windows.filter((window) => window.joules !== null).map((window, i) => ({
    window: i + 1, iterations: window.iterations, seconds: window.seconds, joules: window.joules,
    joules_per_iteration: window.joules / window.iterations,
  }));
  const total = each.reduce((sum, window) => sum + window.joules, 0);
  const iterations = each.reduce((sum, window) => sum + window.iterations, 0);
  const [low, high] = interval90(run.estimated_joules, run.estimated_stddev);
  const most = Math.max(high, ...each.map((window) => window.joules_per_iteration));
  const { factor, unit } = joulesUnit(most);
  const [left, right, tall] = [90, 16, 24];
  const floor = tall * 2 + 10;
  const x = linear([0, most * 1.05], [left, width - right]);
  const drawn = picture(width, floor + 40, "Estimated and spent per iteration", `${joules(run.estimated_joules)} estimated`);
  drawn.append(axisX(ticks(0, most / factor, 5), (value) => x(value * factor), floor, 2, (value) => String(Number(value.toPrecision(3)))));
  drawn.append(text(left - 8, 20, "estimated", { "text-anchor": "end" }), text(left - 8, 20 + tall, "spent", { "text-anchor": "end" }));
  drawn.append(line(x(low), 16, x(high), 16, { stroke: "var(--one)", "stroke-width": 3 }));
  drawn.append(svg("circle", { cx: x(run.estimated_joules), cy: 16, r: 5, fill: "var(--one)" }));
  for (const window of each) {
    const dot = svg("circle", { cx: x(window.joules_per_iteration), cy: 16 + tall, r: 5, fill: "var(--two)", opacity: 0.75 });
    drawn.append(tipped(dot, `${whole(window.iterations)} iterations: ${joules(window.joules_per_iteration)} each`));
  }
  drawn.append(text(width - right, floor + 34, `${unit} per iteration`, { "text-anchor": "end" }));
  const mean = iterations ? total / iterations : null;
  const beside = mean === null ? "No joules were read." : `${joules(mean)} per iteration were spent, ${signed(mean / run.estimated_joules - 1)} compared with the forecast; ${joules(total)} in ${whole(iterations)} iterations.`;
  const flags = run.flags.length ? ` Flags: ${run.flags.join(", ")}.` : "";
  figure.show(drawn, `${beside}${flags} The line is the 90 % interval of the forecast.`, [
    { key: "window", name: "part", number: true }, { key: "iterations", name: "iterations", number: true },
    { key: "seconds", name: "time", number: true, words: seconds }, { key: "joules", name: "energy", number: true, words: joules },
    { key: "joules_per_iteration", name: "per iteration", number: true, words: joules },
  ], each);
}
