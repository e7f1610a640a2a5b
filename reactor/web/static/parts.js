// What several pages show: times, states, windows, weights, actions.
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { now } from "./store.js";

export const html = htm.bind(h);

const STATE = {
  Watching: "p-good", Tolerating: "p-bad", Recovering: "p-good", Acting: "p-blue", Acted: "p-warn", Held: "p-hold",
  Paused: "p-warn",
};
const STATUS = { Healthy: "p-good", Unhealthy: "p-bad", Unknown: "" };
const OUTCOME = { Done: "p-good", Failed: "p-bad", Refused: "p-warn" };

export function span(seconds) {
  const left = Math.max(seconds, 0);
  if (left < 10) return `${left.toFixed(1)} s`;
  if (left < 120) return `${Math.round(left)} s`;
  if (left < 7200) {
    const whole = Math.round(left);
    return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${String(whole % 60).padStart(2, "0")} s` : ""}`;
  }
  if (left < 172800) return `${Math.floor(left / 3600)} h ${Math.round((left % 3600) / 60)} min`;
  return `${Math.floor(left / 86400)} d ${Math.round((left % 86400) / 3600)} h`;
}

export const length = (seconds) => (seconds < 120 && Number.isInteger(seconds) ? `${seconds} s` : span(seconds));

export const ago = (time) => {
  const seconds = (now() - Date.parse(time)) / 1000;
  return seconds < 1 ? "now" : seconds < 60 ? `${Math.floor(seconds)} s ago` : `${span(seconds).replace(/ \d\d s$/, "")} ago`;
};

export function clock(time, withDate) {
  const at = new Date(time);
  const today = at.toDateString() === new Date(now()).toDateString();
  const day = withDate || !today ? `${at.toLocaleDateString("en-CA")} ` : "";
  return day + at.toLocaleTimeString("en-GB");
}

const lasted = (time) => ago(time).replace(/^now$/, "less than 1 s").replace(/ ago$/, "");

// The zone of the browser, which all clocks of the page show: UTC+5:30.
export function zone() {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "shortOffset" }).formatToParts(now());
  return parts.find((one) => one.type === "timeZoneName").value.replace("GMT", "UTC").replace("UTC+0", "UTC");
}

export const Time = ({ at, relative, lasting }) => html`<time datetime=${at}
  title=${`${clock(at, true)} ${zone()} = ${at} (UTC)`}>${lasting ? lasted(at) : relative ? ago(at) : clock(at)}</time>`;
export const Pill = ({ kind, children }) => html`<span class="pill ${kind || ""}">${children}</span>`;
export const State = ({ of }) => html`<${Pill} kind=${STATE[of]}>${of}</${Pill}>`;
// How far a zone is out of service, or on its way back.
export const Isolated = ({ phase, status }) => html`<${Pill} kind="p-warn">${phase === "Failback" ? "coming back" : status === "Done" ? "isolated" : status === "Failed" ? "isolation failed" : "is being isolated"}</${Pill}>`;
// A zone that is away says so, also while an action is asked for.
export const GroupState = ({ group }) => (group.zone && group.state !== "Held"
  ? html`<${Isolated} phase=${group.isolation.phase} status=${group.isolation.status} />` : html`<${State} of=${group.state} />`);
export const Status = ({ of }) => html`<${Pill} kind=${STATUS[of]}>${of}</${Pill}>`;
export const path = (text) => text.split("/").map(encodeURIComponent).join("/");
// A long name breaks behind its slashes.
export const Broken = ({ text }) => text.split(/(?<=\/)/).map((part) => html`${part}<wbr />`);
export const Target = ({ of }) => html`<a class="wrap" href="#/target/${path(of)}"><${Broken} text=${of} /></a>`;
// What the reactor says has times in UTC: people read their own.
const MOMENT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)/;
export const Said = ({ text }) => (text || "").split(new RegExp(`(${MOMENT.source})`)).map((part) => (MOMENT.test(part) ? html`<${Time} at=${part} />` : part));

export const left = (group) => group.endsAt ? (Date.parse(group.endsAt) - now()) / 1000 : null;
export const Next = ({ group }) => group.next && html`<p class="next wrap">${left(group) > 0 ? `In ${span(left(group))} ` : "Now "}${group.next}.</p>`;

export function Title({ group }) {
  return html`<h3><a href="#/rules/${path(group.rule)}">${group.rule}</a>
    ${group.mode && group.mode !== "Enforce" && html` <${Pill} kind="p-blue">${group.mode}</${Pill}>`}</h3>
    <p class="dim small wrap"><${Broken} text=${group.object} /></p>`;
}

// A window as a bar against its toleration.
export function Window({ one, endsAt }) {
  const from = Date.parse(one.since);
  const until = one.seconds != null ? from + one.seconds * 1000 : endsAt ? Date.parse(endsAt) : null;
  const good = one.towards === "Healthy";
  const at = one.waitingSince ? Date.parse(one.waitingSince) : now();
  const whole = until ? Math.max(until - from, 1) : 0;
  const part = until ? Math.min(Math.max((at - from) / whole, 0), 1) : 0;
  const what = good ? "recovery" : "toleration";
  return html`<div class="window ${good ? "good" : ""} ${one.waitingSince ? "wait" : ""}">
    <div class="small"><${Target} of=${one.target} /> <span class="dim">${one.detail}</span></div>
    <div class="track" role="progressbar" aria-label=${`${what} of ${one.target}`} aria-valuemin="0" aria-valuemax="100"
      aria-valuenow=${Math.round(part * 100)}><div class="fill" style=${{ width: `${(part * 100).toFixed(2)}%` }}></div></div>
    <div class="ends"><span>${good ? "healthy" : "unhealthy"} for ${span((at - from) / 1000)}</span>
      <span>${one.waitingSince ? "waits: the health is unknown" : until ? `${what} ${length(whole / 1000)}` : ""}</span></div>
  </div>`;
}

export function Weights({ backends }) {
  const total = backends.reduce((sum, one) => sum + one.weight, 0);
  return html`<div class="weights">
    <div class="track" aria-hidden="true">${backends.map((one, at) => one.weight > 0 && html`<i class="s${Math.min(at, 5)}"
      style=${{ flexGrow: one.weight }}></i>`)}</div>
    <ul class="legend">${backends.map((one, at) => html`<li><i class="s${Math.min(at, 5)}"></i><span class="wrap">${one.service}</span>
      <span class="dim num"> ${total ? Math.round((one.weight / total) * 100) : 0} %</span></li>`)}</ul></div>`;
}

export const Outcome = ({ act }) => act.outcome?.goesOn ? html`<${Pill} kind="p-blue">${act.outcome.reason}</${Pill}>` : act.outcome
  ? html`<${Pill} kind=${OUTCOME[act.outcome.status]}>${act.outcome.status}</${Pill}>`
  : act.mode === "DryRun" ? html`<${Pill} kind="p-blue">DryRun</${Pill}>` : html`<${Pill}>Pending</${Pill}>`;

export const phrase = (text) => text && `${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;

// Sentences have `commands` in them.
export const Coded = ({ text }) => text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

export const weights = (of) => Object.entries(of || {}).map(([name, weight]) => `${name} ${weight}`).join(", ");

// A zone that is away, for people who may only look, too.
export const Away = ({ isolation }) => html`<p class="next wrap">Zone ${isolation.zone} is out of service: ${isolation.phase} ${isolation.status}${" "}
  <${Time} at=${isolation.since} relative />${isolation.failure && html`: <${Said} text=${isolation.failure} />`}</p>`;

// What kind of action it is; of a zone, which step.
export const named = (act) => act.step ? `${act.action}: ${act.undo ? "undo " : ""}${act.step} of ${act.zone}` : act.action;

export const Act = ({ act }) => html`<li class="act">
  <${Time} at=${act.at} />
  <span class="wrap"><a href="#/actions/${path(act.id)}"><b>${named(act)}</b></a> ${act.rule}
    <span class="dim"> on <${Broken} text=${act.object} /></span></span>
  <${Outcome} act=${act} />
  <span class="why wrap">${phrase(act.means || act.because)}${act.weights ? ` Weights: ${weights(act.weights)}.` : ""}
    ${act.by.length ? ` By ${act.by.join(", ")}.` : ""}
    ${act.outcome && act.outcome.status !== "Done" ? ` ${act.outcome.detail}` : ""}</span></li>`;

export const Acts = ({ acts, none }) => acts.length
  ? html`<ul class="list">${acts.map((act) => html`<${Act} key=${act.id} act=${act} />`)}</ul>`
  : html`<p class="dim">${none || "No actions."}</p>`;
