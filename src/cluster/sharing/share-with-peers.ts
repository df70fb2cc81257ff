// Connects the parts that the members share by small questions to each other: rate limits, limits of views
// and failed logins (ADR 173), and tasks (ADR 34).

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LoginThrottle } from '../../auth/accounts/login-throttle.ts';
import { CALL_WINDOW_SECONDS, type RateLimiter } from '../../auth/limits/rate-limiter.ts';
import type { Principal } from '../../domain/accounts/principal.ts';
import type { McpEndpoint } from '../../protocol/endpoint-types.ts';
import { type PeerAnswerer, type PeerQuestionsOptions, peerQuestions } from './peer-questions.ts';
import { shareLimits } from './share-limits.ts';
import { shareLogins } from './share-logins.ts';
import { shareTasks } from './share-tasks.ts';

interface ShareWithPeersOptions extends PeerQuestionsOptions {
  /** If it is undefined, nothing is counted. */
  readonly limiter: Pick<RateLimiter, 'shareIn'> | undefined;
  /** Counts the calls that views limit. */
  readonly calls: Pick<RateLimiter, 'shareIn'>;
  readonly logins: Pick<LoginThrottle, 'shareIn' | 'countsOf'>;
  readonly tasks: McpEndpoint['tasks'];
  /** Any id that no other process has. */
  readonly process: string;
}

/** Answers a question of another node; false for any other request. */
export type ServeQuestion = (
  request: IncomingMessage,
  response: ServerResponse,
  principal: Principal,
) => boolean;

/** Connects the limits and the tasks of this node with those of the others. */
export function shareWithPeers({
  limiter,
  calls,
  logins,
  tasks,
  process,
  ...options
}: ShareWithPeersOptions): ServeQuestion {
  const peers = peerQuestions(options);
  const { now } = options.clock;
  const answers = new Map<string, PeerAnswerer>([shareTasks(tasks, peers), shareLogins(logins, peers)]);
  if (limiter !== undefined) answers.set(...shareLimits({ limiter, process, peers, now }));
  const ofCalls = { limiter: calls, path: '/peer/calls', windowSeconds: CALL_WINDOW_SECONDS };
  answers.set(...shareLimits({ ...ofCalls, process, peers, now }));
  return ({ url = '' }, response, { id }) => {
    const [path = '', query = ''] = url.split('?');
    const answer = answers.get(path);
    if (answer === undefined) return false;
    const respond = async (): Promise<void> => {
      const body = JSON.stringify(await answer(id, new URLSearchParams(query)));
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(body);
    };
    respond().catch(() => response.destroy()); // the other node then decides without this one
    return true;
  };
}
