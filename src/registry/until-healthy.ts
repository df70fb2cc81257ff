// Waits for an instance that was just registered, for callers who want to hear of it when it serves.

import { filter, firstValueFrom, race, timer } from 'rxjs';
import type { Member } from '../actors/instance-index.ts';
import { InstanceRef } from '../actors/instances/instance-ref.ts';

/** Resolves when the instance is healthy or has stopped, at the latest after so many ms. At once for another node's. */
export async function untilHealthy(member: Member, waitMs: number): Promise<void> {
  if (!(member instanceof InstanceRef)) return;
  const settled$ = member.state$.pipe(filter((state) => state === 'healthy' || state === 'stopped'));
  await firstValueFrom(race(settled$, timer(waitMs)));
}
