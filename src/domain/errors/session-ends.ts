// The reasons for which client sessions end. Code decides by the name of a reason; its text, a clause, is for people and
// clients.

export const SESSION_ENDS = {
  closed: 'it was closed',
  /** The client ended the session: no other life recovers it, not even when it ends while the gateway stops. */
  byClient: 'its client ended it',
  byApi: 'it was ended through the API',
  disconnected: 'its client disconnected',
  idle: 'it was idle for too long',
  ownerRefused: 'its owner may no longer use it',
  rightsChanged: 'the templates that its owner may use have changed',
  viewDeleted: 'the view was deleted',
  templateDeleted: 'its template was deleted',
  placeNeeded: 'its client was away, and another one needed its place',
  processNeeded: 'its client was away, and another one needed its process',
  instanceGone: 'its instance is gone',
  shutDown: 'the gateway is shutting down',
  /** The session ends only in this life of the gateway: another life recovers it, or may do so. */
  takenOver: 'another life may continue it',
  /** Another node recovers the session. */
  drained: 'its node is drained, and another one continues it',
} as const;

export type EndReason = keyof typeof SESSION_ENDS;
