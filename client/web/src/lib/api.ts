// Requests to the daemon.
import { signal } from '@preact/signals';
import { dropToken, token } from './session';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly path = '',
  ) {
    super(message);
  }
}

/// Whether the last request reached the daemon; null before the first.
export const reachable = signal<boolean | null>(null);

const deadlineMs = 30_000;

async function ask(method: string, target: string, body?: string, headers: Record<string, string> = {}) {
  const used = token.value ?? '';
  let reply: Response;
  try {
    reply = await fetch(target, {
      method,
      ...(body === undefined ? {} : { body }),
      headers: { Authorization: `Bearer ${used}`, Accept: 'application/json', ...headers },
      cache: 'no-store',
      signal: AbortSignal.timeout(deadlineMs),
    });
  } catch {
    reachable.value = false;
    throw new ApiError(0, 'the daemon cannot be reached');
  }
  reachable.value = true;
  if (reply.ok) return reply;
  let message = `the daemon answers with status ${reply.status}`;
  let path = '';
  try {
    const fault = (await reply.json()) as { error?: string; path?: string };
    message = fault.error || message;
    path = fault.path ?? '';
  } catch {
    // Not an ErrorReply: the status has to say it.
  }
  // The answer to a request from before another token was given is no word about that one.
  if (reply.status === 401 && used === (token.peek() ?? '')) {
    dropToken(`This daemon does not accept that token: ${message}.`);
  }
  throw new ApiError(reply.status, message, path);
}

export async function get<T>(target: string): Promise<T> {
  return (await (await ask('GET', target)).json()) as T;
}

export async function getText(target: string): Promise<string> {
  return (await ask('GET', target)).text();
}

export async function post<T>(target: string, body = '', headers: Record<string, string> = {}): Promise<T> {
  return (await (await ask('POST', target, body, headers)).json()) as T;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
