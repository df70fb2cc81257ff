// The state of a client's session, the events that change it, and pure functions from one state to the next.
// client-session.machine.ts applies them while the session has an actor, client-session.ts otherwise.

import type { Delivered } from '../../domain/errors/errors.ts';
import type { EndReason } from '../../domain/errors/session-ends.ts';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import {
  SESSION_VERSION,
  type SessionValue,
  type StoredBinding,
} from '../../domain/sessions/session-value.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TemplateGroup } from '../template-group.ts';
import type { Binding } from './binding.ts';

/**
 * The state of a session. It is in the context of the actor while the session has one; before the first request, and
 * when idle or ended, the session keeps only this.
 */
export interface SessionState {
  readonly value: SessionValue;
  /** The present or last binding; undefined before the first one, and after the session was recovered from its row. */
  readonly binding: Binding | undefined;
}

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

/** The state of the session with this binding. */
export function boundTo<S extends SessionState>(before: S, binding: Binding): S {
  const { greeted = binding.storedHandshake } = before.value;
  const { storedBinding } = binding;
  // A session that was read again, and is bound where it was, has not changed: its row is not written.
  const value = isSameBinding(before.value.binding, storedBinding)
    ? before.value
    : { ...before.value, greeted, binding: storedBinding };
  return { ...before, value, binding };
}

function isSameBinding(
  last: StoredBinding | undefined,
  { instanceId, serverId, isShared }: StoredBinding,
): boolean {
  return last?.instanceId === instanceId && last.serverId === serverId && last.isShared === isShared;
}

/** The value of the previous binding if the session has moved; undefined if it has not. */
export function previousBinding(
  { value, binding: before }: SessionState,
  { ref }: Binding,
): StoredBinding | undefined {
  const isSame = before === undefined ? value.binding?.serverId === ref.serverId : before.ref === ref;
  return isSame ? undefined : value.binding;
}

/** The value of the session after its end. */
export function endedBy(value: SessionValue, reason: EndReason): SessionValue {
  return { ...value, endReason: reason };
}

/** False when the session must stay at its instance, because calls may not be made again at another one. */
export function mayMove({ unsafe }: SessionValue, { policy }: TemplateGroup): boolean {
  const { sessionFailover } = policy;
  return sessionFailover === 'always' || (sessionFailover === 'auto' && unsafe === 'no');
}

/** True when another instance could serve the client. */
export function hasOtherCandidates(group: TemplateGroup, than: InstanceRef): boolean {
  return group.pool.candidates.some((candidate) => candidate !== than);
}

/**
 * True when the session can be recovered after the end of its node and of the programs that the node ran. A
 * session that shared a networked backend has lost nothing while that backend is registered; any other has to open a
 * new conversation, as if it moved.
 */
export function isRecoverable(value: SessionValue, group: TemplateGroup): boolean {
  const { binding } = value;
  const instance = binding && group.byId.get(binding.instanceId);
  const isIntact = binding?.isShared === true && instance !== undefined && isNetworked(instance.definition);
  return isIntact || mayMove(value, group);
}

/**
 * Whether calls have to wait until the mark `unsafe` is stored. A session with one template that never moves
 * needs no mark.
 */
export function needsMark({ sessionFailover }: TemplateGroup['policy'], isPart: boolean): boolean {
  return sessionFailover === 'auto' || (isPart && sessionFailover === 'never');
}
