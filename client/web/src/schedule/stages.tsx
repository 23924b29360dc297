// What the schedule cost, row by row.
import { formatCount, formatValue } from '../lib/format';
import type { RunSchedule } from './view';

export interface Summary {
  schedule?: string;
  stages?: number;
  clock?: string;
  makespan_ticks?: number;
  planned_makespan_ticks?: number;
  bubble?: number;
  idle_over_ideal?: number | null;
  delay_updates?: { max?: number | null } | null;
  per_stage?: {
    stage: number;
    busy_ticks?: number;
    staleness_versions?: { max?: number | null; steady?: { mean?: number | null } | null } | null;
    stash_microbatches_max?: number;
    stash_versions_max?: number;
    stash_bytes_max?: number;
  }[];
}

function percent(part: number): string {
  return Number.isFinite(part) ? `${(100 * part).toFixed(1)} %` : '';
}

export function StageTable({ run }: { run: RunSchedule }) {
  const { summary, timeline, rows } = run;
  const makespan = timeline.makespan;
  const busy = rows.reduce((sum, row) => sum + row.busy, 0);
  return (
    <>
      <dl class="totals">
        <Fact name="Makespan" value={`${formatCount(makespan)} ${summary.clock === 'real' ? 'ns' : 'ticks'}`} />
        {summary.planned_makespan_ticks !== undefined && <Fact name="Planned" value={formatCount(summary.planned_makespan_ticks)} />}
        <Fact name="Bubble" value={percent(summary.bubble ?? 1 - busy / (makespan * rows.length))} />
        {summary.delay_updates?.max != null && <Fact name="Largest delay" value={`${formatCount(summary.delay_updates.max)} updates`} />}
      </dl>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="By stage">
        <table>
          <thead>
            <tr>
              <th scope="col">Row</th>
              <th scope="col" class="number">Busy</th>
              <th scope="col" class="number">Bubble</th>
              <th scope="col" class="number">Staleness, steady</th>
              <th scope="col" class="number">at most</th>
              <th scope="col" class="number">Stash, microbatches</th>
              <th scope="col" class="number">versions</th>
              <th scope="col" class="number">bytes</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => {
              const known = summary.per_stage?.[i];
              const stale = known?.staleness_versions;
              return (
                <tr key={i}>
                  <th scope="row">{rowName(i, summary, rows.length)}</th>
                  <td class="number">{percent(row.busy / makespan)}</td>
                  <td class="number">{percent(1 - row.busy / makespan)}</td>
                  <td class="number">{stale?.steady?.mean == null ? '' : formatValue(stale.steady.mean)}</td>
                  <td class="number">{stale?.max == null ? '' : formatValue(stale.max)}</td>
                  <td class="number">{known?.stash_microbatches_max ?? ''}</td>
                  <td class="number">{known?.stash_versions_max ?? ''}</td>
                  <td class="number">{known?.stash_bytes_max === undefined ? '' : formatCount(known.stash_bytes_max)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

/// With `placement: spread` each replica has rows of its own, one behind the other.
export function rowName(row: number, summary: Summary, rows: number): string {
  const stages = summary.stages ?? rows;
  if (stages >= rows) return `stage ${row}`;
  return `${row % stages} of r${Math.floor(row / stages)}`;
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
