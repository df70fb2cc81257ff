// TLS of the peer channel, for both ends of a connection: with keys derived from the secrets of the deployment, or
// with certificates of the operator (peer-certificates.ts). Sources: RFC 5489 (ECDHE_PSK), RFC 7905
// (ChaCha20-Poly1305); ADR 148, 190.

import { hkdfSync } from 'node:crypto';
import {
  type ConnectionOptions,
  createSecureContext,
  type SecureContext,
  type TLSSocket,
  type TlsOptions,
} from 'node:tls';
import type { Secrets } from '../../../auth/secrets/secrets.ts';

export interface PeerTls {
  listener(): TlsOptions;
  /** Options of a connection to this host. */
  connection(host: string): ConnectionOptions;
  /** True when a node that does not accept this one resets the connection: a reset does not show that its process is gone. */
  readonly mayReset?: boolean;
  /** The listener is called when new connections need the options of a listener again. */
  onRenewed?(listener: () => void): void;
}

/** TLS 1.3 has no external pre-shared keys in Node. */
const PSK_TLS = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
} as const;

/** The beginning of the identity of a key; the name of its secret follows. */
const IDENTITY = 'stagedoor ';

/**
 * Encrypted and mutual, without certificates: only a node with a secret of the deployment completes the handshake.
 * `salt`: random, common to the nodes, and not known on the network: see identityOf. Default: none.
 */
export function pskTls(secrets: Secrets, salt = ''): PeerTls {
  const keys = new Map(secrets.map((secret) => [identityOf(secret, salt), channelKey(secret)]));
  const own = { psk: channelKey(secrets[0]), identity: identityOf(secrets[0], salt) };
  return {
    listener: () => ({ ...PSK_TLS, pskCallback: (_socket, identity) => keys.get(identity) ?? null }),
    connection: () => ({ ...PSK_TLS, pskCallback: () => own, checkServerIdentity: () => undefined }),
  };
}

/**
 * TLS with certificates of the operator: the listener shows its own, and asks for the other one and checks it, only after the
 * name of a secret of the deployment. Without it any program could have it check chains that take long. Needs TLS 1.3. Source:
 * ADR 190.
 */
export function certificateTls(certificates: PeerTls, secrets: Secrets, salt = ''): PeerTls {
  const names = secrets.map((secret) => identityOf(secret, salt));
  /** Context of the certificate in use: a renewed one changes the context of a server, not its callbacks. */
  let context: SecureContext | undefined;
  return {
    ...certificates,
    listener: () => {
      const { cert, key, ...options } = certificates.listener();
      context = createSecureContext({ cert, key, ca: options.ca });
      return {
        ...options,
        ALPNCallback: function (this: TLSSocket, { protocols }) {
          const name = protocols.find((each) => names.includes(each));
          if (name !== undefined && context !== undefined) this.setKeyCert(context);
          return name;
        },
      };
    },
    connection: (host) => ({ ...certificates.connection(host), ALPNProtocols: names.slice(0, 1) }),
  };
}

/** The identity crosses in clear text: without the salt a guess of the secret cannot be compared with it. Source: ADR 190. */
function identityOf(secret: Uint8Array, salt: string): string {
  const id = hkdfSync('sha256', secret, salt, 'stagedoor peer channel: identity', 8);
  return IDENTITY + Buffer.from(id).toString('hex');
}

function channelKey(secret: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'stagedoor peer channel: transport', 32));
}
