// An MCP client: its declarations, its session, and its answers to requests of a server. Its permissions are in account.ts.

import type { Principal } from '../accounts/principal.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/json.ts';
import { keptBytes } from '../memory/held-bytes.ts';
import { type JsonRpcError, METHOD_NOT_FOUND, RPC } from './jsonrpc.ts';
import { LIST_NOTICES, type ListField, RESOURCE_UPDATED } from './mcp.ts';

/** The declarations of a client: in `initialize`, or in the `_meta` of every request. */
export interface ClientProfile {
  readonly protocolVersion: string;
  /** Declared to backends on behalf of the client; they may request nothing else. */
  readonly capabilities: JsonObject;
  /** `name`, `version` and any other field. */
  readonly clientInfo: JsonObject;
}

/** The principal of a client: sessions, conversations and cached answers are never shared between two owners. */
export type Owner = Pick<Principal, 'id' | 'templates' | 'views' | 'tools'>;

/** A principal, and what its client declared. */
export interface Client {
  readonly owner: Owner;
  readonly profile: ClientProfile;
}

/** The client of a request without a session, and the instance that must answer. */
export interface StatelessOptions extends Client {
  /**
   * The only instance that may answer, because it has the state, the cursor or the task of the request; undefined
   * when any may.
   */
  readonly instanceId?: string | undefined;
}

/** Memory of a profile that is kept; see keptBytes. */
export function profileBytes({ capabilities, clientInfo }: ClientProfile): number {
  return keptBytes([capabilities, clientInfo]);
}

/** The answer of a client to a request of a backend. */
export type ClientAnswer = { readonly result: JsonValue } | { readonly error: JsonRpcError };

/** A question to the client: a request of the legacy era, without an id. */
export interface InputRequest {
  readonly method: string;
  readonly params: JsonObject;
}

/**
 * A request of a legacy server to its client: `sampling/createMessage`, `elicitation/create`, `roots/list`. Only
 * the first `answer` counts, and none after the end of the exchange or the conversation.
 */
export interface ServerRequest extends InputRequest {
  readonly kind: 'request';
  /** `hold` counts the memory of the answer until the function that it returns is called, for a receiver that keeps the answer. */
  readonly answer: (clientAnswer: ClientAnswer, hold?: () => () => void) => void;
}

/** A request of a server. `answered` gets the first answer of its client; further answers are dropped. */
export function serverRequest(
  { method, params }: InputRequest,
  answered: ServerRequest['answer'],
): ServerRequest {
  let isAnswered = false;
  const answer: ServerRequest['answer'] = (given) => {
    if (isAnswered) return;
    isAnswered = true;
    answered(given);
  };
  return { kind: 'request', method, params, answer };
}

/** The answer of the gateway to a question that did not reach its client, or had no answer. */
export function questionFailed(message: string): ClientAnswer {
  return { error: { code: RPC.internalError, message } };
}

/** The answers of the gateway to questions, by the reason why no client answers them. */
export const QUESTION_REFUSALS = {
  /** There is no client, or it has not declared that it answers such questions. */
  undeclared: { error: METHOD_NOT_FOUND },
  /** The client has no call under way. */
  noCall: {
    error: {
      code: RPC.methodNotFound,
      message: 'The client has no call in flight that could take requests.',
    },
  },
  notListening: questionFailed('The client does not listen.'),
  /** The backend may go on without an answer. */
  notAnswered: questionFailed('The client did not answer.'),
  tooManyWait: questionFailed('Too many calls are waiting for client input.'),
} as const satisfies Readonly<Record<string, ClientAnswer>>;

/** A message of a server outside an exchange. */
export type ServerMessage = Notification | ServerRequest;

/** A message that gets no answer, of either side. `params` is empty when the message has none. */
export interface Notification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonObject;
}

/** The notice that a list has changed. */
export function listNotice(list: ListField): Notification {
  return { kind: 'notification', method: LIST_NOTICES[list], params: {} };
}

/** The notice that a resource has changed. */
export function updateNotice(uri: string): Notification {
  return { kind: 'notification', method: RESOURCE_UPDATED, params: { uri } };
}

/** The requests that a server may send to its client, each with the capability that permits it. */
export const CLIENT_CAPABILITIES: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};

const ASKABLE = Object.values(CLIENT_CAPABILITIES);

/** True when a server may send requests to this client. In a shared process they cannot be attributed to one client. */
export function acceptsServerRequests({ capabilities }: Pick<ClientProfile, 'capabilities'>): boolean {
  return ASKABLE.some((name) => capabilities[name] !== undefined);
}

/**
 * The declarations that let a server ask nothing, but on which its tools may depend: `extensions`, such as MCP Apps, and
 * `experimental`. Undefined for a client that declares none. Source: ADR 26.
 */
export function extensionsOf({ capabilities }: Pick<ClientProfile, 'capabilities'>): JsonObject | undefined {
  const { extensions, experimental } = capabilities;
  if (extensions === undefined && experimental === undefined) return undefined;
  const declared = Object.entries({ extensions, experimental }).filter(([, value]) => isFilled(value));
  return declared.length === 0 ? undefined : (Object.fromEntries(declared) as JsonObject);
}

function isFilled(value: JsonValue | undefined): boolean {
  return isJsonObject(value) && Object.keys(value).length > 0;
}

export interface ClientQuestion {
  readonly kind: 'asked';
  readonly id: string;
  readonly instanceId: string;
  /** The requests, by a key that the answers carry. */
  readonly requests: ReadonlyMap<string, InputRequest>;
}

/** The open session of an MCP client of the legacy era. */
export interface ShownSession {
  /** Names it in logs and events; the id that its client sends is a credential. */
  readonly id: string;
  /** The id of the principal that opened it. */
  readonly ownerId: string;
  /** `name` and `version`, as the client declared them. */
  readonly clientInfo: JsonObject;
  /** The instance it is or was last bound to; of an aggregate session, one for each template that it uses. */
  readonly bindings: readonly {
    readonly template: string;
    readonly instanceId: string;
    readonly serverId: string;
  }[];
  /** Ms since 1970; of the last use to about a second. */
  readonly openedAtMs: number;
  readonly usedAtMs: number;
  /** True while a stream of its client is open. */
  readonly isStreaming: boolean;
}
