// The fingerprint that names a session in logs and events, where its id, a credential, must not appear; and the
// fields of those events.

import { hash } from 'node:crypto';
import { eventOf } from '../../domain/events.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import type { SessionValue } from '../../domain/sessions/session-value.ts';
import type { Clock } from '../../domain/time/clock.ts';

interface ReportedSession {
  readonly id: string;
  readonly ownerId: string;
  readonly instance: Pick<InstanceDefinition, 'template' | 'id' | 'serverId'>;
}

type Place = NonNullable<SessionValue['binding']>;

/** Hexadecimal digits: enough to distinguish the sessions of a day, useless as a credential. */
const DIGITS = 12;

/** The first 12 hexadecimal digits of the SHA-256 of the id: `printf %s "$ID" | sha256sum` prints them for a known id. */
export function sessionFingerprint(id: string): string {
  return hash('sha256', id).slice(0, DIGITS);
}

/** The fields of every event of an open session. */
export function sessionEventOf({ id, ownerId, instance }: ReportedSession, clock: Pick<Clock, 'wall'>) {
  return { ...eventOf(clock, instance), session: sessionFingerprint(id), principal: ownerId };
}

/** `left`: where it was bound before. */
export function sessionMoved(session: ReportedSession, left: Place, clock: Pick<Clock, 'wall'>) {
  const { instanceId: fromInstanceId, serverId: fromServerId } = left;
  return { type: 'session.moved', ...sessionEventOf(session, clock), fromInstanceId, fromServerId } as const;
}
