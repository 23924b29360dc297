// The plot as a figure of its own: an SVG, on white, with a legend. A PNG is made from it.
import { formatValue } from '../lib/format';
import { linearTicks, logTicks } from '../lib/ticks';
import { drawnValue } from './line';
import type { PlotLine, PlotSetup } from './plot';

export interface Figure {
  lines: readonly PlotLine[];
  setup: PlotSetup;
  x: [number, number];
  y: [number, number];
}

const width = 960;
const plotHeight = 440;
const margin = { left: 84, right: 20, top: 16, bottom: 56 };
const legendRow = 22;

function escapeXml(text: string): string {
  const signs: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;', "'": '&apos;' };
  return text.replace(/[<>&"']/g, (sign) => signs[sign] ?? '');
}

type Scale = (value: number) => number;

function scaleOf([min, max]: [number, number], log: boolean, begin: number, end: number): Scale {
  const at = log ? Math.log : (value: number) => value;
  const [low, high] = [at(min), at(max)];
  return (value) => begin + ((at(value) - low) / (high - low || 1)) * (end - begin);
}

function number(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function pathOf(line: PlotLine, figure: Figure, x: Scale, y: Scale): string {
  let path = '';
  let pen = 'M';
  line.xs.forEach((at, i) => {
    const value = drawnValue(line.ys[i] as number, figure.setup.yLog, line.floor);
    if (Number.isNaN(value) || (figure.setup.xLog && at <= 0)) {
      pen = 'M';
      return;
    }
    if (at < figure.x[0] || at > figure.x[1]) return;
    path += `${pen}${number(x(at))} ${number(y(value))}`;
    pen = 'L';
  });
  return path;
}

function areaOf(line: PlotLine, other: PlotLine, figure: Figure, x: Scale, y: Scale): string {
  const forth = pathOf(line, figure, x, y);
  const back = pathOf({ ...other, xs: [...other.xs].reverse(), ys: [...other.ys].reverse() }, figure, x, y);
  return forth && back ? `<path d="${forth}${back.replace(/^M/, 'L')}Z" fill="${line.color}" fill-opacity=".18"/>` : '';
}

/// Where a line stops being finite, at its last finite value.
function crossOf(fault: { x: number; y: number }, line: PlotLine, { setup, x: [from, to], y: [low, high] }: Figure, x: Scale, y: Scale): string {
  if (fault.x < from || fault.x > to || (setup.xLog && fault.x <= 0)) return '';
  const value = Math.min(Math.max(Number.isFinite(fault.y) ? fault.y : high, low), high);
  const at = `${number(x(fault.x))} ${number(Math.min(Math.max(y(value), margin.top + 5), plotHeight - margin.bottom - 5))}`;
  return `<path d="M${at}m-5 -5l10 10m0 -10l-10 10" fill="none" stroke="${line.color}" stroke-width="2"/>`;
}

export function svgOf(figure: Figure): string {
  const { setup, lines } = figure;
  const named = lines.filter((line) => !line.aside);
  const height = plotHeight + 12 + legendRow * named.length;
  const bottom = plotHeight - margin.bottom;
  const right = width - margin.right;
  const x = scaleOf(figure.x, setup.xLog, margin.left, right);
  const y = scaleOf(figure.y, setup.yLog, bottom, margin.top);
  const xTicks = setup.xLog ? logTicks(...figure.x) : linearTicks(...figure.x, 8);
  const yTicks = setup.yLog ? logTicks(...figure.y) : linearTicks(...figure.y, 7);
  const byKey = new Map(lines.map((line) => [line.key, line]));
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `font-family="system-ui, sans-serif" font-size="13">`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<clipPath id="in"><rect x="${margin.left}" y="${margin.top}" width="${right - margin.left}" height="${bottom - margin.top}"/></clipPath>`,
    ...xTicks.map(
      (tick) =>
        `<path d="M${number(x(tick))} ${margin.top}V${bottom}" stroke="#e3e6ea"/>` +
        `<text x="${number(x(tick))}" y="${bottom + 18}" text-anchor="middle">${escapeXml(setup.formatX(tick))}</text>`,
    ),
    ...yTicks.map(
      (tick) =>
        `<path d="M${margin.left} ${number(y(tick))}H${right}" stroke="#e3e6ea"/>` +
        `<text x="${margin.left - 8}" y="${number(y(tick) + 4)}" text-anchor="end">${escapeXml(formatValue(tick))}</text>`,
    ),
    `<path d="M${margin.left} ${margin.top}V${bottom}H${right}" fill="none" stroke="#444"/>`,
    `<text x="${(margin.left + right) / 2}" y="${bottom + 42}" text-anchor="middle">${escapeXml(setup.xLabel)}</text>`,
    `<text transform="translate(16 ${(margin.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escapeXml(setup.yLabel)}</text>`,
    `<g clip-path="url(#in)">`,
    ...lines.map((line) => {
      const other = line.fillTo === undefined ? undefined : byKey.get(line.fillTo);
      return other ? areaOf(line, other, figure, x, y) : '';
    }),
    ...lines.map(
      (line) =>
        `<path d="${pathOf(line, figure, x, y)}" fill="none" stroke="${line.color}" stroke-width="${line.width}" ` +
        `stroke-opacity="${line.alpha}" stroke-linejoin="round"${line.dash.length > 0 ? ` stroke-dasharray="${line.dash.join(' ')}"` : ''}/>`,
    ),
    ...named.flatMap((line) => line.faults.map((fault) => crossOf(fault, line, figure, x, y))),
    `</g>`,
    ...named.map((line, i) => {
      const at = plotHeight + 10 + legendRow * i;
      const dash = line.dash.length > 0 ? ` stroke-dasharray="${line.dash.join(' ')}"` : '';
      return (
        `<path d="M${margin.left} ${at}h32" stroke="${line.color}" stroke-width="3"${dash}/>` +
        `<text x="${margin.left + 42}" y="${at + 4}">${escapeXml(line.label)}</text>`
      );
    }),
    `</svg>`,
  ];
  return parts.join('\n');
}

/// The browser draws the SVG, twice as fine as it is shown.
export async function pngOf(svg: string): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = 2 * image.naturalWidth;
    canvas.height = 2 * image.naturalHeight;
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the browser made no PNG'))), 'image/png');
    });
  } finally {
    URL.revokeObjectURL(url);
  }
}
