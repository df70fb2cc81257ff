// The keys of the peer channel, derived from the secret of the deployment: nodes with the same secret need no certificates.
// Source: RFC 5869; ADR 148.

import { hkdfSync } from 'node:crypto';
import { type Secrets, secretId } from '../../auth/secrets.ts';

export interface ChannelKeys {
  /** Of the secret. */
  readonly id: string;
  /** Pre-shared key of TLS. */
  readonly transport: Buffer;
  /** Signs tokens. */
  readonly token: Buffer;
}

/** The first signs and encrypts, all verify. */
export type KeyRing = readonly [ChannelKeys, ...ChannelKeys[]];

const KEY_BYTES = 32;

/** `secrets`: those that sign the tokens of clients. */
export function channelKeys([first, ...others]: Secrets): KeyRing {
  return [keysOf(first), ...others.map(keysOf)];
}

function keysOf(secret: Uint8Array): ChannelKeys {
  const derived = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', secret, '', `stagedoor peer channel: ${purpose}`, KEY_BYTES));
  return { id: secretId(secret), transport: derived('transport'), token: derived('token') };
}
