"use strict";
// Small comforts; all that matters is in the HTML.

const dialog = document.getElementById("dialog");

// --- themes, times ---------------------------------------------------------------------------------------------------
document.getElementById("theme").addEventListener("click", () => {
  const chosen = document.documentElement.dataset.theme;
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", dark ? "light" : "dark");
  drawAll();
});

function tellTimes(root) {
  const now = Date.now();
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const minutes = Math.round((now - at) / 60000);
    time.title = at.toLocaleString();
    time.textContent =
      minutes < 1 ? "now" : minutes < 60 ? `${minutes} min ago` : minutes < 1440 ? `${Math.round(minutes / 60)} h ago`
        : at.toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
  }
}

const PIECE = 44; // pixels of one that is not loaded yet, more or less
function holdPlaces() {
  // What is not loaded yet takes about the room it will take, so that the scroll bar tells the truth.
  for (const later of document.querySelectorAll(".later[data-pieces]")) later.style.height = `${later.dataset.pieces * PIECE}px`;
}

// --- dialogs ---------------------------------------------------------------------------------------------------------
let opening = false; // what was asked for inside a dialog that is closed by now does not open it again
document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.target.id === "dialog-body" && !event.detail.elt.closest("dialog")) opening = true;
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  tellTimes(event.detail.target);
  holdPlaces();
  if (event.detail.target.id !== "dialog-body") return;
  if (dialog.open) return void (opening = false);
  if (opening) dialog.showModal();
  else if (event.detail.target.querySelector(".done, .problem")) say(event.detail.target.querySelector("p").textContent);
  opening = false;
});
document.body.addEventListener("click", (event) => {
  if (event.target.closest("dialog .close")) dialog.close();
});
document.body.addEventListener("htmx:responseError", () => say("The server refused this; load the page again."));
document.body.addEventListener("htmx:sendError", () => say("The server does not answer. Is clew still running?"));
document.body.addEventListener("changed", () => drawSoon());

let silence;
function say(text) {
  const toast = document.getElementById("toast");
  toast.textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => (toast.textContent = ""), 6000);
}

// --- live ------------------------------------------------------------------------------------------------------------
const live = document.querySelector("[data-live]")?.dataset.live;
let stream;
function listen() {
  // A browser has six connections to one address: tabs that nobody sees leave theirs to others. What a tab has missed
  // it is told at once when it listens again, for its address says what it was shown first.
  stream?.close();
  stream = null;
  if (!live || document.hidden) return;
  stream = new EventSource(live);
  stream.addEventListener("changed", () => htmx.trigger(document.body, "changed"));
}
document.addEventListener("visibilitychange", listen);
addEventListener("pagehide", () => stream?.close());

// --- what somebody is looking at stays where it is -------------------------------------------------------------------
const LONGEST_LIST = 1000; // conversations that are drawn anew at once
document.body.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.elt.id !== "rows") return;
  const shown = document.querySelectorAll("#rows > .row").length;
  if (shown > LONGEST_LIST) event.preventDefault();
  else event.detail.parameters.count = Math.max(50, shown);
});
let putBack = null;
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const target = event.detail.target;
  putBack = null;
  const asked = event.detail.requestConfig.elt;
  // Figures for what was drawn anew meanwhile, which asks again itself, or under the hand of somebody who is moving the
  // slider that they would replace; a window as it is now, for somebody who has gone to an earlier call since.
  const slider = target.id === "window-figures" && document.getElementById("call");
  const isLate = (["toast", "window-figures"].includes(target.id) && !asked.isConnected) || (slider && slider.value !== slider.getAttribute("value"));
  if (isLate || (target.id === "window" && asked === target && isElsewhere())) {
    event.detail.shouldSwap = false;
    return;
  }
  if (target.id === "rows") {
    const open = [...target.querySelectorAll("details[open]")].map((it) => it.id);
    putBack = () => open.forEach((id) => (document.getElementById(id) ?? {}).open = true);
  } else if (target.id === "head") {
    const shown = [...target.querySelectorAll("details")].map((it) => [it.id, it.open]), format = target.querySelector("select").value;
    putBack = () => {
      for (const [id, open] of shown) (document.getElementById(id) ?? {}).open = open;
      target.querySelector("select").value = format;
    };
  } else if (target.id === "window") {
    const pieces = target.querySelector(".pieces");
    if (target.dataset.looked) {
      event.detail.target = document.getElementById("window-figures");
      event.detail.selectOverride = "#window-figures";
      event.detail.swapOverride = "outerHTML";
      document.getElementById("newer").hidden = false;
      return;
    }
    const below = pieces ? pieces.scrollHeight - pieces.scrollTop - pieces.clientHeight : 0;
    putBack = () => {
      holdPlaces();
      const now = target.querySelector(".pieces");
      if (now) now.scrollTop = below < 40 ? now.scrollHeight : pieces.scrollTop; // who reads the newest goes on with it
    };
  } else if (target.matches("#window .pieces > .later")) {
    document.getElementById("window").dataset.looked = "yes";
    const scroller = target.parentElement, next = target.nextElementSibling, at = next.getBoundingClientRect().top;
    putBack = () => (scroller.scrollTop += next.getBoundingClientRect().top - at);
  } else if (target.closest("#window .pieces")) document.getElementById("window").dataset.looked = "yes";
});
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful && event.detail.elt.matches("button[hx-get*='/text/']")) event.detail.elt.remove(); // all is there
});
document.body.addEventListener("htmx:afterSwap", () => {
  putBack?.();
  putBack = null;
});
document.body.addEventListener("click", (event) => {
  if (!event.target.closest("#newer")) return;
  showCall(Infinity);
});

document.body.addEventListener("change", ({ target }) => target.closest("#filters")?.requestSubmit());

// --- the window at a call --------------------------------------------------------------------------------------------
function showCall(number) {
  const slider = document.getElementById("call");
  if (!slider) return;
  slider.value = Math.min(number, slider.max);
  slider.dispatchEvent(new Event("change", { bubbles: true }));
}
function isElsewhere() {
  const slider = document.getElementById("call");
  return slider && (slider.dataset.now === undefined || slider.value !== slider.max);
}
document.body.addEventListener("htmx:configRequest", (event) => {
  const asked = event.detail.elt, whole = document.getElementById("window");
  if (asked.id === "call") {
    delete whole.dataset.looked;
    // What is said of the call before goes at once: nobody shall act on that one meanwhile.
    whole.querySelector(".callfacts")?.setAttribute("inert", "");
  } else if (asked === whole && isElsewhere()) {
    event.preventDefault(); // somebody looks at an earlier call
    document.getElementById("newer").hidden = false;
  }
});
document.body.addEventListener("input", ({ target }) => {
  if (target.id !== "call") return;
  const told = target.closest(".steer").querySelector("label b");
  told.textContent = target.value === target.max ? "now" : `in call ${Number(target.value).toLocaleString("en")} of ${(target.max - 1).toLocaleString("en")}`;
});

// --- keys ------------------------------------------------------------------------------------------------------------
const ACT_KEYS = { c: "compact", u: "undo", r: "recall" };
let last = "";
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...document.querySelectorAll(".row .title a[href^='/clew/c/']")];
  const at = rows.indexOf(document.activeElement);
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("q").focus();
  } else if (event.key === "j" && rows.length) rows[Math.min(rows.length - 1, at + 1)].focus();
  else if (event.key === "k" && rows.length) rows[Math.max(0, at - 1)].focus();
  else if (event.key === "g" && last === "g" && rows.length) rows[0].focus();
  else if (event.key in ACT_KEYS) document.querySelector(`[hx-get$='/act/${ACT_KEYS[event.key]}']`)?.click();
  else if (event.key === "?") {
    document.getElementById("dialog-body").replaceChildren(document.getElementById("keys").content.cloneNode(true));
    dialog.showModal();
  }
  last = event.key;
});

// --- charts ----------------------------------------------------------------------------------------------------------
async function draw(figure) {
  const answer = await fetch(figure.dataset.chart);
  if (!answer.ok) return;
  const { columns, marks } = await answer.json();
  if (!columns[0].length) return;
  const color = (name) => {
    figure.style.color = `var(${name})`;
    return getComputedStyle(figure).color;
  };
  const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const legend = [...figure.querySelectorAll(".legend b")];
  const lines = ["--c1", "--c2", "--c5", "--c3", "--c4"];
  const options = {
    width: figure.clientWidth, height: 170, scales: { x: { time: false }, y: { range: (_, low, high) => [0, high * 1.05] } },
    axes: [{ ...axis, size: 30 }, { ...axis, size: 56, values: (_, ticks) => ticks.map((n) => (n >= 1e6 ? `${n / 1e6}M` : n >= 1e3 ? `${n / 1e3}k` : n)) }],
    legend: { show: false }, cursor: { drag: { x: false } },
    series: [{}, ...lines.map((name, n) => ({
      stroke: color(name), width: n === 1 ? 2 : 1.2, dash: n === 4 ? [4, 4] : undefined,
      points: { show: columns[0].length < 3 }, spanGaps: true,
    }))],
    hooks: { setCursor: [({ cursor: { idx } }) => legend.forEach((told, n) => {
      told.textContent = idx === null ? "" : columns[n + 1][idx]?.toLocaleString("en") ?? "–";
    })], ready: [(plot) => plot.over.addEventListener("click", () => showCall(columns[0][plot.cursor.idx]))], draw: [(plot) => {
      plot.ctx.save();
      plot.ctx.strokeStyle = dashed;
      plot.ctx.setLineDash([3, 3]);
      for (const mark of marks) {
        const x = Math.round(plot.valToPos(mark.turn, "x", true)) + 0.5;
        plot.ctx.beginPath();
        plot.ctx.moveTo(x, plot.bbox.top);
        plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
        plot.ctx.stroke();
      }
      plot.ctx.restore();
    }] },
  };
  figure.querySelector(".uplot")?.remove();
  const dashed = color("--mark");
  figure.style.color = "";
  new uPlot(options, columns, figure);
}

let drawn = 0, redraw;
function drawSoon() {
  // A chart of a long conversation takes the server longer than all else on the page.
  clearTimeout(redraw);
  redraw = setTimeout(drawAll, drawn + 3000 - Date.now());
}

function drawAll() {
  drawn = Date.now();
  for (const figure of document.querySelectorAll("[data-chart]")) draw(figure);
}

tellTimes(document);
drawAll();
listen();
let resized;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawAll, 150); });
function goToShown() {
  // What a search led to: in view, or among the originals of a stand-in that opens by itself.
  const found = document.getElementById(`w-${shown}`) ?? document.getElementById(`b-${shown}`);
  if (!found) return;
  document.body.removeEventListener("htmx:afterSettle", goToShown);
  for (let at = found.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  const inner = found.querySelector(":scope > details");
  if (inner) inner.open = true;
  document.getElementById("window").dataset.looked = "yes";
  found.classList.add("led");
  found.scrollIntoView({ block: "center" });
}
const shown = new URLSearchParams(location.search).get("show");
if (shown) document.body.addEventListener("htmx:afterSettle", goToShown);
