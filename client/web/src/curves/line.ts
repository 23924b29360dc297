// What is drawn of one series: its points in the order of x, and where it is not finite.
import { num, type JobEvent, type Point, type SeriesData } from '../lib/wire';

export type XAxis = 'tick' | 'updates' | 'microbatch' | 'time';
export const xAxes: readonly XAxis[] = ['tick', 'updates', 'microbatch', 'time'];

export interface Line {
  xs: number[];
  /// NaN where the value is not finite: a gap.
  ys: number[];
  /// Where values that are not finite are, with the last finite value before them.
  faults: { x: number; y: number }[];
  /// Every point is there, not the extremes of buckets.
  raw: boolean;
}

export function emptyLine(): Line {
  return { xs: [], ys: [], faults: [], raw: true };
}

/// Sorted by x where need be: microbatches do not always end in their order. Equal x stay as they are.
export function inOrder<T extends { x: number }>(points: T[]): T[] {
  const sorted = points.every((point, i) => i === 0 || (points[i - 1] as T).x <= point.x);
  return sorted ? points : points.sort((a, b) => a.x - b.x);
}

function lastFinite(ys: readonly number[]): number {
  for (let i = ys.length - 1; i >= 0; --i) if (Number.isFinite(ys[i])) return ys[i] as number;
  return NaN;
}

/// Appends one point. A fault is told once per gap.
export function append(line: Line, x: number, y: number): void {
  const finite = Number.isFinite(y);
  if (!finite && !(line.ys.length > 0 && Number.isNaN(line.ys[line.ys.length - 1]))) {
    line.faults.push({ x, y: lastFinite(line.ys) });
  }
  line.xs.push(x);
  line.ys.push(finite ? y : NaN);
}

/// The server's answer as a line: of a bucket its least, greatest and last value, each at its x, so no
/// peak gets lost.
export function lineOf(data: SeriesData): Line {
  const line: Line = { ...emptyLine(), raw: data.raw };
  if (data.raw) {
    for (const point of inOrder(data.points.map((each) => ({ x: num(each.x), y: num(each.value) })))) {
      append(line, point.x, point.y);
    }
    return line;
  }
  for (const bucket of data.buckets) {
    const points: [number, number][] = [];
    if (bucket.min !== undefined && bucket.max !== undefined) {
      points.push([num(bucket.min_x), num(bucket.min)], [num(bucket.max_x), num(bucket.max)]);
    }
    points.push([num(bucket.last_x), num(bucket.last)]);
    points.sort((a, b) => a[0] - b[0]);
    // Not finite somewhere before the last: seen as a gap before what is finite again.
    if (num(bucket.not_finite) > 0 && Number.isFinite(num(bucket.last))) append(line, num(bucket.begin), NaN);
    let previous: [number, number] | undefined;
    for (const point of points) {
      if (!previous || point[0] !== previous[0] || point[1] !== previous[1]) append(line, ...point);
      previous = point;
    }
  }
  return line;
}

/// The line with points that came after it, which may lie before its end all the same.
export function extended(line: Line, points: { x: number; y: number }[]): Line {
  const later = inOrder(points);
  const end = line.xs[line.xs.length - 1] ?? -Infinity;
  if (later.length > 0 && (later[0] as { x: number }).x < end) {
    const all = [...line.xs.map((x, i) => ({ x, y: line.ys[i] as number })), ...later];
    line = { ...emptyLine(), raw: line.raw };
    for (const point of inOrder(all)) append(line, point.x, point.y);
    return line;
  }
  for (const point of later) append(line, point.x, point.y);
  return line;
}

export function xOf(event: JobEvent, point: Point, axis: XAxis): number {
  return num(axis === 'time' ? event.time_unix_ms : point[axis]);
}

/// A copy with other values of x.
export function mappedX(line: Line, map: (x: number) => number): Line {
  return {
    ...line,
    xs: line.xs.map(map),
    faults: line.faults.map((fault) => ({ ...fault, x: map(fault.x) })),
  };
}

/// The index of the value of xs (ascending) that is nearest to x; -1 of none.
export function nearestIndex(xs: readonly number[], x: number): number {
  if (xs.length === 0) return -1;
  let low = 0;
  let high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) < x) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && x - (xs[low - 1] as number) <= (xs[low] as number) - x) return low - 1;
  return low;
}

/// The index of the last value of xs (ascending) that is <= x; -1 of none.
export function indexBefore(xs: readonly number[], x: number): number {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/// What is drawn for a value: NaN for nothing. A log axis has no place for what is not above zero, and
/// nothing of a line with a floor goes below that.
export function drawnValue(y: number, yLog: boolean, floor: number | undefined): number {
  if (!yLog) return y;
  if (floor !== undefined) return Math.max(y, floor);
  return y > 0 ? y : NaN;
}

/// The columns of a plot: all x of all lines in one list, and for each line its values there, undefined
/// where it has none and null where nothing is drawn. An x that a line has several times (points that
/// came together) is as often in the list, so that none of its values is lost.
export function joined(lines: readonly { xs: readonly number[]; ys: readonly (number | null)[] }[]): [number[], ...(number | null | undefined)[][]] {
  const xs: number[] = [];
  const columns = lines.map((): (number | null | undefined)[] => []);
  const at = lines.map(() => 0);
  for (;;) {
    const x = lines.reduce((least, line, i) => Math.min(least, line.xs[at[i] as number] ?? Infinity), Infinity);
    if (x === Infinity) return [xs, ...columns];
    const begin = xs.length;
    lines.forEach((line, i) => {
      const column = columns[i] as (number | null | undefined)[];
      for (; line.xs[at[i] as number] === x; at[i] = (at[i] as number) + 1) {
        column.push(line.ys[at[i] as number]);
        if (column.length > xs.length) xs.push(x);
      }
    });
    if (xs.length === begin) throw new Error('an x that is no number');
    for (const column of columns) while (column.length < xs.length) column.push(undefined);
  }
}
