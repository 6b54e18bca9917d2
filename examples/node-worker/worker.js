#!/usr/bin/env node
// A worker for Ampere without Python: lines of JSON over a pipe, or over TCP with `--listen PORT`.
"use strict";

const net = require("net");
const os = require("os");
const readline = require("readline");
const { Refusal } = require("./perceptron");
const { block, yardstickAlone } = require("./measuring");
const { parse, blockRequest, yardstickRequest, agreedVersion, beatSeconds, positive } = require("./requests");

const PROTOCOLS = [2];

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
    const request = parse(line);
    id = request.id === undefined ? null : request.id;
    const action = Object.hasOwn(ACTIONS, request.do) ? ACTIONS[request.do] : null;
    if (!action) throw new Refusal("bad_request", `there is no ${JSON.stringify(request.do)}: ${Object.keys(ACTIONS)}`);
    return { id, result: await action(request, host) };
  } catch (problem) {
    const type = problem instanceof Refusal ? problem.type : "variant_failed";
    return { id, error: { type, message: String(problem.message).split("\n")[0] || "no message" } };
  }
}

// Answers in the order of the requests, one at a time.
function serve(input, output, gone) {
  const host = { busy: false, gone: false, write: (text) => host.gone || output.write(text) };
  let last = Promise.resolve();
  readline.createInterface({ input }).on("line", (line) => {
    if (!line.trim()) return; // a heartbeat of the host
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

// One host at a time; a second one gets the error `busy`.
function listen(place) {
  const [port, address = "127.0.0.1"] = place.split(":").reverse();
  const busy = { id: null, error: { type: "busy", message: "another host is using this worker" } };
  let serving = false;
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    if (serving) return void socket.end(JSON.stringify(busy) + "\n");
    serving = true;
    socket.setNoDelay(true).setKeepAlive(true, 15000);
    serve(socket, socket, () => { serving = false; socket.end(); });
  });
  server.listen(Number(port), address, () => {
    console.error(`listening on tcp://${server.address().address}:${server.address().port}`);
  });
}

const [option, place] = process.argv.slice(2);
if (option === "--listen" && place) listen(place);
else if (option === undefined) serve(process.stdin, process.stdout, () => process.exit(0));
else {
  console.error("usage: node worker.js [--listen [HOST:]PORT]");
  process.exit(2);
}
