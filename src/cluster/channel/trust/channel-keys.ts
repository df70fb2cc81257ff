// The keys of the peer channel, derived from the secrets of the deployment: nodes with the same secret need no certificates.
// Source: RFC 5869; ADR 148.

import { hkdfSync } from 'node:crypto';
import type { Secrets } from '../../../auth/secrets/secrets.ts';
import { certificateTls, type PeerTls, pskTls } from './peer-tls.ts';

export interface ChannelKeys {
  /** The first signs tokens, all verify them. */
  readonly tokens: readonly [Buffer, ...Buffer[]];
  readonly tls: PeerTls;
}

/**
 * The keys of the channel. `secrets`: the secrets that sign the tokens of clients. `certificates`: the default is TLS with keys
 * that are derived from the secrets and the salt (pskTls).
 */
export function channelKeys(secrets: Secrets, certificates?: PeerTls, salt?: string): ChannelKeys {
  const [first, ...others] = secrets;
  const tls =
    certificates === undefined ? pskTls(secrets, salt) : certificateTls(certificates, secrets, salt);
  return { tokens: [tokenKeyOf(first), ...others.map(tokenKeyOf)], tls };
}

function tokenKeyOf(secret: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'stagedoor peer channel: token', 32));
}
