// Pauses in effect, and what a rule asks people to approve.
import { store } from "./store.js";
import { Time, html } from "./parts.js";

export const Pauses = () => store.pauses.map((one) => html`<div class="card edge e-away" key=${one.pattern}>
  <b>Paused: rules ${one.pattern === "*" ? "of all names" : html`<span class="mono">${one.pattern}</span>`}</b>
  <p class="wrap">By ${one.by} <${Time} at=${one.since} relative />: ${one.reason}</p>
  <p class="dim small">${one.until ? html`Ends at <${Time} at=${one.until} />` : "Until it is resumed."}</p></div>`);

export const Ask = () => null;
