import type { Redis } from 'ioredis';
import { decide } from './weir.js';

/** TokenBucket holds up to capacity tokens and gains refillRate of them a second. All processes share it. */
export class TokenBucket {
  constructor(
    private readonly capacity: number,
    private readonly refillRate: number,
    private readonly weir: Redis,
    private readonly key: string,
  ) {}

  /** tryConsume takes tokens, all or none. */
  async tryConsume(tokensNeeded = 1): Promise<boolean> {
    return (await this.ask(tokensNeeded)).allowed;
  }

  /** getAvailableTokens is how many whole tokens there are. */
  async getAvailableTokens(): Promise<number> {
    return (await this.ask(0)).remaining;
  }

  private ask(tokens: number) {
    return decide(this.weir, 'RL.TOKENBUCKET', this.key, `${this.refillRate}/s`, this.capacity, 'COST', tokens);
  }
}
