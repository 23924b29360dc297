// What the browser's window is like, as signals.
import { signal, type Signal } from '@preact/signals';

function matching(query: string): Signal<boolean> {
  const list = matchMedia(query);
  const value = signal(list.matches);
  list.addEventListener('change', () => {
    value.value = list.matches;
  });
  return value;
}

export const narrow = matching('(max-width: 720px)');
export const darkPreferred = matching('(prefers-color-scheme: dark)');

/// The time, for ages: changes every second.
export const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, 1000);

export type Theme = 'auto' | 'light' | 'dark';
const themeKey = 'pipewright-theme';
export const theme = signal<Theme>((localStorage.getItem(themeKey) as Theme | null) ?? 'auto');

export function isDark(): boolean {
  return theme.value === 'auto' ? darkPreferred.value : theme.value === 'dark';
}

export function setTheme(next: Theme): void {
  theme.value = next;
  localStorage.setItem(themeKey, next);
  document.documentElement.dataset.theme = next;
}

/// Hands the browser a file to keep.
export function offerFile(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/// A colour of the style sheet.
export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
