// What the schedule cost, row by row.
import { formatCount, formatTicks, formatValue } from '../lib/format';
import { rowName } from './timeline';
import type { RunSchedule, Traced } from './view';

export interface Summary {
  delay_updates?: { max?: number | null } | null;
  per_stage?: {
    stage: number;
    staleness_versions?: { max?: number | null; steady?: { mean?: number | null } | null } | null;
    stash_microbatches_max?: number;
    stash_versions_max?: number;
    stash_bytes_max?: number;
  }[];
}

function percent(part: number): string {
  return Number.isFinite(part) ? `${(100 * part).toFixed(1)} %` : '';
}

/// Of a real run with what its plan had.
function both(measured: string, planned: string | undefined): string {
  return planned === undefined ? measured : `${measured}, planned ${planned}`;
}

function bubbleOf({ timeline, rows }: Traced): number {
  return 1 - rows.reduce((sum, row) => sum + row.busy, 0) / (timeline.makespan * rows.length);
}

export function StageTable({ run }: { run: RunSchedule }) {
  const { summary, measured, planned, shape, unit } = run;
  return (
    <>
      <dl class="totals">
        <Fact
          name="Makespan"
          value={both(formatTicks(measured.timeline.makespan, unit), planned && formatTicks(planned.timeline.makespan, unit))}
        />
        <Fact name="Bubble" value={both(percent(bubbleOf(measured)), planned && percent(bubbleOf(planned)))} />
        {summary.delay_updates?.max != null && <Fact name="Largest delay" value={`${formatCount(summary.delay_updates.max)} ${summary.delay_updates.max === 1 ? 'update' : 'updates'}`} />}
      </dl>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="By stage">
        <table>
          <thead>
            <tr>
              <th scope="col">Row</th>
              <th scope="col" class="number">Busy</th>
              <th scope="col" class="number">Bubble</th>
              {planned && <th scope="col" class="number">Planned busy</th>}
              {planned && <th scope="col" class="number">bubble</th>}
              <th scope="col" class="number">Staleness, steady</th>
              <th scope="col" class="number">at most</th>
              <th scope="col" class="number">Stash, microbatches</th>
              <th scope="col" class="number">versions</th>
              <th scope="col" class="number">bytes</th>
            </tr>
          </thead>
          <tbody>
            {measured.rows.map((row, i) => {
              const known = summary.per_stage?.[i % shape.stages];
              const stale = known?.staleness_versions;
              return (
                <tr key={i}>
                  <th scope="row">{rowName(i, shape)}</th>
                  <Shares busy={row.busy / measured.timeline.makespan} />
                  {planned && <Shares busy={(planned.rows[i]?.busy ?? NaN) / planned.timeline.makespan} />}
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
      {shape.spread && <p class="hint">Staleness and stash are those of the stage, over all replicas.</p>}
    </>
  );
}

function Shares({ busy }: { busy: number }) {
  return (
    <>
      <td class="number">{percent(busy)}</td>
      <td class="number">{percent(1 - busy)}</td>
    </>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
