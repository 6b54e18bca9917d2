// Questions to the server. Off loopback each carries the token, which is read once from the address and then hidden.

const KEPT = "ampere-token";

function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEPT);
}

const TOKEN = token();

function headers(more = {}) {
  return TOKEN ? { authorization: `Bearer ${TOKEN}`, ...more } : more;
}

export class Problem extends Error {
  constructor(record) {
    super([record.detail, record.remedy].filter(Boolean).join(": "));
    this.record = record;
  }
}

async function answered(response) {
  if (response.ok) return response;
  let record = { detail: `the server answered with status ${response.status}` };
  try {
    record = await response.json();
  } catch {
    // not a problem of ours
  }
  throw new Problem(record);
}

export async function get(what) {
  return (await answered(await fetch(`/api/v1/${what}`, { headers: headers() }))).json();
}

function posted(what, asked, more = {}, signal = undefined) {
  const kind = { "content-type": "application/json", ...more };
  return fetch(`/api/v1/${what}`, { method: "POST", headers: headers(kind), body: JSON.stringify(asked), signal });
}

export async function post(what, asked) {
  return (await answered(await posted(what, asked))).json();
}

export async function file(what, asked) {
  return (await answered(await posted(what, asked))).blob();
}

// Server-sent events of one request; fetch can carry the token, which EventSource cannot.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const kind = /^event: (.*)$/m.exec(part);
      const data = /^data: (.*)$/m.exec(part);
      if (kind && data) yield { kind: kind[1], data: JSON.parse(data[1]) };
    }
  }
}

export async function search(asked, progress) {
  const response = await answered(await posted("search", asked, { accept: "text/event-stream" }));
  for await (const { kind, data } of events(response)) {
    if (kind === "progress") progress(data);
    if (kind === "problem") throw new Problem(data);
    if (kind === "result") return data;
  }
  throw new Problem({ detail: "the server ended before it answered", remedy: "ask again" });
}

// Calls back when stored profiles change, and with the runs that go on; asks again after a server that was away.
export async function watch(changed, running) {
  let seconds = 1;
  for (;;) {
    try {
      const response = await answered(await fetch("/api/v1/events", { headers: headers() }));
      for await (const { kind, data } of events(response)) {
        if (kind === "running") running(data.running);
        else if (kind === "changed" || seconds > 1) changed();
        seconds = 1;
      }
    } catch (problem) {
      if (problem instanceof Problem) return;
    }
    seconds = Math.min(4, seconds * 2);
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  }
}
