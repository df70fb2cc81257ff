// The rate limits that the nodes share without Redis: connects the counter of this node with those of the others.
// Source: ADR 173.

import Type from 'typebox';
import type { RateLimiter } from '../../auth/limits/rate-limiter.ts';
import { MAX_COUNTED_PRINCIPALS, RATE_WINDOW_SECONDS } from '../../auth/limits/rate-limiter.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { ChunkedCounter, type ChunkRequest, type LimitPeers } from './chunked-counter.ts';
import type { PeerAnswerer, PeerQuestions } from './peer-questions.ts';

/** The longest wait for the home, in ms: the same as for Redis. */
const WAIT_MS = 250;
/** The longest wait of the home for the others, in ms: its answer has to arrive in time. */
const HELD_MS = 100;

const CHUNK = compileShape(
  Type.Object({ granted: Type.Number(), left: Type.Number(), endsInMs: Type.Number() }),
  'body',
);
const HELD = compileShape(
  Type.Object({ process: Type.String(), held: Type.Number(), endsInMs: Type.Number() }),
  'body',
);

interface ShareLimitsOptions {
  readonly limiter: Pick<RateLimiter, 'shareIn'>;
  /** Any id that no other process has. */
  readonly process: string;
  readonly peers: PeerQuestions;
  readonly now: Clock['now'];
  /** The path of the questions. Default: that for requests of principals, in windows of an hour. */
  readonly path?: string;
  readonly windowSeconds?: number;
}

/** Shares the limits from now on. Returns the path of the questions, and the answer to those of others. */
export function shareLimits({
  limiter,
  process,
  peers,
  now,
  path = '/peer/limit',
  windowSeconds = RATE_WINDOW_SECONDS,
}: ShareLimitsOptions): [string, PeerAnswerer] {
  const limitPeers: LimitPeers = {
    lives: peers.lives,
    ask: async (life, { key, process: from, limit, held, endsInMs, wanted, isFirst }) => {
      const numbers = { limit, held, endsInMs, wanted, isFirst: Number(isFirst) };
      const query = new URLSearchParams({ process: from });
      for (const [name, value] of Object.entries(numbers)) query.set(name, String(value));
      // Without an answer, this node counts by its own share.
      return peers.ask(life, { principal: key, target: `${path}?${query}`, waitMs: WAIT_MS }, CHUNK);
    },
    heldByOthers: async (key) => {
      const question = { principal: key, target: path, waitMs: HELD_MS };
      const answers = await Promise.all(peers.lives().map((life) => peers.ask(life, question, HELD)));
      return answers.filter((held) => held !== undefined);
    },
  };
  const counter = new ChunkedCounter({
    process,
    peers: limitPeers,
    now,
    windowMs: windowSeconds * 1_000,
    keys: MAX_COUNTED_PRINCIPALS,
  });
  limiter.shareIn(counter);
  const answer: PeerAnswerer = (key, query) => {
    const asked = requestIn(key, query);
    return asked === undefined ? counter.heldOf(key) : counter.answer(asked);
  };
  return [path, answer];
}

/** The request in a question; undefined for a question that only asks which chunks this node holds. */
function requestIn(key: string, query: URLSearchParams): ChunkRequest | undefined {
  const process = query.get('process');
  const [limit = 0, held = 0, endsInMs = 0, wanted = 0] = ['limit', 'held', 'endsInMs', 'wanted'].map(
    (name) => Number(query.get(name)),
  );
  if (process === null || ![limit, held, endsInMs, wanted].every(Number.isFinite)) return undefined;
  return { key, process, limit, held, endsInMs, wanted, isFirst: query.get('isFirst') === '1' };
}
