import { Redis } from 'ioredis';

/** What weir says about a request. Times are in milliseconds. */
export interface Decision {
  allowed: boolean;
  remaining: number;
  /** Until the request would fit; 0 if it is allowed, -1 if it never fits. */
  retryMs: number;
  /** Until the limiter is as if it had never been used. */
  resetMs: number;
}

/** connect makes a connection on which a request waits timeoutMs at most and is never sent twice. */
export function connect(address: string, timeoutMs: number): Redis {
  const weir = new Redis(`redis://${address}`, { commandTimeout: timeoutMs, maxRetriesPerRequest: 0 });
  weir.on('error', (err) => console.warn(`weir: ${err.message}`));
  return weir;
}

/** decide sends a decision command. */
export async function decide(weir: Redis, command: string, ...args: (string | number)[]): Promise<Decision> {
  const [allowed = 0, remaining = 0, retryMs = -1, resetMs = -1] = (await weir.call(command, ...args)) as number[];
  return { allowed: allowed > 0, remaining, retryMs, resetMs };
}
