// The fields of events about open sessions.

import { eventOf } from '../../domain/events/events.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { sessionFingerprint } from '../../domain/sessions/session-fingerprint.ts';
import type { SessionValue, StoredBinding } from '../../domain/sessions/session-value.ts';
import type { Clock } from '../../domain/time/clock.ts';

interface ReportedSession {
  readonly id: string;
  readonly value: Pick<SessionValue, 'ownerId'>;
  readonly instance: Pick<InstanceDefinition, 'template' | 'id' | 'serverId'>;
}

/** The fields that every event of an open session has. */
export function sessionEventOf({ id, value, instance }: ReportedSession, clock: Clock) {
  return { ...eventOf(clock, instance), session: sessionFingerprint(id), principal: value.ownerId };
}

/** The event of a session that has moved. `left`: its previous binding. */
export function sessionMoved(session: ReportedSession, left: StoredBinding, clock: Clock) {
  const { instanceId: fromInstanceId, serverId: fromServerId } = left;
  return { type: 'session.moved', ...sessionEventOf(session, clock), fromInstanceId, fromServerId } as const;
}
