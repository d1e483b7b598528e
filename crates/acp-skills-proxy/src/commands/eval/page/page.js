"use strict";
// Filters the runs, opens the target of a link, and saves the feedback.
const all = (selector) => Array.from(document.querySelectorAll(selector));
const agent = document.getElementById("agent");
const status = document.getElementById("status");
const text = document.getElementById("text");
const shown = document.getElementById("shown");
const runs = all(".run");
function filter() {
  const words = text.value.toLowerCase();
  let count = 0;
  for (const run of runs) {
    const fits = (!agent.value || run.dataset.agent === agent.value)
      && (!status.value || run.dataset.status === status.value)
      && (!words || run.textContent.toLowerCase().includes(words));
    run.hidden = !fits;
    count += fits ? 1 : 0;
  }
  shown.textContent = count + " of " + runs.length + " runs";
}
if (shown) {
  for (const control of [agent, status, text]) control.addEventListener("input", filter);
  filter();
}
function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.tagName === "DETAILS") target.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
const boxes = all("textarea[data-case]");
const save = document.getElementById("save");
let unsaved = false;
for (const box of boxes) box.addEventListener("input", () => { unsaved = true; });
if (save) {
  save.addEventListener("click", () => {
    const feedback = Object.fromEntries(boxes.map((box) => [box.dataset.case, box.value.trim()]));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(feedback, null, 2) + "\n"], { type: "application/json" }));
    link.download = "feedback.json";
    link.click();
    URL.revokeObjectURL(link.href);
    unsaved = false;
  });
  addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
}
