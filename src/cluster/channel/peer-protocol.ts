// What both ends of the peer channel must agree on: names of headers and paths, and the parameters of TLS.
// Source: RFC 5489 (ECDHE_PSK), RFC 7905 (ChaCha20-Poly1305); ADR 148.

import { REFUSED_HEADER } from '../../domain/forwarding.ts';

/** Headers of the channel, besides those of the client that cross. */
export const PEER_HEADERS = {
  token: 'peer-token',
  /** The kind of the hop that the request took, see Hop. */
  hops: 'peer-hops',
  clientAddress: 'peer-client-address',
  /** Why the request was refused, before anything was carried out. */
  refused: REFUSED_HEADER,
} as const;

export const PEER_PATHS = {
  /** Asks for the clock of the receiver. */
  greeting: '/peer/greeting',
  /** Asks whether the life in the query refuses connections of the receiver, too. */
  refusal: '/peer/refusal',
  /** Asks whether the database answers the receiver. The query is the life that asks. */
  database: '/peer/database',
} as const;

/** Of the hop `instance`. Source: ADR 170. */
export const INSTANCE_PATHS = {
  /** Opens a conversation with an instance, which lasts as long as the answer. */
  conversation: '/peer/conversation',
  exchange: '/peer/exchange',
  notification: '/peer/notification',
  /** The answer of a client to a question of the backend. */
  reply: '/peer/reply',
} as const;

/** TLS 1.3 has no external pre-shared keys in Node. */
export const PEER_TLS = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
} as const;

/** The identity of a pre-shared key begins with this; the id of its secret follows. */
export const PSK_IDENTITY = 'stagedoor ';

/** Questions of one conversation that its client has not answered. */
export const MAX_QUESTIONS = 1_000;
