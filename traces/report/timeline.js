/* Draws the run that the page carries as a sequence diagram. Every text goes in through textContent. */
(() => {
  const story = JSON.parse(document.getElementById("story").textContent);
  const byId = (id) => document.getElementById(id);
  const rows = story.rows, last = rows.length - 1;
  const OUTSIDE = "outside", key = (lane) => (lane === null ? OUTSIDE : lane);
  const outside = rows.some((row) => [row, row.arrival, ...row.sent].some((each) => each &&
    (("lane" in each && each.lane === null) || each.source === null || each.destination === null)));
  const lanes = [...(outside ? [OUTSIDE] : []), ...story.nodes];
  const widest = Math.max(...rows.map((row) => (row.arrival ? row.arrival.name : row.label).length), 8);
  const LANE = Math.max(96, Math.min(168, widest * 6.7 + 34, 640 / lanes.length));
  const LETTERS = Math.floor((LANE - 26) / 6.7), LEFT = 66;
  const x = (lane) => LEFT + Math.max(0, lanes.indexOf(key(lane))) * LANE;
  const width = LEFT + lanes.length * LANE - LANE / 2 + 30;
  let current = -1, items = [];

  /* ---- the words beside the diagram ---- */

  function changed(list) {
    return html("div", { class: "seen" }, ...list.map(([cell, old, now]) => html("span", {}, `${cell} `,
      html("span", { class: "old" }, old), " \u2192 ", html("span", { class: "new" }, now))));
  }

  function breach() {
    const table = html("table", {}, html("tr", {}, ...["cell", "the model", story.system].map((name) =>
      html("th", { scope: "col" }, name))));
    for (const [cell, model, seen] of story.cells)
      table.append(html("tr", {}, html("td", {}, cell), html("td", { class: "model-value" }, model),
        html("td", { class: "seen-value" }, seen)));
    return html("div", { class: "breach" }, html("b", {}, capital(sentence(story.sort))),
      html("p", {}, story.headline), story.cells.length ? table : null,
      ...story.why.map((line) => html("p", { class: "why" }, line)));
  }

  function words(row, index) {
    const count = html("span", { class: "count" }, row.number === null ? "\u00b7" : String(row.number));
    const [, plain, args] = /^(.*?)( \(.*\).*)?$/.exec(row.text);
    const box = html("li", {
      class: "row" + (index === last ? " parts" : ""), id: `row-${index}`, role: "option", "aria-selected": "false",
    }, html("div", { class: "says" }, count, plain, html("span", { class: "part-args" }, args || "")));
    if (row.model.length) box.append(html("div", { class: "model" }, row.model.join(", ")));
    if (row.changes.length) box.append(changed(row.changes));
    if (row.told) box.append(html("div", { class: "told" }, row.told));
    if (index === last) box.append(breach());
    box.addEventListener("click", () => select(index));
    return box;
  }

  /* ---- the diagram ---- */

  const y = (index) => items[index].offsetTop + 22;
  const sentIn = new Map(rows.flatMap((row, index) => row.sent.map((each) => [each.number, index])));

  function wedge(group, tx, ty, angle) {
    const wing = (turn) => `${tx - Math.cos(angle + turn) * 10},${ty - Math.sin(angle + turn) * 10}`;
    svg("path", { class: "head", d: `M${tx},${ty}L${wing(0.4)}L${wing(-0.4)}z` }, group);
  }

  /* From where a message was sent to where it arrived; where nobody knows that, from a little above. */
  function message(root, from, source, index, arrival) {
    const known = from !== undefined, held = known && index - from > 3 && arrival.fate !== "lost";
    const group = svg("g", { class: `message ${arrival.fate}${held ? " held" : ""}`, "data-rows": `${from} ${index}` }, root);
    const x1 = x(source), y1 = known ? y(from) : y(index) - 24, x2 = x(arrival.destination), y2 = y(index);
    const lost = arrival.fate === "lost", same = x1 === x2;
    const bend = same ? LANE * 0.42 : 0, share = lost ? 0.72 : 1;
    const ex = x1 + (x2 - x1) * share + bend * (lost ? 1 : 0), ey = y1 + (y2 - y1) * share;
    const cx = (x1 + ex) / 2 + bend, cy = (y1 + ey) / 2;
    const angle = Math.atan2(ey - cy, ex - cx), gap = lost ? 0 : 7;
    const tx = ex - Math.cos(angle) * gap, ty = ey - Math.sin(angle) * gap;
    const path = `M${x1},${y1}Q${cx},${cy} ${tx},${ty}`;
    svg("path", { class: "halo", d: path }, group);
    svg("path", { class: "arrow", d: path }, group);
    if (lost) {
      svg("path", { class: "cross", d: `M${ex - 6},${ey - 6}l12,12m0,-12l-12,12` }, group);
    } else {
      wedge(group, tx, ty, angle);
      svg("circle", { class: "dot", cx: x2, cy: y2, r: 4.5 }, group);
    }
    const toLeft = x1 < x2 || same;
    const label = short(arrival.name, LETTERS) + (arrival.fate === "repeated" ? " \u00d72" : "");
    const at = lost ? { x: ex, y: ey + 20, "text-anchor": "middle" }
      : { x: x2 + (toLeft && !same ? -13 : 13), y: y2 + (toLeft && !same ? 15 : 15), "text-anchor": toLeft && !same ? "end" : "start" };
    svg("text", at, group, label);
  }

  /* A message that is still in flight when the run ends. */
  function flying(root, index, each) {
    const group = svg("g", { class: "message flying", "data-rows": `${index} ${index}` }, root);
    const x1 = x(each.source), x2 = x(each.destination), y1 = y(index);
    const to = x1 === x2 ? x1 + 30 : x1 + Math.sign(x2 - x1) * Math.min(LANE * 0.45, 60);
    svg("path", { class: "arrow", d: `M${x1},${y1}L${to},${y1 + 14}` }, group);
    svg("title", {}, group, `${each.name} is sent and does not arrive in this run`);
  }

  function mark(root, row, index) {
    const group = svg("g", { class: "mark", "data-rows": `${index} ${index}` }, root);
    const px = x(row.lane), py = y(index), label = short(row.label, LETTERS + 2);
    if (row.mark === "time" || row.mark === "peace")
      svg("line", { class: "across", x1: x(lanes[0] === OUTSIDE ? null : lanes[0]), y1: py, x2: x(lanes.at(-1)), y2: py }, group);
    const side = { x: px + 11, y: py + 4 };
    if (row.mark === "call" || row.mark === "probe")
      svg("rect", { class: "dot call", x: px - 4.5, y: py - 4.5, width: 9, height: 9 }, group);
    else if (row.mark === "disk" || row.mark === "sync")
      svg("path", { class: "dot", d: `M${px},${py - 6}l6,6l-6,6l-6,-6z` }, group);
    else if (row.mark !== "crash" && row.mark !== "start") svg("circle", { class: "dot", cx: px, cy: py, r: 5 }, group);
    if (row.mark !== "crash" && row.mark !== "start") svg("text", side, group, label);
  }

  function ends(root, row, index) {
    for (const node of row.crashed) {
      const group = svg("g", { class: "mark", "data-rows": `${index} ${index}` }, root);
      const px = x(node), py = y(index) + (row.mark === "crash" ? 0 : 11);
      svg("circle", { class: "dot crash", cx: px, cy: py, r: 6 }, group);
      svg("path", { d: `M${px - 3},${py - 3}l6,6m0,-6l-6,6`, stroke: "var(--paper)", "stroke-width": 1.8 }, group);
      svg("text", { class: "bad", x: px + 11, y: py + 4 }, group, row.within ? "power lost" : "crash");
    }
    for (const node of row.started) {
      const group = svg("g", { class: "mark", "data-rows": `${index} ${index}` }, root);
      svg("circle", { class: "dot start", cx: x(node), cy: y(index), r: 6 }, group);
      svg("text", { x: x(node) + 11, y: y(index) + 4 }, group, "start");
    }
  }

  /* A lane is broken while its process is down, and dashed while it is cut off. */
  function lane(root, which, height) {
    let from = 0, state = "";
    const piece = (to) => svg("line", { class: `lane ${state}`, x1: x(which), y1: from, x2: x(which), y2: to }, root);
    let down = false, cut = false;
    rows.forEach((row, index) => {
      if (row.crashed.includes(which)) down = true;
      if (row.started.includes(which)) down = false;
      if (row.lane === which && row.mark === "cut") cut = true;
      if (row.lane === which && row.mark === "heal") cut = false;
      const now = down ? "down" : cut ? "cut" : "";
      if (now !== state) { piece(y(index)); from = y(index); state = now; }
    });
    piece(height);
  }

  function draw() {
    const old = byId("timeline").querySelector("svg");
    const height = byId("rows").offsetHeight;
    const root = svg("svg", { class: "sketch", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    for (const each of lanes) lane(root, each === OUTSIDE ? null : each, height);
    const done = new Set();
    rows.forEach((row, index) => {
      if (!row.arrival) return;
      done.add(row.arrival.message);
      message(root, sentIn.get(row.arrival.message), row.arrival.source, index, row.arrival);
    });
    rows.forEach((row, index) => {
      for (const each of row.sent) if (!done.has(each.number)) flying(root, index, each);
      if (!row.arrival) mark(root, row, index);
      ends(root, row, index);
    });
    if (old) old.remove();
    byId("timeline").append(root);
    light();
  }

  function light() {
    for (const group of document.querySelectorAll(".sketch [data-rows]"))
      group.classList.toggle("now", group.dataset.rows.split(" ").includes(String(current)));
  }

  function select(wanted, scroll = false) {
    const index = Math.max(0, Math.min(last, wanted));
    current = index;
    items.forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
    byId("rows").setAttribute("aria-activedescendant", `row-${index}`);
    if (scroll) items[index].scrollIntoView({ block: "nearest" });
    light();
  }

  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = { ArrowUp: current - 1, ArrowDown: current + 1, Home: 0, End: last }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    select(target, true);
  }

  function legend() {
    const kinds = new Set(rows.flatMap((row) => (row.arrival ? [row.arrival.fate] : [row.mark])));
    const said = {
      arrived: "arrow: a message", repeated: "\u00d72: a copy; the message itself stays in flight",
      lost: "cross: lost", timer: "circle: a timer", call: "square: a client or an operator asks",
      sync: "diamond: something becomes durable", crash: "red: power lost, until the next process starts",
    };
    const held = rows.some((row, index) => row.arrival && row.arrival.fate !== "lost"
      && index - sentIn.get(row.arrival.message) > 3);
    const all = Object.entries(said).filter(([kind]) => kinds.has(kind)).map(([, words]) => words);
    if (held) all.push("dashed arrow: held back for long");
    byId("legend").append(...all.map((each) => html("span", {}, each)));
  }

  byId("system").textContent = story.system;
  byId("protocol").textContent = story.protocol;
  byId("variant").textContent = story.variant;
  byId("headline").textContent = `${capital(sentence(story.sort))} ${story.headline}`;
  byId("meta").textContent = `${story.constants} \u00b7 seed ${story.seed}`;
  byId("text").open = false;
  byId("rows").style.setProperty("--lanes", `${width}px`);
  byId("timeline").style.minWidth = byId("names").style.minWidth = `${width + 340}px`;
  for (const each of lanes) {
    const name = html("span", {}, each === OUTSIDE ? "controller, clients" : `node ${each}`);
    name.style.left = `${x(each === OUTSIDE ? null : each)}px`;
    byId("names").append(name);
  }
  const head = html("span", { class: "head" }, "what happened, what the model did, what was seen to change");
  head.style.left = `${width}px`;
  byId("names").append(head);
  items = rows.map(words);
  byId("rows").append(...items);
  legend();
  select(last);
  draw();
  themeButton(byId("theme"));
  byId("rows").addEventListener("keydown", onKey);
  addEventListener("resize", draw);
  addEventListener("beforeprint", () => { byId("text").open = true; draw(); });
})();
