// One run's series: what the store has of it, down-sampled where it is long, and what comes live. The
// two meet at a sequence number, so there is neither a gap nor a repeat between them.
import { signal } from '@preact/signals';
import { ApiError, get, messageOf } from '../lib/api';
import { num, seriesOf, type Job, type JobEvent, type Series, type SeriesData } from '../lib/wire';
import { join, type FeedUser, type Subscription } from './feed';
import { emptyLine, extended, lineOf, xOf, type Line, type XAxis } from './line';

const bucketsMax = 1500;
/// So many live points are kept as they came; then the whole is asked for anew.
const tailMax = 20_000;
const retryMs = 2000;

interface LivePoint {
  sequence: number;
  x: number;
  y: number;
}

export interface Range {
  from: number;
  to: number;
}

export class SeriesSource implements FeedUser {
  /// Changes whenever line() does.
  readonly version = signal(0);
  readonly fault = signal('');
  readonly loading = signal(true);
  private overview: SeriesData | null = null;
  private detail: { range: Range; data: SeriesData } | null = null;
  private wanted: Range | null = null;
  private tail: LivePoint[] = [];
  private readonly subscription: Subscription;
  private closed = false;
  private timer = 0;
  private asked = 0;

  constructor(
    readonly job: number,
    readonly run: number,
    readonly series: Series,
    readonly axis: XAxis,
  ) {
    this.subscription = join(job, this);
    void this.load();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.subscription.end();
  }

  get status() {
    return this.subscription.status;
  }

  /// How many points the run has.
  get count(): number {
    return (this.overview ? num(this.overview.count) : 0) + this.tail.length;
  }

  /// All of it, or what the last look() asked for where that has come.
  line(): Line {
    const { wanted, detail } = this;
    const zoomed = wanted && detail && detail.range.from <= wanted.from && detail.range.to >= wanted.to;
    const data = zoomed ? detail.data : this.overview;
    if (!data) return emptyLine();
    const after = num(data.next_sequence);
    const last = zoomed ? detail.range.to : Infinity;
    const live = this.tail.filter((point) => point.sequence >= after && point.x <= last);
    return extended(lineOf(data), live);
  }

  /// The range of x that is in sight, null for all: what is down-sampled there comes in more detail.
  look(range: Range | null): void {
    this.wanted = range;
    clearTimeout(this.timer);
    if (!range || !this.overview || (this.overview.raw && this.tail.length < tailMax)) {
      if (!range) this.detail = null;
      return;
    }
    const at = this.detail?.range;
    const width = range.to - range.from;
    if (at && at.from <= range.from && at.to >= range.to && at.to - at.from <= 4 * width) return;
    this.timer = window.setTimeout(() => void this.loadDetail(range), 120);
  }

  onEvents(events: JobEvent[]): void {
    const after = this.overview ? num(this.overview.next_sequence) : 0;
    let news = false;
    for (const event of events) {
      const point = event.point;
      if (!point || event.run !== this.run || seriesOf(point.series) !== this.series) continue;
      const sequence = num(event.sequence);
      const last = this.tail[this.tail.length - 1];
      if (sequence < after || (last && sequence <= last.sequence)) continue;
      this.tail.push({ sequence, x: xOf(event, point, this.axis), y: num(point.value) });
      news = true;
    }
    if (!news) return;
    this.version.value++;
    if (this.tail.length > tailMax) void this.load();
  }

  onJob(_job: Job, ended: boolean): void {
    if (ended) this.version.value++;
  }

  private ask(range: Range | null): Promise<SeriesData> {
    const query = new URLSearchParams({ series: this.series, x: this.axis, buckets: String(bucketsMax) });
    if (range) {
      query.set('from', String(Math.floor(range.from)));
      query.set('to', String(Math.ceil(range.to)));
    }
    return get<SeriesData>(`/v1/jobs/${this.job}/runs/${this.run}/series?${query}`);
  }

  private async load(): Promise<void> {
    const number = ++this.asked;
    try {
      const data = await this.ask(null);
      if (this.closed || number !== this.asked) return;
      const after = num(data.next_sequence);
      this.overview = data;
      this.detail = null;
      this.tail = this.tail.filter((point) => point.sequence >= after);
      this.subscription.need(after);
      this.fault.value = '';
      this.loading.value = false;
      this.version.value++;
      if (this.wanted) this.look(this.wanted);
    } catch (error) {
      if (this.closed || number !== this.asked) return;
      this.fault.value = messageOf(error);
      const again = error instanceof ApiError && (error.status === 0 || error.status >= 500);
      if (again) this.timer = window.setTimeout(() => void this.load(), retryMs);
      else this.loading.value = false;
    }
  }

  private async loadDetail(range: Range): Promise<void> {
    // More than is in sight, so that a small pan needs nothing new.
    const width = range.to - range.from;
    const wider = { from: Math.max(0, range.from - width), to: range.to + width };
    try {
      const data = await this.ask(wider);
      if (this.closed || this.wanted !== range) return;
      this.detail = { range: wider, data };
      this.version.value++;
    } catch (error) {
      this.fault.value = messageOf(error);
    }
  }
}
