// The chain of an action in one line: when each part was, and how long after the one before.
import { Time, html, length, span } from "./parts.js";

const MOMENT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)/;
const WINDOW = new RegExp(`(toleration|recovery) began (${MOMENT.source})`);
const moment = (lines) => MOMENT.exec(lines.at(-1) || "")?.[0];
const past = (seconds) => (seconds < 0.1 ? `${Math.round(seconds * 1000)} ms` : span(seconds));

// The window that had run out, as a bar: it was as long as its toleration, or longer where something held it.
function bar(kind, seconds) {
  return html`<span class="track" role="img" aria-label=${`${kind}: ${length(seconds)}`}><i></i></span><span class="small">${kind} ${length(seconds)}</span>`;
}

function steps(data) {
  const decided = data.action.decidedAt;
  const [, kind, began] = data.windows.map((line) => WINDOW.exec(line)).filter(Boolean).at(-1) || [];
  const outcome = /(Done|Failed|Refused)/.exec(data.outcomes.at(-1) || "")?.[1];
  const idle = /nothing had to be written/.test(data.outcomes.at(-1) || "");
  const wrote = !outcome ? "not known yet" : outcome !== "Done" ? "see the outcome" : idle ? "nothing had to be" : data.action.object;
  const ran = began ? Math.max((Date.parse(decided) - Date.parse(began)) / 1000, 0) : 0;
  return [
    { part: "observed", title: "Observed", at: moment(data.observations) },
    { part: "window", title: "Window", at: began, more: began ? bar(kind, ran) : html`<span class="dim small">none was open</span>` },
    { part: "decided", title: "Decided", at: decided },
    { part: "guards", title: "Guards", more: html`<span class="dim small">${data.guards.length ? `${data.guards.length} on the way, see below` : "none held it back"}</span>` },
    { part: "written", title: "Written", more: html`<span class="dim small wrap">${wrote}</span>` },
    { part: "outcome", title: outcome || "No outcome yet", at: moment(data.outcomes), kind: outcome === "Done" ? "ok" : outcome ? "bad" : "wait" },
  ];
}

export function Course({ data }) {
  let before = null;
  return html`<ol class="course">${steps(data).map(({ part, title, at, more, kind }) => {
    const time = at ? Date.parse(at) : null;
    const after = time != null && before != null ? Math.max((time - before) / 1000, 0) : null;
    before = time ?? before;
    return html`<li key=${part} class="c-${part} ${kind || ""}"><b>${title}</b>
      ${time != null && html`<${Time} at=${at} />`}${after != null && html`<span class="dim small">+ ${past(after)}</span>`}${more}</li>`;
  })}</ol>`;
}
