// Requests, checked strictly: one that does not make sense is refused before anything is built.
"use strict";

const { Refusal } = require("./perceptron");

const CHOICES = {
  pairing: ["step", "window", "plain"],
  isolation: ["inline", "fork"],
  stage: ["step"],
};
const SETUP = { runtime: ["perceptron"], optimizer: ["sgd"], dtype: ["float32"], threads: [1] };

const bad = (message) => new Refusal("bad_request", message);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function positive(request, field, usual, whole) {
  const value = request[field] === undefined ? usual : request[field];
  const fits = typeof value === "number" && value > 0 && value <= 1e6 && (!whole || Number.isInteger(value));
  if (!fits) throw bad(`${field} is ${JSON.stringify(value)}, but must be a positive ${whole ? "whole " : ""}number`);
  return value;
}

function oneOf(record, field, choices) {
  const value = record[field] === undefined ? choices[0] : record[field];
  if (!choices.includes(value)) throw bad(`${field} is ${JSON.stringify(value)}, but this worker has ${choices.join(", ")}`);
  return value;
}

function parse(line, most) {
  if (line.length > most) throw bad(`a line may have at most ${most} bytes`);
  let request;
  try {
    request = JSON.parse(line.toString());
  } catch {
    throw bad("the request is not a line of JSON");
  }
  if (!isObject(request)) throw bad("the request is not a JSON object");
  return request;
}

// The id that the answer gets: a number, a short text or null.
function idOf({ id = null }) {
  if (id === null || typeof id === "number" || (typeof id === "string" && id.length <= 200)) return id;
  throw bad("an id must be a number, a text of at most 200 characters or null");
}

function blockRequest(request) {
  const { workload, setup = {} } = request;
  if (!isObject(workload) || "layers" in workload === "factory" in workload) {
    throw bad("the workload needs either layers or a factory");
  }
  if ("factory" in workload) throw new Refusal("variant_failed", "this worker cannot import factories: describe layers");
  if (!isObject(setup)) throw bad("setup is not a JSON object");
  for (const [field, choices] of Object.entries(SETUP)) oneOf(setup, field, choices);
  const chosen = Object.entries(CHOICES).map(([field, choices]) => [field, oneOf(request, field, choices)]);
  return {
    ...Object.fromEntries(chosen),
    workload,
    iterations: positive(request, "iterations", 10, true),
    warmup: positive(request, "warmup", 4, true),
    seconds_limit: positive(request, "seconds_limit", 60, false),
    watts_per_core: positive(request, "watts_per_core", 5, false),
  };
}

function yardstickRequest(request) {
  for (const field of ["threads", "runtime"]) oneOf(request, field, SETUP[field]);
  return { seconds: positive(request, "seconds", 1, false) };
}

// The newest protocol version that both sides speak.
function agreedVersion({ protocols = [3] }, spoken) {
  if (!Array.isArray(protocols) || !protocols.every(Number.isInteger)) throw bad("protocols is not a list of whole numbers");
  const shared = protocols.filter((version) => spoken.includes(version));
  const remedy = Math.max(...spoken) < Math.max(0, ...protocols) ? "update the worker" : "update Ampere on the host";
  if (!shared.length) throw new Refusal("protocol", `this worker speaks protocol ${spoken}, and was asked for ${protocols}: ${remedy}`);
  return Math.max(...shared);
}

function beatSeconds({ beat_seconds: seconds = null }) {
  if (seconds !== null && !(typeof seconds === "number" && seconds >= 0.05 && seconds <= 3600)) throw bad(`beat_seconds is ${JSON.stringify(seconds)}`);
  return seconds;
}

module.exports = { parse, idOf, blockRequest, yardstickRequest, agreedVersion, beatSeconds, positive };
