// Renews the token of a sign-in by browser. Several commands may do so at once: the gateway gives all of them the same answer.

import { COMMAND_LINE } from '../../authorization-server/clients/client-record.ts';
import { CommandFailure, GatewayRefusal } from '../failures.ts';
import { askOAuth } from './ask-oauth.ts';
import { ProofUnavailable, requireProof } from './require-proof.ts';
import {
  findToken,
  isExpired,
  provableToken,
  replaceToken,
  type StoredToken,
  storedTokenOf,
} from './stored-tokens.ts';

/** The time before its end at which a token is renewed before it is sent, in ms. */
export const RENEWED_MS = 60_000;

interface Renewal {
  /** The path of the file with the tokens. */
  readonly path: string;
  readonly url: string;
  /** The access token that the gateway refuses. It may have expired there, while the clock here says otherwise. */
  readonly refused: string | undefined;
  readonly needsProof: boolean;
  readonly timeoutMs?: number | undefined;
  /** The command that signs in again, for messages. */
  readonly login: string;
}

/**
 * The token of this URL with some time left, which is stored. While the gateway cannot answer it is the present
 * one, if that is valid; else this throws ProofUnavailable. Throws CommandFailure when the sign-in has ended.
 */
export async function renewedToken({
  path,
  url,
  refused,
  needsProof,
  timeoutMs,
  login,
}: Renewal): Promise<StoredToken> {
  // Another command may have renewed it, or the user logged out.
  const present = findToken(path, url);
  if (present?.refresh_token === undefined) throw new CommandFailure(`not logged in at ${url}`);
  if (present.access_token !== refused && !isExpired(present, Date.now() + RENEWED_MS)) return present;
  const { username, refresh_token: token } = present;
  const name = `the login of ${username}`;
  const remedy = `log in again with "${login}"`;
  if (needsProof) await requireProof(url, { provable: provableToken(present), name, remedy }, timeoutMs);
  const form = { grant_type: 'refresh_token', client_id: COMMAND_LINE.id, refresh_token: token };
  let answer: unknown;
  try {
    answer = await askOAuth(url, '/oauth/token', form, timeoutMs);
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const hasEnded = error instanceof GatewayRefusal && error.code === 'invalid_grant';
    if (!hasEnded && !isExpired(present, Date.now())) return present;
    if (!hasEnded) throw new ProofUnavailable(error.message, { cause: error });
    throw new CommandFailure(`${name} at ${url} has ended; run "${login}"`, {
      cause: error,
    });
  }
  const renewed = storedTokenOf(answer);
  replaceToken(path, url, present, renewed);
  return renewed;
}

/** Ends the grant of a sign-in by browser. Throws CommandFailure. */
export async function endSignIn(url: string, refreshToken: string, timeoutMs: number): Promise<void> {
  const form = { client_id: COMMAND_LINE.id, token: refreshToken };
  await askOAuth(url, '/oauth/revoke', form, timeoutMs);
}
