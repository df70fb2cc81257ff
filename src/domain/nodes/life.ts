// Ids of lives and sessions. A life is one start of a node. The id of a session begins with the life that opened it, and keeps
// it when another life continues the session.

const LIFE_BYTES = 6;
const SECRET_BYTES = 32;
/** A life and 256 random bits, as base64url. */
const SESSION_ID = /^([\w-]{8})[\w-]{43}$/;

/** The text in place of the life that has a session when its node stops: any life may continue the session. */
export const RELEASED = 'released';

export interface LifeEnd {
  /**
   * `refused`: its address refused connections. `expired`: no heartbeat. `restarted`: its process is gone, says
   * the next start of the node, or the supervisor of workers. `stopped`: it ended itself.
   */
  readonly cause: 'refused' | 'expired' | 'restarted' | 'stopped';
  /** The part that others may claim. `all`: no process group of its `any` programs exists any more. Source: ADR 146. */
  readonly frees: 'sessions' | 'all';
}

/** A new life: 8 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`. */
export function newLife(): string {
  return randomText(LIFE_BYTES);
}

/** A new session id of this life: the life and 43 random characters. It is a credential. */
export function newSessionId(life: string): string {
  return life + randomText(SECRET_BYTES);
}

/** The life that opened the session; undefined for text that is not a session id. */
export function lifeOf(sessionId: string): string | undefined {
  return SESSION_ID.exec(sessionId)?.[1];
}

function randomText(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('base64url');
}
