// Keeps open pages up to date, shows times by one's own clock, and copies texts. Pages work without it.
"use strict";

const SILENCE_MS = 60_000;
const units = [
  [60, "second"],
  [3600, "minute", 60],
  [86_400, "hour", 3600],
  [Infinity, "day", 86_400],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Shows how long ago each time is, or how far ahead; the time itself is its title. */
function showTimes(within) {
  for (const element of within.querySelectorAll("time[datetime]")) {
    const time = new Date(element.dateTime);
    if (Number.isNaN(time.getTime())) continue;
    const passed = (Date.now() - time.getTime()) / 1000;
    // Clocks differ a little; only what is clearly ahead is.
    const ahead = passed < -60 ? 1 : -1;
    const distance = ahead === 1 ? -passed : Math.max(0, passed);
    const [, unit, size = 1] = units.find(([below]) => distance < below);
    const shown = distance < 5 ? "just now" : relative.format(ahead * Math.floor(distance / size), unit);
    if (element.textContent !== shown) element.textContent = shown;
    element.title = exact.format(time);
  }
}

/** Has a text that grows stay at its end, unless somebody reads further up. */
function showTails(within) {
  for (const element of within.querySelectorAll("[data-tail]")) element.scrollTop = element.scrollHeight;
}

/** Whether news would take something away under somebody's hands: what they select, or a button that they are about to press. */
function isInUse(part) {
  const selection = document.getSelection();
  const isSelecting = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  return isSelecting || part.querySelector("[data-steady]:hover") !== null;
}

/** What tells an element from others that can be focused. */
function keyOf(element) {
  return element.dataset.key || element.id || element.getAttribute("href") || element.getAttribute("aria-label") || element.textContent;
}

/** Puts news in the place of a part of the page. Focus, scrolled places and what somebody selects stay. */
function renew(part, { version, html }) {
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const key = focused && keyOf(focused);
  const alike = () => [...part.querySelectorAll("a, button, input, summary, [tabindex]")].filter((one) => keyOf(one) === key);
  const place = focused ? alike().indexOf(focused) : -1;
  const scrolled = [...part.querySelectorAll("[tabindex]")].map((element) => [
    element.scrollTop,
    element.scrollTop + element.clientHeight >= element.scrollHeight - 4,
  ]);
  part.innerHTML = html;
  part.dataset.version = version;
  showTimes(part);
  const now = [...part.querySelectorAll("[tabindex]")];
  showTails(part);
  scrolled.forEach(([top, wasAtEnd], index) => {
    const element = now[index];
    if (element && !(wasAtEnd && "tail" in element.dataset)) element.scrollTop = top;
  });
  if (focused) (alike()[place] || alike()[0])?.focus({ preventScroll: true });
}

function announce(text) {
  const place = document.getElementById("announcements");
  if (!place || !text) return;
  // The same text twice is told twice only as something new.
  place.textContent = "";
  setTimeout(() => (place.textContent = text), 50);
}

/** Follows the page, for as long as it is looked at. */
function follow(url) {
  const liveness = document.getElementById("liveness");
  const waiting = new Map();
  let source = null;
  let silence = 0;

  const say = (text, state) => {
    liveness.textContent = text;
    liveness.className = state;
  };
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => say("Not up to date; trying again", "off"), SILENCE_MS);
    say("Live", "on");
  };
  const put = (news) => {
    const part = document.getElementById(news.id);
    if (!part || part.dataset.version === news.version) return;
    if (isInUse(part)) {
      waiting.set(news.id, news);
      return;
    }
    waiting.delete(news.id);
    if (part.dataset.news !== news.news) announce(news.news);
    part.dataset.news = news.news;
    renew(part, news);
  };
  const begin = () => {
    if (source) return;
    source = new EventSource(url);
    source.addEventListener("open", heard);
    source.addEventListener("part", (event) => {
      heard();
      put(JSON.parse(event.data));
    });
    source.addEventListener("over", () => location.reload());
    source.addEventListener("error", () => {
      if (source && source.readyState === EventSource.CLOSED) {
        say("No longer live; reload the page", "off");
        check();
      } else {
        say("Not up to date; trying again", "off");
      }
    });
  };
  const end = () => {
    if (source) source.close();
    source = null;
    clearTimeout(silence);
  };
  // A refusal may mean that the session is over.
  const check = async () => {
    const answer = await fetch(url, { method: "GET", credentials: "same-origin" }).catch(() => null);
    if (answer && answer.status === 401) location.reload();
    if (answer && answer.body) answer.body.cancel();
  };
  const putWaiting = () => {
    for (const news of [...waiting.values()]) put(news);
  };
  document.addEventListener("selectionchange", putWaiting);
  document.addEventListener("mouseout", () => waiting.size && setTimeout(putWaiting));
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
  addEventListener("pagehide", end);
  addEventListener("pageshow", (event) => event.persisted && begin());
  if (!document.hidden) begin();
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where a page may not write to the clipboard, the text is selected for whoever presses the keys.
    const range = document.createRange();
    range.selectNodeContents(document.getElementById(button.dataset.copy));
    const selection = document.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    if (!document.execCommand("copy")) {
      announce("Selected; press Ctrl+C or Cmd+C to copy");
      return;
    }
  }
  const label = button.firstChild;
  label.textContent = "Copied";
  announce("Copied");
  setTimeout(() => (label.textContent = "Copy"), 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
showTimes(document);
showTails(document);
setInterval(() => showTimes(document), 5000);
const main = document.querySelector("main[data-live]");
if (main) follow(main.dataset.live);
