// Limits of failed logins that the nodes share: connects the throttle of this node with those of the others. Source: ADR 193.

import type { LoginCounts, LoginThrottle } from '../../auth/accounts/login-throttle.ts';
import { isJsonObject } from '../../domain/json/json.ts';
import type { PeerAnswerer, PeerQuestions } from './peer-questions.ts';

const PATH = '/peer/logins';
/** The longest wait for the other nodes, in ms. */
const WAIT_MS = 250;

/** Asks the others from now on. Returns the path of the questions, and the answer to those of others. */
export function shareLogins(
  throttle: Pick<LoginThrottle, 'shareIn' | 'countsOf'>,
  peers: PeerQuestions,
): [string, PeerAnswerer] {
  throttle.shareIn({
    lives: peers.lives,
    ask: async (life, { pair, network }) => {
      // The hashes are in the token, not in the URL.
      const question = { principal: `${pair}.${network}`, target: PATH, waitMs: WAIT_MS };
      const answer = await peers.ask(life, question);
      return isCounts(answer) ? answer : undefined;
    },
  });
  return [
    PATH,
    (keys) => {
      const [pair = '', network = ''] = keys.split('.');
      return throttle.countsOf({ pair, network });
    },
  ];
}

function isCounts(value: unknown): value is LoginCounts {
  return (
    isJsonObject(value) &&
    typeof value.hasFailed === 'boolean' &&
    [value.pair, value.network].every(
      (window) =>
        isJsonObject(window) &&
        [window.count, window.endsInMs].every((number) => typeof number === 'number' && number >= 0),
    )
  );
}
