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

const patience = 7000; // ms until a console that says nothing counts as silent; for a slow store it waits 5000 itself

// refresh takes the live parts of the page anew. It fails unless the same page comes back: a proxy may answer with an error, or with a login.
async function refresh() {
  const response = await fetch(location.href, { redirect: "manual", signal: AbortSignal.timeout(patience) });
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  if (response.status !== 200 || fresh.title !== document.title) throw new Error(`answered ${response.status}`);
  localize(fresh);
  for (const part of document.querySelectorAll("[data-live], footer")) {
    const next = part.id ? fresh.getElementById(part.id) : fresh.querySelector("footer");
    if (next) replace(part, next);
  }
}

// replace gives a part its new content, and leaves open and focused what was so. Details whose class changes are as the server wants them.
function replace(part, next) {
  for (const details of next.querySelectorAll("details")) {
    const old = [...part.querySelectorAll("details")].find((old) => old.dataset.of === details.dataset.of);
    if (old?.className === details.className) details.open = old.open;
  }
  const focusable = () => [...part.querySelectorAll("a, button, summary, [tabindex]")];
  const used = document.activeElement, place = focusable().indexOf(used);
  part.replaceChildren(...next.childNodes);
  if (place >= 0) (focusable().find((element) => element.outerHTML === used.outerHTML) ?? focusable()[place])?.focus({ preventScroll: true });
}

localize(document);

const seconds = Number(document.body.dataset.refresh);
if (seconds > 0) {
  let held = false, asking = false, answered = new Date();
  const button = document.querySelector(".hold"), silence = document.querySelector(".silence");
  button.hidden = false;
  button.addEventListener("click", () => {
    held = !held;
    button.textContent = held ? "Go on" : "Hold the picture";
  });
  const tell = (silent) => {
    document.body.classList.toggle("silent", silent);
    silence.textContent = silent ? `No answer since ${clock.format(answered).slice(11)}. What you see is from then.` : "";
  };
  const follow = async () => {
    if (held || asking || document.hidden) return;
    asking = true;
    try {
      await refresh();
      answered = new Date();
      tell(false);
    } catch {
      tell(true);
    }
    asking = false;
  };
  setInterval(follow, seconds * 1000);
  document.addEventListener("visibilitychange", follow);
}
