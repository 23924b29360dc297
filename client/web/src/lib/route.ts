// What is shown is in the address: "#/curves?runs=1.0,2.0&x=updates". A link shows the same thing.
import { signal } from '@preact/signals';

export type View = 'jobs' | 'curves' | 'schedule' | 'sweeps' | 'cluster';
export const views: readonly View[] = ['jobs', 'curves', 'schedule', 'sweeps', 'cluster'];

export interface Route {
  view: View;
  query: Record<string, string>;
}

export function parseRoute(hash: string): Route {
  const [path = '', text = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const view = views.find((name) => name === path) ?? 'jobs';
  return { view, query: Object.fromEntries(new URLSearchParams(text)) };
}

export function formatRoute(view: View, query: Record<string, string | undefined> = {}): string {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]));
  // Commas and dots stay as they are, for people read addresses too.
  const text = pairs
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value).replaceAll('%2C', ',').replaceAll('%3A', ':')}`)
    .join('&');
  return `#/${view}${text ? '?' + text : ''}`;
}

export const route = signal<Route>({ view: 'jobs', query: {} });

export function followAddress(): void {
  const read = () => {
    route.value = parseRoute(location.hash);
  };
  addEventListener('hashchange', read);
  read();
}

/// A step that the Back button undoes.
export function go(view: View, query: Record<string, string | undefined> = {}): void {
  location.hash = formatRoute(view, query);
}

/// A change of the view that is there: no step in the history.
export function adjust(changes: Record<string, string | undefined>): void {
  const { view, query } = route.peek();
  const next = { ...query, ...changes };
  history.replaceState(null, '', formatRoute(view, next));
  route.value = parseRoute(location.hash);
}
