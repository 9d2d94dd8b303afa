// The panel of one trial, and a tip beside the mark under the pointer. The page is whole without it.
"use strict";
const at = (id) => document.getElementById(id);
const parsed = (id) => JSON.parse(at(id).textContent);
let page = null; // parsed when the first trial is opened, so that the page itself opens at once

function load() {
  if (page) return;
  page = { ...parsed("data"), charts: parsed("curve-charts") };
  const script = document.createElement("script");
  script.type = "module";
  script.textContent = at("library").textContent;
  document.head.append(script);
}

function list(id, entries) {
  at(id).replaceChildren(
    ...Object.entries(entries).flatMap(([name, value]) => {
      const [term, about] = [document.createElement("dt"), document.createElement("dd")];
      [term.textContent, about.textContent] = [name, value];
      return [term, about];
    }),
  );
}

// A value that is not finite has no place on an axis: it becomes a red mark above the others.
function rows(curve, isLog) {
  const name = curve.layer === null ? curve.measure : `layer ${curve.layer}`;
  return curve.steps.map((step, n) => {
    const value = curve.values[n];
    const shown = typeof value === "number" && (!isLog || value > 0);
    const lost = typeof value !== "number";
    return { step, name, value: shown ? value : null, lost, said: `step ${step}: ${value}` };
  });
}

async function draw(id) {
  const place = at("trial-curves");
  place.replaceChildren();
  for (const chart of page.charts) {
    const found = (page.curves[id] ?? []).filter((c) => chart.measures.includes(c.measure));
    if (!found.length) continue;
    const [box, title, target] = ["div", "h4", "div"].map((tag) => document.createElement(tag));
    title.textContent = chart.title;
    box.append(title, target);
    place.append(box);
    const isLog = JSON.stringify(chart.spec).includes('"type":"log"');
    const spec = { ...chart.spec, datasets: { curve: found.flatMap((c) => rows(c, isLog)) } };
    await window.vegaEmbed(target, spec, { actions: false, renderer: "svg" });
  }
}

function ready() {
  return new Promise((resolve) => {
    const wait = () => (window.vegaEmbed ? resolve() : setTimeout(wait, 20));
    wait();
  });
}

async function open() {
  const match = /^#trial=(.+)$/.exec(location.hash);
  if (!match) return;
  load();
  const id = decodeURIComponent(match[1]);
  const trial = page.trials.each[id];
  if (!trial) return;
  at("trial-title").textContent = trial.title;
  at("trial-outcome").textContent = `${trial.outcome} · trial ${id}`;
  list("trial-results", trial.results);
  list("trial-own", trial.own);
  list("trial-shared", page.trials.shared);
  at("trial-command").textContent = trial.command;
  at("trial-again").hidden = !trial.command;
  if (!at("trial").open) at("trial").showModal();
  await ready();
  await draw(id);
  at("trial").dataset.drawn = id;
}

at("trial").addEventListener("close", () => history.replaceState(null, "", location.pathname));
at("trial").addEventListener("click", (event) => event.target === at("trial") && at("trial").close());
addEventListener("hashchange", open);
open();

const tip = at("tip");
for (const kind of ["pointerover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    const mark = event.target.closest?.('figure svg [aria-roledescription][aria-label]');
    const label = mark?.getAttribute("aria-label");
    tip.hidden = !label || mark.getAttribute("role") !== "graphics-symbol";
    if (tip.hidden) return;
    tip.textContent = label;
    const { left, top } = mark.getBoundingClientRect();
    tip.style.left = `${Math.min(left, innerWidth - tip.offsetWidth - 12)}px`;
    tip.style.top = `${Math.max(4, top - tip.offsetHeight - 8)}px`;
  });
}
