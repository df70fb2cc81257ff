// Which API key somebody came with who was not let in: people want to know who still uses the one that was revoked.

import type { IncomingHttpHeaders } from 'node:http';
import { parseKey } from '../auth/api-keys.ts';

/** Longest header that is looked at. */
const LONGEST = 128;

/** The id of the key, which is no secret and proves nothing; undefined when no key was sent, or something like one. */
export function namedKey(headers: IncomingHttpHeaders): string | undefined {
  const { 'x-api-key': key, authorization } = headers;
  const sent = typeof key === 'string' ? key : authorization?.slice(0, LONGEST).replace(/^bearer +/i, '');
  return sent === undefined ? undefined : parseKey(sent.trim())?.id;
}
