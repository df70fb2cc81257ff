// Counts in Redis. While Redis is unavailable no request waits for it: a command without an answer closes the
// connection, without a connection each call returns at once, and the log gets one warning a minute. The URL
// contains a password and is never logged.

import { once } from 'node:events';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { ConfigError } from '../../config/config-error.ts';
import { messageOf } from '../../domain/errors/errors.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { type Clock, timeLimit } from '../../domain/time/clock.ts';
import { RATE_WINDOW_SECONDS, type SharedCounter } from './rate-limiter.ts';

/** The longest wait of a request for Redis. */
const COMMAND_MS = 250;
const CONNECT_MS = 2_000;
const RECONNECT_LONGEST_MS = 1_000;
const WARNING_MS = 60_000;
const MAX_LIMITERS = 100;

/**
 * Counts and refuses in one step. The script of the library counts first and refuses afterwards: the refused count
 * would have to be subtracted later, perhaps from the next window. Its `insuranceLimiter` is not used either: it
 * counts refused requests, and each call would wait for the timeout of an unavailable Redis. KEYS: the counter;
 * ARGV: the count, the seconds of a window, the limit.
 */
const COUNT_WITHIN_LIMIT = `
local sum = tonumber(redis.call('get', KEYS[1]) or '0') + tonumber(ARGV[1])
local ttl = redis.call('pttl', KEYS[1])
local isOpen = ttl >= 0
if not isOpen then
  sum = tonumber(ARGV[1])
  ttl = 1000 * ARGV[2]
end
if sum <= tonumber(ARGV[3]) then
  if isOpen then redis.call('incrby', KEYS[1], ARGV[1]) else redis.call('set', KEYS[1], sum, 'EX', ARGV[2]) end
end
return {sum, ttl}`;

interface RedisCounterOptions {
  /** `redis://` or `rediss://`. */
  readonly url: string;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly clock: Clock;
}

/** Opens the connection and waits for it for at most 2 s, then warns. Throws ConfigError for an invalid URL. */
export async function openRedisCounter({ url, log, clock }: RedisCounterOptions): Promise<SharedCounter> {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url))
    throw new ConfigError('GATEWAY_REDIS_URL: must be redis://[user:password@]host[:port] or rediss://...');
  const { Redis: Connection } = await import('ioredis');
  const redis = new Connection(url, {
    commandTimeout: COMMAND_MS,
    connectTimeout: CONNECT_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempts) => Math.min(RECONNECT_LONGEST_MS, 50 * 2 ** Math.min(attempts, 10)),
    disableClientInfo: true,
  });
  /** The limiters by limit and window: two of users and of keys, and those of views. */
  const limiters = new LruMap<RateLimiterRedis>(MAX_LIMITERS);
  let isAway = false;
  let nextWarningAtMs = Number.NEGATIVE_INFINITY;
  const onFailure = (error: unknown): void => {
    isAway = true;
    // The client reconnects by itself: a frozen Redis, or a proxy that dropped the connection, delays no further request.
    if (messageOf(error) === TIMED_OUT && redis.stream.writable) redis.disconnect(true);
    const nowMs = clock.now();
    if (nowMs < nextWarningAtMs) return;
    nextWarningAtMs = nowMs + WARNING_MS;
    log.warn({ reason: redisReason(error) }, 'Redis does not answer: rate limits are counted without it');
  };
  // A lost connection is an event here and a failed command in add(), which handles it.
  redis.on('error', onFailure);
  await opened(redis, clock).catch(onFailure);
  return {
    add: async (key, count, limit, windowSeconds = RATE_WINDOW_SECONDS) => {
      const rule = `${limit} ${windowSeconds}`;
      const limiter = limiters.get(rule) ?? limiterOn(redis, limit, windowSeconds);
      limiters.set(rule, limiter);
      let answer: RateLimiterRes;
      try {
        answer = await limiter.consume(key, count);
      } catch (thrown) {
        // A refusal is a rejection with the same kind of answer.
        if (!(thrown instanceof RateLimiterRes)) {
          onFailure(thrown);
          return undefined;
        }
        answer = thrown;
      }
      const { consumedPoints: counted, msBeforeNext: endsInMs } = answer;
      // Another server, or a proxy, may answer anything.
      if (!Number.isSafeInteger(counted) || !Number.isFinite(endsInMs)) {
        onFailure(new TypeError('no count'));
        return undefined;
      }
      if (isAway) log.info('Redis answers again: rate limits are shared with the other gateways');
      isAway = false;
      return { count: counted, endsInMs };
    },
    close: () => redis.disconnect(),
  };
}

/** Resolves when Redis is connected, or known to be unavailable; rejects after CONNECT_MS. */
async function opened(redis: Redis, clock: Clock): Promise<void> {
  const limit = timeLimit(clock, CONNECT_MS);
  try {
    await once(redis, 'ready', { signal: limit });
  } catch (error) {
    // An event 'error' rejects too; its listener handles it.
    if (limit.aborted) throw error;
  }
}

function limiterOn(storeClient: Redis, limit: number, windowSeconds: number): RateLimiterRedis {
  return new RateLimiterRedis({
    storeClient,
    keyPrefix: 'stagedoor:limit',
    points: limit,
    duration: windowSeconds,
    customIncrTtlLuaScript: COUNT_WITHIN_LIMIT,
  });
}

/** Message of the client for an answer that did not come within COMMAND_MS. */
const TIMED_OUT = 'Command timed out';

/** The code of the error. Its message may contain the command, and with it the password of the URL. */
function redisReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const code = 'code' in error ? error.code : undefined;
  if (typeof code === 'string') return code;
  if (error.message === TIMED_OUT) return `no answer within ${COMMAND_MS} ms`;
  // Errors of Redis begin with a code: NOAUTH, WRONGPASS, READONLY, LOADING.
  return /^[A-Z]{3,16}\b/.exec(error.message)?.[0] ?? error.name;
}
