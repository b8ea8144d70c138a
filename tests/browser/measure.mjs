// What journeys measure of a page: where its parts are, and how much its texts stand out. Each function runs in the
// page, so it has all that it needs within itself.

/** Finds what is wider than the window, and controls that are outside it, cut off, or below something else. */
export function outside() {
  const found = [];
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) found.push(`the page is ${scrollWidth - innerWidth} px too wide`);
  for (const screen of document.querySelectorAll('.screen, .sheet')) {
    if (screen.scrollWidth > screen.clientWidth) found.push(`${screen.className} is ${screen.scrollWidth - screen.clientWidth} px too wide`);
  }
  const nameOf = (element) => `${element.tagName.toLowerCase()} “${(element.innerText || element.ariaLabel || '').slice(0, 30)}”`;
  // What is behind a dialog cannot be pressed anyway, and menus lie above the rest for as long as they are open.
  const open = document.querySelector('dialog[open]');
  const hides = (hit) => !hit.closest('[role=menu], .drop, .choices, .toast');
  for (const element of (open ?? document).querySelectorAll('button, .button, input, textarea, select, [role=tab], nav a, h1, dialog')) {
    const { left, right, top, bottom, width } = element.getBoundingClientRect();
    if (width === 0 || !element.checkVisibility({ visibilityProperty: true }) || element.closest('.hidden')) continue;
    if (left < -0.5 || right > innerWidth + 0.5) found.push(`${nameOf(element)} from ${Math.round(left)} to ${Math.round(right)}`);
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    let isInSight = !element.matches('dialog, h1');
    for (let at = element; isInSight && !at.matches('dialog, body'); at = at.parentElement) {
      if (at === element) continue;
      const { overflowX, overflowY } = getComputedStyle(at);
      const box = at.getBoundingClientRect();
      const isCutAcross = /hidden|clip/.test(overflowX) && (left < box.left - 0.5 || right > box.right + 0.5);
      const isCutDown = /hidden|clip/.test(overflowY) && (top < box.top - 0.5 || bottom > box.bottom + 0.5);
      if (isCutAcross || isCutDown) found.push(`${nameOf(element)} is cut off by .${at.className || at.tagName}`);
      // What is scrolled to is seen then.
      isInSight = (overflowX === 'visible' || (x > box.left && x < box.right)) && (overflowY === 'visible' || (y > box.top && y < box.bottom));
    }
    const hit = isInSight ? document.elementFromPoint(x, y) : null;
    if (hit && hides(hit) && !element.contains(hit) && !hit.contains(element)) found.push(`${nameOf(element)} is below .${hit.className?.baseVal ?? hit.className}`);
  }
  return [...new Set(found)];
}

/**
 * Finds texts that stand out from what is behind them by less than 4.5 to 1, as WCAG 1.4.3 counts it: texts of HTML and
 * of drawings, what stands in fields and in place of a value, and what styles add.
 */
export function faint() {
  /** Red, green and blue from 0 to 255, and how opaque it is. */
  const parse = (colour) => {
    const [all, kind] = /^(rgba?)\([\d., ]+\)$/.exec(colour) ?? [];
    if (!all) throw new Error(`${colour} of ${kind ?? 'another kind'} is no colour that this can read`);
    const [r, g, b, a = 1] = all.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [br, bg, bb, ba]) => {
    const alpha = a + ba * (1 - a);
    if (alpha === 0) return [0, 0, 0, 0];
    return [...[[r, br], [g, bg], [b, bb]].map(([top, below]) => (top * a + below * ba * (1 - a)) / alpha), alpha];
  };
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (ink, ground) => {
    const [one, two] = [light(ink), light(ground)];
    return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
  };
  const CANVAS = [255, 255, 255, 1];
  const faded = ([r, g, b, a], opacity) => [r, g, b, a * Number(opacity)];
  /** Lays colours over all that is behind an element, the element's own background included. */
  const laid = (colours, element) => {
    let all = colours;
    for (let at = element; at; at = at.parentElement) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(at);
      if (backgroundImage !== 'none') throw new Error(`what is behind a text has an image: ${backgroundImage}`);
      all = all.map((colour) => faded(over(colour, parse(backgroundColor)), opacity));
    }
    return all.map((colour) => over(colour, CANVAS));
  };
  const found = new Set();
  const note = (text, ink, ground) => {
    const ratio = contrast(ink, ground);
    if (ratio < 4.5) found.add(`${ratio.toFixed(2)} “${text.trim().slice(0, 40)}”`);
  };
  const NOTHING = [0, 0, 0, 0];
  /** A text in HTML. @param {CSSStyleDeclaration} style its own, or that of what a style adds */
  const html = (text, element, style, isAdded = false) => {
    const own = isAdded ? [parse(style.backgroundColor)] : [NOTHING];
    const [ink, ground] = [over(parse(style.color), own[0]), own[0]].map((colour) => (isAdded ? faded(colour, style.opacity) : colour));
    note(text, ...laid([ink, ground], element));
  };
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !element.closest('noscript, .hidden');
  /** The fill of a part of a drawing; it is opaque where nothing else is said. */
  const fill = (element, style) => {
    let colour = faded(parse(style.fill), style.fillOpacity);
    for (let at = element; at && at.tagName !== 'svg'; at = at.parentElement) colour = faded(colour, getComputedStyle(at).opacity);
    return colour;
  };
  /** What was drawn below a place of a drawing before the text, from the bottom. */
  const shapes = (drawing, text, x, y) => {
    const below = [];
    for (const shape of drawing.querySelectorAll('rect, circle, ellipse, polygon, path')) {
      if (!(text.compareDocumentPosition(shape) & Node.DOCUMENT_POSITION_PRECEDING) || shape.closest('defs')) continue;
      const style = getComputedStyle(shape);
      const matrix = shape.getScreenCTM();
      if (style.fill === 'none' || !matrix) continue;
      if (shape.isPointInFill(new DOMPoint(x, y).matrixTransform(matrix.inverse()))) below.push(fill(shape, style));
    }
    return below;
  };
  const drawn = (words, element) => {
    const drawing = element.closest('svg');
    const text = element.closest('text') ?? element;
    const style = getComputedStyle(element);
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const ink = fill(element, style);
    const hasHalo = style.paintOrder.startsWith('stroke') && style.stroke !== 'none' && parseFloat(style.strokeWidth) >= 3;
    for (const x of [left + 2, (left + right) / 2, right - 2]) {
      const below = shapes(drawing, text, x, (top + bottom) / 2);
      if (hasHalo) below.push(parse(style.stroke));
      const ground = below.reduce((under, colour) => over(colour, under), NOTHING);
      note(words, ...laid([over(ink, ground), ground], drawing));
    }
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !isSeen(element) || element.closest('option, title, textarea')) continue;
    if (element.closest('svg')) drawn(node.textContent, element);
    else html(node.textContent, element, getComputedStyle(element));
  }
  for (const field of document.querySelectorAll('input, textarea, select')) {
    if (!isSeen(field) || field.type === 'checkbox') continue;
    if (field.value || field.tagName === 'SELECT') html(field.value || 'a choice', field, getComputedStyle(field));
    else if (field.placeholder) html(field.placeholder, field, getComputedStyle(field, '::placeholder'), true);
  }
  for (const element of document.querySelectorAll('body, body *')) {
    for (const place of ['::before', '::after']) {
      const style = getComputedStyle(element, place);
      const isText = style.display !== 'none' && !/^(none|normal)$/.test(style.content) && /[\p{L}\p{N}\p{S}]/u.test(style.content);
      if (isText && isSeen(element)) html(style.content, element, style, true);
    }
  }
  return [...found];
}

/** What is written on canvases, by the names of its colour and of those below it. */
export const ON_CANVAS = {
  'bar-text': ['bar-stage', 'bar-failed', 'bar-undo'],
  'bar-word': ['bar-queue', 'bar-permit', 'bar-lock', 'bar-children', 'bar-event', 'bar-timer', 'bar-backoff', 'bar-paused', 'bar-stuck'],
  dim: ['surface'],
};

/** Finds colours of such texts that stand out by less than 4.5 to 1. @param {typeof ON_CANVAS} pairs */
export function faintOnCanvas(pairs) {
  const probe = document.body.appendChild(document.createElement('i'));
  const light = (name) => {
    probe.style.color = `var(--${name})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map((part) => {
      const share = Number(part) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = Object.entries(pairs).flatMap(([ink, grounds]) => grounds.flatMap((ground) => {
    const [one, two] = [light(ink), light(ground)];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    return ratio < 4.5 ? [`${ratio.toFixed(2)} ${ink} on ${ground}`] : [];
  }));
  probe.remove();
  return found;
}
