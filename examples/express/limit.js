const seconds = (ms) => Math.ceil(ms / 1000);

// clientOf returns the client that sent a request. An IPv6 client has a whole /64, and may use
// another address of it for each request.
export function clientOf({ ip }) {
  const address = ip.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*/, '');
  if (!address.includes(':')) return address;
  const [head, tail] = address.split('::').map((part) => (part ? part.split(':') : []));
  const groups = tail ? [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail] : head;
  return groups.slice(0, 4).join(':') + '::/64';
}

// limit(redis, policy) is Express middleware that asks weir about each client.
export function limit(redis, policy, keyOf = clientOf) {
  return async (req, res, next) => {
    let answer;
    try {
      answer = await redis.call('RL.CHECK', policy, keyOf(req));
    } catch (err) {
      console.warn(`weir is not reached: ${err.message}`);
      return problem(res, 503, 'temporary-reduced-capacity', 'Request cannot be satisfied due to temporary server capacity constraints');
    }
    const [allowed, remaining, retryMs, resetMs, max, by] = answer;
    const until = allowed ? resetMs : retryMs; // below 0: the request never fits
    res.set('RateLimit-Policy', `"${by}";q=${max}`);
    res.set('RateLimit', `"${by}";r=${remaining}` + (until < 0 ? '' : `;t=${seconds(until)}`));
    res.set({ 'X-RateLimit-Limit': String(max), 'X-RateLimit-Remaining': String(remaining) });
    if (until >= 0) res.set('X-RateLimit-Reset', String(seconds(until)));
    if (allowed) return retryMs > 0 ? setTimeout(next, retryMs) : next(); // a pacing policy delays the request
    if (retryMs >= 0) res.set('Retry-After', Math.max(seconds(retryMs), 1));
    problem(res, 429, 'quota-exceeded', 'Request cannot be satisfied as assigned quota has been exceeded', { 'violated-policies': [by] });
  };
}

function problem(res, status, type, title, more) {
  res.writeHead(status, { 'Content-Type': 'application/problem+json' }); // send would add a charset, but JSON has no charset parameter
  res.end(JSON.stringify({ type: `https://iana.org/assignments/http-problem-types#${type}`, title, status, ...more }));
}
