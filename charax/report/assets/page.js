"use strict";
(() => {
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const figures = [];
  const NARROW = 560;
  // The blue and the grey of the palette are too dark on a dark page: its sky blue and a lighter grey take their places.
  const LIGHTER = { "#0072b2": "#56b4e9", "#6b6b6b": "#a3adb7" };

  function themeColors(value) {
    if (root.dataset.theme !== "dark") return structuredClone(value);
    return JSON.parse(JSON.stringify(value).replace(/#0072b2|#6b6b6b/g, (color) => LIGHTER[color]));
  }

  function themeLayout(figure) {
    const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: css("--ink"), size: 13, family: "system-ui, sans-serif" },
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", itemsizing: "constant" },
      margin: { l: 60, r: 15, t: figure.layout.annotations ? 60 : 30, b: 70 }, // the buttons are above titles of panels
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--faint"), activecolor: css("--accent") },
    };
    const given = figure.layout;
    const merged = { ...layout, ...given, legend: { ...layout.legend, ...(given.legend || {}) } };
    for (const name of new Set(["xaxis", "yaxis", ...Object.keys(given)])) {
      if (/^[xy]axis\d*$/.test(name)) merged[name] = { ...axis, ...(given[name] || {}) };
      if (/^scene\d*$/.test(name)) {
        merged[name] = { ...given[name] };
        for (const one of ["xaxis", "yaxis", "zaxis"]) {
          merged[name][one] = { gridcolor: css("--line"), zerolinecolor: css("--line"), color: css("--ink"), backgroundcolor: "rgba(0,0,0,0)", ...given[name][one] };
        }
        merged[name].camera = figure.camera || given[name].camera;
      }
    }
    return merged;
  }

  // In a narrow window, panels that are side by side are put below each other, each as high as all were together,
  // and a box in space is made small enough to be seen as a whole.
  function stackPanels(figure, layout) {
    const numbers = Object.keys(layout).filter((name) => /^xaxis\d*$/.test(name)).map((name) => name.slice(5));
    const panels = numbers.filter((number) => layout[`xaxis${number}`].domain && layout[`yaxis${number}`]?.domain);
    const columns = new Set(panels.map((number) => layout[`xaxis${number}`].domain[0])).size;
    figure.plot.style.height = "";
    if (layout.scene && figure.plot.clientWidth <= NARROW) { // a box in space is scaled by the height
      const named = figure.data.filter((trace) => trace.name && trace.showlegend !== false).length;
      layout.height = 1.05 * figure.plot.clientWidth + 20 * Math.max(Math.ceil(named / 3) - 3, 0); // and its legend
      figure.plot.style.height = `${layout.height}px`;
      return layout;
    }
    if (columns < 2 || panels.length !== numbers.length || figure.plot.clientWidth > NARROW) return layout;
    figure.plot.style.height = `${0.8 * columns * figure.plot.clientHeight}px`;
    const gap = 0.3 / panels.length, each = (1 - gap * (panels.length - 1)) / panels.length;
    panels.forEach((number, i) => {
      const top = 1 - i * (each + gap);
      layout[`xaxis${number}`] = { ...layout[`xaxis${number}`], domain: [0, 1] };
      layout[`yaxis${number}`] = { ...layout[`yaxis${number}`], domain: [Math.max(top - each, 0), top] };
    });
    if (layout.annotations?.length === panels.length) {
      layout.annotations = layout.annotations.map((title, i) => ({ ...title, x: 0.5, y: 1 - i * (each + gap) }));
    }
    return layout;
  }

  function draw(figure) {
    if (figure.drawn) return;
    figure.drawn = true;
    const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
    const content = {
      data: themeColors(figure.data), layout: stackPanels(figure, themeLayout(figure)), config, frames: themeColors(figure.frames || []),
    };
    Plotly.newPlot(figure.plot, content).then(() => {
      if (figure.index > 0) showFrame(figure, figure.index);
      figure.plot.on("plotly_relayout", (change) => { if (change["scene.camera"]) figure.camera = change["scene.camera"]; });
      figure.plot.on("plotly_click", (event) => showDetails(figure, String(event.points[0].customdata)));
      figure.plot.dataset.ready = "yes";
    });
  }

  function clear(figure) {
    if (!figure.drawn) return;
    figure.drawn = false;
    delete figure.plot.dataset.ready;
    Plotly.purge(figure.plot);
  }

  function showFrame(figure, index) {
    figure.index = index;
    const name = figure.frames[index].name;
    figure.slider.value = index;
    figure.output.textContent = `${figure.along} = ${name}`;
    if (figure.drawn) {
      const immediately = { mode: "immediate", frame: { duration: 0, redraw: true }, transition: { duration: 0 } };
      Plotly.animate(figure.plot, [name], immediately).then(() => { figure.plot.dataset.frame = name; }).catch(() => {});
    }
  }

  // Figures of one section move together, so that runs can be compared at the same place.
  function moveTo(figure, index) {
    for (const other of figures) {
      if (other.frames?.length === figure.frames.length && other.section === figure.section) showFrame(other, index);
    }
  }

  function addControls(figure) {
    const controls = document.createElement("div");
    controls.className = "controls";
    const play = document.createElement("button");
    play.type = "button";
    play.textContent = "Play";
    figure.slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: figure.frames.length - 1, value: 0 });
    figure.slider.setAttribute("aria-label", figure.along);
    figure.output = document.createElement("output");
    figure.output.textContent = `${figure.along} = ${figure.frames[0].name}`;
    let timer = null;
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
    play.addEventListener("click", () => {
      if (timer) return stop();
      if (figure.index === figure.frames.length - 1) moveTo(figure, 0);
      play.textContent = "Stop";
      timer = setInterval(() => figure.index + 1 < figure.frames.length ? moveTo(figure, figure.index + 1) : stop(), 120);
    });
    figure.slider.addEventListener("input", () => { stop(); moveTo(figure, Number(figure.slider.value)); });
    controls.append(play, figure.slider, figure.output);
    figure.plot.after(controls);
  }

  function showDetails(figure, key) {
    if (!figure.details) return;
    const rows = figure.details.rows[key];
    figure.box.replaceChildren();
    const hint = document.createElement("p");
    hint.textContent = rows ? figure.details.hint : `${figure.details.hint} There are none here.`;
    figure.box.append(hint);
    if (!rows) return;
    if (typeof rows[0][0] !== "string") {
      for (const [picture, ...words] of rows) {
        const shown = document.createElement("figure");
        const image = Object.assign(document.createElement("img"), { src: picture.image, alt: words.join(", ") });
        const caption = document.createElement("figcaption");
        caption.textContent = `${words[0]} → ${words[1]}, ${words[2]}`;
        shown.append(image, caption);
        figure.box.append(shown);
      }
      return;
    }
    const table = document.createElement("table");
    const add = (cells, kind) => {
      const line = table.insertRow();
      for (const cell of cells) line.append(Object.assign(document.createElement(kind), { textContent: cell }));
    };
    add(figure.details.columns, "th");
    rows.forEach((row) => add(row, "td"));
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.append(table);
    figure.box.append(scroll);
  }

  function makeSortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    const value = (row, column) => {
      const cell = row.cells[column];
      const number = cell.querySelector("[data-value]")?.dataset.value ?? cell.textContent;
      return number === "" || Number.isNaN(Number(number)) ? cell.textContent : Number(number);
    };
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].sort((one, two) => {
        const a = value(one, column), b = value(two, column);
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1; // what is missing comes last
        const order = typeof a === "number" ? a - b : a.localeCompare(b);
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    }));
  }

  function setTheme(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    for (const figure of figures.filter((each) => each.drawn)) { clear(figure); draw(figure); }
  }

  setTheme(prefersDark.matches);
  prefersDark.addEventListener("change", (event) => setTheme(event.matches));
  document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme !== "dark"));

  for (const section of document.querySelectorAll("main > section")) {
    const link = Object.assign(document.createElement("a"), { href: `#${section.id}`, textContent: section.querySelector("h2").textContent });
    document.getElementById("contents").append(link);
  }
  for (const element of document.querySelectorAll(".figure")) {
    const figure = { ...JSON.parse(element.querySelector("script").textContent), index: 0, drawn: false, section: element.closest("section") };
    figure.plot = Object.assign(document.createElement("div"), { className: "plot" });
    element.append(figure.plot);
    if (figure.frames?.length > 1) addControls(figure);
    if (figure.details) {
      figure.box = Object.assign(document.createElement("div"), { className: "details" });
      element.append(figure.box);
      if (figure.details.first) showDetails(figure, figure.details.first);
      else figure.box.textContent = figure.details.hint;
    }
    figures.push(figure);
  }
  // A browser has few contexts for figures in space: those that are far away give theirs back.
  const byPlot = new Map(figures.map((figure) => [figure.plot, figure]));
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = byPlot.get(entry.target);
      if (entry.isIntersecting) draw(figure);
      else if (figure.layout.scene) clear(figure);
    }
  }, { rootMargin: "600px" });
  figures.forEach((figure) => near.observe(figure.plot));
  window.addEventListener("beforeprint", () => figures.forEach(draw));
  document.querySelectorAll("table.sortable").forEach(makeSortable);
})();
