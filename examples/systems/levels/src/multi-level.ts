import type { Redis } from 'ioredis';
import { decide } from './weir.js';

export interface RateLimitConfig {
  perSecond?: number;
  perMinute?: number;
  perHour?: number;
  perDay?: number;
}

const windows = { perSecond: '1s', perMinute: '1m', perHour: '1h', perDay: '1d' } as const;

/** MultiLevelRateLimiter admits a request if all levels admit it. They are one policy, so a denial counts nowhere. */
export class MultiLevelRateLimiter {
  private readonly limits: (string | number)[];
  private declared?: Promise<unknown>;

  constructor(
    config: RateLimitConfig,
    private readonly weir: Redis,
    private readonly policy: string,
  ) {
    const levels = Object.keys(windows) as (keyof typeof windows)[];
    this.limits = levels.flatMap((level) => {
      const max = config[level];
      return max ? ['LIMIT', 'SLIDING', windows[level], max] : [];
    });
  }

  /** isAllowed decides, and returns the milliseconds to wait for the level that denied. */
  async isAllowed(key: string): Promise<{ allowed: boolean; retryAfter?: number }> {
    if (this.limits.length === 0) return { allowed: true };
    await this.declare();
    const { allowed, retryMs } = await decide(this.weir, 'RL.CHECK', this.policy, key);
    return allowed ? { allowed } : { allowed, retryAfter: retryMs };
  }

  /** declare sets the policy before the first decision. Requests that it counted before stay counted. */
  private async declare() {
    this.declared ??= this.weir.call('RL.POLICY', 'SET', this.policy, ...this.limits);
    try {
      await this.declared;
    } catch (err) {
      this.declared = undefined;
      throw err;
    }
  }
}
