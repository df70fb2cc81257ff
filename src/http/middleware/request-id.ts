// The id of each request, for its answer, the log and the backend.

import { randomBytes, randomUUID } from 'node:crypto';
import type { HttpContext } from '../context.ts';

const VALID = /^[A-Za-z0-9._-]{1,128}$/;

/** Sets `state.requestId`: a valid id of the client, else a new one. respond.ts returns it. */
export function identify({ req, state }: Pick<HttpContext, 'req' | 'state'>, newId: () => string): void {
  const sent = req.headers['x-request-id'];
  state.requestId = typeof sent === 'string' && VALID.test(sent) ? sent : newId();
}

/** Up to the first digit of the fourth group, which has bits of the version. */
const COMMON_CHARACTERS = 20;
/** Digits of an id: the rest of the fourth group, and the last one. */
const [GROUP_REST, LAST_GROUP] = [3, 12];
const OWN_DIGITS = GROUP_REST + LAST_GROUP;
const DRAWN_IDS = 128;

/**
 * Makes ids of requests: UUIDs with one beginning. Callers see them, so that they do not count: that would show
 * how much all callers do. `randomUUID` leaves three times the garbage.
 */
export function requestIds(): () => string {
  const beginning = randomUUID().slice(0, COMMON_CHARACTERS);
  let digits = '';
  let at = 0;
  return () => {
    if (at === digits.length) {
      digits = randomBytes((DRAWN_IDS * OWN_DIGITS) / 2).toString('hex');
      at = 0;
    }
    at += OWN_DIGITS;
    const last = at - LAST_GROUP;
    return `${beginning}${digits.slice(at - OWN_DIGITS, last)}-${digits.slice(last, at)}`;
  };
}
