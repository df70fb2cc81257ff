// The Model Context Protocol as tables: methods, notifications, keys of `_meta` and log levels.
// Sources: MCP specification revisions 2024-11-05 to 2026-07-28; the levels are those of RFC 5424 section 6.2.1.

import { isFields, isJsonObject, type JsonFields, type JsonObject } from '../json/json.ts';
import { caseless, wordsIn } from '../text.ts';

/** Revisions with the `initialize` handshake, newest first. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;
/** Legacy versions that are accepted. The last one was never released, but the SDKs still use its name. */
export const ACCEPTED_LEGACY_VERSIONS: readonly string[] = [...LEGACY_VERSIONS, '2024-10-07'];
/** Revisions without a handshake: every request carries its version in `_meta`. */
export const MODERN_VERSIONS = ['2026-07-28'] as const;

/** True for a revision of the modern era, supported or not. Revisions are dates. */
export function isModernVersion(version: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= MODERN_VERSIONS[0];
}

/** The protocol family of a backend. `bare`: it refuses `initialize` but answers the methods themselves. */
export type Era = 'legacy' | 'modern' | 'bare';

/** The eras that the registration of an instance may fix, each with its revisions in words. */
export const ERA_REVISIONS = {
  legacy: `up to ${LEGACY_VERSIONS[0]}`,
  modern: `from ${MODERN_VERSIONS[0]}`,
};
export type PinnedEra = keyof typeof ERA_REVISIONS;
export const PINNED_ERAS = Object.keys(ERA_REVISIONS) as PinnedEra[];

/** Name and version of a server, and perhaps more fields. */
export interface ServerInfo extends JsonObject {
  readonly name: string;
  readonly version: string;
}

/** The result of one handshake with a backend. Each handshake makes a new object, by which a restart is detected. */
export interface Handshake {
  readonly era: Era;
  /** Negotiated protocol revision; `''` for a bare backend. */
  readonly protocolVersion: string;
  /** The name and version of the server, both `''` before the handshake; the name is `unnamed` where the server gave none. */
  readonly serverInfo: ServerInfo;
  /** Capabilities as the server announced them; for a bare backend `{ tools: {} }`. */
  readonly capabilities: JsonObject;
  /** The result of `initialize` or `server/discover`; empty for a bare backend. */
  readonly greeting: JsonObject;
}

/** Field of a paginated list result. */
export type ListField = 'tools' | 'resources' | 'resourceTemplates' | 'prompts';

interface MethodTraits {
  /**
   * True for a method that may be sent again when its delivery is unknown. For tools/call that depends on the
   * annotations of the tool.
   */
  readonly repeatable: boolean;
  /** Field of `params` mirrored in the `Mcp-Name` header of the modern era. Source: also SEP-2663, for tasks. */
  readonly nameField?: 'name' | 'uri' | 'taskId';
  /** The list that it returns. */
  readonly list?: ListField;
  /** A server of the modern era may answer it with `input_required`. Source: MCP 2026-07-28 basic/patterns/mrtr. */
  readonly hasRounds?: true;
}

/** Unknown methods are not repeated. */
export const METHODS: Readonly<Record<string, MethodTraits>> = {
  initialize: { repeatable: true },
  'server/discover': { repeatable: true },
  ping: { repeatable: true },
  'tools/list': { repeatable: true, list: 'tools' },
  'tools/call': { repeatable: false, nameField: 'name', hasRounds: true },
  'resources/list': { repeatable: true, list: 'resources' },
  'resources/templates/list': { repeatable: true, list: 'resourceTemplates' },
  'resources/read': { repeatable: true, nameField: 'uri', hasRounds: true },
  'prompts/list': { repeatable: true, list: 'prompts' },
  'prompts/get': { repeatable: true, nameField: 'name', hasRounds: true },
  'completion/complete': { repeatable: true },
  'tasks/get': { repeatable: true, nameField: 'taskId' },
  'tasks/update': { repeatable: false, nameField: 'taskId' },
  'tasks/cancel': { repeatable: false, nameField: 'taskId' },
};

export const LIST_METHODS: Readonly<Record<ListField, string>> = {
  tools: 'tools/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
  prompts: 'prompts/list',
};

export const INITIALIZED = 'notifications/initialized';
export const CANCELLED = 'notifications/cancelled';
export const PROGRESS = 'notifications/progress';
export const LOG = 'notifications/message';
/** A request whose answer is a stream that stays open. */
export const LISTEN = 'subscriptions/listen';

/** Keys of `_meta` in the modern era. Source: 2026-07-28 basic/index#meta. */
export const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  progressToken: 'progressToken',
} as const;

/** The extension of the modern era that runs tasks. Source: SEP-2663. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** A tool as a backend lists it; unknown fields are kept. */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: { readonly readOnlyHint?: boolean; readonly idempotentHint?: boolean };
  readonly [field: string]: unknown;
}

/** An item that is left out of a list, because clients could not use it. */
export interface WithheldItem {
  readonly list: ListField;
  /** Name or URI of the item, which may be cut; its place in the list if it has none. */
  readonly name: string;
  /** A clause without values of the item. */
  readonly reason: string;
}

/** True when a tool declares that it is read-only or idempotent. Source: MCP server/tools, annotations. */
export function isRepeatableTool(tool: Partial<Tool> | undefined): boolean {
  return tool?.annotations?.readOnlyHint === true || tool?.annotations?.idempotentHint === true;
}

/**
 * The same of a tool for which an operator has changed these hints; undefined when they say nothing about it.
 * Without the annotations of the tool: false unless the hints alone say that it is.
 */
export function isRepeatableBy(
  hints: Required<Tool>['annotations'],
  own: Tool['annotations'] = {},
): boolean | undefined {
  const { readOnlyHint, idempotentHint } = hints;
  if (readOnlyHint === undefined && idempotentHint === undefined) return undefined;
  return (readOnlyHint ?? own.readOnlyHint) === true || (idempotentHint ?? own.idempotentHint) === true;
}

/**
 * True for a method that only the other of the two eras has: no backend gets it in a conversation of this one, because some end
 * when they do. A bare backend counts as legacy.
 */
export function isOfOtherEra(method: string, era: Era): boolean {
  return (era === 'modern' ? LEGACY_METHODS : MODERN_METHODS).has(method);
}

/**
 * True for a method that MCP does not have, but that a server may take for one: a server that ignores case, that reads a text up
 * to a NUL, or that skips spaces. No backend gets it: what is decided by the method, such as rights, is not decided for it.
 */
export function isLikeMcp(method: string): boolean {
  if (METHODS[method] !== undefined || OTHER_METHODS.has(method)) return false;
  const [read = ''] = method.split('\0', 1);
  return READ_AS_MCP.has(caseless(read.replace(/[\s\p{C}]/gu, '')));
}

/** True for a request other than of a tool that may be repeated. Tools say so themselves, see isRepeatableTool. */
export function isRepeatableMethod(method: string): boolean {
  return METHODS[method]?.repeatable ?? setsBackendState(method);
}

/** True for requests that change what a server remembers of its client. */
export function setsBackendState(method: string): boolean {
  return method === SET_LEVEL || method === SUBSCRIBE || method === UNSUBSCRIBE;
}

export const SET_LEVEL = 'logging/setLevel';
export const SUBSCRIBE = 'resources/subscribe';
export const UNSUBSCRIBE = 'resources/unsubscribe';

const LEGACY_METHODS: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  SET_LEVEL,
  SUBSCRIBE,
  UNSUBSCRIBE,
  // Source: SEP-2663. A list of tasks would show those of all callers.
  'tasks/list',
  'tasks/result',
]);

const MODERN_METHODS: ReadonlySet<string> = new Set(['server/discover', LISTEN, 'tasks/update']);

/** The list that a method returns, if any. */
export function listReturnedBy(method: string): ListField | undefined {
  return METHODS[method]?.list;
}

/** True for a method that a modern server may answer with `input_required`. */
export function hasRounds(method: string): boolean {
  return METHODS[method]?.hasRounds === true;
}

export interface ListChange {
  readonly template: string;
  /** `resources` stands for their templates, too. */
  readonly list: ListField;
}

/** The changes that a modern client opts in to. */
export interface WantedChanges {
  readonly lists: ReadonlySet<ListField>;
  /** URIs; at most LIMITS.subscriptionsPerClient. */
  readonly resources: ReadonlySet<string>;
}

/** Lists with change notifications; that of `resources` includes resource templates. */
export const NOTICED_LISTS = ['tools', 'prompts', 'resources'] as const satisfies readonly ListField[];

export const LIST_NOTICES: Readonly<Record<ListField, string>> = {
  tools: 'notifications/tools/list_changed',
  prompts: 'notifications/prompts/list_changed',
  resources: 'notifications/resources/list_changed',
  resourceTemplates: 'notifications/resources/list_changed',
};

/** True for a notification that the protocol does not define. */
export function isCustomNotice(method: string): boolean {
  return !KNOWN.has(method);
}

/** The list that a notification says has changed, if any. */
export function changedList(method: string): ListField | undefined {
  return CHANGED.get(method);
}

/** The lists with change notifications that a server may have: those it names, or all when it does not describe itself. */
export function noticedListsOf({ era, capabilities }: Pick<Handshake, 'era' | 'capabilities'>): ListField[] {
  return NOTICED_LISTS.filter((list) => era === 'bare' || capabilities[list] !== undefined);
}

/** True when a server with these capabilities notifies of changes of the list. */
export function announcesChanges(capabilities: JsonObject, list: ListField): boolean {
  const offered = capabilities[list];
  return isJsonObject(offered) && offered.listChanged === true;
}

/** True when a server with these capabilities offers subscriptions to resources. */
export function announcesUpdates({ resources }: JsonObject): boolean {
  return isJsonObject(resources) && resources.subscribe === true;
}

/** The notice that a resource has changed. */
export const RESOURCE_UPDATED = 'notifications/resources/updated';

/**
 * Notifications of both eras, in both directions. Source: MCP 2025-11-25 and 2026-07-28 schema,
 * ServerNotification and ClientNotification.
 */
const KNOWN: ReadonlySet<string> = new Set([
  ...Object.values(LIST_NOTICES),
  INITIALIZED,
  CANCELLED,
  PROGRESS,
  LOG,
  'notifications/roots/list_changed',
  RESOURCE_UPDATED,
  'notifications/elicitation/complete',
  'notifications/subscriptions/acknowledged',
  'notifications/tasks/status',
]);

/** The other methods and notifications by which something is decided here. */
const OTHER_METHODS: ReadonlySet<string> = new Set([...LEGACY_METHODS, ...MODERN_METHODS, ...KNOWN]);
const READ_AS_MCP: ReadonlySet<string> = new Set([...Object.keys(METHODS), ...OTHER_METHODS].map(caseless));

const CHANGED: ReadonlyMap<string, ListField> = new Map(
  NOTICED_LISTS.map((list) => [LIST_NOTICES[list], list]),
);

/** The params without these keys of `_meta`, and without an empty `_meta`. */
export function withoutMeta(params: JsonObject, keys: readonly string[]): JsonObject;
export function withoutMeta(params: JsonFields, keys: readonly string[]): JsonFields;
export function withoutMeta(params: JsonFields, keys: readonly string[]): JsonFields {
  const { _meta, ...others } = params;
  if (!isFields(_meta)) return params;
  const left = Object.fromEntries(Object.entries(_meta).filter(([key]) => !keys.includes(key)));
  return Object.keys(left).length === 0 ? others : { ...others, _meta: left };
}

/** The log levels, from the least to the most severe. */
const LEVELS: readonly unknown[] = wordsIn('debug info notice warning error critical alert emergency');

export function isLogLevel(level: unknown): level is string {
  return LEVELS.includes(level);
}

/** True when the level `set` includes lines of `level`, and for an unknown level. */
export function includesLevel(set: string, level: unknown): boolean {
  return !isLogLevel(level) || LEVELS.indexOf(level) >= LEVELS.indexOf(set);
}

/** True for methods that name a task by `taskId`. In other methods that field has no meaning. */
export function isTaskMethod(method: string): boolean {
  return method.startsWith('tasks/');
}
