// Keeps the figures of a page current, and shows times in the reader's zone. Every page works without it.
"use strict";

const clock = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" }); // 2026-11-23 14:19:47
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" });

// localize writes the times in an element in the reader's zone: those of today without the date, others without seconds.
function localize(element) {
  const today = clock.format(new Date()).slice(0, 10);
  for (const time of element.querySelectorAll("time")) {
    const at = new Date(time.dateTime), text = clock.format(at);
    const name = zone.formatToParts(at).find((part) => part.type === "timeZoneName");
    time.title = time.textContent;
    time.textContent = `${text.startsWith(today) ? text.slice(11) : text.slice(0, 16)} ${name.value}`;
  }
}

// refresh takes the live parts of the page anew, unless the reader is using one of them.
async function refresh() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  localize(fresh);
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (next && !part.contains(document.activeElement)) part.replaceChildren(...next.childNodes);
  }
  const made = document.querySelector("footer time"), next = fresh.querySelector("footer time");
  if (made && next) made.replaceWith(next);
}

localize(document);

const seconds = Number(document.body.dataset.refresh);
if (seconds > 0) {
  let held = false, lost = false;
  const button = document.querySelector(".hold");
  const say = () => { button.textContent = held ? "Go on" : lost ? "Connection lost; trying again" : "Hold the picture"; };
  button.hidden = false;
  button.addEventListener("click", () => { held = !held; say(); });
  setInterval(async () => {
    if (held || document.hidden) return;
    try { await refresh(); lost = false; } catch { lost = true; }
    say();
  }, seconds * 1000);
}
