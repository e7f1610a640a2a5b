// The buttons of the demo: each asks the demo to break or heal something, and says what to watch.

const at = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

async function press(name, button) {
  button.disabled = true;
  try {
    const answer = await fetch(`/api/${name}`, { method: "POST", headers: { "X-Demo": "button" } });
    const said = await answer.json();
    at("problem").textContent = answer.ok ? "" : said.error;
  } catch {
    at("problem").textContent = "The demo does not answer: has it ended?";
  }
  button.disabled = false;
  await look();
}

function draw(buttons) {
  for (const one of buttons) {
    const card = element("article", "", "card");
    const button = element("button", one.title);
    button.id = one.name;
    button.type = "button";
    button.addEventListener("click", () => press(one.name, button));
    card.append(button, element("p", one.does, "wrap"), element("p", `Watch: ${one.watch}`, "dim wrap"));
    at("buttons").append(card);
  }
}

async function look() {
  try {
    const state = await (await fetch("/api/state")).json();
    at("page").href = state.page;
    if (!at("buttons").children.length) draw(state.buttons);
    at("traffic").replaceChildren(...state.traffic.map((one) => element("li", `${one.service}: ${one.says}`)));
    at("broken").textContent = state.broken.length ? `Broken now: ${state.broken.join(", ")}.` : "Nothing is broken.";
  } catch {
    at("problem").textContent = "The demo does not answer: has it ended?";
  }
}

await look();
setInterval(look, 1000);
