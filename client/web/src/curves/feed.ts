// The live points of jobs: one stream per job, however many of its runs are drawn.
import { signal, type ReadonlySignal } from '@preact/signals';
import { keepJob } from '../jobs/store';
import { JobStream, type StreamListener, type StreamStatus } from '../lib/stream';
import type { Job, JobEvent } from '../lib/wire';

export interface FeedUser {
  /// In the order of their sequence numbers. Some may come again when others need them again.
  onEvents(events: JobEvent[]): void;
  onJob(job: Job, ended: boolean): void;
}

class Channel implements StreamListener {
  /// What each user needs: the events from a sequence number on, NaN while it does not know.
  readonly users = new Map<FeedUser, number>();
  readonly status = signal<StreamStatus>('connecting');
  private stream: JobStream | null = null;
  private from = Infinity;
  private unsubscribe: () => void = () => {};

  constructor(private readonly job: number) {}

  /// A stream that began later begins again there. One that is behind what everybody has from the store
  /// meanwhile, because points come faster than it, leaves them out.
  need(user: FeedUser, from: number): void {
    this.users.set(user, from);
    const least = Math.min(...[...this.users.values()].filter((each) => !Number.isNaN(each)));
    if (from < this.from) this.open(from);
    else if (this.stream && this.stream.position < least) this.open(least);
  }

  private open(from: number): void {
    this.close();
    this.from = from;
    this.stream = new JobStream(this.job, from, this);
    this.unsubscribe = this.stream.status.subscribe((status) => (this.status.value = status));
  }

  close(): void {
    this.unsubscribe();
    this.stream?.close();
  }

  onEvents(events: JobEvent[]): void {
    for (const user of this.users.keys()) user.onEvents(events);
  }

  onJob(job: Job, ended: boolean): void {
    keepJob(job);
    for (const user of this.users.keys()) user.onJob(job, ended);
  }
}

const channels = new Map<number, Channel>();

export interface Subscription {
  status: ReadonlySignal<StreamStatus>;
  /// All events from this sequence number on are needed.
  need(from: number): void;
  end(): void;
}

/// Who joins before asking the store misses nothing: what a stream has sent before was in the store, and
/// what it sends from now on comes to the user.
export function join(job: number, user: FeedUser): Subscription {
  const channel = channels.get(job) ?? new Channel(job);
  channels.set(job, channel);
  channel.users.set(user, NaN);
  return {
    status: channel.status,
    need: (from) => channel.need(user, from),
    end() {
      channel.users.delete(user);
      if (channel.users.size > 0) return;
      channel.close();
      if (channels.get(job) === channel) channels.delete(job);
    },
  };
}
