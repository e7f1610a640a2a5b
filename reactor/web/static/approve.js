// What a link of a notification asks for. To look changes nothing: a button has to be pressed, and a reason given.
import { Component } from "./vendor/preact.js";
import { get, may, send, stale, store } from "./store.js";
import { Pill, Said, Target, Time, Weights, html, path, phrase } from "./parts.js";

const DEADLINE = /; until (\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00))$/;
// The request ends, and the link: whichever comes first counts.
function ends(data) {
  const asked = DEADLINE.exec(data.plan || "")?.[1];
  return asked && Date.parse(asked) < Date.parse(data.until) ? ["The request", asked] : ["The link", data.until];
}

const OVER = {
  used: ["Answered already", "A link is good for one answer."],
  changed: ["No longer asked for", "The rule asks for something else now, or for nothing. This link approves nothing else."],
};

export class Approve extends Component {
  state = { data: null, error: "", sent: "" };
  componentDidMount() { this.look(); this.timer = setInterval(() => this.look(), 2000); }
  componentWillUnmount() { clearInterval(this.timer); }
  async look() {
    try { this.setState({ data: await get(`approvals/${this.props.token}`), error: "" }); }
    catch (error) { this.setState({ error: error.message }); }  // what was shown stays, with what is typed there
  }

  submit = async (event) => {
    event.preventDefault();
    const answer = event.submitter.value;
    this.setState({ busy: true, refused: "" });
    try {
      await send("POST", `approvals/${this.props.token}`, { answer, comment: new FormData(event.target).get("comment") });
      this.setState({ sent: answer });
    } catch (error) { this.setState({ refused: error.message }); }
    this.setState({ busy: false });
    this.look();
  };

  answer() {
    if (!may("approve")) return html`<p class="do">${store.session.name ? `${store.session.name} may look only. To approve needs the role approve.`
      : "You are not signed in on this page, so it is read-only."}</p>`;
    return html`<form onSubmit=${this.submit}><label class="field">Reason, for the audit<input name="comment" required maxlength="1000" autocomplete="off" /></label>
      ${this.state.refused && html`<p class="error" role="alert">${this.state.refused}</p>`}
      <div class="buttons"><button class="primary v-approve" value="approve" disabled=${this.state.busy || stale()}>Approve</button>
      <button class="v-reject" value="reject" disabled=${this.state.busy || stale()}>Reject for 1 hour</button></div>
      <p class="dim small">Recorded as ${store.session.name}. The link is good for one answer.</p></form>`;
  }

  // Whether something was approved that is not written yet.
  pending(group) {
    const { data, sent } = this.state;
    const approved = sent === "approve" || (data.used || "").startsWith("approved");
    const equal = JSON.stringify(group.weights) === JSON.stringify(group.wantedWeights);
    return approved && (group.actions.length > 0 || !equal);
  }

  render() {
    const { data, error, sent } = this.state;
    if (error && !data) return html`<h1>Approve</h1><div class="card edge e-bad"><p class="error" role="alert">${phrase(error)}</p>
      <p>What waits for an answer now is on the page <a href="#/now">Now</a>.</p></div>`;
    if (!data) return html`<p class="boot">Loading…</p>`;
    const group = [...store.groups.values()].find((one) => one.rule === data.rule && (one.object === data.object || one.hold?.about === data.object));
    const [title, why] = OVER[data.state] || [];
    return html`<h1>${sent === "approve" ? "Approved" : sent === "reject" ? "Rejected" : title || "Approve this?"}</h1>
      ${error && html`<p class="error" role="alert">${phrase(error)}</p>`}
      <div class="card edge ${data.state === "open" ? "e-hold" : "e-act"}">
      <h2 class="title"><a href="#/rules/${path(data.rule)}">${data.rule}</a></h2><p class="dim small wrap">${data.object}</p>
      ${data.plan && html`<p class="next wrap"><${Said} text=${data.plan.replace(DEADLINE, "")} /></p>`}
      ${group && html`<ul class="plain">${group.targets.map((one) => html`<li class="small"><${Pill} kind=${one.status === "Unhealthy" ? "p-bad" : one.status === "Healthy" ? "p-good" : ""}>${one.status}</${Pill}> <${Target} of=${one.target} /></li>`)}</ul>`}
      ${group && group.backends.length > 0 && html`<p class="small dim">${this.pending(group) ? "Weights now: the write is still to come" : "Weights now"}</p><${Weights} backends=${group.backends} />`}
      ${data.state === "open" ? html`${this.answer()}<p class="dim small deadline">${ends(data)[0]} ends at <${Time} at=${ends(data)[1]} />.</p>`
        : html`${data.used && html`<p class="next wrap"><${Said} text=${data.used} /></p>`}${!sent && html`<p>${why}</p>`}
          <p><a href="#/actions?rule=${encodeURIComponent(data.rule)}">What the rule did</a> · <a href="#/now">Now</a></p>`}</div>`;
  }
}
