// The events that change a client's session, and pure functions from one value to the next. client-session.machine.ts decides
// about the events while the session has an actor, otherwise they change its value and its binding only (SessionState.send).

import type { Delivered } from '../../domain/errors/errors.ts';
import type { EndReason } from '../../domain/errors/session-ends.ts';
import {
  SESSION_VERSION,
  type SessionValue,
  type StoredBinding,
} from '../../domain/sessions/session-value.ts';
import type { Binding } from './binding/binding.ts';

/** The events of a session; client-session.machine.ts describes their effects. */
export type ClientSessionEvent =
  | { readonly type: 'requested' | 'listened' | 'started' | 'upgrade' | 'callEnded' | 'setIdle' }
  | { readonly type: 'end'; readonly reason: EndReason }
  | { readonly type: 'bound'; readonly binding: Binding }
  | { readonly type: 'failed'; readonly error: unknown }
  | { readonly type: 'abandon' }
  /** A call that is not safe to repeat: `unknown` before it is sent, and at its end whether it arrived. */
  | { readonly type: 'unsafeCallNoted'; readonly delivered: Delivered }
  | { readonly type: 'levelSet'; readonly level: string }
  | { readonly type: 'subscribed' | 'unsubscribed'; readonly uri: string };

const NO_SUBSCRIPTIONS: readonly string[] = Object.freeze([]);

/** The value of a new session. */
export function newSession(
  template: string,
  ownerId: string,
  profile: SessionValue['profile'],
): SessionValue {
  return {
    version: SESSION_VERSION,
    kind: 'template',
    template,
    ownerId,
    profile,
    unsafe: 'no',
    uris: NO_SUBSCRIPTIONS,
  };
}

/**
 * The value of the session after this event; the same object if the event changes nothing of it. The mark `unsafe` depends on the
 * calls under way, which only the machine counts.
 */
export function valueAfter(before: SessionValue, event: ClientSessionEvent): SessionValue {
  const { uris } = before;
  switch (event.type) {
    case 'bound':
      return boundTo(before, event.binding);
    case 'end':
      return { ...before, endReason: event.reason };
    case 'levelSet':
      return { ...before, logLevel: event.level };
    case 'subscribed':
      return uris.includes(event.uri) ? before : { ...before, uris: [...uris, event.uri] };
    case 'unsubscribed':
      return { ...before, uris: uris.filter((uri) => uri !== event.uri) };
    default:
      return before;
  }
}

/** The value of the session with this binding. */
function boundTo(before: SessionValue, binding: Binding): SessionValue {
  const { greeted = binding.storedHandshake } = before;
  const { storedBinding } = binding;
  // A session that was read again, and is bound where it was, has not changed: its row is not written.
  return isSameBinding(before.binding, storedBinding)
    ? before
    : { ...before, greeted, binding: storedBinding };
}

function isSameBinding(
  last: StoredBinding | undefined,
  { instanceId, serverId, isShared }: StoredBinding,
): boolean {
  return last?.instanceId === instanceId && last.serverId === serverId && last.isShared === isShared;
}

/**
 * The binding, in its stored form, that the session has left by its move to this one; undefined if it has not moved. `from`: its
 * binding before, which a recovered session does not have. `stored`: the binding in its value before.
 */
export function leftBinding(
  from: Binding | undefined,
  stored: StoredBinding | undefined,
  { ref }: Binding,
): StoredBinding | undefined {
  const isSame = from === undefined ? stored?.serverId === ref.serverId : from.ref === ref;
  return isSame ? undefined : stored;
}
