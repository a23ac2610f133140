"use strict";
/* The space-time diagram of a story, and what else the pages that tell one have in common. Every text goes in through
   textContent; nothing is parsed as markup. A page's own script follows this one in the same element. */
const CONTROLLER = "@controller";

/* Okabe and Ito's palette, which colour-blind people tell apart; the epoch is printed on every cell as well. */
const EPOCHS = [
  ["#56b4e9", "#000"], ["#e69f00", "#000"], ["#009e73", "#000"], ["#cc79a7", "#000"],
  ["#f0e442", "#000"], ["#0072b2", "#fff"], ["#d55e00", "#000"], ["#b0b0b0", "#000"],
];
const colour = (epoch) => (epoch === null || epoch < 0 ? EPOCHS[7] : EPOCHS[epoch % 7]);

const SVG = "http://www.w3.org/2000/svg";
function svg(name, attributes = {}, parent = null, text = null) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  if (text !== null) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}
function html(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const short = (text, letters) => (text.length > letters ? text.slice(0, letters - 1) + "\u2026" : text);
const title = (m) => (m.action === null ? "initial state" : `${m.action}(${m.params})`);
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);

/* A button that turns the page dark or light, whatever the system prefers. */
function themeButton(button) {
  const dark = () => {
    const chosen = document.documentElement.style.colorScheme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const named = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(dark()));
  };
  button.addEventListener("click", () => {
    document.documentElement.style.colorScheme = dark() ? "light" : "dark";
    named();
  });
  named();
}

/* Draws into at.box, with the lanes' names in at.gutter and the colours explained in at.legend. at.id is the diagram's
   id, at.column begins those of its columns, and at.pick is told which column is clicked. What it returns has the
   drawing (root) and select(index), which marks a column as the step that is shown. */
function spaceTime(story, at) {
  const moments = story.moments, last = moments.length - 1;
  /* Geometry of the diagram, in pixels. */
  const STRIP = 17, HEAD = 66, CONTROLLER_LANE = 58, REPLICA_LANE = story.hasLogs ? 82 : 58, SHOWN = 5;
  const FOOT = 34, MARGIN = 48;
  /* A short run is spread over the page, a long one scrolls. */
  const room = Math.floor((at.box.clientWidth - MARGIN) / moments.length);
  const widest = Math.max(0, ...moments.flatMap((m) => m.replicas.flatMap((r) => r.records.map((c) => c.text.length))));
  const LETTERS = Math.min(10, Math.max(4, widest)), CELL = LETTERS * 6.1 + 8;
  const longest = Math.max(0, ...moments.flatMap((m) => m.replicas.map((r) => r.records.length)));
  const COLUMN = Math.max(96, Math.min(longest, SHOWN) * CELL + 30, Math.min(150, room));
  const lanes = [...(story.hasController ? [CONTROLLER] : []), ...story.replicas];
  const laneY = new Map();
  let bottom = HEAD;
  for (const lane of lanes) {
    laneY.set(lane, bottom + 26);
    bottom += lane === CONTROLLER ? CONTROLLER_LANE : REPLICA_LANE;
  }
  const x = (index) => index * COLUMN + COLUMN / 2;
  const lane = (index, replica) => moments[index].replicas.find((each) => each.replica === replica);
  const shape = (l) => JSON.stringify([l.start, l.end, l.hw, l.records.map((r) => r.text)]);

  /* follower_fetch -> ["follower_", "fetch"]: a name broken at its underscores so that it fits a column. */
  function broken(name) {
    const lines = [""];
    for (const part of name.split(/(?<=_)/)) {
      if (lines.at(-1) && (lines.at(-1) + part).length > COLUMN / 6.6) lines.push("");
      lines[lines.length - 1] += part;
    }
    if (lines.length > 3) lines.splice(2, lines.length, "\u2026");
    return lines.map((line) => short(line, Math.floor(COLUMN / 6.1)));
  }

  function diagram() {
    const width = moments.length * COLUMN + MARGIN, height = bottom + FOOT;
    const root = svg("svg", {
      id: at.id, class: "diagram", width, height, viewBox: `0 0 ${width} ${height}`, role: "listbox", tabindex: 0,
      "aria-label": "Space-time diagram: one column per step, one lane per " + story.noun,
    });
    moments.forEach((m, index) => {
      const column = svg("g", {
        class: "column" + (m.broken.length ? " broken" : ""), id: `${at.column}${index}`, role: "option",
        "aria-selected": "false", "aria-label": `Step ${m.step}: ${title(m)}`, "data-index": index,
      }, root);
      const box = { x: index * COLUMN + 1.5, y: 1.5, width: COLUMN - 3, height: height - 3, rx: 4 };
      svg("rect", { class: "hit", ...box }, column);
      svg("text", { class: "number", x: x(index), y: 18 }, column, String(m.step));
      broken(m.action === null ? "initial state" : m.action).forEach((line, at) =>
        svg("text", { class: "action", x: x(index), y: 32 + at * 12 }, column, line));
      if (m.broken.length) {
        const mine = m.broken.find((each) => each.invariant === story.violated) || m.broken[0];
        broken("\u2717 " + mine.invariant).forEach((line, at) =>
          svg("text", { class: "verdict-mark", x: x(index), y: bottom + 14 + at * 12 }, column, line));
      }
      column.addEventListener("click", () => at.pick(index));
      svg("title", {}, column, `Step ${m.step}: ${title(m)}`);
    });
    const lines = svg("g", { "aria-hidden": "true" }, root);
    const names = svg("g", { "aria-hidden": "true" });
    for (const each of lanes) drawLane(lines, names, each);
    /* Three layers, so that no arrow's halo cuts into another arrow and no arrow runs over a dot. */
    const layers = ["halos", "arrows", "dots"].map(() => svg("g", { "aria-hidden": "true" }, root));
    moments.forEach((m, index) =>
      drawEvent(layers.map((layer) => svg("g", { class: "event", "data-index": index }, layer)), m, index));
    root.append(names);
    if (story.loopStart !== null) drawLoop(root);
    at.box.append(root);
    at.gutter.style.height = `${height}px`;
    for (const each of lanes) {
      const name = html("div", {}, each === CONTROLLER ? "controller" : `${story.noun} ${each}`);
      name.style.top = `${laneY.get(each)}px`;
      at.gutter.append(name);
      /* On paper the gutter would not shrink with the diagram: there the names stand in the diagram itself. */
      svg("text", { class: "lane-name", x: 2, y: laneY.get(each) - 8 }, root, name.textContent);
    }
    return root;
  }

  /* A lane is thick where its replica presumes leadership, and has the colour of the replica's leader epoch. */
  function drawLane(parent, names, which) {
    const y = laneY.get(which);
    moments.forEach((m, index) => {
      const group = svg("g", { class: "piece", "data-index": index }, parent);
      const say = (words) => svg("text", { class: "role", x: x(index) + 9, y: y - 8 },
        svg("g", { class: "piece", "data-index": index }, names), words);
      const end = index === last ? x(index) + COLUMN / 2 : x(index + 1);
      const from = index === 0 ? 0 : x(index);
      const line = { x1: from, y1: y, x2: end, y2: y };
      if (which === CONTROLLER) {
        svg("line", { class: "lane", ...line, stroke: "var(--line)", "stroke-width": 3 }, group);
        const now = m.controller, old = index ? moments[index - 1].controller : null;
        if (old && (old.epoch !== now.epoch || old.leader !== now.leader))
          say([now.leader === null ? null : now.leader === "none" ? "no leader" : `leader ${now.leader}`,
            now.epoch === null ? null : `e${now.epoch}`].filter((each) => each !== null).join(" "));
        return;
      }
      const now = lane(index, which), old = index ? lane(index - 1, which) : null;
      if (now.epoch === null) svg("line", { class: "lane idle", ...line, "stroke-width": 2 }, group);
      else {
        const width = now.leads ? 9 : 3.5;
        svg("line", { class: "lane", ...line, stroke: colour(now.epoch)[0], "stroke-width": width }, group);
      }
      if (old && now.role && (old.role !== now.role || old.epoch !== now.epoch))
        say((now.leads ? "leads" : now.role) + (now.epoch === null ? "" : ` e${now.epoch}`));
      if (now.end !== null && (!old || shape(old) !== shape(now))) smallStrip(group, now, x(index), y + 15);
    });
  }

  function smallStrip(parent, log, middle, top) {
    const cut = log.records.length > SHOWN;
    const shown = cut ? log.records.slice(-(SHOWN - 1)) : log.records;
    const cells = shown.length + (cut ? 1 : 0);
    const left = middle - (Math.max(cells, 1) * CELL) / 2;
    if (!cells) svg("rect", { class: "empty", x: left, y: top, width: CELL, height: STRIP }, parent);
    if (cut) svg("text", { x: left + CELL / 2, y: top + 12, "text-anchor": "middle" }, parent, "\u2026");
    shown.forEach((record, at) => {
      const [fill, ink] = colour(record.epoch);
      const place = left + (at + (cut ? 1 : 0)) * CELL;
      svg("rect", { class: "record", x: place, y: top, width: CELL, height: STRIP, fill }, parent);
      const middle = { x: place + CELL / 2, y: top + 12 };
      const text = svg("text", { class: "on-record", ...middle }, parent, short(record.text, LETTERS));
      text.style.setProperty("--on", ink);
    });
    if (log.hw === null) return;
    const first = shown.length ? shown[0].offset : log.start;
    const mark = left + Math.max(0, Math.min(cells, log.hw - first + (cut ? 1 : 0))) * CELL;
    svg("line", { class: "hw", x1: mark, y1: top - 3, x2: mark, y2: top + STRIP + 3 }, parent);
    svg("path", { class: "hw-flag", d: `M${mark - 4},${top - 5}h8l-4,6z` }, parent);
  }

  function drawEvent([halos, arrows, dots], m, index) {
    const route = m.route;
    if (!route) return;
    const to = route.target === null ? route.source : route.target;
    const draw = (from, source, kind) => {
      if (laneY.has(source) && laneY.has(to)) curve(halos, arrows, from, source, index, to, kind);
    };
    if (route.consults !== null) draw(index, route.consults, "arrow consult");
    if (route.target !== null) draw(route.from, route.source, "arrow");
    if (laneY.has(to)) svg("circle", { class: "dot", cx: x(index), cy: laneY.get(to), r: 5.5 }, dots);
    if (route.target !== null && route.from === index && laneY.has(route.source))
      svg("circle", { class: "dot", cx: x(index), cy: laneY.get(route.source), r: 3.5 }, dots);
  }

  /* An arrow between two lanes. Within one step it bows to the left, clear of the log strips; a message that was
     sent earlier runs along below its sender and comes down in the gap before the step that takes it up. */
  function curve(halos, arrows, from, source, index, target, kind) {
    const x1 = x(from), y1 = laneY.get(source), x2 = x(index), y2 = laneY.get(target);
    const down = Math.sign(y2 - y1) || 1;
    const bow = from === index ? COLUMN * 0.44 : 0;
    const gap = x2 - COLUMN / 2, run = y1 + down * 20;
    const [cx, cy] = bow ? [(x1 + x2) / 2 - bow, (y1 + y2) / 2] : [gap, y2 - down * 14];
    const angle = Math.atan2(y2 - cy, x2 - cx);
    const tx = x2 - Math.cos(angle) * 8, ty = y2 - Math.sin(angle) * 8;
    const path = bow ? `M${x1},${y1 + down * 3}Q${cx},${cy} ${tx},${ty}`
      : `M${x1},${y1}Q${x1 + 4},${run} ${x1 + 20},${run}H${gap - 10}Q${gap},${run} ${gap},${run + down * 10}`
        + `V${cy - down * 8}Q${gap},${cy} ${(gap + tx) / 2},${(cy + ty) / 2}L${tx},${ty}`;
    svg("path", { class: "halo", d: path }, halos);
    svg("path", { class: kind, d: path }, arrows);
    const wing = (turn) => `${tx - Math.cos(angle + turn) * 9},${ty - Math.sin(angle + turn) * 9}`;
    svg("path", { class: "head", d: `M${tx},${ty}L${wing(0.42)}L${wing(-0.42)}z` }, arrows);
  }

  function drawLoop(root) {
    const start = x(story.loopStart), end = x(last), y = bottom + 4;
    const group = svg("g", { class: "loop-mark" }, root);
    const stays = story.loopStart === last;
    const path = stays
      ? `M${end - 16},${y}c-14,22 46,22 32,0`
      : `M${end},${y}v6q0,6 -6,6H${start + 6}q-6,0 -6,-6v-6`;
    svg("path", { class: "loop", d: path }, group);
    const tip = stays ? end + 16 : start;
    svg("path", { class: "loop-head", d: `M${tip - 5},${y + 3}h10l-5,-8z` }, group);
    svg("text", { class: "loop-text", x: stays ? end : (start + end) / 2, y: y + 25 }, group,
      stays ? "stays for ever" : "repeats for ever");
  }

  function legend() {
    const epochs = new Set(moments.flatMap((m) =>
      m.replicas.flatMap((r) => [r.epoch, ...r.records.map((record) => record.epoch)])));
    const box = at.legend;
    for (const epoch of [...epochs].filter((each) => each !== null && each >= 0).sort((a, b) => a - b)) {
      const [fill, ink] = colour(epoch);
      const swatch = svg("svg", { width: 26, height: 16, "aria-hidden": "true" });
      svg("rect", { class: "record", x: 0.5, y: 0.5, width: 25, height: 15, fill }, swatch);
      const label = svg("text", { x: 13, y: 12, "text-anchor": "middle", fill: ink }, swatch, `e${epoch}`);
      label.style.fill = ink;
      box.append(html("span", {}, swatch, `leader epoch ${epoch}`));
    }
    if (!story.hasLogs) return;
    const mark = svg("svg", { width: 12, height: 18, "aria-hidden": "true" });
    svg("line", { class: "hw", x1: 6, y1: 3, x2: 6, y2: 18 }, mark);
    svg("path", { class: "hw-flag", d: "M2,0h8l-4,6z" }, mark);
    box.append(html("span", {}, mark, "high watermark"));
    box.append(html("span", {}, "thick lane: presumes leadership"), html("span", {}, "1@e0: record 1, epoch 0"));
    if (moments.some((m) => m.route && m.route.consults !== null))
      box.append(html("span", {}, "dashed arrow: whose log is consulted"));
  }

  function select(index) {
    for (const node of root.querySelectorAll(".column"))
      node.setAttribute("aria-selected", String(Number(node.dataset.index) === index));
    for (const node of root.querySelectorAll(".piece, .event")) {
      node.classList.toggle("later", Number(node.dataset.index) > index);
      node.classList.toggle("now", Number(node.dataset.index) === index);
    }
    root.setAttribute("aria-activedescendant", at.column + index);
    const left = index * COLUMN;
    if (left < at.box.scrollLeft + COLUMN || left + 2 * COLUMN > at.box.scrollLeft + at.box.clientWidth) {
      const to = left - at.box.clientWidth / 2 + COLUMN / 2;
      const near = Math.abs(to - at.box.scrollLeft) < at.box.clientWidth;
      at.box.scrollTo({ left: to, behavior: near ? "auto" : "instant" });
    }
  }

  const root = diagram();
  legend();
  return { root, select };
}
