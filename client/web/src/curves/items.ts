// Which curves the address asks for: "1" or "2.3" is a run of a job, "4g0" the band over the seeds of
// point 0 of job 4.

export interface Item {
  /// As in the address.
  key: string;
  job: number;
  run?: number;
  group?: number;
}

export function parseItem(text: string): Item | null {
  const match = /^(\d+)(?:\.(\d+)|g(\d+))?$/.exec(text.trim());
  if (!match) return null;
  const job = Number(match[1]);
  if (job < 1) return null;
  if (match[3] !== undefined) return { key: `${job}g${Number(match[3])}`, job, group: Number(match[3]) };
  const run = Number(match[2] ?? 0);
  return { key: run === 0 ? String(job) : `${job}.${run}`, job, run };
}

export function parseItems(text: string | undefined): Item[] {
  const items = (text ?? '').split(',').map(parseItem).filter((item): item is Item => item !== null);
  return items.filter((item, i) => items.findIndex((other) => other.key === item.key) === i);
}

/// "1:PipeDream,2.3:slow" and back. Commas and colons in a value are written as %2C and %3A.
export function parsePairs(text: string | undefined): Map<string, string> {
  const pairs = new Map<string, string>();
  for (const part of (text ?? '').split(',')) {
    const colon = part.indexOf(':');
    if (colon > 0) pairs.set(part.slice(0, colon), unescapeText(part.slice(colon + 1)));
  }
  return pairs;
}

export function formatPairs(pairs: ReadonlyMap<string, string>): string {
  return [...pairs].map(([key, value]) => `${key}:${escapeText(value)}`).join(',');
}

function escapeText(text: string): string {
  return text.replace(/[%,:]/g, (sign) => '%' + sign.charCodeAt(0).toString(16).toUpperCase());
}

function unescapeText(text: string): string {
  return text.replace(/%(25|2C|3A)/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}
