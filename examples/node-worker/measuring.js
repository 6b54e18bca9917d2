// Windows of training between windows of the yardstick, and what they add up to.
//
//   pairing "step"    y T y T y         pairing "window"  yyyyy TTTT yyyyy TTTT yyyyy        pairing "plain"  TTTTTTTT
"use strict";

const { Refusal, build, yardstick, seeded } = require("./perceptron");

const SEED = 20;
const YARDSTICKS = 5;
const WINDOW_SECONDS = 0.04;
const LEAST_IN_WINDOW = 4;

const pause = () => new Promise(setImmediate); // so that signs of life go out, and a host that hung up is noticed

function timed(step, iterations) {
  const faults = process.resourceUsage().minorPageFault;
  const cpu = process.cpuUsage();
  const wall = process.hrtime.bigint();
  for (let i = 0; i < iterations; i++) step();
  const seconds = Number(process.hrtime.bigint() - wall) * 1e-9;
  const { user, system } = process.cpuUsage(cpu);
  return { iterations, seconds, cpu: (user + system) * 1e-6, faults: process.resourceUsage().minorPageFault - faults };
}

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

const median = (values) => quantile(values, 0.5);
const cost = ({ cpu, iterations }) => cpu / iterations;
const finite = (loss) => (Number.isFinite(loss) ? loss : null);

function spread(values) {
  if (values.length < 2) return null;
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (values.length - 1)) / mean;
}

// How many iterations each window of the target has, and how many steps each of the yardstick.
function plan({ pairing, iterations }, stepSeconds) {
  if (pairing === "plain") return { targets: [iterations], beside: 0 };
  if (pairing === "step") return { targets: Array(iterations).fill(1), beside: 1 };
  const length = Math.max(LEAST_IN_WINDOW, Math.ceil(WINDOW_SECONDS / Math.max(stepSeconds, 1e-6)));
  const count = Math.max(1, Math.floor(iterations / length));
  return { targets: Array.from({ length: count }, (_, i) => Math.floor((iterations + i) / count)), beside: YARDSTICKS };
}

async function block(request, host) {
  const began = process.hrtime.bigint();
  const elapsed = () => Number(process.hrtime.bigint() - began) * 1e-9;
  const random = seeded(SEED);
  const target = build(request.subject.layers, random);
  const reference = yardstick(random);
  timed(reference.step, 3);
  target.step();
  const firstLoss = target.loss;
  const warm = Array.from({ length: request.warmup }, () => timed(target.step, 1).seconds);
  const { targets: lengths, beside } = plan(request, Math.min(...warm));
  const targets = [];
  const yardsticks = beside ? [timed(reference.step, beside)] : [];
  for (const length of lengths) {
    targets.push(timed(target.step, length));
    if (beside) yardsticks.push(timed(reference.step, beside));
    await pause();
    if (host.gone) throw new Refusal("variant_died", "the host hung up");
    if (elapsed() > request.seconds_limit) break;
  }
  return summary(request, { targets, yardsticks, target, firstLoss, elapsed: elapsed() });
}

function summary(request, { targets, yardsticks, target, firstLoss, elapsed }) {
  const ratios = yardsticks.length
    ? targets.map((t, i) => (2 * cost(t)) / Math.max(cost(yardsticks[i]) + cost(yardsticks[i + 1]), 1e-9))
    : [];
  const total = (name) => targets.reduce((sum, t) => sum + t[name], 0);
  const losses = [finite(firstLoss), finite(target.loss)];
  const flags = [];
  if (request.isolation === "fork") flags.push("not_isolated");
  if (losses.includes(null)) flags.push("nonfinite_loss");
  if (total("iterations") < request.iterations) flags.push("short");
  if ((spread(ratios) || 0) > 0.25) flags.push("noisy");
  return {
    ratio: ratios.length ? median(ratios) : null,
    spread: spread(ratios),
    seconds: median(targets.map((t) => t.seconds / t.iterations)),
    cpu_seconds: median(targets.map(cost)),
    yardstick_seconds: yardsticks.length ? median(yardsticks.map(cost)) : null,
    joules: median(targets.map(cost)) * request.watts_per_core, // modelled: hello's meter says so
    iterations: total("iterations"),
    page_faults: total("faults") / total("iterations"),
    parameters: target.parameters,
    loss: losses,
    elapsed,
    conditions: { load_1min: require("os").loadavg()[0] },
    flags,
  };
}

async function yardstickAlone({ seconds }) {
  const { step } = yardstick(seeded(SEED));
  timed(step, 20); // the compiler of this runtime looks at what runs often
  const until = process.hrtime.bigint() + BigInt(Math.round(seconds * 1e9));
  const windows = [];
  while (process.hrtime.bigint() < until || windows.length < 20) {
    windows.push(timed(step, 1));
    await pause();
  }
  const cpu = windows.map(cost);
  const wall = windows.map((w) => w.seconds);
  return {
    cpu_seconds: median(cpu),
    seconds: median(wall),
    cpu_seconds_p10: quantile(cpu, 0.1),
    seconds_p10: quantile(wall, 0.1),
    steps: windows.length,
  };
}

module.exports = { block, yardstickAlone };
