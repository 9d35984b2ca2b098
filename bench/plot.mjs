// Line charts as SVG, readable in light and dark: the picture brings its own background, and both change together.

const WIDTH = 860;
const HEIGHT = 440;
const AREA = { left: 64, right: 640, top: 64, bottom: 380 };
const LABEL_GAP = 18;

// Told apart also by who sees few colours, and by their marks where there is no colour at all.
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#a07800', '#56a0d3'];
const MARKS = [
  (x, y) => `<circle cx="${x}" cy="${y}" r="4"/>`,
  (x, y) => `<rect x="${x - 4}" y="${y - 4}" width="8" height="8"/>`,
  (x, y) => `<path d="M${x} ${y - 5}l5 9h-10z"/>`,
  (x, y) => `<path d="M${x} ${y - 5}l5 5l-5 5l-5-5z"/>`,
  (x, y) => `<path d="M${x} ${y + 5}l5-9h-10z"/>`,
  (x, y) => `<path d="M${x - 5} ${y - 1.5}h10v3h-10zM${x - 1.5} ${y - 5}h3v10h-3z"/>`,
];

const STYLE = `
    .paper { fill: #ffffff }
    text { font: 13px system-ui, sans-serif; fill: #24292f }
    .title { font-size: 16px; font-weight: 600 }
    .faint { fill: #57606a }
    .grid { stroke: #d0d7de; stroke-width: 1 }
    .line { fill: none; stroke-width: 2 }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117 }
      text { fill: #e6edf3 }
      .faint { fill: #9198a1 }
      .grid { stroke: #30363d }
    }`;

/**
 * `x` is { label, ticks: [{ at, text }] } with `at` from 0 to 1; `y` is { label, ticks, scale } where `scale` takes a value to
 * 0 at the bottom and 1 at the top; a series is { name, points: [{ at, value }] }.
 */
export function lineChart({ title, subtitle, x, y, series }) {
  const places = series.map(({ points }) => points.map(({ at, value }) => [toX(at), toY(y.scale(value))]));
  const labels = spread(places.map((place) => place.at(-1)?.[1] ?? AREA.bottom));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${escapeXml(title)}">
  <style>${STYLE}
  </style>
  <rect class="paper" width="${WIDTH}" height="${HEIGHT}"/>
  <text class="title" x="20" y="28">${escapeXml(title)}</text>
  <text class="faint" x="20" y="48">${escapeXml(subtitle)}</text>
${y.ticks.map(({ value, text }) => yTick(toY(y.scale(value)), text)).join('\n')}
${x.ticks.map(({ at, text }) => `  <text class="faint" x="${toX(at)}" y="${AREA.bottom + 20}" text-anchor="middle">${escapeXml(text)}</text>`).join('\n')}
  <text class="faint" x="${(AREA.left + AREA.right) / 2}" y="${AREA.bottom + 44}" text-anchor="middle">${escapeXml(x.label)}</text>
  <text class="faint" transform="translate(18 ${(AREA.top + AREA.bottom) / 2}) rotate(-90)" text-anchor="middle">${escapeXml(y.label)}</text>
${series.map((one, i) => drawSeries(one, i, places[i], labels[i])).join('\n')}
</svg>
`;
}

function yTick(y, text) {
  return `  <path class="grid" d="M${AREA.left} ${y}H${AREA.right}"/><text class="faint" x="${AREA.left - 8}" y="${y + 4}" text-anchor="end">${escapeXml(text)}</text>`;
}

function drawSeries({ name, points }, index, places, labelY) {
  const colour = COLOURS[index % COLOURS.length];
  const mark = MARKS[index % MARKS.length];
  const line = places.map(([x, y]) => `${x} ${y}`).join('L');
  const [endX, endY] = places.at(-1) ?? [AREA.left, AREA.bottom];
  return `  <g fill="${colour}" stroke="none">
    <path class="line" stroke="${colour}" d="M${line}"/>
    ${places.map(([x, y]) => mark(x, y)).join('')}
    <path class="line" stroke="${colour}" style="stroke-width:1;stroke-dasharray:1 4" d="M${endX + 6} ${endY}L${AREA.right + 16} ${labelY}"/>
    ${mark(AREA.right + 22, labelY)}
    <text x="${AREA.right + 34}" y="${labelY + 4}">${escapeXml(name)} ${escapeXml(points.at(-1)?.text ?? '')}</text>
  </g>`;
}

/** Moves labels apart that would lie on one another, as little as it takes. */
function spread(wanted) {
  const order = wanted.map((y, i) => ({ y, i })).sort((a, b) => a.y - b.y);
  for (let n = 1; n < order.length; n += 1) order[n].y = Math.max(order[n].y, order[n - 1].y + LABEL_GAP);
  const over = Math.max(0, (order.at(-1)?.y ?? 0) - AREA.bottom);
  for (let n = order.length - 1; n >= 0; n -= 1) {
    const below = order[n + 1]?.y ?? Number.POSITIVE_INFINITY;
    order[n].y = Math.min(order[n].y - (n === order.length - 1 ? over : 0), below - LABEL_GAP);
  }
  const placed = [];
  for (const { y, i } of order) placed[i] = round(y);
  return placed;
}

const toX = (at) => round(AREA.left + at * (AREA.right - AREA.left));
const toY = (share) => round(AREA.bottom - share * (AREA.bottom - AREA.top));
const round = (value) => Math.round(value * 10) / 10;
const escapeXml = (text) =>
  String(text).replace(
    /[&<>"]/g,
    (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign],
  );

/** From nought to a little above the largest value, with about five round steps. */
export function linearScale(max) {
  const rough = max / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((candidate) => candidate >= rough);
  const top = step * Math.ceil((max * 1.05) / step);
  const ticks = Array.from(
    { length: Math.round(top / step) + 1 },
    (_, i) => Math.round(i * step * 1e6) / 1e6,
  );
  return { scale: (value) => value / top, ticks: ticks.map((value) => ({ value, text: String(value) })) };
}

/** Powers of ten around all values, with 2 and 5 between them, and no more than is needed. */
export function logScale(min, max) {
  const low = Math.floor(Math.log10(min));
  const steps = Array.from({ length: 12 }, (_, i) => [1, 2, 5][i % 3] * 10 ** (low + Math.floor(i / 3)));
  const from = steps.findLast((step) => step <= min);
  const to = steps.find((step) => step >= max) ?? steps.at(-1);
  const ticks = steps.filter((step) => step >= from && step <= to);
  return {
    scale: (value) => Math.log(value / from) / Math.log(to / from),
    ticks: ticks.map((value) => ({ value, text: value.toLocaleString('en', { maximumFractionDigits: 4 }) })),
  };
}
