/* Draws the story that the page carries, a step at a time. Every text goes in through textContent. */
(() => {
  const story = JSON.parse(document.getElementById("story").textContent);
  const moments = story.moments;
  const last = moments.length - 1;
  const byId = (id) => document.getElementById(id);
  let current = -1;

  function sides(index) {
    const m = moments[index];
    stepChanges(story, byId("changed"), index);
    byId("enabled-title").textContent = `What could happen next (${m.enabled.length})`;
    byId("enabled").replaceChildren(...m.enabled.map((call) => {
      const item = html("li", call.taken ? { class: "taken" } : {}, call.text);
      if (call.taken) item.append(html("span", { class: "hidden" }, " (taken)"));
      return item;
    }));
    if (!m.enabled.length) byId("enabled").append(html("li", {}, "no action is recorded as enabled"));
    stepAlarms(story, byId("alarm"), index);
  }

  function go(wanted, remember = true) {
    const index = Math.max(0, Math.min(last, wanted));
    if (index === current) return;
    current = index;
    const m = moments[index];
    shown.select(index);
    byId("step-title").textContent = `Step ${m.step}: ${title(m)}`;
    byId("live").textContent = `Step ${m.step} of ${moments[last].step}: ${title(m)}`
      + m.broken.map((each) => `; ${each.invariant} does not hold`).join("");
    byId("where").textContent = `step ${m.step} of ${moments[last].step}`;
    byId("slider").value = String(index);
    byId("slider").setAttribute("aria-valuetext", `step ${m.step}: ${title(m)}`);
    byId("first").disabled = byId("back").disabled = index === 0;
    byId("last").disabled = byId("forward").disabled = index === last;
    stepCards(story, byId("cards"), index);
    sides(index);
    if (remember) history.replaceState(null, "", `#step=${m.step}`);
  }

  /* #step=7 names the step, as the text does, and not its place in the list. */
  function fromAddress() {
    const match = /^#step=(\d+)$/.exec(location.hash);
    return match ? moments.findIndex((m) => m.step === Number(match[1])) : -1;
  }

  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
    const target = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: last }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    go(target);
  }

  byId("protocol").textContent = story.protocol;
  byId("variant").textContent = story.variant;
  byId("verdict").textContent = story.verdict;
  byId("verdict").classList.add(story.verdict);
  byId("violated").textContent = story.violated || "";
  byId("headline").textContent = story.headline;
  byId("meta").textContent = story.constants + (story.source ? ` \u00b7 from ${story.source}` : "");
  byId("slider").max = String(last);
  byId("text").open = false;
  const shown = spaceTime(story, {
    box: byId("scroll"), gutter: byId("gutter"), legend: byId("legend"), id: "diagram", column: "column-", pick: go,
  });
  shown.root.addEventListener("keydown", onKey);
  byId("first").addEventListener("click", () => go(0));
  byId("back").addEventListener("click", () => go(current - 1));
  byId("forward").addEventListener("click", () => go(current + 1));
  byId("last").addEventListener("click", () => go(last));
  byId("slider").addEventListener("input", (event) => go(Number(event.target.value)));
  if (story.breach !== null) {
    byId("jump").hidden = false;
    byId("jump").addEventListener("click", () => go(story.breach));
  }
  themeButton(byId("theme"));
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => { const index = fromAddress(); if (index >= 0) go(index, false); });
  addEventListener("beforeprint", () => { byId("text").open = true; });
  const asked = fromAddress();
  go(asked >= 0 ? asked : story.breach !== null ? story.breach : last, asked >= 0);
})();
