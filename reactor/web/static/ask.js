// Pauses in effect, what a rule asks people to approve, and the form in which people give their reason.
import { Component, createRef } from "./vendor/preact.js";
import { may, send, store } from "./store.js";
import { Said, Time, html } from "./parts.js";

const LENGTHS = [["", "until it is resumed"], ["600", "10 minutes"], ["3600", "1 hour"], ["14400", "4 hours"], ["86400", "1 day"]];
const WAITING = ["AwaitingApproval", "ApprovalExpired", "Rejected"];

// A button that asks for a reason before it gives the command.
export class Order extends Component {
  dialog = createRef();

  submit = async (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const body = { ...this.props.body, comment: given.get("comment") };
    if (given.get("rule")) body.rule = given.get("rule");
    if (given.get("for")) body.forSeconds = Number(given.get("for"));
    this.setState({ busy: true, error: "" });
    try {
      await send("POST", `commands/${this.props.verb}`, body);
      this.dialog.current.close();
      this.setState({ done: true });
    } catch (error) { this.setState({ error: error.message }); }
    this.setState({ busy: false });
  };

  render() {
    const { word, plan, lengths, pattern, primary, verb } = this.props;
    return html`<button class="${primary ? "primary" : ""} v-${verb}" onClick=${() => { this.setState({ error: "" }); this.dialog.current.showModal(); }}>${word}</button>
      ${this.state.done && html`<span class="dim small" role="status">Sent.</span>`}
      <dialog ref=${this.dialog} aria-label=${word}><form onSubmit=${this.submit}><h1>${word}</h1><p class="wrap"><${Said} text=${plan} /></p>
        ${pattern && html`<label class="field">Rules (a name, or a pattern)<input name="rule" required value=${pattern} /></label>`}
        ${lengths && html`<label class="field">How long<select name="for">${lengths.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>`}
        <label class="field">Reason, for the audit<input name="comment" required maxlength="1000" autocomplete="off" autofocus /></label>
        ${this.state.error && html`<p class="error" role="alert">${this.state.error}</p>`}
        <div class="buttons"><button class="primary" disabled=${this.state.busy}>${word}</button>
        <button type="button" onClick=${() => this.dialog.current.close()}>Cancel</button></div>
        <p class="dim small">Recorded as ${store.session.name}.</p></form></dialog>`;
  }
}

export const PauseButton = ({ rule }) => may("operate") && html`<${Order} verb="pause" word=${rule === "*" ? "Pause" : `Pause ${rule}`} body=${{ rule }}
  pattern=${rule} lengths=${LENGTHS} plan="The rules take no action until the pause ends. A write that has begun is finished. They continue to watch." />`;

export const Pauses = () => store.pauses.map((one) => html`<div class="card edge e-away paused" key=${one.pattern}>
  <b>Paused: ${one.pattern === "*" ? "all rules" : html`rules <span class="mono">${one.pattern}</span>`}</b>
  <p class="wrap">By ${one.by} <${Time} at=${one.since} relative />: ${one.reason}</p>
  <p class="dim small">${one.until ? html`Ends at <${Time} at=${one.until} />.` : "Until it is resumed."}</p>
  ${may("operate") && html`<div class="buttons"><${Order} verb="resume" word="Resume" body=${{ rule: one.pattern }}
    plan="Rules whose toleration time is over act at once." /></div>`}</div>`);

export function Ask({ group }) {
  if (!may("approve") || !group.request || !group.hold || !WAITING.includes(group.hold.reason)) return null;
  const body = { rule: group.rule, object: group.object, request: group.request };
  return html`<div class="buttons">
    <${Order} verb="approve" word="Approve" primary=${true} body=${body} plan=${`${group.rule}: ${group.hold.detail}`} />
    <${Order} verb="reject" word="Reject" body=${body} lengths=${LENGTHS.slice(1)} plan=${`${group.rule} does not ask for it again in this time: ${group.hold.detail}`} /></div>`;
}
