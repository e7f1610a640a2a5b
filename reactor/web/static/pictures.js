// Pictures over time, as SVG: who had how much of the traffic, and a metric against its threshold.
import { clock, html, zone } from "./parts.js";
import { now } from "./store.js";

const WIDE = 1000;
const across = (first, last) => (time) => ((Date.parse(time) - first) / Math.max(last - first, 1)) * WIDE;

export const Scale = ({ first, last, end }) => html`<div class="scale"><span>${clock(first)} ${zone()}</span><span>${clock((first + last) / 2)}</span><span>${end || "now"}</span></div>`;

const total = (weights) => Object.values(weights).reduce((sum, one) => sum + one, 0) || 1;

// One column for each time between two writes that were done.
export function WeightsOverTime({ acts, backends }) {
  const done = acts.filter((act) => act.weights && act.outcome?.status === "Done").sort((a, b) => (a.at < b.at ? -1 : 1));
  if (done.length === 0) return null;
  const last = now();
  const first = Date.parse(done[0].at) - Math.max((last - Date.parse(done[0].at)) * 0.1, 10000);
  if (done[0].before) done.unshift({ at: new Date(first).toISOString(), weights: done[0].before });
  const x = across(first, last);
  const names = [...new Set([...backends.map((one) => one.service), ...done.flatMap((act) => Object.keys(act.weights))])];
  const words = done.map((act) => `${clock(act.at)}: ${Object.entries(act.weights).map(([name, weight]) => `${name} ${weight}`).join(", ")}`).join("; ");
  return html`<div class="over"><p class="small"><b>Weights over time</b> <span class="dim">of the actions that were done</span></p>
    <svg class="lane tall" viewBox="0 0 ${WIDE} 64" preserveAspectRatio="none" role="img" aria-label=${`Weights over time: ${words}`}>
    ${done.map((act, at) => {
      const from = x(act.at);
      const to = at + 1 < done.length ? x(done[at + 1].at) : WIDE;
      let y = 64;
      return names.map((name, index) => {
        const high = (64 * (act.weights[name] || 0)) / total(act.weights);
        y -= high;
        return high > 0 && html`<rect class="f${Math.min(index, 5)}" x=${from} y=${y} width=${Math.max(to - from, 1)} height=${high}><title>${act.at} ${name} ${act.weights[name]}</title></rect>`;
      });
    })}</svg><${Scale} first=${first} last=${last} />
    <ul class="legend">${names.map((name, index) => html`<li><i class="s${Math.min(index, 5)}"></i><span class="wrap">${name}</span></li>`)}</ul></div>`;
}

const VALUE = /^value ([-+.\deE]+)$/;
const shown = (value) => String(Number(value.toPrecision(4)));

// The samples of a query, with the line that parts Healthy from Unhealthy.
export function Metric({ metric, seen }) {
  const points = seen.filter((one) => one.signal === metric.signal).map((one) => ({ ...one, value: Number(VALUE.exec(one.detail)?.[1] ?? NaN) }))
    .filter((one) => Number.isFinite(one.value));
  const bounds = [["above", metric.above], ["below", metric.below]].filter(([, value]) => value != null);
  if (points.length === 0 || bounds.length === 0) return null;
  const first = Date.parse(points[0].at);
  const last = Math.max(now(), first + 1000);
  const values = [...points.map((one) => one.value), ...bounds.map(([, value]) => value)];
  const low = Math.min(0, ...values);
  const high = Math.max(...values) + (Math.max(...values) - low || 1) * 0.15;
  const x = across(first, last);
  const y = (value) => 90 - ((value - low) / (high - low || 1)) * 90;
  const line = points.map((one, at) => `${at ? `H${x(one.at)}V` : `M${x(one.at)} `}${y(one.value)}`).join("") + `H${WIDE}`;
  const newest = points[points.length - 1];
  const words = bounds.map(([word, value]) => `Unhealthy ${word} ${shown(value)}`).join(", ");
  return html`<div class="over"><p class="small"><b>${metric.signal}</b> is <b class="${newest.status === "Unhealthy" ? "bad" : ""}">${shown(newest.value)}</b>
      <span class="dim"> · ${words}</span></p>
    <div class="plot"><svg class="lane metric" viewBox="0 0 ${WIDE} 90" preserveAspectRatio="none" role="img" aria-label=${`${metric.signal}: ${shown(newest.value)}. ${words}`}>
    ${bounds.map(([word, value]) => html`<rect class="zone" x="0" width=${WIDE} y=${word === "above" ? 0 : y(value)} height=${word === "above" ? y(value) : 90 - y(value)} />
      <line class="threshold" x1="0" x2=${WIDE} y1=${y(value)} y2=${y(value)} />`)}
    <path class="curve" d=${line} /></svg>
    ${bounds.map(([word, value]) => html`<svg class="mark" aria-hidden="true"><text x="4" y=${`${Math.max((y(value) / 90) * 100, 16)}%`} dy="-4">${word} ${shown(value)}</text></svg>`)}</div>
    <${Scale} first=${first} last=${last} /><p class="dim small mono wrap">${metric.query}</p></div>`;
}
