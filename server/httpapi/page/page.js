// The page reads the counters of /status.json once a second and computes rates from their
// growth. Clients write the keys that the page shows, so the page inserts them as text and
// never as markup.
"use strict";

const unknownMs = 3153600000000; // the value of stale_ms while the node does not know the age
const every = 1000, shown = 600000, window_ = 10; // ms; ms in the chart; number of statuses that rates and quantiles cover
const seen = []; // the last statuses, oldest first
let past = []; // the points of the chart: samples of the history, then statuses
let paused = false;

const $ = (id) => document.getElementById(id);
const say = (id, text) => { $(id).textContent = text; };

const number = (n) => n.toLocaleString("en-US", { maximumFractionDigits: n < 10 ? 1 : 0 });
const bytes = (n) => {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i ? n.toFixed(1) : n) + " " + units[i];
};
const time = (s) => {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"]]) {
    if (s >= size) return +(s / size).toPrecision(3) + " " + unit;
  }
  return +(s * 1e6).toPrecision(3) + " µs";
};
// span formats a long time in its two largest units.
const span = (s) => {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = Math.max(0, units.findIndex(([size]) => s >= size));
  const parts = [];
  for (const [size, unit] of units.slice(at, at + 2)) {
    parts.push(Math.floor(s / size) + " " + unit);
    s %= size;
  }
  return parts.join(" ");
};
const share = (part, all) => all > 0 ? (100 * part / all).toFixed(1) + " %" : "–";
const wait = (ms) => ms < 0 ? "never" : time(ms / 1000);

// perSecond returns the growth of a counter per second between two statuses. A counter that
// was reset grew from 0.
const perSecond = (from, to, of) => {
  const seconds = (to.now_ms - from.now_ms) / 1000, grown = of(to) - of(from);
  return seconds > 0 ? (grown < 0 ? of(to) : grown) / seconds : 0;
};

// quantile returns a quantile of the observations that a histogram gained.
const quantile = (from, to, q) => {
  const gained = to.latency.counts.map((n, i) => n - (from ? from.latency.counts[i] : 0));
  const all = gained.reduce((a, b) => a + b, 0);
  if (all <= 0) return "–";
  let sum = 0;
  const at = gained.findIndex((n) => (sum += n) >= q * all), bounds = to.latency.bounds_s;
  return at < bounds.length ? time(bounds[at]) : "> " + time(bounds[bounds.length - 1]);
};

const rows = (id, cells, empty) => {
  const heads = $(id).parentElement.querySelectorAll("th");
  if (!cells.length) cells = [[empty]];
  $(id).replaceChildren(...cells.map((row) => {
    const tr = document.createElement("tr");
    row.forEach((text, i) => {
      const td = tr.insertCell();
      td.textContent = text;
      td.title = row.titles ? row.titles[i] || text : text;
      if (row.length > 1) td.dataset.head = heads[i].textContent;
      if (row.length === 1) td.colSpan = heads.length;
      else td.className = heads[i].className;
    });
    return tr;
  }));
};

// short returns a limiter of a policy as its key and its policy, and any other key as it is.
const short = (name) => {
  const m = /^policy\|([^|]+)\|(\d)\|(.*)$/s.exec(name);
  return m ? m[3] + " (" + m[1] + (m[2] === "0" ? ")" : ", limit " + m[2] + ")") : name;
};

// heavy returns a row of the heaviest keys. Its title has the full name.
const heavy = (k) => Object.assign(
  [short(k.key) + (k.holds ? ": " + number(k.used) + " of " + number(k.limit) + " used, open holds: " + number(k.holds) : ""), number(k.units)],
  { titles: [k.key] });

// nice returns the smallest of 1, 2, 5, 10, 20, ... that is not less.
const nice = (n) => {
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 5, 10].find((m) => m * power >= n) * power;
};

// chart draws the rates between neighboring entries of past over time.
const chart = () => {
  const now = past[past.length - 1].now_ms, points = [];
  while (past.length > 2 && past[1].now_ms < now - shown) past.shift();
  for (let i = 1; i < past.length; i++) {
    const rate = (of) => perSecond(past[i - 1], past[i], of);
    points.push([600 - 600 * (now - past[i].now_ms) / shown, rate((s) => s.allowed), rate((s) => s.limited)]);
  }
  const top = nice(Math.max(1, ...points.map(([, a, d]) => Math.max(a, d))));
  const path = (k) => points.map((p, i) => (i ? "L" : "M") + p[0].toFixed(1) + " " + (120 - 118 * p[k] / top).toFixed(1)).join("");
  $("chart-allowed").setAttribute("d", path(1));
  $("chart-denied").setAttribute("d", path(2));
  say("chart-top", number(top));
  say("chart-half", number(top / 2));
};

const requests = (s, last) => {
  say("whose", s.cluster ? "this node only: " : "");
  say("allowed", number(s.allowed));
  say("denied", number(s.limited));
  if (!last) return;
  const allowed = perSecond(last, s, (x) => x.allowed), denied = perSecond(last, s, (x) => x.limited);
  say("allowed-rate", number(allowed));
  say("denied-rate", number(denied));
  say("denied-share", share(denied, allowed + denied));
};

const policies = (s, before) => {
  const old = new Map((before ? before.policies : []).map((p) => [p.name, p]));
  const rate = (p, of) => perSecond({ now_ms: before.now_ms, v: of(old.get(p.name)) }, { now_ms: s.now_ms, v: of(p) }, (x) => x.v);
  const lines = s.policies.map((p) => old.has(p.name)
    ? { p, allowed: rate(p, (x) => x.allowed), denied: rate(p, (x) => x.limited) }
    : { p, allowed: 0, denied: 0, unknown: true });
  lines.sort((a, b) => b.allowed + b.denied - a.allowed - a.denied);
  rows("policies", lines.map(({ p, allowed, denied, unknown }) => [
    p.name, p.limits, unknown ? "–" : number(allowed), unknown ? "–" : number(denied), share(denied, allowed + denied),
    number(p.allowed), number(p.limited), number(p.shadowed),
  ]), "none");
};

// denials shows the denials of one key by one policy as one line.
const denials = (list) => {
  const lines = new Map();
  for (const d of list) {
    const of = JSON.stringify([d.key, d.by]), line = lines.get(of);
    if (line) line.times++;
    else lines.set(of, { d, times: 1 });
  }
  rows("denials", [...lines.values()].map(({ d, times }) =>
    [new Date(d.at_ms).toLocaleTimeString(), d.key, d.by, times, wait(d.retry_after_ms)]), "none");
};

const events = (list) => rows("events", list.map((e) => [
  new Date(e.at_ms).toLocaleTimeString(), e.kind + (e.share ? " " + e.share + " %" : ""), e.policy, e.key, number(e.amount),
  number(e.used) + " of " + number(e.limit),
]), "none");

// refused shows what clients sent and weir does not support. Versions before that tell nothing.
const refused = (list) => {
  $("refused").hidden = !list.length;
  rows("unsupported", list.map((u) => Object.assign([
    new Date(u.last_ms).toLocaleTimeString(), u.client || u.library || u.addr, u.kind, u.command + (u.sha1 ? " " + u.sha1.slice(0, 8) : ""),
    number(u.count), u.advice,
  ], { titles: ["", [u.client, u.library, u.addr, u.user].filter(Boolean).join(", "), "", u.command + " " + (u.sha1 || "")] })), "none");
};

const memory = (s) => {
  const m = s.memory;
  say("memory", bytes(m.used));
  say("memory-max", m.max ? "of " + bytes(m.max) + ", " + share(m.used, m.max) : "no bound");
  $("memory-meter").hidden = !m.max;
  if (m.max) $("memory-meter").value = m.used / m.max;
  say("keys", number(s.keys));
  say("evicted", number(m.evicted));
  say("forgiven", number(m.forgiven));
  say("resident", bytes(m.resident));
  say("clients", number(s.clients));
  say("clock", s.clock_behind_ms + " ms");
};

// whom returns the name of the node that answered, and the age of its state.
const whom = (c) => "answered by " + c.self + (c.stale_ms ? "; stale: " + (c.stale_ms < unknownMs ? time(c.stale_ms / 1000) : "age unknown") : "");

const cluster = (s) => {
  const c = s.cluster;
  $("cluster").hidden = !c;
  if (!c) return;
  say("term", c.groups.leaders + "; " + whom(c));
  rows("nodes", c.nodes.map((n) => [
    n.id + (n.id === c.self ? " (this one)" : ""), n.role, n.up ? "yes" : "no", number(n.lag),
    n.id === c.self ? "–" : (n.clock_ahead_ms > 0 ? "+" : "") + n.clock_ahead_ms + " ms", n.addr,
  ]), "none");
  leaderPages(c);
};

// leaderPages links to the pages of the other leaders, if this browser can reach them.
const leaderPages = (c) => {
  const pages = c.nodes.filter((n) => n.role.startsWith("leads") && n.id !== c.self).map((n) => {
    if (/^https?:\/\//.test(n.web_url || "")) {
      return Object.assign(document.createElement("a"), { href: n.web_url, textContent: "page of the leader " + n.id });
    }
    return Object.assign(document.createElement("span"),
      { textContent: n.id + " leads. Its page is off, or open to its own machine only." });
  });
  const shown = pages.flatMap((p) => [p, " "]);
  if ($("leader-page").innerHTML !== pages.map((p) => p.outerHTML + " ").join("")) $("leader-page").replaceChildren(...shown);
};

const show = (s) => {
  const last = seen[seen.length - 1];
  if (last && last.now_ms === s.now_ms) return;
  if (last && s.uptime_s < last.uptime_s) seen.length = 0; // the server restarted
  seen.push(s);
  past.push(s);
  if (seen.length > window_ + 1) seen.shift();
  const old = seen[seen.length - 2], before = seen[0];
  say("version", s.version + " at " + location.host + (s.cluster ? ", node " + s.cluster.self : ""));
  document.body.classList.remove("old");
  requests(s, old);
  for (const [id, q] of [["p50", .5], ["p90", .9], ["p99", .99], ["p999", .999]]) say(id, quantile(before === s ? null : before, s, q));
  memory(s);
  cluster(s);
  policies(s, before === s ? null : before);
  denials(s.denials);
  events(s.events);
  refused(s.unsupported || []);
  rows("top-admitted", s.top_admitted.map(heavy), "none recently");
  rows("top-denied", (s.top_denied || []).map(heavy), s.top_denied ? "none recently" : "only the leader has this list");
  chart();
  const leaderless = s.cluster && s.cluster.groups.leaderless;
  state(leaderless ? s.cluster.groups.leaders : "up " + span(s.uptime_s), leaderless);
};

const state = (text, bad) => {
  say("state", text);
  $("state").className = bad ? "bad" : "";
};

const read = async (url) => {
  const reply = await fetch(url, { signal: AbortSignal.timeout(5000) });
  if (!reply.ok) throw new Error((await reply.text()).trim());
  return reply.json();
};

const tick = async () => {
  if (!paused && !document.hidden) {
    try {
      show(await read("status.json"));
    } catch (e) {
      state("no answer, the figures are old: " + e.message, true);
      document.body.classList.add("old");
    }
  }
  setTimeout(tick, every);
};

const limiter = (l) => {
  const dl = document.createElement("dl");
  const line = (name, value) => {
    dl.append(Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: value }));
  };
  line("limiter", l.name);
  line("rule", l.algorithm + " " + l.rule);
  line("used", number(l.used) + (l.limit ? " of " + number(l.limit) + ", " + number(l.remaining) + " left" : ""));
  line("idle in", wait(l.idle_in_ms));
  if (l.penalty_ms) line("penalty", wait(l.penalty_ms));
  if (l.blocked) line("blocked", (l.blocked_ms < 0 ? "until it is unblocked" : "for " + wait(l.blocked_ms)) +
    (l.blocked_by !== looked ? " by the block of " + l.blocked_by + " everywhere" : "") + (l.reason ? ": " + l.reason : ""));
  return dl;
};

let looked = ""; // the key that is shown
let limiters = []; // its limiters

const look = async () => {
  try {
    const told = await read("key.json?name=" + encodeURIComponent(looked));
    limiters = told.limiters;
    if (limiters.length) $("found").replaceChildren(...limiters.map(limiter));
    else say("found", looked + " is idle: it has no limiter and no block");
    if (told.self) $("found").append(Object.assign(document.createElement("p"), { className: "note", textContent: whom(told) }));
    $("act").hidden = false;
  } catch (e) {
    say("found", e.message);
    $("act").hidden = true;
  }
};

// send executes a command on the server, and throws its error reply.
const send = async (...args) => {
  const reply = await fetch("command.json", {
    method: "POST", body: JSON.stringify({ args }), headers: { "Content-Type": "application/json" }, signal: AbortSignal.timeout(10000),
  });
  if (!reply.ok) throw new Error((await reply.text()).trim());
  const answer = await reply.json();
  if (answer.error) throw new Error(answer.error);
  return answer.reply;
};

const actions = {
  reset: async () => {
    for (const l of limiters) await send("RL.RESET", l.name);
    return looked + " is reset" + (limiters.some((l) => l.blocked) ? "; its block stays" : "");
  },
  block: async () => {
    const why = $("block-why").value;
    const everywhere = $("block-everywhere").checked;
    await send("RL.BLOCK", looked, $("block-for").value, ...(everywhere ? ["EVERYWHERE"] : []), ...(why ? ["REASON", why] : []));
    return looked + " is blocked" + (everywhere ? " everywhere" : "");
  },
  unblock: async () => looked + (await send("RL.UNBLOCK", looked) ? " is unblocked" : " was not blocked"),
};

const act = async (event) => {
  event.preventDefault();
  try {
    say("done", await actions[event.submitter.value]());
  } catch (e) {
    say("done", e.message);
  }
  look();
};

// words splits a line at the spaces outside quotes.
const words = (line) => [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((m) => m[1] ?? m[2] ?? m[3]);

const explain = async (event) => {
  event.preventDefault();
  try {
    const told = await send("RL.EXPLAIN", ...words($("decision").value));
    $("why").replaceChildren(...told.map((v, i) =>
      Object.assign(document.createElement(i % 2 ? "dd" : "dt"), { textContent: Array.isArray(v) ? JSON.stringify(v) : v })));
  } catch (e) {
    say("why", e.message);
  }
};

const pause = () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", paused);
  say("pause", paused ? "Resume" : "Pause");
};

$("lookup").addEventListener("submit", (e) => {
  e.preventDefault();
  looked = $("key").value;
  say("done", "");
  look();
});
$("act").addEventListener("submit", act);
$("explain").addEventListener("submit", explain);
$("pause").addEventListener("click", pause);
document.addEventListener("keydown", (e) => {
  if (e.target.matches("input") || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "/") { e.preventDefault(); $("key").focus(); }
  if (e.key === "p") pause();
});

// Terms show their explanation on hover, focus and touch.
const tip = (term) => {
  say("tip", term.dataset.tip);
  $("tip").hidden = false;
  const box = term.getBoundingClientRect();
  $("tip").style.left = Math.max(8, Math.min(box.left, innerWidth - $("tip").offsetWidth - 8)) + scrollX + "px";
  $("tip").style.top = box.bottom + 6 + scrollY + "px";
  term.setAttribute("aria-describedby", "tip");
};
const hideTip = () => { $("tip").hidden = true; };
for (const term of document.querySelectorAll(".term")) {
  for (const type of ["pointerenter", "focus", "click"]) term.addEventListener(type, () => tip(term));
  for (const type of ["pointerleave", "blur"]) term.addEventListener(type, hideTip);
}
document.addEventListener("keydown", (e) => { if (e.key === "Escape") hideTip(); });

// begin loads the history, so the chart shows the time before the page was opened.
const begin = async () => {
  try {
    past = await read("history.json");
  } catch (e) {
    state("no answer: " + e.message, true);
  }
  tick();
};
begin();
