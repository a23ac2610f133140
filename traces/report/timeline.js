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
  const LANE = Math.max(112, Math.min(168, widest * 6.7 + 34, 640 / lanes.length));
  /* A label stands on the far side of the lane at which its message arrives: there must be room for it at the edges. */
  const LETTERS = Math.min(widest + 3, Math.floor((LANE - 20) / 6.7)), LABEL = LETTERS * 6.7 + 18;
  const LEFT = rows.some((row) => row.arrival && key(row.arrival.destination) === lanes[0]) ? Math.max(80, LABEL) : 80;
  const x = (lane) => LEFT + Math.max(0, lanes.indexOf(key(lane))) * LANE;
  const width = LEFT + (lanes.length - 1) * LANE + LABEL + 16;
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

  /* What is drawn of a row lies in three layers, so that no line runs through a text. */
  const LAYERS = ["lines", "dots", "texts"];
  function layered(root, name, ...rowsOf) {
    const group = (layer) => svg("g", { class: name, "data-rows": rowsOf.join(" ") }, root[layer]);
    return Object.fromEntries(LAYERS.map((layer) => [layer, group(layer)]));
  }

  function wedge(group, tx, ty, angle) {
    const wing = (turn) => `${tx - Math.cos(angle + turn) * 10},${ty - Math.sin(angle + turn) * 10}`;
    svg("path", { class: "head", d: `M${tx},${ty}L${wing(0.4)}L${wing(-0.4)}z` }, group);
  }

  /* From where a message was sent to where it arrived; where nobody knows that, from a little above. */
  function message(root, from, index, arrival) {
    const known = from !== undefined, held = known && index - from > 3 && arrival.fate !== "lost";
    const at = layered(root, `message ${arrival.fate}${held ? " held" : ""}`, known ? from : index, index);
    const x1 = x(arrival.source), y1 = known ? y(from) : y(index) - 24, x2 = x(arrival.destination), y2 = y(index);
    const lost = arrival.fate === "lost", same = x1 === x2;
    const bend = same ? LANE * 0.42 : 0, share = lost ? 0.72 : 1;
    const ex = x1 + (x2 - x1) * share + bend * (lost ? 1 : 0), ey = y2;
    const cx = (x1 + ex) / 2 + bend, cy = (y1 + ey) / 2;
    const angle = Math.atan2(ey - cy, ex - cx), gap = lost ? 0 : 7;
    const tx = ex - Math.cos(angle) * gap, ty = ey - Math.sin(angle) * gap;
    const path = `M${x1},${y1}Q${cx},${cy} ${tx},${ty}`;
    svg("path", { class: "halo", d: path }, at.lines);
    svg("path", { class: "arrow", d: path }, at.lines);
    svg("circle", { class: "origin", cx: x1, cy: y1, r: 2.5 }, at.dots);
    const label = short(arrival.name, LETTERS) + (arrival.fate === "repeated" ? " \u00d72" : "");
    if (lost) {
      svg("path", { class: "cross", d: `M${ex - 6},${ey - 6}l12,12m0,-12l-12,12` }, at.dots);
      svg("text", { x: ex, y: ey + 20, "text-anchor": "middle" }, at.texts, label);
      return;
    }
    wedge(at.lines, tx, ty, angle);
    svg("circle", { class: "dot", cx: x2, cy: y2, r: 4.5 }, at.dots);
    const side = x1 <= x2 ? 1 : -1;
    svg("text", { x: x2 + side * 10, y: y2 + 4, "text-anchor": side > 0 ? "start" : "end" }, at.texts, label);
  }

  /* A message that is still in flight when the run ends. */
  function flying(root, index, each) {
    const at = layered(root, "message flying", index);
    const x1 = x(each.source), x2 = x(each.destination), y1 = y(index);
    const to = x1 === x2 ? x1 + 30 : x1 + Math.sign(x2 - x1) * Math.min(LANE * 0.45, 60);
    svg("path", { class: "arrow", d: `M${x1},${y1}L${to},${y1 + 14}` }, at.lines);
  }

  function mark(root, row, index) {
    const at = layered(root, "mark", index), px = x(row.lane), py = y(index);
    if (row.mark === "time" || row.mark === "peace")
      svg("line", { class: "across", x1: x(lanes[0] === OUTSIDE ? null : lanes[0]), y1: py, x2: x(lanes.at(-1)), y2: py },
        at.lines);
    if (row.mark === "crash" || row.mark === "start") return;
    if (row.mark === "call" || row.mark === "probe")
      svg("rect", { class: "dot call", x: px - 4.5, y: py - 4.5, width: 9, height: 9 }, at.dots);
    else if (row.mark === "disk" || row.mark === "sync")
      svg("path", { class: "dot", d: `M${px},${py - 6}l6,6l-6,6l-6,-6z` }, at.dots);
    else svg("circle", { class: "dot", cx: px, cy: py, r: 5 }, at.dots);
    /* Above the line of whatever it sends, which goes down. */
    svg("text", { x: px + 9, y: py - 6 }, at.texts, short(row.label, LETTERS + 3));
  }

  function ends(root, row, index) {
    for (const node of row.crashed) {
      const at = layered(root, "mark", index), px = x(node), py = y(index) + (row.mark === "crash" ? 0 : 13);
      svg("circle", { class: "dot crash", cx: px, cy: py, r: 6 }, at.dots);
      svg("path", { class: "dash", d: `M${px - 2.6},${py - 2.6}l5.2,5.2m0,-5.2l-5.2,5.2` }, at.dots);
      svg("text", { class: "bad", x: px + 11, y: py + 4 }, at.texts, row.within ? "power lost" : "crash");
    }
    for (const node of row.started) {
      const at = layered(root, "mark", index);
      svg("circle", { class: "dot start", cx: x(node), cy: y(index), r: 6 }, at.dots);
      svg("text", { x: x(node) + 11, y: y(index) + 4 }, at.texts, "start");
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
    const layers = Object.fromEntries(LAYERS.map((layer) => [layer, svg("g", {}, root)]));
    const over = new Set(rows.map((row) => row.arrival && row.arrival.message));
    rows.forEach((row, index) => {
      if (row.arrival) message(layers, sentIn.get(row.arrival.message), index, row.arrival);
      else mark(layers, row, index);
      for (const each of row.sent) if (!over.has(each.number)) flying(layers, index, each);
      ends(layers, row, index);
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
    if (document.querySelector(".flying")) all.push("dotted stub: in flight when the run ends");
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
  select(last);
  draw();
  legend();
  themeButton(byId("theme"));
  byId("rows").addEventListener("keydown", onKey);
  addEventListener("resize", draw);
  addEventListener("beforeprint", () => { byId("text").open = true; draw(); });
})();
