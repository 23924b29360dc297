// The live stream of a job: connects again by itself, from the sequence number that comes next.
import { signal } from '@preact/signals';
import { token } from './session';
import { num, type Job, type JobEvent, type Progress, type StreamFrame } from './wire';

export interface StreamListener {
  /// In the order of their sequence numbers, each once.
  onEvents(events: JobEvent[]): void;
  onProgress?(progress: Progress): void;
  onJob?(job: Job, ended: boolean): void;
}

/// "live" from the mark between history and live events on; "ended" with the job.
export type StreamStatus = 'connecting' | 'live' | 'ended' | 'lost';

// The daemon sends at least a heartbeat every 10 s.
const silenceMaxMs = 25_000;
const pauseMinMs = 500;
const pauseMaxMs = 8_000;

export class JobStream {
  readonly status = signal<StreamStatus>('connecting');
  private socket: WebSocket | null = null;
  private timer = 0;
  private pause = pauseMinMs;
  private stopped = false;

  constructor(
    private readonly job: number,
    private next: number,
    private readonly listener: StreamListener,
  ) {
    this.connect();
  }

  /// The sequence number of the event that it waits for.
  get position(): number {
    return this.next;
  }

  close(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  private connect(): void {
    const url = new URL(`/v1/jobs/${this.job}/stream?format=json&from=${this.next}`, location.href);
    url.protocol = url.protocol.replace('http', 'ws');
    const socket = new WebSocket(url, ['pipewright.v1', `bearer.${token.peek() ?? ''}`]);
    this.socket = socket;
    this.expectNews(socket);
    socket.onmessage = (message) => {
      this.expectNews(socket);
      this.take(JSON.parse(message.data as string) as StreamFrame);
    };
    socket.onclose = () => this.onClose(socket);
  }

  private onClose(socket: WebSocket): void {
    clearTimeout(this.timer);
    if (this.stopped || this.socket !== socket || this.status.peek() === 'ended') return;
    this.status.value = 'lost';
    this.timer = window.setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(2 * this.pause, pauseMaxMs);
  }

  /// A connection that is silent for too long is no connection.
  private expectNews(socket: WebSocket): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      socket.onclose = null;
      socket.onmessage = null;
      socket.close();
      this.onClose(socket);
    }, silenceMaxMs);
  }

  private take(frame: StreamFrame): void {
    if (frame.events) {
      const fresh = frame.events.events.filter((event) => num(event.sequence) >= this.next);
      this.next = Math.max(this.next, num(frame.events.next_sequence));
      if (fresh.length > 0) this.listener.onEvents(fresh);
    } else if (frame.live_from_here) {
      this.pause = pauseMinMs;
      this.status.value = 'live';
      this.listener.onJob?.(frame.live_from_here, false);
    } else if (frame.progress) {
      this.listener.onProgress?.(frame.progress);
    } else if (frame.ended) {
      this.status.value = 'ended';
      this.listener.onJob?.(frame.ended, true);
    }
  }
}
