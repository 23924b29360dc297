// What can be done with a job.
import { signal } from '@preact/signals';
import { messageOf, post } from '../lib/api';
import { nameOf } from '../lib/format';
import type { Job } from '../lib/wire';
import { keepJob } from './store';

/// Why the last action failed, by job.
export const actionFault = signal<{ job: number; message: string } | null>(null);

export async function cancelJob(job: Job): Promise<void> {
  if (!confirm(`Cancel job ${job.id}, ${nameOf(job)}?`)) return;
  actionFault.value = null;
  try {
    keepJob(await post<Job>(`/v1/jobs/${job.id}/cancel`));
  } catch (error) {
    actionFault.value = { job: job.id, message: messageOf(error) };
    alert(messageOf(error));
  }
}
