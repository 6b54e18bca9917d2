"use strict";
// Tips at once instead of after a second, also on touch screens; the words are the charts' own titles.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
for (const title of document.querySelectorAll("svg.chart title")) {
  const holder = title.parentNode;
  holder.setAttribute("aria-label", title.textContent);
  if (holder.classList.contains("chart")) holder.removeAttribute("aria-labelledby");
  title.remove();
}
document.addEventListener("pointerover", (event) => {
  const datum = event.target.closest(".datum");
  tip.hidden = !datum;
  if (!datum) return;
  tip.textContent = datum.getAttribute("aria-label");
  const box = datum.getBoundingClientRect();
  const x = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
  const above = box.top - tip.offsetHeight - 6;
  tip.style.left = Math.max(8, x) + "px";
  tip.style.top = (above > 4 ? above : box.bottom + 6) + "px";
});
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
// The same figures per iteration or per sample.
for (const group of document.querySelectorAll(".switch")) {
  group.hidden = false;
  for (const button of group.querySelectorAll("button")) button.addEventListener("click", () => {
    for (const other of group.querySelectorAll("button"))
      other.setAttribute("aria-pressed", String(other === button));
    for (const part of group.parentNode.querySelectorAll("[data-shown]"))
      part.hidden = part.dataset.shown !== button.dataset.basis;
  });
}
// Another order of the same bars.
for (const button of document.querySelectorAll("button[data-order]")) {
  button.hidden = false;
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    for (const datum of button.closest("figure").querySelectorAll(".datum[data-y]"))
      datum.setAttribute("transform", `translate(0 ${on ? datum.dataset[button.dataset.order] : datum.dataset.y})`);
  });
}
