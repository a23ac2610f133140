/* The stories of the bugs that were mined, each drawn in its own section. Every text goes in through textContent. */
(() => {
  const stories = JSON.parse(document.getElementById("stories").textContent);

  function tell(section, story, number) {
    const within = (selector) => section.querySelector(selector);
    const last = story.moments.length - 1;
    let current = -1;
    section.hidden = false;
    const shown = spaceTime(story, {
      box: within(".scroll"), gutter: within(".gutter"), legend: within(".legend"),
      id: `diagram-${number}`, column: `bug-${number}-step-`, pick: go,
    });

    function go(wanted) {
      const index = Math.max(0, Math.min(last, wanted));
      if (index === current) return;
      current = index;
      const m = story.moments[index];
      shown.select(index);
      within(".step-title").textContent = `Step ${m.step}: ${title(m)}`;
      within(".back").disabled = index === 0;
      within(".forward").disabled = index === last;
      stepAlarms(story, within(".alarm"), index);
      stepCards(story, within(".cards"), index);
      stepChanges(story, within(".changed-list"), index);
    }

    within(".back").addEventListener("click", () => go(current - 1));
    within(".forward").addEventListener("click", () => go(current + 1));
    shown.root.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const target = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: last }[event.key];
      if (target === undefined) return;
      event.preventDefault();
      go(target);
    });
    go(story.breach !== null ? story.breach : last);
  }

  for (const section of document.querySelectorAll("[data-story]")) {
    const place = Number(section.dataset.story);
    tell(section, stories[place], place + 1);
  }
  /* Where the diagrams are drawn, the text is the second telling of the same. */
  for (const text of document.querySelectorAll("details.text")) text.open = false;
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  themeButton(document.getElementById("theme"));
})();
