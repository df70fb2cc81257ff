// Requests about tasks in legacy sessions: an owner reaches its tasks from any of its sessions, and no tasks of other owners. A
// legacy server distinguishes sessions; other servers know only the id of the task.

import { catchError, defer, finalize, map, type Observable } from 'rxjs';
import { hasCode } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { TASKS_EXTENSION } from '../../domain/mcp.ts';
import { splitInstance, withAggregateInstance } from '../aggregate/aggregate-names.ts';
import { rpcErrorAnswer } from '../aggregate/aggregate-requests.ts';
import { innerSessionLost } from '../aggregate/aggregate-session.ts';
import type { Backends, McpSession, Owner } from '../ports.ts';
import { isTaskId, isTaskMethod, type TaskMemory, type TaskScope } from '../task-memory.ts';
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

  /** One request in a session; cold. A task that it begins is remembered. Errors are those of exchangeInSession. */
  exchange(request: ExchangeRequest, session: McpSession, path: SessionPath): Observable<Answer> {
    const { method, params } = request;
    if (isTaskMethod(method)) return this.#exchangeAbout(request, session, path);
    const answers$ = exchangeInSession(session, request);
    const mayBegin =
      method === 'tools/call' && (params?.task !== undefined || takesTasks(session.profile.capabilities));
    return mayBegin ? answers$.pipe(this.#memory.following(scopeOf(path))) : answers$;
  }

  /** In the session itself where its owner began the task there, or the task is unknown; else at the instance that runs the task. */
  #exchangeAbout(request: ExchangeRequest, session: McpSession, path: SessionPath): Observable<Answer> {
    const taskId = request.params?.taskId;
    const isList = request.method === 'tasks/list';
    // Source: SEP-2663, which removed it: nothing but the id tells callers apart.
    if (isList && session.peer.era !== 'legacy')
      return rpcErrorAnswer(RPC.methodNotFound, 'Method not found');
    if (isList || !isTaskId(taskId)) return exchangeInSession(session, request);
    return defer(() => {
      const known = this.#memory.instancesOf(scopeOf(path), taskId);
      const instanceId = known.findLast((id) => session.at(id) !== undefined) ?? known.at(-1);
      if (instanceId !== undefined) return at(instanceId, request, session, path);
      return this.#memory.isOthers(scopeOf(path), taskId)
        ? rpcErrorAnswer(RPC.invalidParams, 'Unknown task')
        : exchangeInSession(session, request);
    });
  }
}

function scopeOf({ owner, template }: SessionPath): TaskScope {
  return { ownerId: owner.id, template };
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
