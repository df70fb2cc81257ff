// The secrets of a deployment. There is one, or several while it is replaced: the first signs and encrypts, all
// verify and decrypt. Source: ADR 189.

import { hkdfSync } from 'node:crypto';

/** Each with at least LIMITS.secretBytes. */
export type Secrets = readonly [Uint8Array, ...Uint8Array[]];

/** Names a secret without revealing it. */
export function secretId(secret: Uint8Array): string {
  return Buffer.from(hkdfSync('sha256', secret, '', 'stagedoor members: key id', 8)).toString('hex');
}
