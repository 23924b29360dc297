// Small parts that several views use.
import type { ComponentChildren } from 'preact';
import { fractionDone } from './format';
import type { Progress, State } from './wire';

/// A view that has nothing to show says what would put something there.
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

const signs: Record<State, string> = {
  QUEUED: '◦',
  STARTING: '◔',
  RUNNING: '▶',
  SUCCEEDED: '✓',
  FAILED: '✕',
  CANCELLED: '⊘',
};

/// A sign, a colour and the word: none of them has to be seen alone.
export function StateMark({ state }: { state: State }) {
  return (
    <span class={`state ${state.toLowerCase()}`}>
      <span aria-hidden="true">{signs[state]}</span> {state.toLowerCase()}
    </span>
  );
}

export function ProgressBar({ progress, label }: { progress: Progress | undefined; label: string }) {
  const done = fractionDone(progress);
  if (Number.isNaN(done)) return null;
  return <progress max={1} value={done} aria-label={label} />;
}
