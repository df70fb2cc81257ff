// TLS of the peer channel, for both ends of a connection: with keys derived from the secrets of the deployment, or with certificates of the
// operator (peer-certificates.ts). Sources: RFC 5489 (ECDHE_PSK), RFC 7905 (ChaCha20-Poly1305); ADR 148, 190.

import { hkdfSync } from 'node:crypto';
import type { ConnectionOptions, TlsOptions } from 'node:tls';
import { type Secrets, secretId } from '../../auth/secrets.ts';

export interface PeerTls {
  /** Of a listener. */
  listener(): TlsOptions;
  /** Of a connection to this host. */
  connection(host: string): ConnectionOptions;
  /** A node that does not accept this one resets the connection: a reset does not show that its process is gone. */
  readonly mayReset?: boolean;
  /** Calls back when new connections need the options of a listener anew. */
  onRenewed?(listener: () => void): void;
}

/** TLS 1.3 has no external pre-shared keys in Node. */
const PSK_TLS = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
} as const;

/** The identity of a key begins with this; the id of its secret follows. */
const IDENTITY = 'stagedoor ';

/** Encrypted and mutual, without certificates: only a node with a secret of the deployment completes the handshake. */
export function pskTls(secrets: Secrets): PeerTls {
  const keys = new Map(secrets.map((secret) => [IDENTITY + secretId(secret), keyOf(secret)]));
  const own = { psk: keyOf(secrets[0]), identity: IDENTITY + secretId(secrets[0]) };
  return {
    listener: () => ({ ...PSK_TLS, pskCallback: (_socket, identity) => keys.get(identity) ?? null }),
    connection: () => ({ ...PSK_TLS, pskCallback: () => own, checkServerIdentity: () => undefined }),
  };
}

function keyOf(secret: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'stagedoor peer channel: transport', 32));
}
