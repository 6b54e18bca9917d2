#!/usr/bin/env node
// A worker for Ampere without Python: lines of JSON over a pipe, or over TCP with `--listen PORT`.
"use strict";

const crypto = require("crypto");
const net = require("net");
const os = require("os");
const { Refusal } = require("./perceptron");
const { block, yardstickAlone } = require("./measuring");
const { parse, idOf, blockRequest, yardstickRequest, agreedVersion, beatSeconds, positive } = require("./requests");

const PROTOCOLS = [3];
const MOST_LINE_BYTES = 8 * 2 ** 20;
const STRANGER_BYTES = 8192; // more than any handshake
const STRANGER_SECONDS = 5;
const STRANGERS_AT_ONCE = 64;
const SILENCE_SECONDS = 60;

const ACTIONS = {
  hello,
  ping: () => ({}),
  block: (request, host) => block(blockRequest(request), host),
  yardstick: (request) => yardstickAlone(yardstickRequest(request)),
};

function hello(request, host) {
  const watts = positive(request, "watts_per_core", 5, false);
  const described = {
    protocol: agreedVersion(request, PROTOCOLS),
    worker: "perceptron.js",
    system: os.type(),
    release: os.release(),
    machine: os.machine(),
    cpu: os.cpus()[0].model,
    cores: os.cpus().length,
    runtimes: { perceptron: process.version },
    kinds: ["linear"],
    optimizers: ["sgd"],
    dtypes: ["float32"],
    factories: false,
    meter: { name: "cpu-time", measured: false, scope: `${watts} W per busy core` },
    beat_seconds: beatSeconds(request),
  };
  clearInterval(host.beating);
  if (described.beat_seconds) host.beating = setInterval(() => host.busy && host.write("\n"), described.beat_seconds * 1000);
  return described;
}

async function answer(line, host) {
  let id = null;
  try {
    const request = parse(line, MOST_LINE_BYTES);
    id = idOf(request);
    const action = Object.hasOwn(ACTIONS, request.do) ? ACTIONS[request.do] : null;
    if (!action) throw new Refusal("bad_request", `there is no ${JSON.stringify(request.do)}: ${Object.keys(ACTIONS)}`);
    return { id, result: await action(request, host) };
  } catch (problem) {
    return refusal(id, problem);
  }
}

function refusal(id, problem) {
  const type = problem instanceof Refusal ? problem.type : "variant_failed";
  const message = String(problem.message).split("\n")[0].slice(0, 500) || "no message";
  return { id, error: { type, message, ...(type === "protocol" ? { protocols: PROTOCOLS } : {}) } };
}

// Calls `each` with every line; of a line that is too long with its beginning, so that memory stays bounded.
function lines(input, most, each) {
  let begun = [], length = 0;
  const take = (piece) => {
    if (length <= most) begun.push(piece.subarray(0, most + 1 - length));
    length += piece.length;
  };
  input.on("data", (data) => {
    let start = 0;
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
      take(data.subarray(start, end));
      each(Buffer.concat(begun));
      [begun, length, start] = [[], 0, end + 1];
    }
    take(data.subarray(start));
  });
}

// Answers in the order of the requests, one at a time.
function serve(input, output, gone) {
  const host = { busy: false, gone: false, write: (text) => host.gone || output.write(text) };
  let last = Promise.resolve();
  lines(input, MOST_LINE_BYTES, (line) => {
    if (!line.toString("latin1", 0, 80).trim()) return; // a heartbeat of the host
    last = last.then(async () => {
      host.busy = true;
      const answered = JSON.stringify(await answer(line, host));
      host.busy = false;
      host.write(answered + "\n");
    });
  });
  const leave = async () => {
    if (host.ending) return;
    host.ending = true;
    const grace = setTimeout(() => { host.gone = true; }, 2000); // earlier requests may still be answered
    await last;
    clearTimeout(grace);
    clearInterval(host.beating);
    host.gone = true;
    gone();
  };
  input.on("end", leave).on("error", leave).on("close", leave);
  output.on("error", leave);
}

// Hands a connection whose first line is the handshake with the token to `admit`; anything else ends the connection.
function meet(socket, token, isBusy, admit) {
  const timer = setTimeout(() => socket.destroy(), STRANGER_SECONDS * 1000);
  let begun = Buffer.alloc(0);
  const read = (data) => {
    begun = Buffer.concat([begun, data]);
    const end = begun.indexOf(10);
    if (begun[0] !== 123 || end > STRANGER_BYTES || (end < 0 && begun.length > STRANGER_BYTES)) return socket.destroy();
    if (end < 0) return;
    socket.off("data", read).pause();
    clearTimeout(timer);
    let request;
    try {
      request = parse(begun.subarray(0, end), MOST_LINE_BYTES);
      if (request.do !== "hello") throw new Error();
      idOf(request);
    } catch {
      return socket.destroy();
    }
    try {
      agreedVersion(request, PROTOCOLS);
      if (!isToken(request.token, token)) throw new Refusal("unauthorized", "the token is missing or wrong");
      if (isBusy()) throw new Refusal("busy", "another host is using this worker");
    } catch (problem) {
      return socket.end(JSON.stringify(refusal(idOf(request), problem)) + "\n");
    }
    admit();
    socket.unshift(begun);
    socket.resume();
  };
  socket.on("data", read).on("end", () => clearTimeout(timer)).on("close", () => clearTimeout(timer));
}

function isToken(given, token) {
  const digest = (text) => crypto.createHash("sha256").update(text).digest(); // of one length, to compare in constant time
  return typeof given === "string" && crypto.timingSafeEqual(digest(given), digest(token));
}

// One host at a time, who must present the token; a second one gets the error `busy` at once.
function listen(place) {
  const [port, address = "127.0.0.1"] = place.split(":").reverse();
  const given = process.env.AMPERE_WORKER_TOKEN || "";
  if (given && given.length < 16) {
    console.error("the token in AMPERE_WORKER_TOKEN is too short: give at least 16 characters");
    process.exit(1);
  }
  const token = given || crypto.randomBytes(24).toString("base64url");
  const strangers = new Set();
  let serving = false;
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    strangers.add(socket);
    socket.on("close", () => strangers.delete(socket));
    if (strangers.size > STRANGERS_AT_ONCE) strangers.values().next().value.destroy(); // the oldest makes room
    meet(socket, token, () => serving, () => {
      strangers.delete(socket);
      serving = true;
      socket.setNoDelay(true).setTimeout(SILENCE_SECONDS * 1000, () => socket.destroy());
      serve(socket, socket, () => { serving = false; socket.end(); });
    });
    socket.on("end", () => { if (strangers.has(socket)) socket.end(); });
  });
  server.listen(Number(port), address, () => {
    const here = `tcp://${server.address().address}:${server.address().port}`;
    const shown = given ? "with AMPERE_WORKER_TOKEN as here" : `export AMPERE_WORKER_TOKEN=${token}`;
    console.error(`listening on ${here}`);
    console.error(`on the host: ${shown}; ampere profile MODEL --device ${here}`);
  });
}

const [option, place] = process.argv.slice(2);
if (option === "--listen" && place) listen(place);
else if (option === undefined) serve(process.stdin, process.stdout, () => process.exit(0));
else {
  console.error("usage: node worker.js [--listen [HOST:]PORT]");
  process.exit(2);
}
