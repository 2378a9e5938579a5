import type { Redis } from 'ioredis';

/** RedisRateLimiter works with Redis and with weir: it sends the document's script and its own time. */
export class RedisRateLimiter {
  constructor(
    private readonly redis: Redis,
    private readonly keyPrefix: string,
    private readonly windowMs: number,
    private readonly maxRequests: number,
    private readonly script: string,
  ) {}

  /** isAllowed returns in resetAt the milliseconds until the oldest request leaves the window, or 0 if allowed. */
  async isAllowed(key: string): Promise<{ allowed: boolean; remaining: number; resetAt: number }> {
    const now = Date.now();
    const answer = await this.redis.eval(this.script, 1, `${this.keyPrefix}:${key}`, now - this.windowMs, now, this.maxRequests, this.windowMs);
    const [allowed, remaining, resetAt] = answer as [number, number, number];
    return { allowed: allowed === 1, remaining, resetAt };
  }
}
