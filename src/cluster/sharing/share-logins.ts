// Limits of failed logins that the nodes share: connects the throttle of this node with those of the others. Source: ADR 173.

import Type from 'typebox';
import type { LoginThrottle } from '../../auth/accounts/login-throttle.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import type { PeerAnswerer, PeerQuestions } from './peer-questions.ts';

const PATH = '/peer/logins';
/** The longest wait for the other nodes, in ms. */
const WAIT_MS = 250;

const Attempts = Type.Object({ count: Type.Number({ minimum: 0 }), endsInMs: Type.Number({ minimum: 0 }) });
const COUNTS = compileShape(
  Type.Object({ pair: Attempts, network: Attempts, hasFailed: Type.Boolean() }),
  'body',
);

/** Asks the others from now on. Returns the path of the questions, and the answer to those of others. */
export function shareLogins(
  throttle: Pick<LoginThrottle, 'shareIn' | 'countsOf'>,
  peers: PeerQuestions,
): [string, PeerAnswerer] {
  throttle.shareIn({
    lives: peers.lives,
    // The hashes are in the token, not in the URL.
    ask: (life, { pair, network }) =>
      peers.ask(life, { principal: `${pair}.${network}`, target: PATH, waitMs: WAIT_MS }, COUNTS),
  });
  return [
    PATH,
    (keys) => {
      const [pair = '', network = ''] = keys.split('.');
      return throttle.countsOf({ pair, network });
    },
  ];
}
