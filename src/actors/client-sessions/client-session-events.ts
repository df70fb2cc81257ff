// What is told of the sessions of MCP clients. When it is told is client-sessions.ts's business.

import type { Ending, GatewayEvent } from '../../domain/events.ts';
import { eventOf } from '../instances/instance-events.ts';
import { sessionFingerprint } from '../session-fingerprint.ts';
import type { ClientSession } from './client-session.ts';
import type { SessionInstance } from './client-session-types.ts';

type Told = Pick<ClientSession, 'id' | 'ownerId'>;

/** That there is one more, at this instance. */
export function openedEvent(session: Told, at: SessionInstance): GatewayEvent {
  return { type: 'session.opened', ...factFor(session, at) };
}

/** That it went to another instance. */
export function movedEvent(session: Told, from: SessionInstance, to: SessionInstance): GatewayEvent {
  return {
    type: 'session.moved',
    ...factFor(session, to),
    fromInstanceId: from.id,
    fromServerId: from.serverId,
  };
}

/** That it is over. `at`: where it was last. */
export function endedEvent(session: Told, at: SessionInstance, ending: Ending): GatewayEvent {
  return { type: 'session.ended', ...factFor(session, at), ...ending };
}

function factFor({ id, ownerId }: Told, at: SessionInstance) {
  return { ...eventOf(at), session: sessionFingerprint(id), principal: ownerId };
}
