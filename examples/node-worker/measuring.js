// Windows of training between windows of the yardstick: [iterations, wall s, busy s, joules, page faults].
//
//   pairing "step"    y T y T y         pairing "window"  yyyyy TTTT yyyyy TTTT yyyyy        pairing "plain"  TTTTTTTT
"use strict";

const { Refusal, build, yardstick, seeded } = require("./perceptron");

const SEED = 20;
const YARDSTICKS = 5;
const WINDOW_SECONDS = 0.04;
const LEAST_IN_WINDOW = 4;

const pause = () => new Promise(setImmediate); // so that heartbeats are sent, and a closed connection is noticed

function timed(step, iterations, watts = 5) {
  const faults = process.resourceUsage().minorPageFault;
  const cpu = process.cpuUsage();
  const wall = process.hrtime.bigint();
  for (let i = 0; i < iterations; i++) step();
  const seconds = Number(process.hrtime.bigint() - wall) * 1e-9;
  const { user, system } = process.cpuUsage(cpu);
  const busy = (user + system) * 1e-6;
  // Joules are modelled: hello's meter says so.
  return { iterations, seconds, busy, joules: busy * watts, faults: process.resourceUsage().minorPageFault - faults };
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

const finite = (loss) => (Number.isFinite(loss) ? loss : null);
const row = (w) => [w.iterations, w.seconds, w.busy, w.joules, w.faults];

// How many iterations each window of the target has, and how many steps each of the yardstick.
function plan({ pairing, iterations }, stepSeconds) {
  if (pairing === "plain") return { targets: [iterations], yardsticks: 0 };
  if (pairing === "step") return { targets: Array(iterations).fill(1), yardsticks: 1 };
  const length = Math.max(LEAST_IN_WINDOW, Math.ceil(WINDOW_SECONDS / Math.max(stepSeconds, 1e-6)));
  const count = Math.max(1, Math.floor(iterations / length));
  return { targets: Array.from({ length: count }, (_, i) => Math.floor((iterations + i) / count)), yardsticks: YARDSTICKS };
}

async function block(request, host) {
  const began = process.hrtime.bigint();
  const elapsed = () => Number(process.hrtime.bigint() - began) * 1e-9;
  const random = seeded(SEED);
  const target = build(request.workload.layers, random);
  const reference = yardstick(random);
  timed(reference.step, 3);
  target.step();
  const firstLoss = target.loss;
  const warm = Array.from({ length: request.warmup }, () => timed(target.step, 1).seconds);
  const { targets: lengths, yardsticks: steps } = plan(request, Math.min(...warm));
  const targets = [];
  const watts = request.watts_per_core;
  const yardsticks = steps ? [timed(reference.step, steps, watts)] : [];
  for (const length of lengths) {
    targets.push(timed(target.step, length, watts));
    if (steps) yardsticks.push(timed(reference.step, steps, watts));
    await pause();
    if (host.gone) throw new Refusal("variant_died", "the host closed the connection");
    if (elapsed() > request.seconds_limit) break;
  }
  const losses = [finite(firstLoss), finite(target.loss)];
  const flags = [];
  if (request.isolation === "fork") flags.push("not_isolated");
  if (losses.includes(null)) flags.push("nonfinite_loss");
  if (targets.reduce((sum, t) => sum + t.iterations, 0) < request.iterations) flags.push("short");
  return {
    target: targets.map(row),
    yardstick: yardsticks.map(row),
    parameters: target.parameters,
    loss: losses,
    conditions: { load_1min: require("os").loadavg()[0] },
    flags,
    elapsed_seconds: elapsed(),
  };
}

async function yardstickAlone({ seconds }) {
  const { step } = yardstick(seeded(SEED));
  timed(step, 20); // the just-in-time compiler optimizes what runs often
  const until = process.hrtime.bigint() + BigInt(Math.round(seconds * 1e9));
  const windows = [];
  while (process.hrtime.bigint() < until || windows.length < 20) {
    windows.push(timed(step, 1));
    await pause();
  }
  return {
    busy_seconds: median(windows.map((w) => w.busy)),
    wall_seconds: median(windows.map((w) => w.seconds)),
    steps: windows.length,
  };
}

module.exports = { block, yardstickAlone };
