// The live points of jobs: one stream per job, however many of its runs are drawn.
import { signal } from '@preact/signals';
import { keepJob } from '../jobs/store';
import { JobStream, type StreamListener, type StreamStatus } from '../lib/stream';
import type { Job, JobEvent } from '../lib/wire';

export interface FeedUser {
  /// In the order of their sequence numbers; those that the user has asked from on and perhaps some before.
  onEvents(events: JobEvent[]): void;
  onJob(job: Job, ended: boolean): void;
}

class Feed implements StreamListener {
  readonly users = new Set<FeedUser>();
  readonly status = signal<StreamStatus>('connecting');
  private stream: JobStream;
  private unsubscribe: () => void;

  constructor(job: number, from: number) {
    this.stream = new JobStream(job, from, this);
    this.unsubscribe = this.stream.status.subscribe((status) => (this.status.value = status));
  }

  close(): void {
    this.unsubscribe();
    this.stream.close();
  }

  onEvents(events: JobEvent[]): void {
    for (const user of this.users) user.onEvents(events);
  }

  onJob(job: Job, ended: boolean): void {
    keepJob(job);
    for (const user of this.users) user.onJob(job, ended);
  }
}

interface Shared {
  feed: Feed;
  from: number;
}
const feeds = new Map<number, Shared>();

export interface Subscription {
  status: Feed['status'];
  end(): void;
}

/// Events of the job from the sequence number on. A stream that began later begins again there.
export function subscribe(job: number, from: number, user: FeedUser): Subscription {
  let shared = feeds.get(job);
  if (!shared || from < shared.from) {
    const users = shared?.feed.users ?? new Set<FeedUser>();
    shared?.feed.close();
    shared = { feed: new Feed(job, from), from };
    for (const other of users) shared.feed.users.add(other);
    feeds.set(job, shared);
  }
  shared.feed.users.add(user);
  return {
    get status() {
      return feeds.get(job)?.feed.status ?? signal<StreamStatus>('ended');
    },
    end() {
      const now = feeds.get(job);
      if (!now) return;
      now.feed.users.delete(user);
      if (now.feed.users.size > 0) return;
      now.feed.close();
      feeds.delete(job);
    },
  };
}
