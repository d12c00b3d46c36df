// SPDX-License-Identifier: Apache-2.0
"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const root = document.documentElement;

  const theme = by("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  });

  const graph = by("graph");
  for (const input of document.querySelectorAll("input[name=colour]")) {
    const choose = () => {
      if (input.checked) graph.dataset.colour = by("legend").dataset.colour = input.value;
    };
    input.addEventListener("change", choose);
    choose(); // a browser may remember another choice
  }

  const box = graph.parentElement;
  box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2;
  const width = graph.viewBox.baseVal.width;
  const resize = (to) => {
    const before = graph.clientWidth;
    const now = Math.min(Math.max(to, 40), 8 * width);
    const middle = box.scrollTop + box.clientHeight / 2;
    graph.setAttribute("width", now);
    box.scrollTop = (middle * now) / before - box.clientHeight / 2;
  };
  const zoom = by("zoom");
  zoom.hidden = false;
  zoom.addEventListener("click", (event) => {
    const factor = event.target.value;
    if (factor === undefined) return;
    resize(Number(factor) ? graph.clientWidth * factor : Math.min(box.clientWidth - 4, width));
  });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    resize(graph.clientWidth * (event.deltaY < 0 ? 1.1 : 0.9));
  }, { passive: false });

  const open = () => {
    const target = location.hash && by(location.hash.slice(1));
    if (!target || !target.matches("details")) return;
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
    target.querySelector("summary").focus();
  };
  addEventListener("hashchange", open);
  document.addEventListener("click", (event) => { // again, to the same place
    const link = event.target.closest("a[href^='#layer-']");
    if (link && link.getAttribute("href") === location.hash) open();
  });
  open();

  by("choose").hidden = false;
  const list = by("list");
  const layers = [...list.children];
  by("find").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const each of layers) each.hidden = !each.dataset.name.includes(wanted);
  });
  by("order").addEventListener("change", (event) => {
    const key = { "so-far": "soFar", alone: "alone", macs: "macs", time: "time" }[event.target.value];
    const rank = (each) => each.dataset[key] === "" ? Infinity : Number(each.dataset[key]);
    list.replaceChildren(...(key ? [...layers].sort((a, b) => rank(a) - rank(b) || 0) : layers));
  });
})();
