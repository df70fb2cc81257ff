// The rules of a client's session: whether it may move, could be recovered, and must be marked before a call. They are pure.

import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import type { SessionValue } from '../../domain/sessions/session-value.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';

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
