// The token: comes in the fragment of the link, stays in this tab's session, and in no address.
import { signal } from '@preact/signals';

const key = 'pipewright-token';

export const token = signal<string | null>(null);
/// Why the page asks for it (again).
export const refusal = signal('');

/// Takes the token out of the address before anything else looks at it.
export function takeToken(): void {
  const fragment = location.hash.replace(/^#/, '');
  if (fragment.startsWith('token=')) {
    const [given, ...rest] = fragment.slice('token='.length).split('&');
    history.replaceState(null, '', location.pathname + (rest.length > 0 ? '#' + rest.join('&') : ''));
    keepToken(decodeURIComponent(given ?? ''));
    return;
  }
  token.value = sessionStorage.getItem(key);
}

export function keepToken(text: string): void {
  refusal.value = '';
  sessionStorage.setItem(key, text);
  token.value = text;
}

export function dropToken(why: string): void {
  sessionStorage.removeItem(key);
  refusal.value = why;
  token.value = null;
}
