import type { Redis } from 'ioredis';
import { decide } from './weir.js';

/** TokenBucket holds up to capacity tokens, and refillRate tokens arrive each second. All processes share it. */
export class TokenBucket {
  constructor(
    private readonly capacity: number,
    private readonly refillRate: number,
    private readonly weir: Redis,
    private readonly key: string,
  ) {}

  /** tryConsume takes all of the tokens, or none. */
  async tryConsume(tokensNeeded = 1): Promise<boolean> {
    return (await this.ask(tokensNeeded)).allowed;
  }

  /** getAvailableTokens returns the whole tokens in the bucket. */
  async getAvailableTokens(): Promise<number> {
    return (await this.ask(0)).remaining;
  }

  private ask(tokens: number) {
    return decide(this.weir, 'RL.TOKENBUCKET', this.key, `${this.refillRate}/s`, this.capacity, 'COST', tokens);
  }
}
