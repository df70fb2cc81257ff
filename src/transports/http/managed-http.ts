// A backend with an endpoint whose program the gateway runs: starts the program, waits until it answers, and closes the transport
// when it exits. The transport is http.ts or sse.ts, the program program-run.ts.

import { AsyncSubject, delayWhen } from 'rxjs';
import { backendUnavailable, openingCancelled } from '../../domain/errors/backend-errors.ts';
import { asGatewayError, openingFailed } from '../../domain/errors/errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import { sleep } from '../../domain/time/clock.ts';
import type { Program } from '../../programs/child-process.ts';
import { TERMINATE_MS } from '../../programs/process-group.ts';
import { type KillLadder, ProgramRun } from '../../programs/program-run.ts';
import type { OpenOfKind, OpenOptions } from '../open-options.ts';
import type { Closed, Transport } from '../transport.ts';
import { mayBeStarting } from './answers/http-failures.ts';

/** A transport to an endpoint, with a way to report that the program behind it is gone. */
export interface EndpointTransport extends Transport {
  end(closed: Closed): Promise<void>;
}

/** `withinMs`: the time for the first handshake, if some was used before. */
type OpenEndpoint = (
  definition: InstanceDefinition,
  options: OpenOptions,
  withinMs?: number,
) => Promise<EndpointTransport>;

/** Connects to `endpoint`; when the definition has a `command`, too, the gateway runs that program behind it. */
export function managed(openEndpoint: OpenEndpoint): OpenOfKind {
  return (definition, options) =>
    runsProgram(definition)
      ? openManaged(definition, options, openEndpoint)
      : openEndpoint(definition, options);
}

/** Programs that serve HTTP do not read stdin, so SIGTERM comes at once. */
const LADDER: KillLadder = { stdinEndMs: 0, terminateMs: TERMINATE_MS };

/**
 * Starts the program of a definition that has both `command` and `endpoint`, and shakes hands as soon as it listens.
 * The program gets its port in PORT unless the definition sets that. Throws BACKEND_UNAVAILABLE, `delivered:
 * 'no'`, with the last lines of stderr, and the program stopped.
 */
async function openManaged(
  definition: InstanceDefinition,
  options: OpenOptions,
  openEndpoint: OpenEndpoint,
): Promise<Transport> {
  if (options.signal.aborted) throw openingCancelled();
  const { scheduler } = options;
  const { reaper, passEnv, user } = options.programs ?? {};
  const child = new ProgramRun(programOf(definition), { ladder: LADDER, reaper, passEnv, user, scheduler });
  options.onStarted?.(() => ({ pid: child.pid, stderr: child.tail.lines }));
  const over = new AbortController();
  void child.exited.then(({ reason }) => over.abort(reason));
  try {
    return withProgram(await openWhenListening(definition, options, over.signal, openEndpoint), child);
  } catch (thrown) {
    const { aborted: hasExited, reason } = over.signal;
    await child.stop();
    await child.exited; // by then all its output was read
    const failure = hasExited ? backendUnavailable(reason, { delivered: 'no', cause: thrown }) : thrown;
    throw openingFailed(asGatewayError(failure), child.tail.lines);
  }
}

/** All members that a transport to an endpoint can have: without one of them `withProgram` does not compile. */
type WithProgram = Transport &
  Record<
    Exclude<keyof Transport, 'pid' | 'isIndependent' | 'endsAfterCall' | 'countsOwners' | 'otherCalls'>,
    unknown
  >;

function withProgram(inner: EndpointTransport, child: ProgramRun): WithProgram {
  const closed$ = new AsyncSubject<Closed>();
  void child.exited.then((end) => inner.end({ ...end, isExpected: false }));
  inner.closed$.pipe(delayWhen(() => child.stop())).subscribe(closed$);
  return {
    kind: inner.kind,
    handshake: inner.handshake,
    note: inner.note,
    messages$: inner.messages$,
    resumed$: inner.resumed$,
    closed$,
    get untilListening() {
      return inner.untilListening;
    },
    exchange: (request) => inner.exchange(request),
    notify: (...notification) => inner.notify(...notification),
    leaveEra: () => inner.leaveEra?.() === true,
    openConversation: (opening) => inner.openConversation(opening),
    diagnostics: () => ({ ...inner.diagnostics(), pid: child.pid, stderr: child.tail.lines }),
    close: async () => {
      await inner.close();
      await child.stop();
    },
  };
}

function programOf({ command = '', env, endpoint = '', ...definition }: InstanceDefinition): Program {
  const { port } = new URL(endpoint);
  return { ...definition, command, env: port === '' ? env : { PORT: port, ...env } };
}

/** Tries until the program listens, at growing intervals; any other failure is final. */
async function openWhenListening(
  definition: InstanceDefinition,
  options: OpenOptions,
  over: AbortSignal,
  openEndpoint: OpenEndpoint,
): Promise<EndpointTransport> {
  const { clock } = options;
  const giveUpAt = clock.now() + options.handshakeTimeoutMs;
  const handshakeTimeoutMs = Math.min(options.handshakeTimeoutMs, LIMITS.handshakeMs); // of later conversations
  const signal = AbortSignal.any([options.signal, over]);
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
    try {
      const leftMs = Math.max(1, giveUpAt - clock.now());
      return await openEndpoint(definition, { ...options, handshakeTimeoutMs, signal }, leftMs);
    } catch (error) {
      if (signal.aborted || !mayBeStarting(error) || clock.now() + waitMs > giveUpAt) throw error;
      await sleep(clock, waitMs);
    }
  }
}

const FIRST_WAIT_MS = 50;
const MAX_WAIT_MS = 250;
