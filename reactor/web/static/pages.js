// Pages that ask the API once, and again when what they show changes.
import { Component } from "./vendor/preact.js";
import { PauseButton } from "./ask.js";
import { ByHand, Operate } from "./operate.js";
import { get, now, store } from "./store.js";
import { Metric, WeightsOverTime } from "./pictures.js";
import { Timeline } from "./timeline.js";
import { Course } from "./course.js";
import { Acts, Away, Broken, Coded, GroupState, Isolated, Next, Pill, Said, State, Status, Target, Time, Weights, Window, clock, html, length, named, path, span, weights } from "./parts.js";

const AGAIN_MS = 5000;

export class Asked extends Component {
  constructor(props) { super(props); this.state = { data: null, error: "" }; }
  componentDidMount() { this.look(); this.timer = setInterval(() => this.look(), this.props.every || AGAIN_MS); }
  componentDidUpdate(before) { if (before.from !== this.props.from) { this.setState({ data: null, error: "" }); this.look(); } }
  componentWillUnmount() { clearInterval(this.timer); this.gone = true; }
  async look() {
    const { from } = this.props;
    try {
      const data = await get(from);
      if (!this.gone && from === this.props.from) this.setState({ data, error: "" });
    } catch (error) { if (!this.gone) this.setState({ error: error.message }); }
  }
  render() {
    const { data, error } = this.state;
    return html`${error && html`<p class="error" role="alert">${error}</p>`}
      ${data ? this.props.show(data) : !error && html`<p class="dim">Loading…</p>`}`;
  }
}

function shownTarget(data) {
  const seen = data.observations;
  const changes = seen.filter((one, at) => !seen.slice(0, at).reverse().some((b) => b.signal === one.signal && b.status === one.status)
    || seen.slice(0, at).reverse().find((b) => b.signal === one.signal)?.status !== one.status);
  const first = seen.length ? Date.parse(seen[0].at) : now() - 60000;
  const mine = data.groups.flatMap((group) => group.targets.filter((one) => one.target === data.target));
  const acts = data.actions.filter((act) => Date.parse(act.at) >= first);
  return html`<p class="crumb"><a href="#/map">Map</a></p><h1><${Broken} text=${data.target} /></h1>
    <p>${mine.length > 0 && html`<${Status} of=${mine[0].status} /> <span class="dim">since <${Time} at=${mine[0].since} relative /></span>`}</p>
    <section><h2>Health and actions</h2><div class="card">
      ${seen.length ? html`<${Timeline} data=${data} acts=${acts} />`
      : html`<p class="dim">No observation in the last day.</p>`}
      ${data.metrics.map((metric) => html`<${Metric} key=${metric.signal} metric=${metric} seen=${seen} />`)}</div></section>
    ${data.groups.map((group) => html`<section key=${group.key}><h2><a href="#/rules/${path(group.rule)}">${group.rule}</a><${GroupState} group=${group} /></h2>
      <div class="card"><p class="dim small wrap"><${Broken} text=${group.object} /></p><${Next} group=${group} />
      ${group.windows.filter((one) => one.target === data.target).map((one) => html`<${Window} one=${one} endsAt=${group.endsAt} />`)}
      ${group.hold && html`<p class="wrap"><${Pill} kind="p-hold">${group.hold.reason}</${Pill}> <${Said} text=${group.hold.detail} /></p>`}
      ${group.backends.length > 0 && html`<${Weights} backends=${group.backends} /><${WeightsOverTime} backends=${group.backends}
        acts=${data.actions.filter((act) => act.rule === group.rule && act.object === group.object)} />`}</div></section>`)}
    <section><h2>Actions of these rules</h2><${Acts} acts=${data.actions.slice(0, 20)} /></section>
    <section><h2>Observations<span class="n">changes, the newest first</span></h2>
      <ul class="list">${changes.reverse().slice(0, 50).map((one) => html`<li class="act"><${Time} at=${one.at} />
        <span class="wrap"><b>${one.signal}</b> <span class="dim">${one.detail}</span></span><${Status} of=${one.status} /></li>`)}</ul></section>`;
}

export const TargetPage = ({ target }) => html`<${Asked} from=${`targets/${path(target)}`} every=${2000} show=${shownTarget} />`;

const short = (name) => (name.length > 30 ? `${name.slice(0, 29)}…` : name);

// Routes as flows: the width of a band is the share of the traffic.
function Flow({ route }) {
  const shown = route.backends.slice(0, 8);
  const total = shown.reduce((sum, one) => sum + one.weight, 0);
  const height = Math.max(shown.length * 46, 46);
  const middle = height / 2;
  return html`<svg class="flow" viewBox="0 0 420 ${height}" role="img" aria-label=${shown.map((one) => `${one.service} ${one.weight}`).join(", ")}>
    ${shown.map((one, at) => {
      const y = at * 46 + 23;
      const share = total ? one.weight / total : 0;
      return html`<g key=${one.service}>
        ${share > 0 ? html`<path class="k${Math.min(at, 5)}" stroke-width=${3 + share * 22} d=${`M14 ${middle} C 90 ${middle} 80 ${y} 160 ${y}`} />`
          : html`<path class="none" stroke-width="1.5" stroke-dasharray="3 4" d=${`M14 ${middle} C 90 ${middle} 80 ${y} 160 ${y}`} />`}
        <text x="172" y=${y - 2}><title>${one.service}</title>${short(one.service)}${one.service === route.primary ? " (primary)" : ""}</text>
        <text class="d" x="172" y=${y + 14}>${one.cluster || "cluster not known"} · ${Math.round(share * 100)} %</text></g>`;
    })}
    <circle cx="12" cy=${middle} r="8" fill="var(--accent)" /></svg>`;
}

// A box for each zone of a cluster, as large as it has nodes.
const ZoneMap = ({ zones }) => html`<ul class="zones">${zones.map((one) => html`<li key=${one.rule + one.zone} class=${one.isolation ? "isolated" : one.healthy === 0 ? "dark" : one.healthy < one.nodes ? "ill" : ""}
  style=${{ flexGrow: Math.max(one.nodes, 1) }}><b>${one.zone}</b><span class="small num">${one.healthy} of ${one.nodes} nodes ready</span>
  ${one.isolation && html`<span class="small"><${Isolated} phase=${one.isolation.phase} status=${one.isolation.status} />
    <a href="#/rules/${path(one.rule)}">${one.rule}</a>: ${one.isolation.because}, <${Time} at=${one.isolation.since} relative />${one.isolation.by ? `, by ${one.isolation.by}` : ""}</span>`}</li>`)}</ul>`;

function shownMap(data) {
  const zones = new Map();
  for (const one of data.clusters) {
    const name = [one.region, one.zone].filter(Boolean).join(" / ") || "Other clusters";
    zones.set(name, [...(zones.get(name) || []), one]);
  }
  return html`<h1>Map</h1><div class="regions">
    ${[...zones].map(([name, clusters]) => html`<section key=${name} style=${{ flexGrow: clusters.length }}><h2>${zones.size === 1 && name === "Other clusters" ? "Clusters" : name}<span class="n">${clusters.length}</span></h2><div class="map">
      ${clusters.map((one) => html`<article class="card" key=${one.name}><div class="row"><h3>${one.name}</h3>${one.status && html`<${Status} of=${one.status} />`}</div>
        <p class="dim small">${one.provider}</p><ul class="dots">${one.targets.slice(0, 60).map((target) => html`<li key=${target.target}>
        <a href="#/target/${path(target.target)}"><${Status} of=${target.status} /> <span class="small">${target.target.split("/").slice(2).join("/")}</span></a></li>`)}</ul>
        ${one.targets.length === 0 && html`<p class="dim small">No target is watched here.</p>`}
        ${one.zones.length > 0 && html`<${ZoneMap} zones=${one.zones} />`}</article>`)}</div></section>`)}</div>
    ${data.clusters.length === 0 && html`<p class="dim">No cluster is known yet.</p>`}
    <section><h2>Routes<span class="n">${data.routes.length}</span></h2><div class="map routes">
      ${data.routes.map((route) => html`<article class="card" key=${route.key}><div class="row"><div class="grow">
        <h3><a href="#/rules/${path(route.rule)}">${route.rule}</a></h3><p class="dim small wrap"><${Broken} text=${route.object} /></p></div>
        ${route.failedOver ? html`<${Pill} kind="p-warn">failed over</${Pill}>` : html`<${Pill} kind="p-good">on primary</${Pill}>`}</div>
        <${Flow} route=${route} /></article>`)}</div>
      ${data.routes.length === 0 && html`<p class="dim">No rule has a route yet.</p>`}</section>`;
}

export const MapPage = () => html`<${Asked} from="map" every=${2000} show=${shownMap} />`;

const FILTERS = [["rule", "Rule (pattern)"], ["object", "Object"], ["type", "Action"], ["outcome", "Outcome"], ["since", "Since"], ["until", "Until"]];
const TIMES = ["since", "until"];
// The address has times in UTC; people give and read those of their zone.
const local = (time) => (Number.isNaN(Date.parse(time)) ? "" : clock(time, true).replace(" ", "T"));
const utc = (value) => (value ? new Date(value).toISOString() : "");

export function ActionsPage({ query }) {
  const set = (name, value) => {
    const next = new URLSearchParams(query);
    if (value) next.set(name, value); else next.delete(name);
    location.hash = `#/actions${[...next].length ? `?${next}` : ""}`;
  };
  const given = new URLSearchParams(query);
  return html`<h1>Actions</h1><div class="filters">
    ${FILTERS.map(([name, label]) => html`<label class="field ${TIMES.includes(name) ? "time" : ""}">${label}
      ${name === "outcome" ? html`<select value=${given.get(name) || ""} onChange=${(event) => set(name, event.target.value)}>
        ${["", "Done", "Failed", "Refused", "Pending"].map((one) => html`<option value=${one}>${one || "all"}</option>`)}</select>`
        : TIMES.includes(name) ? html`<input type="datetime-local" step="1" key=${given.get(name) || ""} defaultValue=${local(given.get(name))} onChange=${(event) => set(name, utc(event.target.value))} />`
        : html`<input key=${given.get(name) || ""} defaultValue=${given.get(name) || ""} placeholder="all" onChange=${(event) => set(name, event.target.value.trim())} />`}</label>`)}</div>
    <${Asked} from=${`actions?${given}`} show=${(data) => html`<${Acts} acts=${data.actions} none="No action fits these filters." />
      ${data.leftOut > 0 && html`<p class="dim">${data.leftOut} more: narrow the filters.</p>`}`} />`;
}

const STEPS = [["observations", "What was observed"], ["windows", "Windows"], ["evidence", "Evidence"], ["decision", "Decision"],
  ["guards", "Guards"], ["write", "What was written"], ["outcomes", "Outcome"]];

const shownAction = (data) => html`<p class="crumb"><a href="#/actions">Actions</a></p><h1>${named(data.action)}</h1>
  <p class="dim mono wrap">${data.id}</p>
  ${data.action.weights && html`<p>Weights: ${weights(data.action.weights)}</p>`}
  <${Course} data=${data} />
  <section><h2>Why, from cause to outcome</h2><ol class="chain">${STEPS.map(([part, title], at) => html`<li class=${data[part].length ? "" : "none"}>
    <i>${at + 1}</i><h3>${title}</h3><ul>${data[part].map((line) => html`<li><${Said} text=${line} /></li>`)}
    ${data[part].length === 0 && html`<li class="dim">none recorded</li>`}</ul></li>`)}</ol></section>`;

export const ActionPage = ({ id }) => html`<${Asked} from=${`actions/${path(id)}`} show=${shownAction} />`;

function shownRules(data) {
  if (data.rules.length === 0) return html`<p class="dim">No rule is loaded.</p>`;
  return html`<div class="panel wide"><table><thead><tr><th>Rule</th><th class="opt">Kind</th><th>Mode</th><th>State of its objects</th></tr></thead>
    <tbody>${data.rules.map((rule) => html`<tr key=${rule.name}><td><a href="#/rules/${path(rule.name)}">${rule.name}</a>
      ${rule.paused && html` <${Pill} kind="p-warn">paused</${Pill}>`}</td><td class="opt">${rule.kind}</td>
      <td><${Pill} kind=${rule.mode === "Enforce" ? "p-good" : "p-blue"}>${rule.mode}</${Pill}></td>
      <td>${Object.entries(rule.states).map(([state, n]) => html`<${State} of=${state} /> <span class="dim num">${n} </span>`)}
        ${rule.objects.length === 0 && html`<span class="dim">no object seen</span>`}</td></tr>`)}</tbody></table></div>`;
}

export const RulesPage = () => html`<h1>Rules</h1><p class="dim">As in the rule files of this process.</p><${Asked} from="rules" show=${shownRules} />`;

function shownRule(name) {
  return (data) => {
    const rule = data.rules.find((one) => one.name === name);
    const groups = [...store.groups.values()].filter((one) => one.rule === name);
    if (!rule && groups.length === 0) return html`<h1>${name}</h1><p class="error">No rule has this name.</p>`;
    return html`<p class="crumb"><a href="#/rules">Rules</a></p><div class="row"><h1>${name}</h1><div><${PauseButton} rule=${name} /></div></div>
      ${rule && html`<p><${Pill}>${rule.kind}</${Pill}> <${Pill} kind=${rule.mode === "Enforce" ? "p-good" : "p-blue"}>${rule.mode}</${Pill}>
        ${rule.paused && html` <${Pill} kind="p-warn">paused</${Pill}>`} <span class="dim mono" title=${rule.place}>${rule.place.split("/").pop()}</span></p>
        <p>Toleration ${length(rule.tolerationSeconds)}, recovery ${length(rule.recoverySeconds)}.</p>`}
      <section><h2>Objects<span class="n">${groups.length}</span></h2><div class="cards">${groups.slice(0, 100).map((group) => html`<article class="card" key=${group.key}>
        <div class="row"><p class="wrap"><${Broken} text=${group.object} /></p><${GroupState} group=${group} /></div>
        ${group.windows.map((one) => html`<${Window} one=${one} endsAt=${group.endsAt} />`)}
        ${group.hold && html`<p class="wrap"><${Pill} kind="p-hold">${group.hold.reason}</${Pill}> <${Said} text=${group.hold.detail} /></p>`}
        ${group.zone && html`<${Away} isolation=${group.isolation} />`}
        ${group.targets.map((one) => html`<p class="small">${one.target.split("/").pop() === group.zone ? html`<${Pill} kind="p-warn">out of service</${Pill}> <span class="dim">last seen ${one.status}</span>`
          : html`<${Status} of=${one.status} />`} <${Target} of=${one.target} /></p>`)}
        ${group.backends.length > 0 && html`<${Weights} backends=${group.backends} />`}
        <${ByHand} group=${group} /><${Operate} group=${group} zones=${rule?.zones} /></article>`)}</div></section>
      ${rule && rule.coverage.length > 0 && html`<section><h2>Coverage<span class="n">what it watches, and which sources report it</span></h2><ul class="list">${rule.coverage.map((one) => html`<li class="row">
        <span class="wrap mono"><${Broken} text=${one.target} /></span><span>${one.sources.length ? one.sources.map((source) => html`<${Pill}>${source}</${Pill}> `)
          : html`<${Pill} kind="p-warn">no source</${Pill}>`}</span></li>`)}</ul></section>`}
      <section><h2>Actions</h2><${Asked} from=${`actions?limit=200&rule=${encodeURIComponent(name)}`} show=${(found) => html`
        ${groups.filter((one) => one.backends.length > 0).slice(0, 20).map((group) => {
          const mine = found.actions.filter((act) => act.object === group.object);
          return mine.some((act) => act.weights && act.outcome?.status === "Done") && html`<div class="card gap" key=${group.key}><p class="dim small wrap">${group.object}</p><${WeightsOverTime} acts=${mine} backends=${group.backends} /></div>`;
        })}<${Acts} acts=${found.actions.slice(0, 20)} />`} /></section>
      ${rule && html`<section><h2>Text</h2><pre tabindex="0" aria-label="Text of the rule">${rule.text}</pre>
        ${rule.backtests.length > 0 ? html`<p class="small">On the past: ${rule.backtests.map((one) => html`<a href=${one.path}>${one.title}</a> `)}</p>`
          : rule.backtestCommand && html`<p class="small">Try it on the past: <${Coded} text=${`\`${rule.backtestCommand}\``} /></p>`}</section>`}`;
  };
}

export const RulePage = ({ name }) => html`<${Asked} from="rules" show=${shownRule(name)} />`;

function shownMembers(data) {
  const alive = data.partitions.filter((one) => one.alive).length;
  const unread = data.partitions.reduce((sum, one) => sum + one.unread, 0);
  return html`<div class="tiles three"><div class="tile"><b>${data.processes.length}</b><span>processes</span></div>
      <div class="tile ${alive < data.partitions.length ? "t-bad" : ""}"><b>${alive} / ${data.partitions.length}</b><span>partitions with an owner</span></div>
      <div class="tile"><b>${unread}</b><span>facts unread</span></div></div>
    <section><h2>Processes</h2><div class="panel wide"><table><thead><tr><th>Name</th><th>Roles</th><th class="opt">Version</th><th class="opt">Rules</th><th>Since</th></tr></thead>
      <tbody>${data.processes.map((one) => html`<tr key=${one.name}><td class="wrap"><b>${one.name}</b>${one.problems.map((text) => html`<p class="error small">${text}</p>`)}</td>
      <td class="small">${one.roles.join(", ")}</td><td class="opt">${one.version}</td><td class="mono opt">${one.rules.slice(0, 10)}</td><td><${Time} at=${one.since} relative /></td></tr>`)}</tbody></table></div></section>
    <section><h2>Members</h2><div class="panel wide"><table><thead><tr><th>Name</th><th>Role</th><th>State</th><th class="r">Partitions</th><th class="r opt">Heartbeat</th></tr></thead>
      <tbody>${data.members.map((one) => html`<tr key=${one.role + one.name}><td class="wrap">${one.name}</td><td>${one.role}</td>
      <td><${Pill} kind=${one.alive ? "p-good" : "p-bad"}>${one.alive ? "alive" : "no answer"}</${Pill}></td><td class="r">${one.partitions ?? ""}</td>
      <td class="r opt">${span(one.heartbeat_seconds)}</td></tr>`)}</tbody></table></div></section>`;
}

export const MembersPage = () => html`<h1>Members</h1><${Asked} from="members" show=${shownMembers} />`;
