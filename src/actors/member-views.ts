// The status of the instances of a template: each as it was registered and as it is now, with its score, which depends on the
// best of the pool.

import { bestLatencyMs, healthScore } from '../balancing/health-score.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../domain/instance.ts';
import type { Group, Member } from './group.ts';
import { InstanceRef } from './instances/instance-ref.ts';

/** An instance as it was registered and as it is now. */
export interface MemberView {
  readonly definition: InstanceDefinition;
  readonly snapshot: InstanceSnapshot;
}

/** Of members of the group's template, in their order. */
export function viewsOf(members: readonly Member[], { pool }: Pick<Group, 'pool'>): MemberView[] {
  const bestMs = bestLatencyMs(pool.candidates);
  return members.map((member) => ({
    definition: member.definition,
    snapshot: snapshotOf(member, bestMs, pool),
  }));
}

/** Of one of them. */
export function viewOf(member: Member, { pool }: Pick<Group, 'pool'>): MemberView {
  const { definition } = member;
  return { definition, snapshot: snapshotOf(member, bestLatencyMs(pool.candidates), pool) };
}

function snapshotOf(member: Member, bestMs: number | undefined, pool: Group['pool']): InstanceSnapshot {
  if (!(member instanceof InstanceRef)) return member.snapshot();
  const score = Math.round(healthScore(member, bestMs) * 10) / 10;
  return member.snapshot(score, pool.ejectionOf(member));
}
