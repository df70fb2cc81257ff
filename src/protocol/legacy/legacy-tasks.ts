// Requests about tasks in legacy sessions: an owner reaches its tasks from any of its sessions, and no tasks of other owners. A
// legacy server distinguishes sessions; other servers know only the id of the task.

import {
  catchError,
  defer,
  finalize,
  type MonoTypeOperatorFunction,
  map,
  type Observable,
  of,
  switchMap,
  tap,
} from 'rxjs';
import { asGatewayError, hasCode } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest, FinalEvent } from '../../domain/exchange.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import { TASKS_EXTENSION } from '../../domain/mcp.ts';
import { splitInstance, withAggregateInstance } from '../aggregate/aggregate-names.ts';
import { localAnswer } from '../aggregate/aggregate-requests.ts';
import { innerSessionLost } from '../aggregate/aggregate-session.ts';
import type { Backends, McpSession, Owner } from '../ports.ts';
import { isTaskId, isTaskMethod, NOT_FOUND, type TaskFinder } from '../task-finder.ts';
import { exchangeInSession, metaOf, withSessionMetadata } from './legacy-over-modern.ts';

export interface SessionPath {
  readonly owner: Owner;
  /** Undefined for all templates together. */
  readonly template: string | undefined;
  readonly backends: Backends;
}

interface TaskRequest extends SessionPath {
  readonly request: ExchangeRequest;
  readonly session: McpSession;
}

export class LegacyTasks {
  readonly #finder: TaskFinder;

  constructor(finder: TaskFinder) {
    this.#finder = finder;
  }

  /**
   * Carries a request about tasks: in the session itself where its owner has the task there, or the task is unknown; else
   * outside of the session, to the instance that runs the task. Cold; errors are those of exchangeInSession, and QUEUE_FULL when too
   * many searches run.
   */
  exchange(request: ExchangeRequest, session: McpSession, path: SessionPath): Observable<Answer> {
    const query = { ...path, request, session };
    const { owner, template, backends } = path;
    const taskId = request.params?.taskId;
    if (request.method === 'tasks/list' || !isTaskId(taskId)) return this.#here(query);
    return defer(() => {
      const known = this.#finder.memory.all({ ownerId: owner.id, template }, taskId);
      const location = known.findLast((instanceId) => session.at(instanceId) !== undefined) ?? known.at(-1);
      if (location !== undefined) return this.#at(location, query);
      const meta = metaOf(request, session);
      const found$ = this.#finder.search({ taskId, owner, template, backends, meta });
      if (found$ === undefined) return this.#here(query);
      return found$.pipe(
        switchMap((result) => {
          if (typeof result === 'string') return this.#at(result, query);
          // The search asked the conversation of the session, too.
          const wasAsked = session.peer.era === 'modern' && session.isShared;
          return result === NOT_FOUND && wasAsked ? of(localAnswer(UNKNOWN)) : this.#here(query);
        }),
      );
    });
  }

  /** The request, refused at an instance where it is about a task of another owner, or lists the tasks of all. */
  withTaskCheck(
    request: ExchangeRequest,
    session: McpSession,
    template: string | undefined,
  ): ExchangeRequest {
    const { method, params } = request;
    if (!isTaskMethod(method)) return request;
    if (method === 'tasks/list') {
      return { ...request, refusedAt: () => (session.peer.era === 'legacy' ? undefined : NO_LIST) };
    }
    const taskId = params?.taskId;
    if (!isTaskId(taskId)) return request;
    const scope = { ownerId: session.ownerId, template };
    const isOthers = (instanceId: string) => this.#finder.memory.isOthers(scope, taskId, instanceId);
    return { ...request, refusedAt: (instanceId) => (isOthers(instanceId) ? UNKNOWN : undefined) };
  }

  /** Remembers the task that a request begins; undefined for a request that cannot begin any. */
  following(
    { method, params }: ExchangeRequest,
    { ownerId, profile }: McpSession,
    template: string | undefined,
  ): MonoTypeOperatorFunction<Answer> | undefined {
    const mayBegin =
      method === 'tools/call' && (params?.task !== undefined || takesTasks(profile.capabilities));
    return mayBegin ? this.#finder.memory.following({ ownerId, template }) : undefined;
  }

  #here({ request, session, template }: TaskRequest): Observable<Answer> {
    return exchangeInSession(session, this.withTaskCheck(request, session, template));
  }

  /** The call counts for the session on either path: the session is not parked meanwhile, and its end waits for the call. */
  #at(location: string, query: TaskRequest): Observable<Answer> {
    const { session } = query;
    const there = session.at(location);
    const answers$ =
      there === undefined ? this.#elsewhere(location, query) : this.#within(there, location, query);
    return answers$.pipe(finalize(session.carry()));
  }

  #within(there: McpSession, location: string, { request, template }: TaskRequest): Observable<Answer> {
    const own = template === undefined ? splitInstance(location)?.template : undefined;
    const answers$ = exchangeInSession(there, this.withTaskCheck(request, there, template ?? own));
    if (own === undefined) return answers$;
    return answers$.pipe(
      map(withAggregateInstance(own)),
      catchError((thrown: unknown) => {
        throw hasCode(thrown, 'SESSION_NOT_FOUND') ? innerSessionLost(thrown) : thrown;
      }),
    );
  }

  /** When the instance is gone, or cannot be reached, another instance of the template may have the task. */
  #elsewhere(instanceId: string, query: TaskRequest): Observable<Answer> {
    const { request, session, owner, backends } = query;
    const { profile } = session;
    let isAnswering = false;
    return backends.exchange(withSessionMetadata(request, session), { owner, profile, instanceId }).pipe(
      tap(() => {
        isAnswering = true;
      }),
      catchError((thrown: unknown) => {
        if (isAnswering || !mayBeElsewhere(thrown, query)) throw thrown;
        return this.#here(query);
      }),
    );
  }
}

/** At the path of a template another instance may have the task; for all templates together the task is lost with its instance. */
function mayBeElsewhere(thrown: unknown, { template }: SessionPath): boolean {
  if (hasCode(thrown, 'SERVER_NOT_FOUND')) return true;
  return template !== undefined && asGatewayError(thrown).delivered === 'no';
}

/** True for a client that a server of the modern era may answer with a task though it asked for none. Source: SEP-2663. */
function takesTasks({ extensions }: JsonObject): boolean {
  return isJsonObject(extensions) && extensions[TASKS_EXTENSION] !== undefined;
}

const UNKNOWN = refusal({ code: RPC.invalidParams, message: 'Unknown task' });
/** Source: SEP-2663, which removed it: nothing but the id tells callers apart. */
const NO_LIST = refusal({ code: RPC.methodNotFound, message: 'Method not found' });

function refusal(error: JsonRpcError): FinalEvent {
  return { kind: 'error', error };
}
