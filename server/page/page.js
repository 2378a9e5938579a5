// The page asks for /status.json once a second, which has counters since the start,
// and makes rates of what changed. What it shows was written by clients: it goes into
// the page as text and never as markup.
"use strict";

const unknownMs = 3153600000000; // what stale_ms is while a node cannot know it
const every = 1000, shown = 120, window_ = 10; // ms; seconds in the chart; seconds of quantiles
const seen = []; // statuses, oldest first
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
const wait = (ms) => ms < 0 ? "never" : time(ms / 1000);

// perSecond is how fast a counter grew between two statuses; one that began anew
// grew from 0.
const perSecond = (from, to, of) => {
  const seconds = (to.now_ms - from.now_ms) / 1000, grown = of(to) - of(from);
  return seconds > 0 ? (grown < 0 ? of(to) : grown) / seconds : 0;
};

// quantile reads a quantile off what a histogram gained.
const quantile = (from, to, q) => {
  const gained = to.latency.counts.map((n, i) => n - (from ? from.latency.counts[i] : 0));
  const all = gained.reduce((a, b) => a + b, 0);
  if (all <= 0) return "–";
  let sum = 0;
  const at = gained.findIndex((n) => (sum += n) >= q * all), bounds = to.latency.bounds_s;
  return at < bounds.length ? time(bounds[at]) : "> " + time(bounds[bounds.length - 1]);
};

const rows = (id, cells, empty) => {
  const width = $(id).parentElement.querySelectorAll("th").length;
  if (!cells.length) cells = [[empty]];
  $(id).replaceChildren(...cells.map((row) => {
    const tr = document.createElement("tr");
    row.forEach((text) => {
      const td = tr.insertCell();
      td.textContent = td.title = text;
      if (row.length === 1) td.colSpan = width;
    });
    return tr;
  }));
};

const chart = () => {
  const points = [];
  for (let i = 1; i < seen.length; i++) {
    points.push([perSecond(seen[i - 1], seen[i], (s) => s.allowed), perSecond(seen[i - 1], seen[i], (s) => s.limited)]);
  }
  const top = Math.max(1, ...points.flat());
  const path = (k) => points.map((p, i) =>
    (i ? "L" : "M") + (600 - (points.length - 1 - i) * 600 / shown).toFixed(1) + " " + (118 - 112 * p[k] / top).toFixed(1)).join("");
  $("chart-allowed").setAttribute("d", path(0));
  $("chart-limited").setAttribute("d", path(1));
  say("chart-top", number(top));
};

const requests = (s, last) => {
  say("allowed", number(s.allowed));
  say("limited", number(s.limited));
  if (!last) return;
  const allowed = perSecond(last, s, (x) => x.allowed), limited = perSecond(last, s, (x) => x.limited);
  say("allowed-rate", number(allowed));
  say("limited-rate", number(limited));
  say("limited-share", allowed + limited ? (100 * limited / (allowed + limited)).toFixed(1) + " %" : "–");
};

const policies = (s, last) => {
  const before = new Map((last ? last.policies : []).map((p) => [p.name, p]));
  const rate = (p, of) => {
    const old = before.get(p.name);
    return old ? number(perSecond({ now_ms: last.now_ms, v: of(old) }, { now_ms: s.now_ms, v: of(p) }, (x) => x.v)) : "–";
  };
  rows("policies", s.policies.map((p) => [
    p.name, rate(p, (x) => x.allowed), rate(p, (x) => x.limited), number(p.allowed), number(p.limited), number(p.shadowed),
  ]), "none");
};

const memory = (s) => {
  const m = s.memory;
  say("memory", bytes(m.used));
  say("memory-max", m.max ? "of " + bytes(m.max) : "without a bound");
  $("memory-meter").hidden = !m.max;
  if (m.max) $("memory-meter").value = m.used / m.max;
  say("keys", number(s.keys));
  say("evicted", number(m.evicted));
  say("forgiven", number(m.forgiven));
  say("resident", bytes(m.resident));
  say("clients", number(s.clients));
  say("clock", s.clock_behind_ms + " ms");
};

// whom says which node answered, and how old its answer may be.
const whom = (c) => "answered by " + c.self + "; " + (c.leader ? "leader " + c.leader : "no leader") + (c.stale_ms ? "; stale: " + (c.stale_ms < unknownMs ? time(c.stale_ms / 1000) : "age unknown") : "");

const cluster = (s) => {
  const c = s.cluster;
  $("cluster").hidden = !c;
  if (!c) return;
  say("term", "term " + c.term + "; " + whom(c));
  rows("nodes", c.nodes.map((n) => [
    n.id + (n.id === c.self ? " (this one)" : ""), n.role, n.up ? "yes" : "no", number(n.lag),
    n.id === c.self ? "–" : (n.clock_ahead_ms > 0 ? "+" : "") + n.clock_ahead_ms + " ms", n.addr,
  ]), "none");
};

const show = (s) => {
  const last = seen[seen.length - 1];
  if (last && last.now_ms === s.now_ms) return;
  if (last && s.uptime_s < last.uptime_s) seen.length = 0; // it was started anew
  seen.push(s);
  if (seen.length > shown + 1) seen.shift();
  const old = seen[seen.length - 2], before = seen[Math.max(0, seen.length - 1 - window_)];
  say("version", s.version);
  requests(s, old);
  for (const [id, q] of [["p50", .5], ["p90", .9], ["p99", .99], ["p999", .999]]) say(id, quantile(before === s ? null : before, s, q));
  memory(s);
  cluster(s);
  policies(s, old);
  rows("denials", s.denials.map((d) => [new Date(d.at_ms).toLocaleTimeString(), d.key, d.by, wait(d.retry_after_ms)]), "none");
  rows("top-admitted", s.top_admitted.map((k) => [k.key, number(k.units)]), "none of late");
  rows("top-denied", (s.top_denied || []).map((k) => [k.key, number(k.units)]), s.top_denied ? "none of late" : "the leader knows");
  chart();
  const leaderless = s.cluster && !s.cluster.leader;
  state(leaderless ? "no leader: nothing is decided" : "up " + time(s.uptime_s), leaderless);
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
      state("no answer: " + e.message, true);
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
let limiters = []; // what counts against it

const look = async () => {
  try {
    const told = await read("key.json?name=" + encodeURIComponent(looked));
    limiters = told.limiters;
    if (limiters.length) $("found").replaceChildren(...limiters.map(limiter));
    else say("found", "idle: nothing counts against " + looked);
    if (told.self) $("found").append(Object.assign(document.createElement("p"), { className: "note", textContent: whom(told) }));
    $("act").hidden = false;
  } catch (e) {
    say("found", e.message);
    $("act").hidden = true;
  }
};

// send has the server carry a command out, and throws what it answers as an error.
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
    return "forgotten: what counted against " + looked;
  },
  block: async () => {
    const why = $("block-why").value;
    const everywhere = $("block-everywhere").checked;
    await send("RL.BLOCK", looked, $("block-for").value, ...(everywhere ? ["EVERYWHERE"] : []), ...(why ? ["REASON", why] : []));
    return looked + " is blocked" + (everywhere ? " everywhere" : "");
  },
  unblock: async () => looked + (await send("RL.UNBLOCK", looked) ? " is blocked no more" : " was not blocked"),
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

// words splits a line at spaces, but for those in quotes.
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
  say("pause", paused ? "Go on" : "Pause");
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
tick();
