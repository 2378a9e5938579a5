import { existsSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import express, { type NextFunction, type Request, type Response } from 'express';
import { rateLimitMiddleware } from './middleware.js';
import { MultiLevelRateLimiter } from './multi-level.js';
import { RedisRateLimiter } from './redis-limiter.js';
import { SlidingWindowRateLimiter } from './sliding-window.js';
import { TokenBucket } from './token-bucket.js';
import { connect } from './weir.js';

declare global {
  namespace Express {
    interface Request {
      user?: { id: string };
    }
  }
}

const weir = connect(process.env.WEIR ?? '127.0.0.1:6380', Number(process.env.TIMEOUT_MS ?? 100));
const scriptFile = 'sliding-log.lua';

const bucket = new TokenBucket(100, 10, weir, 'bucket');
const levels = new MultiLevelRateLimiter({ perSecond: 10, perMinute: 100, perHour: 1000 }, weir, 'levels');
const apiLimiter = new SlidingWindowRateLimiter(60000, 100, weir, 'api');
const premiumLimiter = new SlidingWindowRateLimiter(60000, 1000, weir, 'premium');

const tooMany = (res: Response) => res.status(429).type('text').send('Too Many Requests');
const processRequest = (req: Request, res: Response) => res.type('text').send('done\n');

const app = express();
// app.set('trust proxy', '10.0.0.0/8'); // behind a proxy: which hops may name the client in X-Forwarded-For

// This stands in for authentication. A real program takes the user from a verified session.
app.use((req: Request, res: Response, next: NextFunction) => {
  const id = req.get('X-User');
  if (id) req.user = { id };
  next();
});

// One bucket for the whole service. Costly requests take more tokens.
app.get('/bucket', async (req, res) => ((await bucket.tryConsume()) ? processRequest(req, res) : tooMany(res)));
app.get('/generate', async (req, res) => ((await bucket.tryConsume(25)) ? processRequest(req, res) : tooMany(res)));

// Levels for each user.
app.get('/levels', async (req, res) => {
  const result = await levels.isAllowed(req.user?.id ?? req.ip ?? '');
  if (result.allowed) return processRequest(req, res);
  res.set('Retry-After', String(Math.ceil((result.retryAfter ?? 0) / 1000)));
  return tooMany(res);
});

// The document's script, which is in a separate file.
if (existsSync(scriptFile)) {
  const distributed = new RedisRateLimiter(weir, 'rl', 60000, 100, readFileSync(scriptFile, 'utf8'));
  app.get('/distributed', async (req, res) => res.json(await distributed.isAllowed(req.user?.id ?? req.ip ?? '')));
}

// Paying users are limited by user, all others by address. Express runs all middleware whose path is a
// prefix. So the longer path is first and answers. Otherwise the limit of /api would also apply there.
const premium = express.Router();
premium.use(rateLimitMiddleware(premiumLimiter, (req) => req.user?.id ?? req.ip ?? ''));
premium.use(processRequest);
app.use('/api/premium', premium);
app.use('/api', rateLimitMiddleware(apiLimiter), processRequest);

// Without weir no request passes. With `next()` here instead, every request would pass.
app.use((err: Error, req: Request, res: Response, next: NextFunction) => {
  console.warn(`${req.path}: ${err.message}`);
  res.status(503).json({ error: 'Service Unavailable', retryAfter: 1 });
});

const [host = '', port] = (process.env.LISTEN ?? '127.0.0.1:8080').split(':');
const server = app.listen(Number(port), host, (err) => {
  if (err) throw err;
  console.log(`listening on http://${host}:${(server.address() as AddressInfo).port}`);
});
