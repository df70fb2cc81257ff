// The streams of `subscriptions/listen` towards modern clients: one request, whose answer comes when the gateway closes.
// `Backends.changes` gathers the changes. Source: MCP 2026-07-28 basic/patterns/subscriptions.

import type { Subscription } from 'rxjs';
import type { ServerNotification } from '../../domain/client.ts';
import { listenLimit } from '../../domain/error-catalogue.ts';
import { OwnerShares } from '../../domain/held-bytes.ts';
import { fieldValue, isJsonObject, type JsonFields, type JsonObject, JsonText } from '../../domain/json.ts';
import { idValue } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  announcesChanges,
  announcesUpdates,
  changedList,
  type ListField,
  META,
  NOTICED_LISTS,
  type WantedChanges,
} from '../../domain/mcp.ts';
import { isAboutOneOf } from '../../domain/resource-uris.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import { isTooLong, MOST_REFERENCE_BYTES } from '../client-bounds.ts';
import type { FaultListener, McpReply, McpStream } from '../endpoint-types.ts';
import { notificationMessage, type RpcFailure, resultMessage } from '../rpc.ts';
import { invalidParams, type ModernCall } from './modern-call.ts';

/** Open streams of all owners. */
const MOST_STREAMS = 10_000;

export class ListenStreams {
  readonly #onFault: FaultListener;
  readonly #scheduler: TaskScheduler;
  readonly #open = new Set<ListenStream>();
  readonly #shares = new OwnerShares(MOST_STREAMS);

  /** `onFault` gets the error of a message that could not be serialized, and was left out. */
  constructor(onFault: FaultListener, scheduler: TaskScheduler) {
    this.#onFault = onFault;
    this.#scheduler = scheduler;
  }

  /** Acknowledges the granted changes, then sends them; ends at once if none are granted. RpcFailure (-32602), QUEUE_FULL. */
  open(call: ModernCall, reply: McpReply, capabilities: JsonObject, serverInfo: JsonObject): void {
    const granted = grant(call.params, capabilities);
    const { id } = call.owner;
    if (this.#shares.isFull) throw listenLimit(MOST_STREAMS, false);
    if (this.#shares.isShareFull(id)) throw listenLimit(this.#shares.share, true);
    const listen = new ListenStream({
      call,
      granted,
      stream: reply.stream(),
      serverInfo,
      ended: () => {
        if (this.#open.delete(listen)) this.#shares.release(id);
      },
      onFault: this.#onFault,
    });
    this.#open.add(listen);
    this.#shares.take(id);
    reply.onGone(() => listen.leave());
    listen.start();
  }

  /** Ends them all, with their answers. */
  close(): Promise<void> {
    return this.#scheduler.each([...this.#open], (listen) => listen.finish());
  }
}

interface ListenDeps {
  readonly call: ModernCall;
  readonly granted: Granted;
  readonly stream: McpStream;
  readonly serverInfo: JsonObject;
  ended(): void;
  onFault(error: unknown): void;
}

class ListenStream {
  readonly #deps: ListenDeps;
  #subscription: Subscription | undefined;
  #isOver = false;

  constructor(deps: ListenDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#isOver) return;
    const { call, granted } = this.#deps;
    const { shown, wanted } = granted;
    this.#send('notifications/subscriptions/acknowledged', { notifications: shown });
    if (Object.keys(shown).length === 0) {
      this.finish();
      return;
    }
    const { backends, owner, envelope } = call;
    this.#subscription = backends.changes(owner, envelope.profile, wanted).subscribe({
      next: (change) => this.#forward(change),
      complete: () => this.finish(),
    });
    if (this.#isOver) this.#subscription.unsubscribe();
  }

  finish(): void {
    if (this.#isOver) return;
    const { call, stream, serverInfo } = this.#deps;
    const _meta = { [META.subscriptionId]: idValue(call.id), [META.serverInfo]: serverInfo };
    stream.send({ data: resultMessage(call.id, JsonText.ofValue({ resultType: 'complete', _meta })) });
    stream.end();
    this.leave();
  }

  /** Ends it without an answer: the client has left. */
  leave(): void {
    this.#isOver = true;
    this.#subscription?.unsubscribe();
    this.#deps.ended();
  }

  #forward({ method, params }: ServerNotification): void {
    if (this.#isOver || !isGranted(method, params, this.#deps.granted.wanted)) return;
    // A client that leaves so much unread has stopped reading.
    if (this.#deps.stream.unsentBytes > LIMITS.unreadBytes) {
      this.finish();
      return;
    }
    try {
      this.#send(method, params);
    } catch (thrown) {
      this.#deps.onFault(thrown); // nested too deeply to be serialized; rxjs would throw it as an uncaught exception
    }
  }

  #send(method: string, params: JsonObject): void {
    const { call, stream } = this.#deps;
    const meta = isJsonObject(params._meta) ? params._meta : {};
    const _meta = { ...meta, [META.subscriptionId]: idValue(call.id) };
    stream.send({ data: notificationMessage(method, { ...params, _meta }) });
  }
}

// The filter of a client: the changes that it opts in to, as far as the servers announce them.

/** The granted changes: as the client sees them, and as the backends are asked for them. */
interface Granted {
  readonly shown: JsonObject;
  readonly wanted: WantedChanges;
}

/** Reads the filter, and leaves out what the servers do not announce. Throws RpcFailure, -32602, for an invalid filter. */
export function grant(params: JsonFields, capabilities: JsonObject): Granted {
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
  return method === 'notifications/resources/updated' && isAboutOneOf(uri, resources);
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
  if (uris.some(isTooLong)) throw badFilter(`a URI has at most ${MOST_REFERENCE_BYTES} bytes`);
  if (uris.length <= LIMITS.subscriptionsPerClient) return uris;
  throw badFilter(`\`resourceSubscriptions\` has at most ${LIMITS.subscriptionsPerClient} URIs`);
}

function badFilter(what: string): RpcFailure {
  return invalidParams(`Invalid params: ${what}`);
}
