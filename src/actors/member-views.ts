// Status views of the instances of a template, with their scores, which depend on the best latency in the pool.

import { bestLatencyMs, healthScore } from '../balancing/health-score.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../domain/instance.ts';
import type { Group, Member } from './group.ts';
import { InstanceRef } from './instances/instance-ref.ts';

/** An instance: its definition and its present status. */
export interface MemberView {
  readonly definition: InstanceDefinition;
  readonly snapshot: InstanceSnapshot;
}

/** The views of members of the group's template, in their order. */
export function viewsOf(members: readonly Member[], { pool }: Pick<Group, 'pool'>): MemberView[] {
  const bestMs = bestLatencyMs(pool.candidates);
  return members.map((member) => ({
    definition: member.definition,
    snapshot: snapshotOf(member, bestMs, pool),
  }));
}

/** The view of one member. */
export function viewOf(member: Member, { pool }: Pick<Group, 'pool'>): MemberView {
  const { definition } = member;
  return { definition, snapshot: snapshotOf(member, bestLatencyMs(pool.candidates), pool) };
}

function snapshotOf(member: Member, bestMs: number | undefined, pool: Group['pool']): InstanceSnapshot {
  if (!(member instanceof InstanceRef)) return member.snapshot();
  const score = Math.round(healthScore(member, bestMs) * 10) / 10;
  return member.snapshot(score, pool.ejectionOf(member));
}
