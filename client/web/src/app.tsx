// The frame of the page: navigation, whether it is live, the token.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { ClusterView } from './cluster/view';
import { CurvesView } from './curves/view';
import { complete, fault, followJobs, jobs, refreshNow } from './jobs/store';
import { SubmitDialog, submitOpen, takeFile } from './jobs/submit';
import { JobsView } from './jobs/view';
import { reachable } from './lib/api';
import { setTheme, theme } from './lib/dom';
import { formatRoute, route, views, type View } from './lib/route';
import { keepToken, refusal, token } from './lib/session';
import { ScheduleView } from './schedule/view';
import { SweepsView } from './sweeps/view';

const titles: Record<View, string> = {
  jobs: 'Jobs',
  curves: 'Curves',
  schedule: 'Schedule',
  sweeps: 'Sweeps',
  cluster: 'Cluster',
};

export function App() {
  const needed = token.value === null;
  useEffect(() => {
    if (!needed) void followJobs();
  }, [needed]);
  if (needed) return <AskForToken />;
  const { view } = route.value;
  return (
    <div
      class="frame"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void takeFile(event.dataTransfer?.files[0]);
      }}
    >
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the content
      </a>
      <header class="top">
        <span class="brand" aria-hidden="true">
          Pipewright
        </span>
        <Navigation view={view} />
        <span class="spring" />
        <Connection />
        <ThemeButton />
        <button type="button" class="primary" onClick={() => (submitOpen.value = true)}>
          Submit<span class="wide-only"> a job</span>
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <Shown view={view} />
      </main>
      {submitOpen.value && <SubmitDialog />}
    </div>
  );
}

function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function Shown({ view }: { view: View }) {
  useEffect(() => {
    document.title = `${titles[view]} · Pipewright`;
  }, [view]);
  switch (view) {
    case 'jobs':
      return <JobsView />;
    case 'curves':
      return <CurvesView />;
    case 'schedule':
      return <ScheduleView />;
    case 'sweeps':
      return <SweepsView />;
    case 'cluster':
      return <ClusterView />;
  }
}

/// Views remember what they showed: going back to one shows it again.
const lastQuery: Partial<Record<View, Record<string, string>>> = {};

function Navigation({ view }: { view: View }) {
  lastQuery[view] = route.value.query;
  return (
    <nav aria-label="Views">
      {views.map((name) => (
        <a key={name} href={formatRoute(name, lastQuery[name])} aria-current={name === view ? 'page' : undefined}>
          {titles[name]}
        </a>
      ))}
    </nav>
  );
}

function Connection() {
  const lost = reachable.value === false || fault.value !== '';
  const text = lost ? 'Not live' : complete.value ? 'Live' : 'Loading';
  const why = lost
    ? `${fault.value || 'The daemon cannot be reached'}; trying again`
    : `${jobs.value.size} jobs, up to date`;
  return (
    <span class="connection" role="status" title={why}>
      <i class={lost ? 'dot lost' : complete.value ? 'dot live' : 'dot'} aria-hidden="true" />
      {text}
      {lost && (
        <button type="button" class="quiet" onClick={refreshNow}>
          Try now
        </button>
      )}
    </span>
  );
}

const themes = { auto: 'light', light: 'dark', dark: 'auto' } as const;
const themeSigns = { auto: '◐', light: '☀', dark: '☾' } as const;

function ThemeButton() {
  const now = theme.value;
  return (
    <button
      type="button"
      class="quiet"
      aria-label={`Colours: ${now}. Change to ${themes[now]}`}
      title={`Colours: ${now}`}
      onClick={() => setTheme(themes[now])}
    >
      {themeSigns[now]}
    </button>
  );
}

function AskForToken() {
  const given = useSignal('');
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Token needed · Pipewright';
    field.current?.focus();
  }, []);
  return (
    <main class="ask">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (given.value.trim()) keepToken(given.value.trim());
        }}
      >
        <h1>Pipewright</h1>
        {refusal.value && (
          <p class="fault" role="alert">
            {refusal.value}
          </p>
        )}
        <p>
          This page needs the token of its daemon. <code>pipewright web</code> prints a link that carries it; the
          token alone is in the file <code>token</code> of the daemon’s data folder.
        </p>
        <label>
          Token
          <input
            ref={field}
            type="password"
            autocomplete="off"
            value={given.value}
            onInput={(event) => (given.value = event.currentTarget.value)}
          />
        </label>
        <p class="hint">It is kept for this tab only, until the tab is closed.</p>
        <button type="submit" class="primary">
          Open
        </button>
      </form>
    </main>
  );
}
