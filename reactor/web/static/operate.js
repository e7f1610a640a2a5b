// What the role operate may do by hand: move the traffic of a route, and take a zone out of service and bring it back.
import { may } from "./store.js";
import { Said, Time, html } from "./parts.js";
import { LENGTHS, Order } from "./ask.js";

const HOW_LONG = { name: "forSeconds", label: "How long", options: [["", "until it is released"], ...LENGTHS.slice(1)] };
const FORCE = { name: "force", label: "Force: also to what is not Healthy", check: true };
const NO_PROOF = { name: "force", label: "Force: without proof that the zone is healthy", check: true };
const UNGUARDED = { name: "force", label: "Force: skip the guards that can be forced", check: true };

export function ByHand({ group }) {
  const { override } = group;
  return override && html`<p class="wrap small">Moved by hand by ${override.by} <${Time} at=${override.since} relative />
    ${override.until ? html` until <${Time} at=${override.until} />` : " until it is released"}: <${Said} text=${override.reason} /></p>`;
}

function RouteButtons({ group }) {
  const body = { rule: group.rule, object: group.object };
  const others = group.backends.filter((one) => one.service !== group.primary).map((one) => one.service);
  const to = { name: "to", label: "To", list: true, options: [["", "all secondaries that are ready"], ...others.map((name) => [name, name])] };
  return html`<div class="buttons operate">
    <${Order} verb="failover-traffic" word="Fail over" body=${body} planned fields=${[to, HOW_LONG, FORCE]}
      plan="Traffic leaves the primary now. Windows, cooldowns and approvals do not stop this; a pause does." />
    <${Order} verb="failback-traffic" word="Fail back" body=${body} planned fields=${[HOW_LONG, FORCE]} plan="Traffic comes back to the primary now." />
    <${Order} verb="release-traffic" word="Release" body=${body} planned plan="The rule decides again about what was moved or changed by hand." /></div>`;
}

function ZoneButtons({ group, zones }) {
  const body = { rule: group.rule };
  const { isolation } = group;
  if (!isolation) {
    const zone = { name: "zone", label: "Zone", options: zones.map((name) => [name, name]) };
    return zones.length > 0 && html`<div class="buttons operate"><${Order} verb="isolate-zone" word="Isolate a zone" body=${body} planned fields=${[zone, UNGUARDED]}
      plan="The zone is taken out of service. A guard that refuses is shown below; the refusal is recorded in the audit." /></div>`;
  }
  const failed = isolation.status === "Failed";
  const running = isolation.phase === "Failover" && isolation.status !== "Done";
  return html`<div class="buttons operate">
    ${failed && html`<${Order} verb="retry-zone" word="Retry" body=${body} planned plan="It continues at the step that failed." />`}
    ${running && html`<${Order} verb="abort-zone" word="Abort" body=${body} planned plan="The steps are undone at once, the last one first." />`}
    ${!running && html`<${Order} verb="failback-zone" word="Fail back" body=${body} planned fields=${[NO_PROOF]} plan="The zone comes back: first the network, then the nodes." />`}</div>`;
}

export function Operate({ group, zones }) {
  if (!may("operate")) return null;
  if (group.backends.length > 0) return html`<${RouteButtons} group=${group} />`;
  return (group.isolation || (zones || []).length > 0) && html`<${ZoneButtons} group=${group} zones=${zones || []} />`;
}
