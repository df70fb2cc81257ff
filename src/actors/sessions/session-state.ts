// What a session of a client is, what happens to it, and pure functions from one state to the next.
// client-session.machine.ts applies them while the session has an actor, client-session.ts otherwise.

import type { Delivered } from '../../domain/errors/errors.ts';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import type { EndReason } from '../../domain/sessions/session-ends.ts';
import { SESSION_VERSION, type SessionValue } from '../../domain/sessions/session-value.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TemplateGroup } from '../template-group.ts';
import type { Binding } from './binding.ts';

/**
 * What a session is. While it has an actor, this is in the context of that; before the first request, parked and
 * ended it is only this.
 */
export interface SessionState {
  readonly value: SessionValue;
  /** The present binding, or the last one; undefined before the first, and after the session was read again. */
  readonly binding: Binding | undefined;
}

/** What happens to a session; client-session.machine.ts has their effects. */
export type ClientSessionEvent =
  | { readonly type: 'lost' | 'requested' | 'started' | 'upgrade' | 'callEnded' | 'park' }
  | { readonly type: 'end'; readonly reason: EndReason }
  | { readonly type: 'bound'; readonly binding: Binding }
  | { readonly type: 'failed'; readonly error: unknown }
  | { readonly type: 'abandoned' }
  /** A call that is not safe to repeat: `unknown` before it is sent, and at its end whether it arrived. */
  | { readonly type: 'unsafe'; readonly delivered: Delivered }
  | { readonly type: 'levelSet'; readonly level: string }
  | { readonly type: 'subscribed' | 'unsubscribed'; readonly uri: string };

const NO_URIS: readonly string[] = Object.freeze([]);

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
    uris: NO_URIS,
  };
}

/** The session with this binding. */
export function boundTo<S extends SessionState>(before: S, binding: Binding): S {
  const { greeted = binding.greeted } = before.value;
  const { place } = binding;
  // A session that was read again, and is bound where it was, has not changed: its row is not written.
  const value = isPlace(before.value.binding, place)
    ? before.value
    : { ...before.value, greeted, binding: place };
  return { ...before, value, binding };
}

function isPlace(
  last: SessionValue['binding'],
  { instanceId, serverId, isShared }: Binding['place'],
): boolean {
  return last?.instanceId === instanceId && last.serverId === serverId && last.isShared === isShared;
}

/** The place of the binding before, if the session has moved from there. */
export function placeLeft(
  { value, binding: before }: SessionState,
  { ref }: Binding,
): SessionValue['binding'] {
  const isSame = before === undefined ? value.binding?.serverId === ref.serverId : before.ref === ref;
  return isSame ? undefined : value.binding;
}

/** The session after its end. */
export function endedBy(value: SessionValue, reason: EndReason): SessionValue {
  return { ...value, endReason: reason };
}

/** False when its calls under way, or those before, may not be made again at another instance. */
export function mayMove({ unsafe }: SessionValue, { policy }: Pick<TemplateGroup, 'policy'>): boolean {
  const { sessionFailover } = policy;
  return sessionFailover === 'always' || (sessionFailover === 'auto' && unsafe === 'no');
}

/** Another instance could serve its client. */
export function hasOthers(group: Pick<TemplateGroup, 'pool'>, than: InstanceRef): boolean {
  return group.pool.candidates.some((candidate) => candidate !== than);
}

/**
 * True when the session can be recovered after the end of its node, and of the programs that the node ran: where it shared a
 * backend that is still there it has lost nothing; elsewhere it has to open another conversation, as if it moved.
 */
export function outlivesNode(value: SessionValue, group: TemplateGroup): boolean {
  const { binding } = value;
  const definition = group.instances.get(binding?.instanceId ?? '')?.definition;
  const isIntact = binding?.isShared === true && definition !== undefined && isNetworked(definition);
  return isIntact || mayMove(value, group);
}

/** Whether calls of a session have to wait for its mark. A session with one template that never moves needs none. */
export function needsMark({ sessionFailover }: TemplateGroup['policy'], isPart: boolean): boolean {
  return sessionFailover === 'auto' || (isPart && sessionFailover === 'never');
}
