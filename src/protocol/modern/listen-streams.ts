// The streams of `subscriptions/listen` for modern clients: each is one request, whose answer comes when the gateway
// closes. `Backends.changes` gathers the changes. Source: MCP 2026-07-28 basic/patterns/subscriptions.

import { defer, EMPTY, Subscription } from 'rxjs';
import { tooMany } from '../../domain/errors/request-errors.ts';
import { declarationsTooLarge } from '../../domain/errors/session-errors.ts';
import {
  fieldValue,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
} from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Notification } from '../../domain/mcp/client.ts';
import { idValue, type JsonRpcId } from '../../domain/mcp/jsonrpc.ts';
import {
  announcesChanges,
  announcesUpdates,
  changedList,
  type ListField,
  META,
  NOTICED_LISTS,
  RESOURCE_UPDATED,
  type WantedChanges,
} from '../../domain/mcp/mcp.ts';
import { noticesInTasks } from '../../domain/mcp/notices-in-tasks.ts';
import { isAboutOneOf } from '../../domain/mcp/resource-uris.ts';
import { keptBytes } from '../../domain/memory/held-bytes.ts';
import { UserShares } from '../../domain/memory/user-shares.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import { isTooLong, MAX_REFERENCE_BYTES, MAX_UNREAD_BYTES } from '../client-bounds.ts';
import type { EndpointOptions, FaultListener, McpStream, ReplyWriter } from '../endpoint-types.ts';
import { withListNotices } from '../list-notices.ts';
import { notificationMessage, type RpcFailure, resultMessage } from '../rpc.ts';
import { invalidParams, type ModernRequest } from './modern-request.ts';

/** The most open streams of all owners together. */
export const MAX_STREAMS = 10_000;

/** The open streams of an endpoint; `close` answers them all. */
export class ListenStreams {
  readonly #onFault: FaultListener;
  readonly #timing: Timing;
  readonly #open = new Set<ListenStream>();
  readonly #shares = new UserShares(MAX_STREAMS);
  readonly #declarations: UserShares;

  /**
   * `onFault` gets the error of a message that could not be serialized, and was left out. `declarations` counts the
   * memory of the profiles and URIs of the streams.
   */
  constructor({
    onFault,
    scheduler,
    clock,
    declarations,
  }: Pick<EndpointOptions, 'onFault' | 'scheduler' | 'clock' | 'declarations'>) {
    this.#onFault = onFault;
    this.#timing = { scheduler, clock };
    this.#declarations = declarations;
  }

  /**
   * Acknowledges the granted changes, then sends them; ends at once if none are granted. Throws RpcFailure (-32602)
   * or QUEUE_FULL.
   */
  open(request: ModernRequest, reply: ReplyWriter, capabilities: JsonObject, serverInfo: JsonObject): void {
    const { id, backends, owner, params } = request;
    const { profile } = request.envelope;
    const { shown, wanted } = grant(params, capabilities);
    const exceeded = this.#shares.exceededBy(owner.id);
    if (exceeded !== undefined) throw tooMany('open subscriptions', exceeded);
    const bytes = keptBytes([profile, shown, idValue(id)]);
    if (!this.#declarations.take(owner.id, bytes)) throw declarationsTooLarge('QUEUE_FULL');
    this.#shares.add(owner.id);
    const listening = new Subscription(() => {
      this.#shares.release(owner.id);
      this.#declarations.release(owner.id, bytes);
    });
    let stream: McpStream;
    try {
      stream = reply.stream();
    } catch (thrown) {
      listening.unsubscribe();
      throw thrown;
    }
    const open = new ListenStream({ id, serverInfo, wanted, stream, listening, onFault: this.#onFault });
    this.#open.add(open);
    listening.add(() => this.#open.delete(open));
    reply.onGone(() => listening.unsubscribe());
    if (listening.closed) return;
    open.send('notifications/subscriptions/acknowledged', { notifications: shown });
    const isGranting = Object.keys(shown).length > 0;
    // An error, also of the subscription itself, ends the stream as the end of the backends does.
    const changes$ = isGranting ? defer(() => backends.changes(owner, profile, wanted)) : EMPTY;
    const { scheduler } = this.#timing;
    const complete = () => scheduler.run(() => open.finish());
    // Thousands of streams may get it.
    const next = noticesInTasks((notice) => open.forward(notice), wanted.resources, scheduler);
    const error = (thrown: unknown): void => {
      this.#onFault(thrown);
      complete();
    };
    const limited$ = withListNotices(changes$, EMPTY, this.#timing);
    listening.add(limited$.subscribe({ next, error, complete }));
  }

  /** Ends all streams with their answers. */
  close(): Promise<void> {
    return this.#timing.scheduler.each([...this.#open], (open) => open.finish());
  }
}

interface ListenStreamOptions {
  readonly id: JsonRpcId;
  readonly serverInfo: JsonObject;
  readonly wanted: WantedChanges;
  readonly stream: McpStream;
  /** Closed when the stream has ended, or its client is gone. */
  readonly listening: Subscription;
  readonly onFault: FaultListener;
}

/** One open stream, until it is finished or its client is gone. */
class ListenStream {
  readonly #options: ListenStreamOptions;
  readonly #meta: object;

  constructor(options: ListenStreamOptions) {
    this.#options = options;
    this.#meta = { [META.subscriptionId]: idValue(options.id) };
  }

  /** Sends the change if it was granted, or finishes the stream of a client that has stopped reading. */
  forward({ method, params }: Notification): void {
    const { listening, wanted, stream, onFault } = this.#options;
    if (listening.closed || !isGranted(method, params, wanted)) return;
    try {
      if (stream.unsentBytes > MAX_UNREAD_BYTES) this.finish();
      else this.send(method, params);
    } catch (thrown) {
      onFault(thrown); // nested too deeply to be serialized; rxjs would throw it as an uncaught exception
    }
  }

  send(method: string, params: JsonObject): void {
    const meta = isJsonObject(params._meta) ? params._meta : {};
    const _meta = { ...meta, ...this.#meta };
    this.#options.stream.send({ data: notificationMessage(method, { ...params, _meta }) });
  }

  /** Ends the stream with its answer. */
  finish(): void {
    const { id, serverInfo, stream, listening } = this.#options;
    if (listening.closed) return;
    const _meta = { ...this.#meta, [META.serverInfo]: serverInfo };
    stream.send({ data: resultMessage(id, JsonText.ofValue({ resultType: 'complete', _meta })) });
    stream.end();
    listening.unsubscribe();
  }
}

// The filter of a client: the changes that it opts in to, as far as the servers announce them.

/**
 * The granted changes, in the form that the client sees and in the form that the backends are asked for, without those
 * that the servers do not announce. Throws RpcFailure (-32602) for an invalid filter.
 */
function grant(
  params: JsonFields,
  capabilities: JsonObject,
): { readonly shown: JsonObject; readonly wanted: WantedChanges } {
  const notifications = fieldValue(params.notifications);
  if (!isJsonObject(notifications)) throw badFilter('`notifications` must be an object');
  const shown: JsonObject = {};
  const lists = new Set<ListField>();
  for (const list of NOTICED_LISTS) {
    const name = `${list}ListChanged`;
    if (!readFlag(notifications, name) || !announcesChanges(capabilities, list)) continue;
    shown[name] = true;
    lists.add(list);
    if (list === 'resources') lists.add('resourceTemplates');
  }
  const uris = readUris(notifications);
  if (uris.length === 0 || !announcesUpdates(capabilities)) {
    return { shown, wanted: { lists, resources: new Set() } };
  }
  shown.resourceSubscriptions = uris;
  return { shown, wanted: { lists, resources: new Set(uris) } };
}

function isGranted(method: string, { uri }: JsonObject, { lists, resources }: WantedChanges): boolean {
  const list = changedList(method);
  if (list !== undefined) return lists.has(list);
  return method === RESOURCE_UPDATED && isAboutOneOf(uri, resources);
}

function readFlag(notifications: JsonObject, name: string): boolean {
  const value = notifications[name];
  if (value !== undefined && typeof value !== 'boolean') throw badFilter(`\`${name}\` must be a boolean`);
  return value === true;
}

function readUris({ resourceSubscriptions = [] }: JsonObject): string[] {
  const isList = Array.isArray(resourceSubscriptions);
  const uris = isList ? resourceSubscriptions.filter((uri) => typeof uri === 'string') : [];
  if (!isList || uris.length < resourceSubscriptions.length) {
    throw badFilter('`resourceSubscriptions` must be a list of URIs');
  }
  if (uris.some(isTooLong)) throw badFilter(`a URI has at most ${MAX_REFERENCE_BYTES} bytes`);
  if (uris.length <= LIMITS.subscriptionsPerClient) return uris;
  throw badFilter(`\`resourceSubscriptions\` has at most ${LIMITS.subscriptionsPerClient} URIs`);
}

function badFilter(what: string): RpcFailure {
  return invalidParams(`Invalid params: ${what}`);
}
