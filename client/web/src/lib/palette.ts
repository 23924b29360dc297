// Colours that people with any kind of colour vision can tell apart: those of Okabe and Ito ("Color
// Universal Design", 2008), darkened for a light ground and lightened for a dark one where their
// contrast would be below 3:1. Beyond eight, dashes tell lines of one colour apart.
const light = ['#0072b2', '#d55e00', '#00805c', '#b0518b', '#9a6a00', '#2b7fb8', '#7a5230', '#4d4d4d'];
const dark = ['#56b4e9', '#ff8a3d', '#2fcf9f', '#e79ac6', '#f0c03c', '#8fb8ff', '#c9a27e', '#cfcfcf'];
const dashes: number[][] = [[], [10, 4], [3, 3], [12, 3, 3, 3]];

export const paletteSize = light.length;

export function colorOf(index: number, isDark: boolean): string {
  const colors = isDark ? dark : light;
  return colors[index % colors.length] ?? '#888';
}

export function dashOf(index: number): number[] {
  return dashes[Math.floor(index / paletteSize) % dashes.length] ?? [];
}
