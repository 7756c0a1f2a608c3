// Progressive enhancement: sorting, chart tooltips, live progress.
"use strict";

// Sorting: the heading of each column becomes a button.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (head.hasAttribute("data-fixed")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => compared(a.cells[column], b.cells[column]));
      body.append(...(down ? rows.reverse() : rows));
    });
  });
}

function compared(a, b) {
  const [x, y] = [a, b].map((cell) => cell.dataset.value ?? cell.textContent.trim());
  const [m, n] = [Number(x), Number(y)];
  return x !== "" && y !== "" && !Number.isNaN(m) && !Number.isNaN(n) ? m - n : x.localeCompare(y);
}

// At most two ticks: a third clears the first.
for (const form of document.querySelectorAll("form[data-two]")) {
  const ticked = [];
  form.addEventListener("change", (event) => {
    const box = event.target;
    if (box.name !== "id") return;
    const at = ticked.indexOf(box);
    if (at >= 0) ticked.splice(at, 1);
    if (box.checked) ticked.push(box);
    while (ticked.length > 2) ticked.shift().checked = false;
  });
}

// Chart tooltips: the nearest mark shows its table row; a click opens its experiment.
for (const figure of document.querySelectorAll("figure[data-rows]")) {
  const table = document.getElementById(figure.dataset.rows);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  figure.append(tip);
  let row = null;
  figure.addEventListener("pointermove", (event) => {
    let mark = null;
    let least = 24;
    for (const candidate of figure.querySelectorAll("[data-row]")) {
      const box = candidate.getBoundingClientRect();
      if (!box.width) continue;
      const away = Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
      if (away < least) [least, mark] = [away, candidate];
    }
    row = mark && table && table.querySelector(`tr[data-row="${mark.dataset.row}"]`);
    tip.hidden = !row;
    figure.classList.toggle("pointed", Boolean(row));
    if (!row) return;
    const texts = [...row.cells].map((cell) => cell.textContent.trim()).filter((text) => text && text !== "–");
    tip.textContent = texts.join(" · ");
    const around = figure.getBoundingClientRect();
    const left = Math.min(event.clientX - around.x + 14, Math.max(0, around.width - tip.offsetWidth));
    tip.style.left = `${left}px`;
    tip.style.top = `${event.clientY - around.y + 16}px`;
  });
  figure.addEventListener("pointerleave", () => { tip.hidden = true; row = null; });
  figure.addEventListener("click", () => { if (row) location.assign(row.querySelector("a").href); });
}

// Live progress: the server sends this section, as it would render it without scripts.
for (const part of document.querySelectorAll("[data-events]")) {
  const said = document.getElementById("said");
  const source = new EventSource(part.dataset.events);
  let told = "";
  source.addEventListener("progress", (event) => {
    part.innerHTML = JSON.parse(event.data);
    const words = part.querySelector(".said")?.textContent ?? "";
    const ended = words.split(",")[0];
    if (said && ended !== told) [said.textContent, told] = [ended, ended];
  });
  source.addEventListener("ended", (event) => {
    source.close();
    location.replace(JSON.parse(event.data));
  });
}
