// A short text beside what the pointer or the keyboard is on.

import { byId, setText } from "./elements.js";

/** Show the text of `textOf(element)` for elements inside `host` that match `selector`. */
export function giveTips(host, selector, textOf) {
  const tip = byId("tip");
  const show = (event) => {
    const element = event.target.closest?.(selector);
    const text = element ? textOf(element) : null;
    tip.hidden = !text;
    if (!text) return;
    setText(tip, text);
    const box = element.getBoundingClientRect();
    const wide = tip.offsetWidth;
    const left = Math.min(Math.max(8, box.left + box.width / 2 - wide / 2), innerWidth - wide - 8);
    const above = box.top - tip.offsetHeight - 8;
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(above < 4 ? box.bottom + 8 : above)}px)`;
  };
  const hide = () => {
    tip.hidden = true;
  };
  host.addEventListener("pointerover", show);
  host.addEventListener("focusin", show);
  host.addEventListener("pointerleave", hide);
  host.addEventListener("focusout", hide);
}
