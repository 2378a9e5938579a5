import express from 'express';
import { Redis } from 'ioredis';
import { limit } from './limit.js';

const [host, port] = (process.env.LISTEN ?? '127.0.0.1:8080').split(':');
// A request waits at most TIMEOUT_MS for weir. The client never sends it again.
const redis = new Redis(`redis://${process.env.WEIR ?? '127.0.0.1:6380'}`, {
  commandTimeout: Number(process.env.TIMEOUT_MS ?? 100),
  maxRetriesPerRequest: 0,
});
redis.on('error', (err) => console.warn(`weir: ${err.message}`));

const app = express();
// app.set('trust proxy', '10.0.0.0/8'); // behind a proxy: who is believed about X-Forwarded-For
app.use(limit(redis, 'api'));
app.get('/', (req, res) => res.send('hello\n'));
app.listen(Number(port), host, (err) => {
  if (err) throw err;
  console.log(`listening on http://${host}:${port}`);
});
