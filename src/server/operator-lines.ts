// The lines of the log for operators: lines and warnings about the registry at a start, and about the database while it is away.

import type { Logger } from 'pino';
import { distinctUntilChanged, type Observable, type Subscription, skip, startWith } from 'rxjs';
import type { Auth } from '../auth/auth.ts';
import type { GatewayAddress } from '../domain/accounts/resource.ts';
import type { SyncReport } from '../domain/instances/found-instances.ts';
import { runsAnywhere } from '../domain/nodes/nodes.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';

/** One line when clients have grants for another address of the gateway than the present one: their tokens are refused. */
export async function foreignGrants(grants: Auth['grants'], address: GatewayAddress): Promise<string[]> {
  const found = (await grants?.list()) ?? [];
  const foreign = found.filter(({ grant }) => address.pathOf(grant.resource) === undefined);
  const [first] = foreign;
  if (first === undefined) return [];
  const former = URL.parse(first.grant.resource)?.origin ?? first.grant.resource;
  return [
    `the address of the gateway is ${address.issuer}: ${foreign.length} of ${found.length} grants of MCP clients end, which were made at ${former}; their users have to sign in again, or set public_url: ${former}`,
  ];
}

/** One line for each node whose programs are listed here but do not run here. */
export function foreignPrograms(gateway: Gateway, nodeId: string): string[] {
  const all = gateway.templates().flatMap((template) => gateway.template(template).instances);
  const foreign = all.filter(
    ({ nodeId: runner = nodeId, locked }) =>
      locked !== undefined || (runner !== nodeId && !runsAnywhere({ nodeId: runner })),
  );
  const byNode = Map.groupBy(foreign, ({ locked, nodeId: runner }) => locked ?? runner);
  return [...byNode].map(([why, definitions]) => {
    const names = definitions.map(({ template, id }) => `${template}/${id}`);
    const [first = ''] = names;
    const which = names.length === 1 ? first : `${first} and ${names.length - 1} more`;
    if (definitions[0]?.locked !== undefined) return `${which} cannot be started: ${why}`;
    return `the node "${why}" runs ${which}, this node does not; if that node is gone, start with "--node-id ${why}" here`;
  });
}

/** The numbers of instances that a sync added, changed and so on, by these words. */
export function countsOf({
  added,
  changed,
  removed,
  unchanged,
  skipped,
}: SyncReport): Record<string, number> {
  const lists = Object.entries({ added, changed, removed, unchanged, skipped });
  return Object.fromEntries(lists.map(([name, { length }]) => [name, length]));
}

/** A line for each unusable entry, and for each problem of the source. */
export function syncLines(source: string, problems: readonly string[], { skipped }: SyncReport): string[] {
  const skips = skipped.map(({ template, name, reason }) => `${template}/${name} is skipped: ${reason}`);
  return [...problems, ...skips].map((line) => `${source}: ${line}`);
}

/** Logs once when the database becomes unavailable, with the reason, and once when it is available again. */
export function logDatabase(
  storeChanges$: Observable<RevisionChange>,
  log: Pick<Logger, 'info' | 'error'>,
): Subscription {
  return storeChanges$
    .pipe(
      startWith({ kind: 'answered' } as const),
      distinctUntilChanged((before, now) => (before.kind === 'away') === (now.kind === 'away')),
      skip(1),
    )
    .subscribe((change) => {
      if (change.kind === 'away')
        log.error(
          { reason: change.reason },
          'the database is unavailable; known callers and instances are still served',
        );
      else log.info('the database is available again');
    });
}
