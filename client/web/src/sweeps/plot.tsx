// The last loss of the points of a sweep against one of the swept values.
import { isDark } from '../lib/dom';
import { formatValue } from '../lib/format';
import { colorOf, dashOf } from '../lib/palette';
import { formatRoute } from '../lib/route';
import { shortPath } from '../lib/runs';
import { linearTicks, logTicks } from '../lib/ticks';
import { num } from '../lib/wire';
import { sweepLines, type Sweep, type SweepPoint } from './points';

const height = 380;
const margin = { left: 78, right: 24, top: 34, bottom: 52 };

export interface SweepPlotProps {
  job: number;
  sweep: Sweep;
  xKey: string;
  xLog: boolean;
  yLog: boolean;
  yLabel: string;
  width: number;
}

type Scale = (value: number) => number;

function scaleOf(min: number, max: number, log: boolean, begin: number, end: number): Scale {
  const at = log ? Math.log : (value: number) => value;
  const span = at(max) - at(min) || 1;
  return (value) => begin + ((at(value) - at(min)) / span) * (end - begin);
}

function widened(min: number, max: number, log: boolean): [number, number] {
  if (log) {
    const factor = (max / min) ** 0.06 * 1.04;
    return [min / factor, max * factor];
  }
  const room = (max - min) * 0.06 || Math.abs(max) * 0.1 || 1;
  return [min - room, max + room];
}

export function SweepPlot({ job, sweep, xKey, xLog, yLog, yLabel, width }: SweepPlotProps) {
  const xOf = (point: SweepPoint) => num(point.swept[xKey] as number);
  const usable = (value: number) => Number.isFinite(value) && (!yLog || value > 0);
  const { points } = sweep;
  const drawn = points.filter((point) => usable(point.value));
  if (drawn.length === 0) return <p class="hint">No point of the sweep has all its runs yet.</p>;
  const xs = points.map(xOf);
  const ys = drawn.flatMap((point) => [point.value, ...[point.low, point.high].filter(usable)]);
  const [xMin, xMax] = widened(Math.min(...xs), Math.max(...xs), xLog);
  const [yMin, yMax] = widened(Math.min(...ys), Math.max(...ys), yLog);
  const x = scaleOf(xMin, xMax, xLog, margin.left, width - margin.right);
  const y = scaleOf(yMin, yMax, yLog, height - margin.bottom, margin.top);
  const within = (value: number) => (usable(value) ? y(value) : height - margin.bottom);
  const lines = sweepLines(points, xKey, shortPath);
  return (
    <svg class="sweep-plot" width={width} height={height} role="group" aria-label={`${yLabel} against ${shortPath(xKey)}; the table has the numbers`}>
      <SweepAxes {...{ x, y, xMin, xMax, yMin, yMax, xLog, yLog, width, xKey, yLabel }} />
      {lines.map((line, i) => {
        const color = colorOf(i, isDark());
        const path = line.points
          .filter((point) => usable(point.value))
          .map((point, k) => `${k === 0 ? 'M' : 'L'}${x(xOf(point))} ${y(point.value)}`)
          .join('');
        return (
          <g key={line.label}>
            <path d={path} fill="none" stroke={color} stroke-width="2" stroke-dasharray={dashOf(i).join(' ')} />
            {line.points.map((point) =>
              usable(point.value) ? (
                <g key={point.index}>
                  {point.high > point.low && (
                    <path d={`M${x(xOf(point))} ${within(point.low)}V${within(point.high)}`} stroke={color} stroke-width="1.5" />
                  )}
                  <a href={formatRoute('curves', { runs: `${job}g${point.index}` })} aria-label={`Curves of ${line.label} at ${xOf(point)}`}>
                    <circle cx={x(xOf(point))} cy={y(point.value)} r="5" fill={color}>
                      <title>{`${line.label} ${shortPath(xKey)} ${xOf(point)}: ${formatValue(point.value)}`}</title>
                    </circle>
                  </a>
                </g>
              ) : (
                <Missing key={point.index} point={point} x={x(xOf(point))} color={color} what={`${line.label} ${shortPath(xKey)} ${xOf(point)}`} />
              ),
            )}
          </g>
        );
      })}
      <BestMark sweep={sweep} x={x} y={y} xOf={xOf} usable={usable} width={width} />
    </svg>
  );
}

/// A point without a value stands at the top; one that a log axis has no place for at the bottom.
function Missing({ point, x, color, what }: { point: SweepPoint; x: number; color: string; what: string }) {
  const below = Number.isFinite(point.value);
  const sign = below ? '▾' : point.outcome === 'open' ? '·' : '✕';
  return (
    <text x={x} y={below ? height - margin.bottom - 3 : margin.top - 8} text-anchor="middle" fill={color} class="fault-mark">
      <title>{`${what}: ${below ? `${formatValue(point.value)}, not above zero` : point.outcome}`}</title>
      {sign}
    </text>
  );
}

interface MarkProps {
  sweep: Sweep;
  x: Scale;
  y: Scale;
  xOf: (point: SweepPoint) => number;
  usable: (value: number) => boolean;
  width: number;
}

function BestMark({ sweep, x, y, xOf, usable, width }: MarkProps) {
  const point = sweep.points.find((each) => each.index === sweep.best?.point);
  if (!point || !usable(point.value)) return null;
  const at = [x(xOf(point)), y(point.value)] as const;
  const edges = (sweep.best?.edges ?? []).map(shortPath).join(', ');
  const left = at[0] > width * 0.6;
  return (
    <g class="best">
      <circle cx={at[0]} cy={at[1]} r="10" fill="none" stroke="currentColor" stroke-width="2" />
      <text x={at[0] + (left ? -16 : 16)} y={at[1] + 16} text-anchor={left ? 'end' : 'start'}>
        best {formatValue(point.value)}
      </text>
      {edges && (
        <text x={at[0] + (left ? -16 : 16)} y={at[1] + 31} text-anchor={left ? 'end' : 'start'} class="edge">
          on the edge of {edges}
        </text>
      )}
    </g>
  );
}

interface AxesProps {
  x: Scale;
  y: Scale;
  xMin: number;
  xMax: number;
  yMin: number;
  yMax: number;
  xLog: boolean;
  yLog: boolean;
  width: number;
  xKey: string;
  yLabel: string;
}

function SweepAxes({ x, y, xMin, xMax, yMin, yMax, xLog, yLog, width, xKey, yLabel }: AxesProps) {
  const bottom = height - margin.bottom;
  const xTicks = xLog ? logTicks(xMin, xMax, Math.max(3, Math.floor(width / 70))) : linearTicks(xMin, xMax, Math.max(3, Math.floor(width / 110)));
  const yTicks = yLog ? logTicks(yMin, yMax) : linearTicks(yMin, yMax, 6);
  return (
    <g class="axes">
      {xTicks.map((tick) => (
        <g key={tick}>
          <path d={`M${x(tick)} ${margin.top}V${bottom}`} class="grid" />
          <text x={x(tick)} y={bottom + 18} text-anchor="middle">
            {formatValue(tick)}
          </text>
        </g>
      ))}
      {yTicks.map((tick) => (
        <g key={tick}>
          <path d={`M${margin.left} ${y(tick)}H${width - margin.right}`} class="grid" />
          <text x={margin.left - 8} y={y(tick) + 4} text-anchor="end">
            {formatValue(tick)}
          </text>
        </g>
      ))}
      <path d={`M${margin.left} ${margin.top}V${bottom}H${width - margin.right}`} class="frame-line" />
      <text x={(margin.left + width - margin.right) / 2} y={height - 12} text-anchor="middle">
        {xKey}
      </text>
      <text transform={`translate(16 ${(margin.top + bottom) / 2}) rotate(-90)`} text-anchor="middle">
        {yLabel}
      </text>
    </g>
  );
}
