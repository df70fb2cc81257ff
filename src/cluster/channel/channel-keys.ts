// The keys of the peer channel, derived from the secret of the deployment: nodes with the same secret need no certificates.
// Source: RFC 5869; ADR 148.

import { hkdfSync } from 'node:crypto';

export interface ChannelKeys {
  /** Pre-shared key of TLS. */
  readonly transport: Buffer;
  /** Signs tokens. */
  readonly token: Buffer;
}

const KEY_BYTES = 32;

/** `secret`: the one that signs the tokens of clients; at least 32 bytes. */
export function channelKeys(secret: Uint8Array): ChannelKeys {
  const derived = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', secret, '', `stagedoor peer channel: ${purpose}`, KEY_BYTES));
  return { transport: derived('transport'), token: derived('token') };
}
