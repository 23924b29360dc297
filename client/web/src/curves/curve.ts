// What stands behind one entry of the legend: a run, or the band over the seeds of a point.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { jobs, refreshJob } from '../jobs/store';
import { get, messageOf } from '../lib/api';
import { nameOf, runsOf, tickUnitOf, type TickUnit } from '../lib/format';
import { allRuns, formatSwept, groupRuns } from '../lib/runs';
import { isFinal, num, stateOf, type Job, type Progress, type Run, type Series, type State } from '../lib/wire';
import type { StreamStatus } from '../lib/stream';
import type { Item } from './items';
import { emptyLine, mappedX, type Line, type XAxis } from './line';
import { identity, proportional, sinceStart, storedAxis, type Mapping } from './mapping';
import { bandOf, smoothed, type Band } from './smooth';
import { SeriesSource, type Range } from './source';

export interface Meta {
  name: string;
  detail: string;
  state: State;
  message: string;
  unit: TickUnit;
  isReal: boolean;
  progress: Progress | undefined;
}

export interface Drawn {
  line: Line;
  /// What `line` smooths.
  raw?: Line;
  band?: Band;
  bound?: Line;
}

const metaIntervalMs = 4000;
/// More seeds than these are left out of a band, which then says so.
const bandRunsMax = 32;

export class Curve {
  readonly meta = signal<Meta | null>(null);
  readonly fault = signal('');
  readonly remark = signal('');
  private sources: SeriesSource[] = [];
  private bounds: SeriesSource[] = [];
  /// When each of its runs began.
  private readonly startedMs = new Map<number, number>();
  private readonly sourcesChanged = signal(0);
  private closed = false;
  private timer = 0;
  readonly version: ReadonlySignal<number>;
  readonly loading: ReadonlySignal<boolean>;
  readonly sourceFault: ReadonlySignal<string>;
  readonly status: ReadonlySignal<StreamStatus>;

  constructor(
    readonly item: Item,
    readonly series: Series,
    readonly axis: XAxis,
  ) {
    const all = () => [...this.sources, ...this.bounds];
    this.version = computed(() => this.sourcesChanged.value + all().reduce((sum, each) => sum + each.version.value, 0));
    this.loading = computed(() => this.sourcesChanged.value === 0 || this.sources.some((each) => each.loading.value));
    this.sourceFault = computed(() => (void this.sourcesChanged.value, this.sources.find((each) => each.fault.value)?.fault.value ?? ''));
    this.status = computed(() => (void this.version.value, this.sources[0]?.status.value ?? 'connecting'));
    void this.begin();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const source of [...this.sources, ...this.bounds]) source.close();
  }

  look(range: Range | null): void {
    for (const source of [...this.sources, ...this.bounds]) {
      const { back } = this.mapping(source);
      source.look(range && { from: back(range.from), to: back(range.to) });
    }
  }

  points(): number {
    if (this.item.group !== undefined && this.loading.value) return 0;
    return this.sources.reduce((sum, source) => sum + source.count, 0);
  }

  /// `smoothing` is the width of the smoothing in x.
  draw(smoothing: number): Drawn {
    const shown = (source: SeriesSource) => {
      const mapping = this.mapping(source);
      return mapping === identity ? source.line() : mappedX(source.line(), mapping.forth);
    };
    const lines = this.sources.map(shown);
    const bound = this.bounds[0] && shown(this.bounds[0]);
    const rest = bound && bound.xs.length > 0 ? { bound } : {};
    if (this.item.group !== undefined) {
      // Of some of its runs it would be another band.
      if (this.loading.value) return { line: emptyLine() };
      const band = bandOf(lines.map((line) => smoothed(line, smoothing)));
      return { line: band.mean, band, ...rest };
    }
    const raw = this.markDivergence(lines[0] ?? emptyLine());
    return smoothing > 0 ? { line: smoothed(raw, smoothing), raw, ...rest } : { line: raw, ...rest };
  }

  /// Of a run that ended for it the value that was not finite may be in another series.
  private markDivergence(line: Line): Line {
    const end = line.xs.length - 1;
    if (end < 0 || line.faults.length > 0 || !this.meta.value?.message.startsWith('diverged')) return line;
    return { ...line, faults: [{ x: line.xs[end] as number, y: line.ys[end] as number }] };
  }

  private mapping(source: SeriesSource): Mapping {
    const meta = this.meta.value;
    if (this.axis === 'time') return sinceStart(this.startedMs.get(source.run) ?? NaN);
    return proportional(this.axis, this.series, meta?.progress);
  }

  private async begin(): Promise<void> {
    try {
      const runs = await this.loadMeta();
      if (this.closed) return;
      const asked = storedAxis(this.axis, this.series);
      const source = (run: number, series: Series) => new SeriesSource(this.item.job, run, series, asked);
      this.sources = runs.map((run) => source(run, this.series));
      if (this.series === 'gradient_norm_sq_mean') this.bounds = runs.slice(0, 1).map((run) => source(run, 'bound'));
      this.sourcesChanged.value++;
    } catch (error) {
      this.fault.value = messageOf(error);
      if (!this.closed) this.timer = window.setTimeout(() => void this.begin(), metaIntervalMs);
    }
  }

  /// The numbers of the runs that are drawn.
  private async loadMeta(): Promise<number[]> {
    const { item } = this;
    if (!jobs.peek().has(item.job)) await refreshJob(item.job);
    const job = jobs.peek().get(item.job);
    if (!job) throw new Error(`there is no job ${item.job}`);
    if (item.group !== undefined) {
      const group = groupRuns(await allRuns(item.job))[item.group];
      if (!group) throw new Error(`job ${item.job} has no point ${item.group}`);
      const used = group.runs.slice(0, bandRunsMax);
      if (used.length < group.runs.length) this.remark.value = `the first ${bandRunsMax} of ${group.runs.length} seeds`;
      for (const run of used) this.startedMs.set(run.number, num(run.started_unix_ms));
      this.setMeta(job, used[0], `${formatSwept(group.swept)} · ${used.length} seeds`);
      this.fault.value = '';
      return used.map((run) => run.number);
    }
    const run = runsOf(job) > 1 ? await get<Run>(`/v1/jobs/${item.job}/runs/${item.run ?? 0}`) : undefined;
    this.startedMs.set(item.run ?? 0, num((run ?? job).started_unix_ms));
    this.setMeta(job, run, run ? [`run ${run.number}`, formatSwept(run.swept ?? [])].filter(Boolean).join(' · ') : '');
    this.fault.value = '';
    return [item.run ?? 0];
  }

  private setMeta(job: Job, run: Run | undefined, detail: string): void {
    const of = run ?? job;
    const state = stateOf(of.state);
    this.meta.value = {
      name: nameOf(job),
      detail,
      state,
      message: of.message,
      unit: tickUnitOf(job.spec),
      isReal: job.spec?.clock === 'real',
      progress: of.progress,
    };
    // A job of one run is followed in the list of jobs.
    if (run === undefined || isFinal(state)) return;
    this.timer = window.setTimeout(() => {
      void this.loadMeta().catch((error) => (this.fault.value = messageOf(error)));
    }, metaIntervalMs);
  }

  /// A job of one run is known from the list of jobs, without asking.
  follow(job: Job | undefined): void {
    const meta = this.meta.peek();
    if (!job || !meta || this.item.group !== undefined || runsOf(job) > 1) return;
    const state = stateOf(job.state);
    this.startedMs.set(this.item.run ?? 0, num(job.started_unix_ms));
    if (meta.state === state && meta.message === job.message && meta.progress === job.progress) return;
    this.meta.value = { ...meta, state, message: job.message, progress: job.progress };
  }
}
