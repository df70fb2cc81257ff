// The tokens that an authorization server issues, in the form in which they are stored.

import { DAY_MS } from '../domain/time/clock.ts';
import { scopesIn } from '../net/http1/backend-challenge.ts';
import { BackendFetchFailure } from './backend-fetch.ts';

/** The time before its end at which a token is renewed, in ms; or in the last quarter of its life. */
const MARGIN_MS = 30_000;
/**
 * The longest life of a token, in ms: a year. A server may name times that are not dates; a token that is renewed too
 * early is not a loss.
 */
const MAX_LIFE_MS = 365 * DAY_MS;
/** What a header can have after `Bearer`. Source: RFC 6750 section 2.1, with the other visible characters of RFC 6749 appendix A.12. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** The tokens of an answer in the form in which they are stored. Throws BackendFetchFailure for a token that cannot be sent. */
export function tokensIn(
  answer: {
    readonly access_token: string;
    readonly refresh_token?: string;
    readonly expires_in?: number;
    readonly scope?: string;
  },
  nowMs: number,
) {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds, scope } = answer;
  if (!SENDABLE.test(accessToken))
    throw new BackendFetchFailure('its authorization server gave a token that cannot be sent in a header');
  return {
    accessToken,
    refreshToken,
    ...(seconds === undefined
      ? { expiresAtMs: undefined, dueAtMs: undefined }
      : timesOf(Math.min(seconds * 1_000, MAX_LIFE_MS), nowMs)),
    scopes: scope === undefined ? undefined : scopesIn(scope),
  };
}

function timesOf(lifeMs: number, nowMs: number) {
  const expiresAtMs = nowMs + lifeMs;
  return { expiresAtMs, dueAtMs: expiresAtMs - Math.min(MARGIN_MS, lifeMs / 4) };
}
