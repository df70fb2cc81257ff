// Views of an instance actor for its handle (instance-ref.ts): state and status from one snapshot, and streams of their changes.

import {
  catchError,
  defer,
  distinctUntilChanged,
  endWith,
  from,
  map,
  type Observable,
  of,
  shareReplay,
  startWith,
  takeWhile,
} from 'rxjs';
import type { Ejection } from '../../balancing/outliers.ts';
import {
  type InstanceDefinition,
  type InstanceSnapshot,
  type InstanceState,
  TRANSPORT_TRAITS,
} from '../../domain/instance.ts';
import { counted } from '../../domain/text.ts';
import type { TransportDiagnostics } from '../../transports/transport.ts';
import type { InstanceActor, InstanceMachineSnapshot } from './instance.machine.ts';
import type { SessionLink } from './session.ts';

export function stateOf(snapshot: InstanceMachineSnapshot): InstanceState {
  if (snapshot.status !== 'active') return 'stopped';
  const { connection, duty } = snapshot.value;
  if (duty !== 'serving') return 'draining';
  if (typeof connection === 'string') return connection === 'ended' ? 'stopped' : 'unhealthy';
  const { connected } = connection;
  if (connected === 'connecting') return 'starting';
  return typeof connected === 'object' && 'healthy' in connected ? 'healthy' : 'unhealthy';
}

/** Why it is not healthy; null while it is, also after one failed probe. */
export function unhealthyReason(snapshot: InstanceMachineSnapshot): string | null {
  return stateOf(snapshot) === 'healthy' ? null : snapshot.context.reason;
}

/** True while everything is closed for a requested restart; also when it leaves. */
export function isReopening({ value }: InstanceMachineSnapshot): boolean {
  const { connection } = value;
  if (typeof connection === 'string') return connection === 'clearing';
  return connection.connected === 'ending';
}

export function snapshotOf(
  snapshot: InstanceMachineSnapshot,
  score: number,
  ejection: Ejection | undefined,
): InstanceSnapshot {
  const { definition, link, starting, statistics, calls, stderr } = snapshot.context;
  const state = stateOf(snapshot);
  const diagnostics = link === undefined ? starting?.() : link.transport.diagnostics();
  const { stderr: output = [] } = diagnostics ?? {};
  return {
    id: definition.id,
    serverId: definition.serverId,
    template: definition.template,
    state,
    healthy: state === 'healthy',
    inFlight: calls.carried + calls.reserved,
    weight: definition.weight,
    score,
    latencyMs: calls.latencyMs ?? null,
    consecutiveFailures: statistics.failures,
    lastCheck: statistics.checkedAtMs === undefined ? null : isoTime(statistics.checkedAtMs),
    ejection: ejection === undefined ? null : { reason: ejection.reason, until: isoTime(ejection.untilMs) },
    reason: unhealthyReason(snapshot) ?? (link === undefined ? startingReason(diagnostics) : null),
    restarts: Math.max(0, statistics.sessions - 1),
    era: link?.peer.era ?? null,
    pid: diagnostics?.pid ?? null,
    // While a program that is started again is silent, the lines of the last one say why it ended.
    stderr: link !== undefined || output.length > 0 ? output : stderr,
    ...foundTransportOf(definition, link),
  };
}

/** An HTTP server may turn out to speak the transport before Streamable HTTP. */
function foundTransportOf(
  { transport }: InstanceDefinition,
  link: SessionLink | undefined,
): Pick<InstanceSnapshot, 'foundTransport'> {
  const found = link?.transport.kind ?? transport;
  const isOther = found !== transport && TRANSPORT_TRAITS[found].isNetworked;
  return isOther ? { foundTransport: found } : {};
}

/** The output of a starting program instead of an answer, as a clause; null while it is silent. */
function startingReason({ unmatchedLines = 0 }: Partial<TransportDiagnostics> = {}): string | null {
  return unmatchedLines > 0
    ? `it is still starting, and wrote ${counted(unmatchedLines, 'line')} other than JSON-RPC`
    : null;
}

function isoTime(monotonicMs: number): string {
  return new Date(performance.timeOrigin + monotonicMs).toISOString();
}

/** The states of an instance. Shared: each snapshot of the actor is read once, not once per subscriber. */
export function statesOf(actor: InstanceActor): Observable<InstanceState> {
  return defer(() => from(actor).pipe(startWith(actor.getSnapshot()))).pipe(
    map(stateOf),
    distinctUntilChanged(),
    catchError(() => of('stopped' as const)),
    endWith('stopped' as const),
    takeWhile((state) => state !== 'stopped', true),
    shareReplay({ bufferSize: 1, refCount: true }),
  );
}
