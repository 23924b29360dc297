// A job file on its way to the daemon.

/// Where in a job file the daemon's complaint belongs: it names "job file:LINE".
export function lineOfFault(message: string): number | null {
  const found = /job file:(\d+)/.exec(message);
  return found ? Number(found[1]) : null;
}

/// A key that makes a submission that is sent twice one job.
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return 'web-' + [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export const exampleJob = `name: PipeDream on Nesterov's quadratic
objective:
  quadratic:
    generate: {kind: tridiagonal, examples: 600, parameters: 512, seed: 0}
    batch_size: 5
schedule:
  pipedream: {stages: 4, microbatches: 20000}
optimizer: {sgd: {learning_rate: 0.005}}
`;
