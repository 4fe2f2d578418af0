// Light or dark: the system's choice until a person chooses, then that one.

const KEY = "penstock.theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const WORDS = { system: "System colours", light: "Light", dark: "Dark" };
const SYMBOLS = { system: "◐", light: "☀", dark: "☾" };

function remembered() {
  try {
    const found = localStorage.getItem(KEY);
    return found in NEXT ? found : "system";
  } catch {
    return "system"; // a page from a file may have no storage
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It is forgotten when the page is closed.
  }
}

/** Make `button` switch between the themes; `changed` is called after every change. */
export function startTheme(button, changed) {
  let theme = remembered();
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.querySelector(".symbol").textContent = SYMBOLS[theme];
    button.setAttribute("aria-label", `${WORDS[theme]}. Change to: ${WORDS[NEXT[theme]]}`);
    button.title = WORDS[theme];
    changed();
  };
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    keep(theme);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

/** The colours of the present theme, for what is drawn on a canvas. */
export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    text: read("--text"),
    faint: read("--text-faint"),
    line: read("--line"),
    surface: read("--surface"),
    accent: read("--accent"),
    danger: read("--danger"),
    warn: read("--warn"),
    good: read("--good"),
    series: Array.from({ length: 10 }, (_, place) => read(`--series-${place}`)),
  };
}
