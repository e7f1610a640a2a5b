// Zoom and hover of the lanes: the same part of the time for all of them, in UTC and in the reader's own time.
const first = Number(document.body.dataset.first) * 1000;
const until = Number(document.body.dataset.until) * 1000;
const lanes = [...document.querySelectorAll("svg.lane")];
const scales = [...document.querySelectorAll(".scale")];
const said = document.getElementById("at");
const WHOLE = 1000;
const LEAST = Math.min((WHOLE * 600000) / (until - first), WHOLE); // ten minutes
let from = 0;
let wide = WHOLE;
let down = null;

const at = (x) => Math.round((first + (x / WHOLE) * (until - first)) / 1000) * 1000;
const DETAILED = 6 * 3600000; // less time than this is read to the second
const digits = () => ((wide / WHOLE) * (until - first) < DETAILED ? 19 : 16);
const text = (time) => new Date(time).toISOString().replace("T", " ").slice(0, digits());
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const own = (time) => new Date(time).toLocaleString("sv-SE").slice(0, digits());
const local = (time) => `${own(time)} ${zone}`;

function draw() {
  for (const lane of lanes) lane.setAttribute("viewBox", `${from} 0 ${wide} ${lane.viewBox.baseVal.height}`);
  for (const scale of scales) [0, 0.5, 1].forEach((part, n) => {
    const time = at(from + part * wide);
    const same = text(time) === own(time);
    scale.children[n].textContent = `${text(time)} UTC${same ? "" : `\n${own(time)} local`}`;
    scale.children[n].title = local(time);
  });
  said.textContent = `${text(at(from))} to ${text(at(from + wide))} UTC, ${local(at(from))} to ${local(at(from + wide))}`;
}

function show(begin, width) {
  wide = Math.min(Math.max(width, LEAST), WHOLE);
  from = Math.min(Math.max(begin, 0), WHOLE - wide);
  draw();
}

const place = (event) => {
  const box = event.currentTarget.getBoundingClientRect();
  return from + (Math.min(Math.max(event.clientX - box.left, 0), box.width) / box.width) * wide;
};

// What a curve has at a place: the least and the greatest value of this part of the time.
function measured(lane, x) {
  const run = (lane.dataset.values || "").split(";").map((one) => one.split(",")).find(([begin, end]) => begin <= x && x < end);
  return run ? `: ${lane.dataset.signal} ${run[2] === run[3] ? run[2] : `${run[2]} to ${run[3]}`}` : "";
}

for (const lane of lanes) {
  lane.addEventListener("pointermove", (event) => {
    const x = place(event);
    said.textContent = `${text(at(x))} UTC, ${local(at(x))}${measured(lane, x)}`;
  });
  lane.addEventListener("pointerleave", draw);
  lane.addEventListener("pointerdown", (event) => { down = place(event); lane.setPointerCapture(event.pointerId); });
  lane.addEventListener("pointerup", (event) => {
    const end = place(event);
    if (down !== null && Math.abs(end - down) > wide / 100) show(Math.min(down, end), Math.abs(end - down));
    down = null;
  });
}
const buttons = {
  closer: () => show(from + wide / 4, wide / 2), wider: () => show(from - wide / 2, wide * 2),
  earlier: () => show(from - wide / 2, wide), later: () => show(from + wide / 2, wide), whole: () => show(0, WHOLE),
};
for (const [name, press] of Object.entries(buttons)) document.getElementById(name).addEventListener("click", press);
for (const time of document.querySelectorAll("time")) time.title = local(Date.parse(time.textContent));
document.getElementById("zoom").hidden = false;
draw();
