// Zoom by click or Enter (the lowest box resets), search by name with the share of the matches.
"use strict";
document.querySelectorAll("svg.flame").forEach(function (svg) {
  var W = 1200, boxes = Array.prototype.slice.call(svg.querySelectorAll("g[data-x]"));
  var names = boxes.map(function (g) { return g.querySelector("title").textContent; });
  function draw(x0, w0) {
    boxes.forEach(function (g, i) {
      var x = (g.dataset.x - x0) / w0, w = g.dataset.w / w0, r = g.querySelector("rect");
      var a = Math.max(0, x), b = Math.min(1, x + w), t = g.querySelector("text");
      g.style.display = b - a < 0.0004 ? "none" : "";
      r.setAttribute("x", a * W); r.setAttribute("width", Math.max(0.3, (b - a) * W - 0.4));
      if (!t) {
        t = document.createElementNS("http://www.w3.org/2000/svg", "text");
        t.setAttribute("y", +r.getAttribute("y") + 12.5); t.setAttribute("fill", "#1c1f24"); g.appendChild(t);
      }
      var n = Math.floor(((b - a) * W - 6) / 7.3), s = names[i].split(": ")[0];
      if (s.length > n && s.indexOf(" ") < 0) { s = s.split(".").slice(-2).join("."); }
      t.setAttribute("x", a * W + 3);
      t.textContent = n < 3 ? "" : s.length > n ? s.slice(0, n - 1) + "\u2026" : s;
    });
  }
  boxes.forEach(function (g) {
    g.setAttribute("tabindex", "0"); g.style.cursor = "pointer";
    function zoom() { draw(+g.dataset.x, +g.dataset.w); }
    g.addEventListener("click", zoom);
    g.addEventListener("keydown", function (e) { if (e.key === "Enter") { zoom(); } });
  });
  function find(text) {
    var hit = 0, end = -1;
    boxes.forEach(function (g, i) {
      var found = text && names[i].split(": ")[0].toLowerCase().indexOf(text.toLowerCase()) >= 0;
      g.querySelector("rect").setAttribute("stroke", found ? "#000" : "none");
      g.style.opacity = !text || found ? 1 : 0.35;
    });
    boxes.filter(function (g) { return g.style.opacity === "1" && text; })
      .map(function (g) { return [+g.dataset.x, +g.dataset.x + +g.dataset.w]; })
      .sort(function (a, b) { return a[0] - b[0] || b[1] - a[1]; })
      .forEach(function (r) { hit += Math.max(0, r[1] - Math.max(r[0], end)); end = Math.max(end, r[1]); });
    return hit;
  }
  if (svg.parentNode && svg.parentNode.nodeType === 1) {
    var label = document.createElement("label"), input = document.createElement("input");
    var out = document.createElement("output");
    label.textContent = "Search "; input.type = "search"; label.appendChild(input); label.appendChild(out);
    label.className = "flame-search";
    input.addEventListener("input", function () {
      var hit = find(input.value);
      out.textContent = input.value ? " " + (hit * 100).toFixed(1) + " %" : "";
    });
    svg.parentNode.insertBefore(label, svg);
  } else {
    svg.addEventListener("keydown", function (e) { if (e.key === "/") { find(prompt("Search for") || ""); } });
  }
});
