// Submitting a job: pasted, typed or dropped; what the daemon says against it stands at its line.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, messageOf, post } from '../lib/api';
import { runsOf } from '../lib/format';
import { go } from '../lib/route';
import { exampleJob, lineOfFault, newKey } from '../lib/submit';
import type { Job } from '../lib/wire';
import { keepJob } from './store';

export const submitOpen = signal(false);
const text = signal('');

const fileBytesMax = 8 << 20;

/// Opens the dialog with the file's text in it.
export async function takeFile(file: File | undefined): Promise<void> {
  if (!file) return;
  submitOpen.value = true;
  text.value = file.size > fileBytesMax ? `# ${file.name} is larger than 8 MiB: no job file\n` : await file.text();
}

interface Fault {
  message: string;
  line: number | null;
}

async function submit(key: string): Promise<number> {
  const send = () =>
    post<{ id: number }>('/v1/jobs', text.peek(), { 'Content-Type': 'application/yaml', 'Idempotency-Key': key });
  try {
    return (await send()).id;
  } catch (error) {
    // Whether the job was taken is not known; under its key it is taken once.
    if (error instanceof ApiError && error.status === 0) return (await send()).id;
    throw error;
  }
}

async function show(id: number): Promise<void> {
  const job = await get<Job>(`/v1/jobs/${id}`);
  keepJob(job);
  if (runsOf(job) > 1) go('sweeps', { job: String(id) });
  else go('curves', { runs: String(id) });
}

export function SubmitDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const [busy, setBusy] = useState(false);
  const key = useRef(newKey());

  useEffect(() => {
    dialog.current?.showModal();
    area.current?.focus();
  }, []);
  useEffect(() => setFault(null), [text.value]);

  const send = async () => {
    if (busy || !text.peek().trim()) {
      setFault(busy ? null : { message: 'There is nothing to submit yet: paste a job file.', line: null });
      area.current?.focus();
      return;
    }
    setBusy(true);
    try {
      const id = await submit(key.current);
      text.value = '';
      submitOpen.value = false;
      await show(id);
    } catch (error) {
      const message = messageOf(error);
      const line = lineOfFault(message);
      setFault({ message, line });
      setBusy(false);
      selectLine(area.current, line);
      // Another text is another job.
      if (!(error instanceof ApiError && error.status === 0)) key.current = newKey();
    }
  };

  return (
    <dialog
      ref={dialog}
      class="submit"
      aria-labelledby="submit-title"
      onClose={() => (submitOpen.value = false)}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        event.stopPropagation();
        void takeFile(event.dataTransfer?.files[0]);
      }}
    >
      <header>
        <h2 id="submit-title">Submit a job</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </header>
      <p class="hint">
        Paste a job file or drop it here. Paths in it are absolute: the ranks open them.
        <span class="wide-only"> Ctrl+Enter submits.</span>
      </p>
      <Editor area={area} fault={fault} />
      {fault && (
        <div class="fault" role="alert" id="submit-fault">
          {fault.line !== null && <strong>Line {fault.line}: </strong>}
          {fault.message.replace(/ ?\(job file:\d+:?\)$/, '')}
        </div>
      )}
      <footer>
        <button type="button" onClick={() => (text.value = exampleJob)}>
          Example
        </button>
        <label class="button">
          Open a file…
          <input
            type="file"
            class="visually-hidden"
            accept=".yaml,.yml,.json,text/*"
            onChange={(event) => void takeFile(event.currentTarget.files?.[0])}
          />
        </label>
        <span class="spring" />
        <button type="button" class="primary" disabled={busy} onClick={() => void send()}>
          {busy ? 'Submitting…' : 'Submit'}
        </button>
      </footer>
    </dialog>
  );
}

function Editor({ area, fault }: { area: preact.RefObject<HTMLTextAreaElement | null>; fault: Fault | null }) {
  const numbers = useRef<HTMLDivElement>(null);
  const lines = text.value.split('\n').length;
  return (
    <div class="editor">
      <div class="numbers" ref={numbers} aria-hidden="true">
        {Array.from({ length: Math.max(lines, 14) }, (_, i) => (
          <span key={i} class={fault?.line === i + 1 ? 'bad' : ''}>
            {i + 1}
          </span>
        ))}
      </div>
      <textarea
        ref={area}
        aria-label="Job file"
        aria-invalid={fault !== null}
        aria-describedby={fault ? 'submit-fault' : undefined}
        spellcheck={false}
        autocapitalize="off"
        wrap="off"
        placeholder="objective: …"
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onScroll={(event) => {
          if (numbers.current) numbers.current.scrollTop = event.currentTarget.scrollTop;
        }}
      />
    </div>
  );
}

function selectLine(area: HTMLTextAreaElement | null, line: number | null): void {
  if (!area || line === null) return;
  const before = area.value.split('\n').slice(0, line - 1);
  const start = before.reduce((sum, each) => sum + each.length + 1, 0);
  const end = area.value.indexOf('\n', start);
  area.focus();
  area.setSelectionRange(start, end < 0 ? area.value.length : end);
}
