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

/// Powers of ten; where there are less than four, also their doubles and fives.
export function logTicks(min: number, max: number): number[] {
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
  const powers = ticks([1]);
  if (powers.length >= 4) {
    const every = Math.ceil(powers.length / 9);
    return powers.filter((_, i) => i % every === 0);
  }
  const fine = ticks([1, 2, 5]);
  return fine.length >= 2 ? fine : linearTicks(min, max, 5);
}
