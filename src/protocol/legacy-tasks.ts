// What sessions of the legacy era have to do with tasks: those that they begin are remembered for their owner, and those of
// others are kept from them. A server of the legacy era tells sessions apart; the others know nothing but the id.

import type { MonoTypeOperatorFunction } from 'rxjs';
import type { Answer, ExchangeRequest, FinalEvent } from '../domain/exchange.ts';
import { isJsonObject, type JsonObject } from '../domain/json.ts';
import { type JsonRpcError, RPC } from '../domain/jsonrpc.ts';
import type { Session } from './ports.ts';
import { isTaskId, isTaskMethod, TaskMemory } from './task-memory.ts';

/** Of all sessions, at all paths. */
export class LegacyTasks {
  readonly #memory: TaskMemory;

  constructor(memory: TaskMemory = new TaskMemory()) {
    this.#memory = memory;
  }

  /** The request, refused where it is about a task that another one began, or lists those of all. */
  guarded(request: ExchangeRequest, session: Session, template: string | undefined): ExchangeRequest {
    const { method, params } = request;
    if (!isTaskMethod(method)) return request;
    if (method === 'tasks/list') {
      return { ...request, refusedAt: () => (session.peer.era === 'legacy' ? undefined : NO_LIST) };
    }
    const taskId = params?.taskId;
    if (!isTaskId(taskId)) return request;
    const asker = { ownerId: session.ownerId, template };
    const isOthers = (instanceId: string) => this.#memory.isOthers(asker, taskId, instanceId);
    return { ...request, refusedAt: (instanceId) => (isOthers(instanceId) ? UNKNOWN : undefined) };
  }

  /** Learns of the task that a request begins; undefined for one that cannot begin any. */
  following(
    { method, params }: ExchangeRequest,
    { ownerId, profile }: Session,
    template: string | undefined,
  ): MonoTypeOperatorFunction<Answer> | undefined {
    const mayBegin =
      method === 'tools/call' && (params?.task !== undefined || takesTasks(profile.capabilities));
    return mayBegin ? this.#memory.following({ ownerId, template }) : undefined;
  }
}

/** True for a client that a server of the modern era may answer with a task though it asked for none. Source: SEP-2663. */
function takesTasks({ extensions }: JsonObject): boolean {
  return isJsonObject(extensions) && extensions['io.modelcontextprotocol/tasks'] !== undefined;
}

const UNKNOWN = refusal({ code: RPC.invalidParams, message: 'Unknown task' });
/** Source: SEP-2663, which removed it: nothing but the id tells callers apart. */
const NO_LIST = refusal({ code: RPC.methodNotFound, message: 'Method not found' });

function refusal(error: JsonRpcError): FinalEvent {
  return { kind: 'error', error };
}
