// What the page knows: the state that the server streams, who is signed in, and whether all of it is fresh.

const STALE_MS = 2500; // the server sends a beat each second

export const store = {
  ready: false, groups: new Map(), pauses: [], actions: [], problem: "", lost: false, lastHeard: 0, behind: 0,
  known: false,
  session: { signedIn: false, open: false, name: "", role: "view", csrf: "" },
};

const listeners = new Set();
let queued = false;

export function onChange(listener) { listeners.add(listener); }

export function changed() {
  if (queued) return;
  queued = true;
  const run = () => { queued = false; for (const listener of listeners) listener(); };
  if (document.visibilityState === "visible") requestAnimationFrame(run); else setTimeout(run, 200);
}

// The server's time: this machine's clock may be wrong.
export const now = () => Date.now() - store.behind;

// The answer of the API. Raises what people can read, also where no answer came, or that of a proxy in between.
async function answered(path, request) {
  let answer;
  try { answer = await fetch(`/api/v1/${path}`, request); }
  catch { throw new Error("The reactor did not answer. Try again."); }
  const body = await answer.json().catch(() => null);
  if (answer.ok && body) return body;
  throw new Error(body?.error || `The answer was ${answer.status} ${answer.statusText}. Try again.`);
}

export const get = (path) => answered(path, { headers: { Accept: "application/json" } });

export function send(method, path, body) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": store.session.csrf };
  return answered(path, { method, headers, body: JSON.stringify(body || {}) });
}

export function may(role) {
  const order = ["view", "approve", "operate"];
  return Boolean(store.session.name) && order.indexOf(store.session.role) >= order.indexOf(role);
}

// Whether what is shown is old: then no decision should be based on it.
export const stale = () => Boolean(store.lost || store.problem);

let source = null;

export async function start() {
  store.session = await get("session");
  store.known = true;
  if (store.session.signedIn) listen();
  changed();
}

function heard(data) {
  store.lastHeard = performance.now();
  store.behind = Date.now() - Date.parse(data.now);
  store.lost = false;
  if ("problem" in data) store.problem = data.problem;
}

function listen() {
  if (source) source.close();
  source = new EventSource("/api/v1/events");
  source.addEventListener("state", (event) => {
    const data = JSON.parse(event.data);
    heard(data);
    store.groups = new Map(data.groups.map((group) => [group.key, group]));
    store.pauses = data.pauses;
    store.actions = data.actions;
    store.ready = true;
    changed();
  });
  source.addEventListener("change", (event) => {
    const data = JSON.parse(event.data);
    heard(data);
    for (const group of data.groups) store.groups.set(group.key, group);
    for (const key of data.gone) store.groups.delete(key);
    if (data.pauses) store.pauses = data.pauses;
    for (const act of data.actions) {
      const at = store.actions.findIndex((known) => known.id === act.id);
      if (at >= 0) store.actions[at] = act; else store.actions.unshift(act);
    }
    store.actions.length = Math.min(store.actions.length, 100);
    changed();
  });
  source.addEventListener("beat", (event) => { heard(JSON.parse(event.data)); changed(); });
  source.onerror = async () => {
    store.lost = true;
    changed();
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(async () => {
      try { store.session = await get("session"); } catch { /* the server is away: the stream is tried again */ }
      if (store.session.signedIn) listen(); else changed();
    }, 1000);
  };
}

setInterval(() => {
  if (store.ready && !store.lost && performance.now() - store.lastHeard > STALE_MS) { store.lost = true; }
  changed(); // bars move on
}, 250);
