import { Redis } from 'ioredis';

/** The decision of weir about a request. Times are in milliseconds. */
export interface Decision {
  allowed: boolean;
  remaining: number;
  /** The time until the request would fit. It is 0 if the request is allowed, and -1 if it never fits. */
  retryMs: number;
  /** The time until the limiter is idle again. */
  resetMs: number;
}

/** connect makes a connection. A request on it waits at most timeoutMs, and is never sent again. */
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
