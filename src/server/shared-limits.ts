// The rate limits that the nodes share without Redis: connects the counter of this node with those of the others over the peer channel. A
// question is a GET with the principal in its token; only members can send one. Source: ADR 173.

import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type ChunkAnswer,
  ChunkedCounter,
  type ChunkRequest,
  type Held,
  type LimitPeers,
} from '../auth/limit-chunks.ts';
import type { RateLimiter } from '../auth/rate-limiter.ts';
import { COUNTED_PRINCIPALS, WINDOW_SECONDS } from '../auth/rate-limiter.ts';
import type { Principal } from '../domain/account.ts';
import { systemClock } from '../domain/clock.ts';
import type { SessionOwners } from '../domain/forwarding.ts';
import { isJsonObject, jsonIn } from '../domain/json.ts';
import type { NodeView } from '../domain/nodes.ts';
import { nodeUnavailable } from '../domain/session-errors.ts';
import { answerOf } from '../http/deployment/peer-answer.ts';

const PATH = '/peer/limit';
/** Longest wait for the home, in ms: as for Redis. */
const WAIT_MS = 250;
/** Longest wait of the home for the others, in ms: its answer has to come in time. */
const HELD_MS = 100;
const MAX_BYTES = 1_024;

export interface SharedLimits {
  /** Answers a question of another node; false for any other request. */
  serve(request: IncomingMessage, response: ServerResponse, principal: Principal): boolean;
}

export interface SharedLimitsOptions {
  readonly limiter: Pick<RateLimiter, 'shareIn'>;
  /** Any id that no other process has. */
  readonly process: string;
  readonly owners: Pick<SessionOwners, 'ofLife'>;
  /** This node first. */
  readonly nodes: () => readonly NodeView[];
}

export function shareLimits({ limiter, process, owners, nodes }: SharedLimitsOptions): SharedLimits {
  const lives = (): string[] =>
    nodes().flatMap(({ life, state }) => (state === 'ended' || state === 'foreign' ? [] : [life]));
  /** Undefined: no answer in time. */
  const ask = async (life: string, key: string, query: string, waitMs: number): Promise<unknown> => {
    const isSilent = nodes().some((node) => node.life === life && node.state === 'silent');
    const owner = isSilent ? undefined : owners.ofLife(life);
    if (owner === undefined) return undefined;
    const principal: Principal = { id: key, name: key, kind: 'api-key', scopes: new Set() };
    const request = {
      caller: { principal, requestId: crypto.randomUUID(), address: undefined },
      ...{ method: 'GET', target: `${PATH}?${query}`, headers: {}, body: Buffer.alloc(0) },
      ...{ isStream: false, isRepeatable: () => true },
    };
    let cancel = (): void => {};
    const onLost = (listener: (reason: Error) => void): void => {
      cancel = systemClock.background.alarm(waitMs, () =>
        listener(nodeUnavailable(owner.node, 'it does not answer', 'unknown')),
      );
    };
    try {
      const { status, body } = await answerOf(owner, request, { maxBytes: MAX_BYTES, onLost });
      return status === 200 ? jsonIn(body.toString()) : undefined;
    } catch {
      return undefined; // this node counts by its own share
    } finally {
      cancel();
    }
  };
  const peers: LimitPeers = {
    lives,
    ask: async (life, { key, process: from, limit, held, endsInMs, wanted, isFirst }) => {
      const numbers = { limit, held, endsInMs, wanted, isFirst: Number(isFirst) };
      const query = Object.entries(numbers).map(([name, value]) => `${name}=${value}`);
      const answer = await ask(life, key, [`process=${from}`, ...query].join('&'), WAIT_MS);
      return isAnswer(answer) ? answer : undefined;
    },
    heldElsewhere: async (key) => {
      const answers = await Promise.all(lives().map((life) => ask(life, key, '', HELD_MS)));
      return answers.filter(isHeld);
    },
  };
  const counter = new ChunkedCounter({
    ...{ process, peers, now: systemClock.now },
    ...{ windowMs: WINDOW_SECONDS * 1_000, keys: COUNTED_PRINCIPALS },
  });
  limiter.shareIn(counter);
  return {
    serve: ({ url = '' }, response, { id: key }) => {
      const [path, query = ''] = url.split('?');
      if (path !== PATH) return false;
      const asked = requestIn(key, new URLSearchParams(query));
      const answer = asked === undefined ? counter.heldOf(key) : counter.answer(asked);
      void Promise.resolve(answer).then((value) =>
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(value)),
      );
      return true;
    },
  };
}

/** Undefined: the question is only what this node holds. */
function requestIn(key: string, query: URLSearchParams): ChunkRequest | undefined {
  const process = query.get('process');
  const [limit = 0, held = 0, endsInMs = 0, wanted = 0] = ['limit', 'held', 'endsInMs', 'wanted'].map(
    (name) => Number(query.get(name)),
  );
  if (process === null || ![limit, held, endsInMs, wanted].every(Number.isFinite)) return undefined;
  return { key, process, limit, held, endsInMs, wanted, isFirst: query.get('isFirst') === '1' };
}

function isAnswer(value: unknown): value is ChunkAnswer {
  return isJsonObject(value) && [value.granted, value.left, value.endsInMs].every(Number.isFinite);
}

function isHeld(value: unknown): value is Held {
  return (
    isJsonObject(value) &&
    typeof value.process === 'string' &&
    [value.held, value.endsInMs].every(Number.isFinite)
  );
}
