import type { NextFunction, Request, Response } from 'express';
import type { SlidingWindowRateLimiter } from './sliding-window.js';

/** rateLimitMiddleware limits each key that keyExtractor returns, by default each address. */
export function rateLimitMiddleware(
  limiter: SlidingWindowRateLimiter,
  keyExtractor: (req: Request) => string = (req) => req.ip ?? '',
) {
  return async (req: Request, res: Response, next: NextFunction) => {
    const { allowed, remaining, retryMs, resetMs } = await limiter.check(keyExtractor(req));
    const seconds = Math.ceil((allowed ? resetMs : retryMs) / 1000);
    res.set({
      'X-RateLimit-Limit': String(limiter.maxRequests),
      'X-RateLimit-Remaining': String(remaining),
      'X-RateLimit-Reset': String(seconds),
    });
    if (allowed) return next();
    res.set('Retry-After', String(seconds));
    res.status(429).json({ error: 'Too Many Requests', retryAfter: seconds });
  };
}
