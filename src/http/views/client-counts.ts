// How the numbers of MCP clients look: their sessions, and the processes that run for single ones of them.
// What is counted, and when, is actors/client-metrics.ts.

import Type, { type Static } from 'typebox';
import { type ClientCounts, sumOf } from '../../actors/client-metrics.ts';
import { mayUse, type Principal } from '../../domain/account.ts';
import type { ClientStats } from '../../gateway-types.ts';

/** Schema of the sessions of all templates. `ended` includes `lost`; `parked` is null for those who see a part only. */
export const SessionCounts = Type.Object({
  open: Type.Integer(),
  parked: Type.Union([Type.Integer(), Type.Null()]),
  max: Type.Integer(),
  opened: Type.Integer(),
  ended: Type.Integer(),
  lost: Type.Integer(),
  moved: Type.Integer(),
});
export type SessionCounts = Static<typeof SessionCounts>;

/** Schema of the processes of single clients. */
export const OwnProcessCounts = Type.Object({
  running: Type.Integer(),
  started: Type.Integer(),
  lost: Type.Integer(),
});
export type OwnProcessCounts = Static<typeof OwnProcessCounts>;

/** What a viewer may see of them. */
export interface VisibleClients extends Omit<ClientStats, 'parkedSessions'> {
  readonly parkedSessions: number | null;
}

/** The counts of their templates. Which of those have parked sessions is counted nowhere. */
export function visibleClients(stats: ClientStats, viewer: Principal): VisibleClients {
  if (viewer.templates === undefined) return stats;
  const templates = [...stats.templates].filter(([template]) => mayUse(viewer, template));
  return { maxSessions: stats.maxSessions, parkedSessions: null, templates: new Map(templates) };
}

/** Both blocks, over all templates that are seen. */
export function clientTotals({ parkedSessions, maxSessions, templates }: VisibleClients): {
  readonly sessions: SessionCounts;
  readonly own_processes: OwnProcessCounts;
} {
  const { sessions, ownProcesses } = sumOf(templates.values());
  const { open, ...since } = sessions;
  return {
    sessions: { open, parked: parkedSessions, max: maxSessions, ...since },
    own_processes: { ...ownProcesses },
  };
}

/** What clients have at one template now. */
export function clientsOf({ templates }: VisibleClients, template: string) {
  const counts: ClientCounts | undefined = templates.get(template);
  return {
    sessions: counts?.sessions.open ?? 0,
    own_processes: counts?.ownProcesses.running ?? 0,
  };
}
