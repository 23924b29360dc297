// Where an axis has its marks, for figures that are written by hand.

/// About `count` round numbers from `min` to `max`.
export function linearTicks(min: number, max: number, count: number): number[] {
  const rough = (max - min) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [min];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/// At most `most` marks of a log axis: the multiples of powers of ten where there is room for them, else
/// their doubles and fives, else powers.
export function logTicks(min: number, max: number, most = 9): number[] {
  const ticks = (factors: number[]) => {
    const out: number[] = [];
    for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); ++power) {
      for (const factor of factors) {
        const value = Number((factor * 10 ** power).toPrecision(12));
        if (value >= min * (1 - 1e-9) && value <= max * (1 + 1e-9)) out.push(value);
      }
    }
    return out;
  };
  const all = ticks([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  if (all.length < 2) return linearTicks(min, max, 5);
  const powers = ticks([1]);
  const fits = [all, ticks([1, 2, 5]), powers].find((each) => each.length >= 2 && each.length <= most);
  const every = Math.ceil(powers.length / most);
  return fits ?? powers.filter((_, i) => i % every === 0);
}
