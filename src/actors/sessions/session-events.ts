// The fields of events of open sessions.

import { eventOf } from '../../domain/events.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { sessionFingerprint } from '../../domain/sessions/session-fingerprint.ts';
import type { SessionValue } from '../../domain/sessions/session-value.ts';
import type { Clock } from '../../domain/time/clock.ts';

interface ReportedSession {
  readonly id: string;
  readonly ownerId: string;
  readonly instance: Pick<InstanceDefinition, 'template' | 'id' | 'serverId'>;
}

type Place = NonNullable<SessionValue['binding']>;

/** The fields of every event of an open session. */
export function sessionEventOf({ id, ownerId, instance }: ReportedSession, clock: Pick<Clock, 'wall'>) {
  return { ...eventOf(clock, instance), session: sessionFingerprint(id), principal: ownerId };
}

/** `left`: where it was bound before. */
export function sessionMoved(session: ReportedSession, left: Place, clock: Pick<Clock, 'wall'>) {
  const { instanceId: fromInstanceId, serverId: fromServerId } = left;
  return { type: 'session.moved', ...sessionEventOf(session, clock), fromInstanceId, fromServerId } as const;
}
