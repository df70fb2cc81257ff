// The value of an aggregate session: that of a new session, and the check whether a session may be made again from its value.

import { isDeepStrictEqual } from 'node:util';
import { sessionEnded, sessionLost } from '../../../domain/errors/session-errors.ts';
import type { ClientProfile, Owner } from '../../../domain/mcp/client.ts';
import type { Handshake } from '../../../domain/mcp/mcp.ts';
import {
  type AggregateSessionValue,
  SESSION_VERSION,
  storedHandshakeOf,
} from '../../../domain/sessions/session-value.ts';

const NO_SUBSCRIPTIONS: AggregateSessionValue['uris'] = Object.freeze({});

/** True where sessions with this template may be recovered elsewhere whatever they called. */
export type MovesUnsafe = (template: string) => boolean;

/** The value of a new session. `handshake`: the result that its client gets. */
export function newAggregateSession(
  owner: Owner,
  profile: ClientProfile,
  handshake: Handshake,
  view?: string,
): AggregateSessionValue {
  const { id: ownerId, templates } = owner;
  const restriction = templates === undefined ? {} : { templates: [...templates] };
  const greeted = storedHandshakeOf(handshake);
  const common = {
    version: SESSION_VERSION,
    ownerId,
    ...restriction,
    profile,
    greeted,
    uris: NO_SUBSCRIPTIONS,
  } as const;
  return view === undefined ? { ...common, kind: 'all' } : { ...common, kind: 'view', view };
}

/** The view of the session; undefined for one with all templates. */
export function viewIdOf(value: AggregateSessionValue): string | undefined {
  return value.kind === 'view' ? value.view : undefined;
}

/** True when the owner may use the templates that it could use when the session was opened. */
export function isAllowedFor({ templates }: AggregateSessionValue, owner: Owner): boolean {
  return isDeepStrictEqual(templates && new Set(templates), owner.templates);
}

/** False when a session with one of its templates made a call that is not safe to repeat, or may not move at all. */
export function isAggregateRecoverable(
  { unsafeIn = [] }: AggregateSessionValue,
  movesUnsafe: MovesUnsafe,
): boolean {
  return unsafeIn.every(movesUnsafe);
}

/** The handshake result that its client got. Throws SESSION_NOT_FOUND. */
export function checkRecoverable(value: AggregateSessionValue, owner: Owner, movesUnsafe: MovesUnsafe) {
  const { endReason, greeted } = value;
  if (endReason !== undefined) throw sessionEnded(endReason);
  if (greeted === undefined) throw sessionLost('it was never open');
  if (value.ownerId !== owner.id || !isAllowedFor(value, owner)) throw sessionEnded('rightsChanged');
  if (!isAggregateRecoverable(value, movesUnsafe)) throw sessionLost('a backend does not know it any more');
  return greeted;
}
