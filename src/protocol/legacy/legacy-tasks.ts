// Requests about tasks in legacy sessions: an owner reaches its tasks from any of its sessions, and no tasks of other owners. A
// legacy server distinguishes sessions; other servers know only the id of the task.

import { catchError, defer, finalize, type MonoTypeOperatorFunction, map, type Observable, of } from 'rxjs';
import { hasCode } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest, FinalEvent } from '../../domain/exchange.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import { TASKS_EXTENSION } from '../../domain/mcp.ts';
import { splitInstance, withAggregateInstance } from '../aggregate/aggregate-names.ts';
import { localAnswer } from '../aggregate/aggregate-requests.ts';
import { innerSessionLost } from '../aggregate/aggregate-session.ts';
import type { Backends, McpSession, Owner } from '../ports.ts';
import { isTaskId, type TaskMemory } from '../task-memory.ts';
import { exchangeInSession, withSessionMetadata } from './legacy-over-modern.ts';

export interface SessionPath {
  readonly owner: Owner;
  /** Undefined for all templates together. */
  readonly template: string | undefined;
  readonly backends: Backends;
}

export class LegacyTasks {
  readonly #memory: TaskMemory;

  constructor(memory: TaskMemory) {
    this.#memory = memory;
  }

  /**
   * Carries a request about tasks: in the session itself where its owner began the task there, or the task is unknown; else
   * outside of the session, to the instance that runs the task. Cold; errors are those of exchangeInSession.
   */
  exchange(request: ExchangeRequest, session: McpSession, path: SessionPath): Observable<Answer> {
    const taskId = request.params?.taskId;
    if (request.method === 'tasks/list' && session.peer.era !== 'legacy') return of(NO_LIST);
    if (request.method === 'tasks/list' || !isTaskId(taskId)) return exchangeInSession(session, request);
    const scope = { ownerId: path.owner.id, template: path.template };
    return defer(() => {
      const known = this.#memory.instancesOf(scope, taskId);
      const instanceId = known.findLast((id) => session.at(id) !== undefined) ?? known.at(-1);
      if (instanceId !== undefined) return at(instanceId, request, session, path);
      return this.#memory.isOthers(scope, taskId) ? of(UNKNOWN) : exchangeInSession(session, request);
    });
  }

  /** Remembers the task that a request begins; undefined for a request that cannot begin any. */
  following(
    { method, params }: ExchangeRequest,
    { ownerId, profile }: McpSession,
    template: string | undefined,
  ): MonoTypeOperatorFunction<Answer> | undefined {
    const mayBegin =
      method === 'tools/call' && (params?.task !== undefined || takesTasks(profile.capabilities));
    return mayBegin ? this.#memory.following({ ownerId, template }) : undefined;
  }
}

/** The call counts for the session on either way: the session is not parked meanwhile, and its end waits for the call. */
function at(
  instanceId: string,
  request: ExchangeRequest,
  session: McpSession,
  { owner, template, backends }: SessionPath,
): Observable<Answer> {
  const there = session.at(instanceId);
  const options = { owner, profile: session.profile, instanceId };
  const answers$ =
    there === undefined
      ? backends.exchange(withSessionMetadata(request, session), options)
      : within(there, request, template === undefined ? splitInstance(instanceId)?.template : undefined);
  return answers$.pipe(finalize(session.carry()));
}

/** `inner`: the template of the session, when it is a part of one with all templates. */
function within(there: McpSession, request: ExchangeRequest, inner: string | undefined): Observable<Answer> {
  const answers$ = exchangeInSession(there, request);
  if (inner === undefined) return answers$;
  return answers$.pipe(
    map(withAggregateInstance(inner)),
    catchError((thrown: unknown) => {
      throw hasCode(thrown, 'SESSION_NOT_FOUND') ? innerSessionLost(thrown) : thrown;
    }),
  );
}

/** True for a client that a server of the modern era may answer with a task though it asked for none. Source: SEP-2663. */
function takesTasks({ extensions }: JsonObject): boolean {
  return isJsonObject(extensions) && extensions[TASKS_EXTENSION] !== undefined;
}

const UNKNOWN = refusal({ code: RPC.invalidParams, message: 'Unknown task' });
/** Source: SEP-2663, which removed it: nothing but the id tells callers apart. */
const NO_LIST = refusal({ code: RPC.methodNotFound, message: 'Method not found' });

function refusal(error: JsonRpcError): Answer {
  const event: FinalEvent = { kind: 'error', error };
  return localAnswer(event);
}
