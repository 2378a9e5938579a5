import type { Redis } from 'ioredis';
import { decide, type Decision } from './weir.js';

/** SlidingWindowRateLimiter admits maxRequests of each key in any windowMs. name separates its keys from others. */
export class SlidingWindowRateLimiter {
  constructor(
    readonly windowMs: number,
    readonly maxRequests: number,
    private readonly weir: Redis,
    private readonly name: string,
  ) {}

  async isAllowed(key: string): Promise<boolean> {
    return (await this.check(key)).allowed;
  }

  /** check decides like isAllowed. It also returns the remaining requests and the time to wait. */
  check(key: string): Promise<Decision> {
    return decide(this.weir, 'RL.SLIDING', ...this.limiter(key), this.maxRequests);
  }

  async getRemainingRequests(key: string): Promise<number> {
    return (await decide(this.weir, 'RL.SLIDING', ...this.limiter(key), this.maxRequests, 'COST', 0)).remaining;
  }

  /** getResetTime returns the milliseconds until the oldest request leaves the window, or 0 if there is none. */
  async getResetTime(key: string): Promise<number> {
    const used = this.maxRequests - (await this.getRemainingRequests(key));
    if (used === 0) return 0;
    // If the limit were exactly the used requests, the next would wait for the oldest. RL.EXPLAIN takes nothing.
    const told = (await this.weir.call('RL.EXPLAIN', 'RL.SLIDING', ...this.limiter(key), used)) as (string | number)[];
    return Number(told[told.indexOf('retry_after_ms') + 1]);
  }

  private limiter(key: string): [string, string] {
    return [`${this.name}:${key}`, `${this.windowMs}ms`];
  }
}
