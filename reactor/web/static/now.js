// Now: windows that count down, what is held and why, what is failed over, what was done.
import { may, store } from "./store.js";
import { Acts, Away, Coded, GroupState, Next, Pill, Said, Target, Time, Title, Weights, Window, html, left, path, span } from "./parts.js";
import { Ask, PauseButton, Pauses } from "./ask.js";
import { ByHand, Operate } from "./operate.js";

const SHOWN = 100;

function Count({ group, word }) {
  const seconds = left(group);
  if (seconds == null) return null;
  return html`<div class="count">${seconds > 0 ? span(seconds) : "due"}<small>${word}</small></div>`;
}

const Counting = ({ group }) => html`<article class="card edge ${group.state === "Recovering" ? "e-good" : "e-bad"}">
  <div class="row"><div class="grow"><${Title} group=${group} /></div><${Count} group=${group} word="left" /></div>
  <${Next} group=${group} />
  ${group.windows.map((one) => html`<${Window} key=${one.target} one=${one} endsAt=${group.endsAt} />`)}
  <p class="dim small wrap">To stop it: <code>reactor pause ${group.rule}</code></p>
  ${may("operate") && html`<div class="buttons"><${PauseButton} rule=${group.rule} /></div>`}
  ${group.pause && html`<div class="do">The rule is paused by ${group.pause.by}: it takes no action.</div>`}</article>`;

const Held = ({ group }) => html`<article class="card edge e-hold">
  <div class="row"><div class="grow"><${Title} group=${group} /></div><${Count} group=${group} word=${group.hold.reason === "AwaitingApproval" ? "to answer" : "until the next look"} /></div>
  <p class="next wrap"><${Pill} kind="p-hold">${group.hold.reason}</${Pill}> ${group.hold.means}</p>
  <p class="wrap"><${Said} text=${group.hold.detail} /></p>
  <p class="dim small">Held for <${Time} at=${group.hold.since} lasting /></p>
  ${group.hold.do && html`<div class="do"><b>What to do: </b><${Coded} text=${group.hold.do.replaceAll("RULE", group.rule)} /></div>`}
  <${Ask} group=${group} />
  ${group.windows.map((one) => html`<${Window} key=${one.target} one=${one} endsAt=${group.endsAt} />`)}</article>`;

const Undo = ({ group }) => (group.failedOver || group.zone) && html`<p class="dim small wrap">To undo:${" "}
  <code>reactor ${group.zone ? "zone" : "traffic"} failback ${group.rule}</code></p>`;

const Other = ({ group }) => html`<article class="card edge ${group.state === "Acting" ? "e-act" : "e-away"}">
  <div class="row"><div class="grow"><${Title} group=${group} /></div><div><${GroupState} group=${group} /></div></div>
  ${!group.failedOver && !group.zone && html`<${Next} group=${group} />`}
  ${group.windows.map((one) => html`<${Window} key=${one.target} one=${one} endsAt=${group.endsAt} />`)}
  ${group.pause && html`<div class="do">The rule is paused by ${group.pause.by}: it takes no action, also when a window ends.</div>`}
  ${group.zone ? html`<${Away} isolation=${group.isolation} />` : group.failedOver && html`<p class="next">Failed over${group.since ? html` <${Time} at=${group.since} relative />` : ""}</p>`}
  ${group.targets.filter((one) => one.healthy === false).map((one) => html`<p class="small"><${Target} of=${one.target} />${" "}
    is considered unhealthy</p>`)}
  ${group.backends.length > 0 && html`<${Weights} backends=${group.backends} />`}<${Undo} group=${group} /><${ByHand} group=${group} /><${Operate} group=${group} /></article>`;

const Section = ({ id, title, groups, of: Part }) => groups.length > 0 && html`<section id=${id}>
  <h2>${title}<span class="n">${groups.length}</span></h2>
  <div class="cards">${groups.slice(0, SHOWN).map((group) => html`<${Part} key=${group.key} group=${group} />`)}</div>
  ${groups.length > SHOWN && html`<p class="dim">${groups.length - SHOWN} more: the API and reactor status list all.</p>`}</section>`;

const Tile = ({ n, word, kind }) => html`<div class="tile ${kind} ${n ? "" : "zero"}"><b>${n}</b><span>${word}</span></div>`;

export function Now() {
  const all = [...store.groups.values()];
  const counting = all.filter((one) => one.state === "Tolerating" || one.state === "Recovering")
    .sort((a, b) => (left(a) ?? 1e9) - (left(b) ?? 1e9));
  const held = all.filter((one) => one.state === "Held");
  const paused = all.filter((one) => one.state === "Paused");
  const away = all.filter((one) => (one.failedOver || one.zone) && !counting.includes(one) && !held.includes(one));
  const busy = all.filter((one) => one.state === "Acting" || (one.state === "Acted" && !one.failedOver));
  const acting = busy.filter((one) => !away.includes(one));
  const calm = all.filter((one) => one.state === "Watching" && !one.failedOver && !one.zone);
  const quiet = counting.length + held.length + away.length + acting.length + paused.length === 0 && all.length > 0;
  const names = [["counting", counting.length], ["held", held.length], ["failed over", all.filter((one) => one.failedOver).length]];
  return html`<div class="row"><h1>Now</h1><div><${PauseButton} rule="*" /></div></div><${Pauses} />
    <div class="tiles" aria-label=${names.map(([word, n]) => `${n} ${word}`).join(", ")}>
      <${Tile} n=${counting.length} word="counting down" kind="t-bad" /><${Tile} n=${held.length} word="held" kind="t-hold" />
      <${Tile} n=${all.filter((one) => one.failedOver).length} word="failed over" kind="t-away" />
      <${Tile} n=${all.filter((one) => one.state === "Acting").length} word="acting" kind="t-act" />
      <${Tile} n=${calm.length} word="all well" kind="" /></div>
    ${all.length === 0 && html`<section id="unfed"><h2>Nothing is watched</h2><div class="card edge e-away"><b>No rule has an object yet, so nothing here can fail over.</b>
      <p class="dim">A rule gets its objects when a source first reports what it watches. <a href="#/rules">Rules</a> has the sources of each rule;${" "}
      <code>reactor doctor</code> names rules that no source feeds.</p></div></section>`}
    ${quiet && html`<section><h2>All quiet</h2><div class="card calm">
      <svg width="40" height="40" viewBox="0 0 40 40" aria-hidden="true"><circle cx="20" cy="20" r="18" class="v-Healthy" opacity=".16" />
      <path d="M12 21l6 6 11-13" fill="none" stroke="var(--good)" stroke-width="3" stroke-linecap="round" stroke-linejoin="round" /></svg>
      <div><b>Nothing counts down, nothing is held, nothing is failed over.</b>
      <p class="dim">${all.length} ${all.length === 1 ? "object is" : "objects are"} watched.</p></div></div></section>`}
    <${Section} id="counting" title="Counting down" groups=${counting} of=${Counting} />
    <${Section} id="held" title="Held" groups=${held} of=${Held} />
    <${Section} id="paused" title="Paused" groups=${paused} of=${Other} />
    <${Section} id="acting" title="Acting" groups=${acting} of=${Other} />
    <${Section} id="away" title="Failed over" groups=${away} of=${Other} />
    <section><h2>Recent actions</h2><${Acts} acts=${store.actions.slice(0, 10)} none="No action in the last month." />
      ${store.actions.length > 10 && html`<p><a href="#/actions">All actions</a></p>`}</section>
    ${calm.length > 0 && html`<section><details open=${calm.length <= 12}><summary>${calm.length} all well</summary>
      <ul class="list">${calm.slice(0, 300).map((one) => html`<li class="row" key=${one.key}><span class="wrap"><a href="#/rules/${path(one.rule)}">${one.rule}</a>
        <span class="dim"> ${one.object}</span></span><span class="dim small">${one.mode}</span></li>`)}</ul></details></section>`}`;
}
