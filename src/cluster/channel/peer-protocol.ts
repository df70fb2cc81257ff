// What both ends of the peer channel have in common: the names of headers and paths, and bounds. Source: ADR 148.

import { NOT_HOLDER, REFUSED_HEADER } from '../../domain/nodes/forwarding.ts';

/** Headers of the channel, besides those of the client that cross. */
export const PEER_HEADERS = {
  token: 'peer-token',
  /** The kind of the hop that the request took, see Hop. */
  hops: 'peer-hops',
  clientAddress: 'peer-client-address',
  /** The RefusalReason of a request that was refused. */
  refused: REFUSED_HEADER,
} as const;

/**
 * The reasons why a node refuses a request of another one, before anything is carried out. Errors and the audit log have these
 * texts.
 */
export const PEER_REFUSAL = {
  noToken: 'no token',
  forged: 'forged token',
  expired: 'expired token',
  elsewhere: 'token for another node',
  unknownSender: 'token of an unknown sender',
  /** The request took two hops of one kind. */
  loop: 'loop',
  inDoubt: 'its life is in doubt',
  notHolder: NOT_HOLDER,
  unknown: 'a reason that this node does not know',
} as const;
export type RefusalReason = (typeof PEER_REFUSAL)[keyof typeof PEER_REFUSAL];

/** The reason that another node sent. */
export function refusalIn(text: string): RefusalReason {
  return Object.values(PEER_REFUSAL).find((reason) => reason === text) ?? PEER_REFUSAL.unknown;
}

/** A connection without a sign of life for this time, in ms, is probed by the system at each of its ends. */
export const PEER_KEEP_ALIVE_MS = 10_000;

export const PEER_PATHS = {
  /** Asks for the clock of the receiver. */
  greeting: '/peer/greeting',
  /** Asks whether the life in the query refuses connections of the receiver, too. */
  refusal: '/peer/refusal',
  /** Asks whether the database answers the receiver. The query is the life that asks. */
  database: '/peer/database',
} as const;

/** Paths of requests to an instance of the receiving node (hop `instance`). Source: ADR 170. */
export const INSTANCE_PATHS = {
  /** Opens a conversation with an instance, which lasts as long as the answer. */
  conversation: '/peer/conversation',
  exchange: '/peer/exchange',
  notification: '/peer/notification',
  /** The answer of a client to a question of the backend. */
  reply: '/peer/reply',
  /** Becomes a multiplexed connection, which exchanges share. Source: ADR 170. */
  multiplexed: '/peer/exchanges',
} as const;

/** Questions of one conversation that its client has not answered. */
export const MAX_QUESTIONS = 1_000;
