// Pauses in effect, what a rule asks people to approve, and the form in which people see a plan and give their reason.
import { Component, createRef } from "./vendor/preact.js";
import { may, send, stale, store } from "./store.js";
import { Said, Time, html } from "./parts.js";

export const LENGTHS = [["", "until it is resumed"], ["600", "10 minutes"], ["3600", "1 hour"], ["14400", "4 hours"], ["86400", "1 day"]];
const WAITING = ["AwaitingApproval", "ApprovalExpired", "Rejected"];

const Field = ({ of: { name, label, options, check, text } }) => check
  ? html`<label class="check"><input type="checkbox" name=${name} /> ${label}</label>`
  : html`<label class="field">${label}${options
    ? html`<select name=${name}>${options.map(([value, word]) => html`<option value=${value}>${word}</option>`)}</select>`
    : html`<input name=${name} required defaultValue=${text} />`}</label>`;

function filled(fields, given) {
  const body = {};
  for (const { name, check, list } of fields || []) {
    const value = given.get(name);
    if (check) { if (value) body[name] = true; }
    else if (value) body[name] = name === "forSeconds" ? Number(value) : list ? [value] : value;
  }
  return body;
}

// What became of a command that was given at this moment, as the groups that it is about say it.
function answers(body, at) {
  const mine = [...store.groups.values()].filter((one) => one.rule === body.rule && (!body.object || one.object === body.object) && one.command);
  return mine.filter((one) => one.command.at >= at && one.command.answer).map((one) => one.command.answer);
}

// A button that shows a plan and asks for a reason before it gives the command. `planned`: the server makes the plan,
// and the command counts for this plan only.
export class Order extends Component {
  dialog = createRef();
  form = createRef();
  turn = 0;

  body() { return { ...this.props.body, ...filled(this.props.fields, new FormData(this.form.current)) }; }

  open = () => {
    this.setState({ error: "", shown: null });
    this.dialog.current.showModal();
    this.plan();
  };

  plan = async () => {
    if (!this.props.planned) return;
    const turn = ++this.turn;
    this.setState({ shown: null });
    try {
      const shown = await send("POST", `plans/${this.props.verb}`, this.body());
      if (turn === this.turn) this.setState({ shown, error: "" });
    } catch (error) { if (turn === this.turn) this.setState({ error: error.message }); }
  };

  submit = async (event) => {
    event.preventDefault();
    const body = { ...this.body(), comment: new FormData(event.target).get("comment") };
    if (this.props.planned) body.plan = this.state.shown.fingerprint;
    this.setState({ busy: true, error: "" });
    try {
      const { at } = await send("POST", `commands/${this.props.verb}`, body);
      this.dialog.current.close();
      this.setState({ sent: { at, body } });
    } catch (error) {
      await this.plan();
      this.setState({ error: error.message });
    }
    this.setState({ busy: false });
  };

  render() {
    const { word, plan, planned, fields, primary, verb } = this.props;
    const { busy, error, sent, shown } = this.state;
    const old = stale() ? "What you see is old." : null;
    const refused = shown?.refused || [];
    return html`<button class="${primary ? "primary" : ""} v-${verb}" disabled=${old !== null} title=${old} onClick=${this.open}>${word}</button>
      ${sent && html`<span class="dim small answer wrap" role="status">Sent${answers(sent.body, sent.at).length ? ": " : "."}${answers(sent.body, sent.at).map((text) => html`<${Said} text=${text} /> `)}</span>`}
      <dialog ref=${this.dialog} aria-label=${word}><form ref=${this.form} onSubmit=${this.submit}><h1>${word}</h1>
        ${plan && html`<p class="wrap"><${Said} text=${plan} /></p>`}
        ${(fields || []).map((one) => html`<div key=${one.name} onChange=${this.plan}><${Field} of=${one} /></div>`)}
        ${refused.length > 0 && html`<div class="refused" role="alert"><b>This would be refused</b>${refused.map((text) => html`<p class="wrap"><${Said} text=${text} /></p>`)}</div>`}
        ${planned && html`<pre class="plan" tabindex="0" aria-label="Plan">${shown ? html`<${Said} text=${shown.plan} />` : "…"}</pre>`}
        <label class="field">Reason, for the audit<input name="comment" required maxlength="1000" autocomplete="off" autofocus /></label>
        ${error && html`<p class="error" role="alert">${error}</p>`}
        ${old && html`<p class="error" role="alert">${old} Wait until it is fresh.</p>`}
        <div class="buttons"><button class=${refused.length ? "warn" : "primary"} disabled=${busy || old !== null || (planned && !shown)}>${refused.length ? `${word} all the same` : word}</button>
        <button type="button" onClick=${() => this.dialog.current.close()}>Cancel</button></div>
        <p class="dim small">Recorded as ${store.session.name}.</p></form></dialog>`;
  }
}

export const PauseButton = ({ rule }) => may("operate") && html`<${Order} verb="pause" word=${rule === "*" ? "Pause" : `Pause ${rule}`} body=${{ rule }} planned
  fields=${[...(rule === "*" ? [{ name: "rule", label: "Rules (a name, or a pattern)", text: rule }] : []), { name: "forSeconds", label: "How long", options: LENGTHS }]}
  plan="The rules take no action until the pause ends. A write that has begun is finished. They continue to watch." />`;

export const Pauses = () => store.pauses.map((one) => html`<div class="card edge e-away paused" key=${one.pattern}>
  <b>Paused: ${one.pattern === "*" ? "all rules" : html`rules <span class="mono">${one.pattern}</span>`}</b>
  <p class="wrap">By ${one.by} <${Time} at=${one.since} relative />: ${one.reason}</p>
  <p class="dim small">${one.until ? html`Ends at <${Time} at=${one.until} />.` : "Until it is resumed."}</p>
  ${may("operate") && html`<div class="buttons"><${Order} verb="resume" word="Resume" body=${{ rule: one.pattern }} planned
    plan="Rules whose toleration time is over act at once." /></div>`}</div>`);

export function Ask({ group }) {
  if (!may("approve") || !group.request || !group.hold || !WAITING.includes(group.hold.reason)) return null;
  const body = { rule: group.rule, object: group.object, request: group.request };
  return html`<div class="buttons">
    <${Order} verb="approve" word="Approve" primary=${true} body=${body} plan=${`${group.rule}: ${group.hold.detail}`} />
    <${Order} verb="reject" word="Reject" body=${body} fields=${[{ name: "forSeconds", label: "How long", options: LENGTHS.slice(1) }]} plan=${`${group.rule} does not ask for it again in this time: ${group.hold.detail}`} /></div>`;
}
