// Requests about tasks in legacy sessions. An owner reaches its tasks from each of its sessions, and never tasks of
// other owners or of tools that it may not call. Legacy servers distinguish sessions; other servers know only the id of a task.

import { catchError, defer, finalize, from as fromPromise, type Observable, switchMap, tap } from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../../domain/calls/exchange.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../domain/json/json.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { isTaskMethod, TASKS_EXTENSION } from '../../domain/mcp/mcp.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { ServedRequest } from '../endpoint-types.ts';
import { isTaskId, type KnownTasks, type TaskScope } from '../known-tasks.ts';
import { rpcErrorAnswer } from '../own-answers.ts';
import { exchangeInSession, withSessionMetadata } from './legacy-over-modern.ts';

/** Carries the requests of sessions, with what the gateway knows of their tasks. */
export class LegacyTasks {
  readonly #known: KnownTasks;
  readonly #clock: Clock;

  constructor(known: KnownTasks, clock: Clock) {
    this.#known = known;
    this.#clock = clock;
  }

  /** Carries one request in a session, and remembers a task that it begins; cold. Errors like exchangeInSession. */
  exchange(request: ExchangeRequest, session: McpSession, served: ServedRequest): Observable<SourcedEvent> {
    const { method, params } = request;
    if (isTaskMethod(method)) return this.#exchangeAboutTask(request, session, served);
    const events$ = exchangeInSession(session, request, this.#clock);
    const mayBegin =
      method === 'tools/call' &&
      (params?.task !== undefined || takesTasks(session.value.profile.capabilities));
    if (!mayBegin) return events$;
    return events$.pipe(
      tap(({ event, instanceId }) => {
        if (event.kind === 'result')
          this.#known.learn(scopeOf(served), event.result, instanceId, request.report?.tool);
      }),
    );
  }

  /**
   * Sends a request about a task: in the session itself if its owner began the task there or the task is unknown,
   * otherwise to the instance that runs the task. Refuses it for a task of another owner, or of a tool that its owner may not
   * call any more.
   */
  #exchangeAboutTask(
    request: ExchangeRequest,
    session: McpSession,
    served: ServedRequest,
  ): Observable<SourcedEvent> {
    const taskId = request.params?.taskId;
    const isList = request.method === 'tasks/list';
    // Source: SEP-2663, which removed it: nothing but the id tells callers apart.
    if (isList && session.handshake.era !== 'legacy')
      return rpcErrorAnswer(RPC.methodNotFound, 'Method not found');
    if (isList || !isTaskId(taskId)) return exchangeInSession(session, request, this.#clock);
    const scope = scopeOf(served);
    const exchange = (): Observable<SourcedEvent> => {
      const known = this.#known.instancesOf(scope, taskId);
      const here = known.findLast((id) => session.isAt(id));
      const instanceId = here ?? known.at(-1);
      if (here === undefined && instanceId !== undefined)
        return exchangeAt(request, session, served, instanceId);
      return here === undefined && this.#known.isRefused(scope, taskId)
        ? rpcErrorAnswer(RPC.invalidParams, 'Unknown task')
        : exchangeInSession(session, request, this.#clock, here);
    };
    return defer(() => {
      const asking = this.#known.untilKnown(scope, taskId);
      return asking === undefined
        ? exchange()
        : fromPromise(asking).pipe(finalize(session.hold()), switchMap(exchange));
    });
  }
}

function scopeOf({ request: { principal: owner, pathName } }: ServedRequest): TaskScope {
  return { owner, pathName };
}

/** Sends a request outside of the session, which is not idle meanwhile. */
function exchangeAt(
  request: ExchangeRequest,
  session: McpSession,
  { request: { principal: owner }, backends }: ServedRequest,
  instanceId: string,
): Observable<SourcedEvent> {
  const options = { owner, profile: session.value.profile, instanceId };
  return backends
    .exchange(withSessionMetadata(request, session), options)
    .pipe(catchError(lostWithInstance), finalize(session.hold()));
}

function lostWithInstance(thrown: unknown): Observable<SourcedEvent> {
  if (!hasCode(thrown, 'SERVER_NOT_FOUND')) throw thrown;
  return rpcErrorAnswer(RPC.invalidParams, 'Unknown task: its instance is gone');
}

/**
 * True for a client that a modern server may answer with a task although the client asked for none. Source:
 * SEP-2663.
 */
function takesTasks({ extensions }: JsonObject): boolean {
  return isJsonObject(extensions) && extensions[TASKS_EXTENSION] !== undefined;
}
