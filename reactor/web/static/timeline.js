// A day of one target: what each signal said, the windows that opened, and what was done.
import { now } from "./store.js";
import { html, length, named, span } from "./parts.js";
import { Scale } from "./pictures.js";

const WIDE = 1000;

// Windows that are open, as long as they run; and those at whose end something was done.
function windowsOf(data, acts) {
  const open = data.groups.flatMap((group) => group.windows.map((one) => ({ ...one, rule: group.rule, from: Date.parse(one.since),
    to: one.seconds != null ? Date.parse(one.since) + one.seconds * 1000 : group.endsAt ? Date.parse(group.endsAt) : now() })));
  const ended = acts.flatMap((act) => (act.windows || []).map((one) => ({ ...one, rule: act.rule, from: Date.parse(one.since), to: Date.parse(act.at) })));
  return [...ended, ...open].filter((one) => one.target === data.target);
}

function Lane({ signal, list, acts, windows, x, last }) {
  const end = (at) => (at + 1 < list.length ? x(Date.parse(list[at + 1].at)) : x(last));
  return html`<p class="small"><b>${signal}</b></p>
    <svg class="lane" viewBox="0 0 ${WIDE} 26" preserveAspectRatio="none" role="img" aria-label=${`health by ${signal}`}>
      ${list.map((one, at) => html`<rect class="v-${one.status}" x=${x(Date.parse(one.at))} y="4" height="12"
        width=${Math.max(end(at) - x(Date.parse(one.at)), 1)}><title>${one.at} ${one.status}</title></rect>`)}
      ${windows.map((one) => html`<rect class="window v-${one.towards}" x=${x(one.from)} y="18" height="8" width=${Math.max(x(one.to) - x(one.from), 1)}>
        <title>${one.rule}: ${one.towards === "Healthy" ? "recovery" : "toleration"} since ${one.since}, ${length((one.to - one.from) / 1000)}</title></rect>`)}
      ${acts.map((act) => html`<rect class="v-act" x=${x(Date.parse(act.at))} y="0" width="3" height="26"><title>${act.at} ${named(act)}</title></rect>`)}
    </svg>`;
}

export function Timeline({ data, acts }) {
  const seen = data.observations;
  const at = now();
  const windows = windowsOf(data, acts);
  const first = Math.min(Date.parse(seen[0].at), ...windows.map((one) => one.from));
  const last = Math.max(at, ...windows.map((one) => one.to));
  const x = (time) => ((time - first) / Math.max(last - first, 1)) * WIDE;
  const bySignal = new Map();
  for (const one of seen) bySignal.set(one.signal, [...(bySignal.get(one.signal) || []), one]);
  return html`${[...bySignal].map(([signal, list]) => html`<${Lane} key=${signal} signal=${signal} list=${list} acts=${acts} windows=${windows} x=${x} last=${at} />`)}
    <${Scale} first=${first} last=${last} end=${last > at ? `in ${span((last - at) / 1000)}` : "now"} />
    <ul class="legend"><li><i class="lg-good"></i>Healthy</li><li><i class="lg-bad"></i>Unhealthy</li><li><i class="s5"></i>Unknown</li>
      ${windows.length > 0 && html`<li><i class="lg-window"></i>window, below the health</li>`}<li><i class="lg-act"></i>action</li></ul>`;
}
