// The fingerprint that names a session in logs and events, where its id, a credential, must not appear.

import { hash } from 'node:crypto';

/** The number of hexadecimal digits: enough to distinguish the sessions of a day, useless as a credential. */
const DIGITS = 12;

/** The first 12 hexadecimal digits of the SHA-256 of the id: `printf %s "$ID" | sha256sum` prints them for a known id. */
export function sessionFingerprint(id: string): string {
  return hash('sha256', id).slice(0, DIGITS);
}
