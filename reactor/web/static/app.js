// The frame of the page: where we are, whether what is shown is fresh, and who is signed in.
import { Component, render } from "./vendor/preact.js";
import { onChange, send, stale, start, store } from "./store.js";
import { html, zone } from "./parts.js";
import { Now } from "./now.js";
import { Approve } from "./approve.js";
import { ActionPage, ActionsPage, MapPage, MembersPage, RulePage, RulesPage, TargetPage } from "./pages.js";

const TABS = [["now", "Now"], ["map", "Map"], ["actions", "Actions"], ["rules", "Rules"], ["members", "Members"]];

function place() {
  const [where, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = where.split("/");
  let name = "";
  try { name = rest.map(decodeURIComponent).join("/"); } catch { /* no page has such a name */ }
  return { page: page || "now", name, query: query || "" };
}

function Page({ at }) {
  if (at.page === "target" && at.name) return html`<${TargetPage} key=${at.name} target=${at.name} />`;
  if (at.page === "map") return html`<${MapPage} />`;
  if (at.page === "actions") return at.name ? html`<${ActionPage} key=${at.name} id=${at.name} />` : html`<${ActionsPage} query=${at.query} />`;
  if (at.page === "rules") return at.name ? html`<${RulePage} key=${at.name} name=${at.name} />` : html`<${RulesPage} />`;
  if (at.page === "approve") return html`<${Approve} key=${at.name} token=${at.name} />`;
  if (at.page === "members") return html`<${MembersPage} />`;
  return html`<${Now} />`;
}

class SignIn extends Component {
  submit = async (event) => {
    event.preventDefault();
    const token = new FormData(event.target).get("token");
    try {
      await send("POST", "session", { token });
      await start();
    } catch (error) { this.setState({ error: error.message }); }
  };

  render() {
    return html`<main id="main" tabindex="-1"><div class="card signin"><h1>Sign in</h1>
      <p class="dim">With the token that the operator of this reactor gave you.</p>
      <form onSubmit=${this.submit}><input type="text" name="username" autocomplete="username" value="alert-reactor" hidden /><label class="field">Token<input name="token" type="password" autocomplete="current-password" required autofocus /></label>
      ${this.state.error && html`<p class="error" role="alert">${this.state.error}</p>`}<button class="primary">Sign in</button></form></div></main>`;
  }
}

class App extends Component {
  componentDidMount() {
    onChange(() => this.setState({}));
    addEventListener("hashchange", () => {
      this.setState({});
      document.getElementById("main")?.focus({ preventScroll: true });
      scrollTo(0, 0);
    });
    start().catch((error) => this.setState({ error: error.message }));
  }

  render() {
    const at = place();
    const old = stale();
    if (this.state.error && !store.ready) return html`<p class="boot error">${this.state.error}</p>`;
    const { session } = store;
    document.title = `${TABS.find(([name]) => name === at.page)?.[1] || (at.page === "approve" ? "Approve" : "Target")} · alert-reactor`;
    return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
      <header class="top"><div class="bar"><a class="brand" href="#/now"><img src="/static/icon.svg" alt="" />alert-reactor</a>
        <nav class="tabs" aria-label="Pages">${TABS.map(([name, word]) => html`<a href="#/${name}" aria-current=${name === at.page ? "page" : null}>${word}</a>`)}</nav>
        ${session.signedIn && html`<span class="live ${old ? "stale" : ""}" role="status"><i></i>${old ? "stale" : "live"}</span>`}
        ${session.name && html`<span class="small dim">${session.name} <button onClick=${async () => { await send("DELETE", "session"); location.reload(); }}>Sign out</button></span>`}
      </div></header>
      ${session.signedIn && old && html`<div class="stalebar" role="alert">${store.lost
        ? "The connection to the reactor is lost. What you see is old." : `What you see is old: ${store.problem}`}</div>`}
      ${session.signedIn ? html`<main id="main" tabindex="-1">${store.ready ? html`<${Page} at=${at} />` : html`<p class="boot">Loading…</p>`}</main><footer class="small dim">Times are in ${zone()}, the zone of this browser.</footer>`
        : !store.known ? html`<p class="boot">Loading…</p>` : html`<${SignIn} />`}`;
  }
}

const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
