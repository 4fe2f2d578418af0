// Makes elements. Every value becomes text or an attribute, never markup; no style attribute is
// written, because the page's content security policy refuses those.

const SVG = "http://www.w3.org/2000/svg";
const REFUSED = new Set(["style", "innerHTML", "outerHTML", "srcdoc"]);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (REFUSED.has(name)) throw new Error(`${name} is never set`);
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An element with attributes, listeners (`on`), data, and children that are nodes or text. */
export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

/** Change a text only where it differs: what stays is not painted and not read out again. */
export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/**
 * Bring the children of `parent` in line with `items`: each item keeps its element, by its key.
 * `create` makes an element, `update` changes one.
 */
export function matchChildren(parent, items, keyOf, create, update) {
  const present = parent.keptByKey ?? new Map();
  const kept = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const element = present.get(key) ?? create(item);
    kept.set(key, element);
    update(element, item);
    if (element === place) place = place.nextElementSibling;
    else if (element.parentNode === parent && parent.moveBefore) parent.moveBefore(element, place); // keeps focus and motion
    else parent.insertBefore(element, place);
  }
  for (const [key, element] of present) if (!kept.has(key)) element.remove();
  parent.keptByKey = kept;
}

/** The options of a select: pairs of value and words. */
export function optionsOf(pairs) {
  return pairs.map(([value, words]) => make("option", { value }, words));
}

/** A button that looks like a link. */
export function linkButton(words, act) {
  return make("button", { type: "button", class: "link", on: { click: act } }, words);
}

/** A list of terms and their values; a value is text or a node. */
export function factList(facts) {
  return make(
    "dl",
    { class: "facts" },
    facts
      .filter((fact) => fact !== null)
      .map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, value))),
  );
}
