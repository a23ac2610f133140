/* One step of a story in full: the state after it, what it changed, and what does not hold. */

/* One replica's log, large: offsets above, high watermark and LEO below, records cut off in this step as ghosts. */
function bigStrip(noun, now, old, suspects, changed) {
  const W = 54, H = 42, TOP = 18, LEFT = 20;
  const ghosts = old ? old.records.filter((r) => r.offset >= (now.end || 0) || r.offset < now.start) : [];
  const offsets = [...now.records, ...ghosts].map((r) => r.offset);
  const first = Math.min(now.start, ...offsets), beyond = Math.max(now.end || 0, ...offsets.map((o) => o + 1), first);
  const at = (offset) => LEFT + (offset - first) * W;
  const names = [...now.records.map((r) => `${r.offset}: ${r.text}`)].join(", ") || "empty";
  const marks = now.hw === null ? "" : `, high watermark ${now.hw}`;
  const root = svg("svg", {
    width: at(beyond) + 58, height: 96, role: "img",
    "aria-label": `log of ${noun} ${now.replica}: ${names}${marks}, LEO ${now.end}`,
  });
  for (const record of ghosts) {
    svg("text", { class: "offset", x: at(record.offset) + W / 2, y: 12 }, root, String(record.offset));
    svg("rect", { class: "ghost", x: at(record.offset) + 2, y: TOP + 2, width: W - 4, height: H - 4 }, root);
    svg("text", { class: "gone", x: at(record.offset) + W / 2, y: TOP + 19 }, root, short(record.text, 7));
    svg("text", { class: "gone", x: at(record.offset) + W / 2, y: TOP + 33 }, root, "cut off");
  }
  for (const record of now.records) {
    const [fill, ink] = colour(record.epoch);
    const before = old && old.records.find((r) => r.offset === record.offset);
    const fresh = old && (!before || before.text !== record.text);
    const bad = record.cells.some((cell) => suspects.has(cell));
    svg("text", { class: "offset", x: at(record.offset) + W / 2, y: 12 }, root, String(record.offset));
    svg("rect", {
      class: "record" + (bad ? " suspect" : fresh ? " fresh" : ""),
      x: at(record.offset) + 1.5, y: TOP + 1.5, width: W - 3, height: H - 3, fill,
    }, root);
    const big = svg("text", { class: "big", x: at(record.offset) + W / 2, y: TOP + 20 }, root,
      short(record.id === null ? record.text : record.id, 5));
    const small = svg("text", { class: "epoch", x: at(record.offset) + W / 2, y: TOP + 35 }, root,
      record.epoch === null || record.id === null ? "" : `e${record.epoch}`);
    for (const text of [big, small]) text.style.setProperty("--on", ink);
  }
  if (!offsets.length) {
    svg("rect", { class: "empty", x: LEFT, y: TOP + 2, width: W, height: H - 4 }, root);
    svg("text", { class: "offset", x: LEFT + W / 2, y: TOP + 25 }, root, "empty");
  }
  const mark = (offset, label, y, kind, cell) => {
    const px = at(Math.max(first, Math.min(beyond, offset)));
    svg("line", { class: kind, x1: px, y1: TOP - 6, x2: px, y2: TOP + H + 6 }, root);
    if (kind === "hw") svg("path", { class: "hw-flag", d: `M${px - 5},${TOP - 10}h10l-5,8z` }, root);
    const text = svg("text", { x: px, y, "text-anchor": "middle" }, root, label);
    if (changed.has(cell)) text.style.fontWeight = "700";
  };
  if (now.end !== null) mark(now.end, `LEO ${now.end}`, now.hw === now.end ? 90 : 76, "empty", now.marks.end);
  if (now.hw !== null) mark(now.hw, `HW ${now.hw}`, 76, "hw", now.marks.hw);
  return html("div", { class: "strip" }, root);
}

/* A value as text: marked where the step changed it, with what it was, and where a promise is broken by it. */
function cell(tag, value, old, changed, suspects) {
  const before = old && old.find((each) => each.cell === value.cell);
  const box = html(tag, { "data-cell": value.cell }, value.text);
  if (changed.has(value.cell)) {
    box.classList.add("changed");
    const said = html("span", { class: "hidden" }, "was ");
    box.append(html("span", { class: "was" }, said, before ? before.text : "absent"));
  }
  if (suspects.has(value.cell)) box.classList.add("suspect");
  return box;
}

function values(list, old, changed, suspects) {
  const box = html("dl");
  for (const value of list) box.append(html("dt", {}, value.label), cell("dd", value, old, changed, suspects));
  return box;
}

/* Variables that have the same indices, as one table: a row for each index, a column for each variable. */
function tables(list, old, changed, suspects) {
  const variables = new Map(), plain = [];
  for (const value of list) {
    const parts = /^([^[]+)\[(.*)\]$/.exec(value.cell);
    if (!parts) { plain.push(value); continue; }
    if (!variables.has(parts[1])) variables.set(parts[1], new Map());
    variables.get(parts[1]).set(parts[2].replaceAll("][", ", "), value);
  }
  const alike = new Map();
  for (const [name, cells] of variables) {
    const indices = JSON.stringify([...cells.keys()]);
    if (!alike.has(indices)) alike.set(indices, []);
    alike.get(indices).push([name, cells]);
  }
  const box = html("div", { class: "tables" });
  if (plain.length) box.append(values(plain, old, changed, suspects));
  for (const [indices, columns] of alike) {
    const name = ([variable, cells]) => [...cells.values()][0].label.replace(/\[.*$/, "") || variable;
    const draw = (value) => cell("td", value, old, changed, suspects);
    const corner = html("th", { scope: "col" }, html("span", { class: "hidden" }, "index"));
    const across = JSON.parse(indices);
    /* Many variables of few indices: each is a row then, so that nothing has to be scrolled. */
    const turned = across.length <= 3 && columns.length > 6;
    const [heads, rows] = turned
      ? [across.map((at) => `[${at}]`), columns.map((column) => [name(column), across.map((at) => column[1].get(at))])]
      : [columns.map(name), across.map((at) => [`[${at}]`, columns.map(([, cells]) => cells.get(at))])];
    const head = html("tr", {}, corner, ...heads.map((text) => html("th", { scope: "col" }, text)));
    const body = rows.map(([text, list]) => html("tr", {}, html("th", { scope: "row" }, text), ...list.map(draw)));
    box.append(html("div", { class: "scroll", tabindex: "0" },
      html("table", { class: "cells" }, html("thead", {}, head), html("tbody", {}, ...body))));
  }
  return box;
}

function controllerCard(m, old, changed, suspects) {
  const now = m.controller, before = old && old.controller;
  const touched = before && JSON.stringify(before) !== JSON.stringify(now);
  const card = html("section", { class: "card" + (touched ? " touched" : ""), "data-replica": CONTROLLER },
    html("h3", {}, "Controller"), values(now.values, before && before.values, changed, suspects));
  if (now.messages.length) {
    const box = html("div", { class: "messages" }, "Requests sent");
    for (const message of now.messages) {
      const hot = message.values.some((value) => changed.has(value.cell));
      box.append(html("div", hot ? { class: "changed" } : {},
        `e${message.epoch}: ` + message.values.map((value) => `${value.label} ${value.text}`).join(", ")));
    }
    card.append(box);
  }
  return card;
}

/* The whole state after a step, a card for the controller and for each replica; what changed is marked. */
function stepCards(story, box, index) {
  const { moments } = story, m = moments[index], old = index ? moments[index - 1] : null;
  const changed = new Set(m.changed);
  const suspects = new Set(m.broken
    .filter((each) => story.violated === null || each.invariant === story.violated || m.broken.length === 1)
    .flatMap((each) => each.cells));
  const all = story.hasController ? [controllerCard(m, old, changed, suspects)] : [];
  for (const [at, now] of m.replicas.entries()) {
    const before = old ? old.replicas[at] : null;
    const role = html("span", { class: "role" }, now.role + (now.epoch === null ? "" : ` \u00b7 e${now.epoch}`));
    if (now.epoch !== null) [role.style.background, role.style.color] = colour(now.epoch);
    const touched = before && JSON.stringify(before) !== JSON.stringify(now);
    const card = html("section", { class: "card" + (touched ? " touched" : ""), "data-replica": now.replica },
      html("h3", {}, capital(`${story.noun} ${now.replica}`), now.role ? role : null));
    if (now.end !== null) card.append(bigStrip(story.noun, now, before, suspects, changed));
    card.append(values(now.values, before && before.values, changed, suspects));
    all.push(card);
  }
  if (m.others.length)
    all.push(html("section", { class: "card wide" }, html("h3", {}, story.hasLogs ? "Other variables" : "State"),
      tables(m.others, old && old.others, changed, suspects)));
  box.replaceChildren(...all);
  /* A log that is longer than its card shows its end: that is where things happen. */
  for (const strip of box.querySelectorAll(".strip")) strip.scrollLeft = strip.scrollWidth;
}

/* What a step changed, as the items of a list. */
function stepChanges(story, list, index) {
  const m = story.moments[index];
  list.replaceChildren(...(m.changes.length ? m.changes : [null]).map((change) => change === null
    ? html("li", {}, index === 0 ? "nothing yet: this is where the run starts" : "nothing")
    : html("li", {}, `${change[0]} `, html("span", { class: "old" }, change[1]), " \u2192 ",
      html("span", { class: "new" }, change[2]))));
}

/* What does not hold after a step, the property that the story is about first, and what else is to be said. */
function stepAlarms(story, box, index) {
  const { moments } = story, last = moments.length - 1, m = moments[index];
  const first = (each) => (each.invariant === story.violated ? 0 : 1);
  const alarms = [...m.broken].sort((a, b) => first(a) - first(b)).map((each) => html("div", {},
    html("b", {}, each.invariant), " does not hold here",
    each.promise ? html("p", {}, `The promise: ${sentence(each.promise)}`) : null,
    each.detail ? html("p", {}, `What happened: ${each.detail}.`) : null));
  if (index === last && story.loopStart !== null) {
    const start = moments[story.loopStart].step;
    alarms.push(html("div", story.violated ? {} : { class: "note" },
      story.violated ? html("b", {}, story.violated) : null,
      story.violated ? " does not hold on this run" : null,
      story.promise ? html("p", {}, `The promise: ${sentence(story.promise)}`) : null,
      html("p", {}, story.loopStart === last ? "The run may stay in this state for ever."
        : `This is the state of step ${start} again: steps ${start + 1} to ${m.step} repeat for ever.`)));
  }
  alarms.push(...m.notes.map((note) => html("div", { class: "note" }, note)));
  box.replaceChildren(...alarms);
}
