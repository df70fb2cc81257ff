// What both ends of the peer channel must agree on: names of headers and paths, and the parameters of TLS.
// Source: RFC 5489 (ECDHE_PSK), RFC 7905 (ChaCha20-Poly1305); ADR 148.

import { REFUSED_HEADER } from '../../domain/forwarding.ts';

/** Headers of the channel, besides those of the client that cross. */
export const PEER_HEADERS = {
  token: 'peer-token',
  /** The kinds of hops that the request took: `session`. */
  hops: 'peer-hops',
  clientAddress: 'peer-client-address',
  /** Why the request was refused, before anything was carried out. */
  refused: REFUSED_HEADER,
} as const;

/** The hop from the node that received a request to the owner of its session. */
export const SESSION_HOP = 'session';

export const PEER_PATHS = {
  /** Asks for the clock of the receiver. */
  greeting: '/peer/greeting',
  /** Asks whether the life in the query refuses connections of the receiver, too. */
  refusal: '/peer/refusal',
} as const;

/** TLS 1.3 has no external pre-shared keys in Node. */
export const PEER_TLS = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
} as const;

/** The identity of the pre-shared key; there is one. */
export const PSK_IDENTITY = 'stagedoor';
