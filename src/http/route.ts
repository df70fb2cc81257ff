// A route: a row of the table with the data for validation, authorization and the API description, and a handler that does not
// depend on koa. app.ts mounts the routes that routes/index.ts lists.

import Type, { type StaticEncode, type TObject, type TSchema, type TUnknown } from 'typebox';
import type { Auth } from '../auth/auth.ts';
import type { ForwardingPeers } from '../cluster/channel/peers.ts';
import type { ConfigRow } from '../config/config.ts';
import type { Principal, Scope } from '../domain/accounts/account.ts';
import { TemplateId } from '../domain/accounts/input-schemas.ts';
import type { SignIn } from '../domain/accounts/resource.ts';
import {
  apiKeyNotFound,
  clientNotFound,
  grantNotFound,
  routeNotFound,
  serverNotFound,
  templateNotFound,
  userNotFound,
  validationFailed,
} from '../domain/errors/error-catalogue.ts';
import type { ErrorCode, GatewayError, ValidationItem } from '../domain/errors/errors.ts';
import { nodeNotFound, sessionUnknown } from '../domain/errors/session-errors.ts';
import { viewNotFound } from '../domain/errors/view-errors.ts';
import type { AllowedCommand } from '../domain/instances/command.ts';
import { InstanceId } from '../domain/instances/instance.ts';
import { isJsonObject, type JsonFields, JsonText } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import type { NodeView } from '../domain/nodes/nodes.ts';
import { cutText, HIDES_BAD_TEXT, isCleanText, NOT_UNICODE } from '../domain/text.ts';
import { anything, compileShape, type InputPart, type Shape } from '../domain/validation.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Prometheus } from '../metrics/prometheus.ts';
import type { LoadHistory, Samples } from '../metrics/samples.ts';
import type { McpEndpoint } from '../protocol/endpoint-types.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import type { AllNodes } from './all-nodes/all-nodes.ts';
import type { PeerEvents } from './all-nodes/peer-events.ts';
import { readsRegistry } from './caller-check.ts';
import type { ConsoleReply } from './docs/console.ts';
import type { Documents } from './docs/documents.ts';
import type { AuthorizationServer } from './oauth/authorization-server.ts';
import type { ListAnswers } from './replies/list-answers.ts';
import type { Reply } from './replies/reply.ts';
import type { HttpRequest } from './request.ts';
import type { RecentEvents } from './sse/recent-events.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Services {
  readonly gateway: Gateway;
  readonly auth: Auth;
  readonly listAnswers: ListAnswers;
  /** Closed by its creator. */
  readonly mcp: McpEndpoint;
  /** Undefined: there are no other nodes. */
  readonly peers?: ForwardingPeers | undefined;
  /**
   * The other nodes, for answers about the deployment. Undefined for a request of another node: it is answered for
   * this node alone.
   */
  readonly allNodes?: AllNodes | undefined;
  /** The nodes of the deployment; undefined for a gateway of its own. */
  readonly nodes?: (() => readonly NodeView[]) | undefined;
  /** Commands that callers without the scope `admin` may register. */
  readonly allowedCommands: readonly AllowedCommand[];
  /** By id. */
  readonly definitions: Pick<ReadonlyMap<string, TemplateDefinition>, 'get'>;
  /**
   * The gateway as a registry: whether it is open to all, and its public address. Undefined: by rights, at the
   * address of the request.
   */
  readonly registry?: { readonly isPublic?: boolean; readonly publicUrl?: string | undefined } | undefined;
  /** CIDR ranges that no backend may have. Default: DENIED_NETWORKS. */
  readonly deniedNetworks?: readonly string[] | undefined;
  readonly events: RecentEvents;
  /** Undefined without other nodes, and for a request of another node: it gets the events of this node alone. */
  readonly peerEvents?: PeerEvents | undefined;
  /** Where MCP clients sign in. Undefined: they cannot. */
  readonly signIn?: SignIn | undefined;
  /** Signs users of MCP clients in. Undefined: there is none. */
  readonly authorizationServer?: AuthorizationServer | undefined;
  readonly samples: Samples;
  readonly history: LoadHistory;
  readonly metrics: Pick<Prometheus, 'text'>;
  readonly documents: Documents;
  readonly consoleReply: ConsoleReply;
  readonly log: { level: string };
  /** The settings in effect, secrets masked. */
  readonly settings: readonly ConfigRow[];
}

export interface AnswerDoc {
  readonly description: string;
  /** Schema of the body; absent when there is none. */
  readonly body?: TSchema;
  /** Media types of the body, selected by `Accept`. Default `application/json`. */
  readonly types?: readonly string[];
  /** An example of the body. Default: made from the schema. */
  readonly example?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route {
  readonly method: Method;
  /** Parameters are written `:name`; `*name` is the rest of the path, slashes included. */
  readonly path: string;
  readonly summary: string;
  /** Any of them is sufficient; `open` needs no credentials. */
  readonly scope: 'open' | Scope | readonly Scope[];
  readonly answers: Readonly<Record<number, AnswerDoc>>;
  readonly errors: readonly ErrorCode[];
  /**
   * Reader of the body: `koa-body` (the default). `call` reads directly, passes all texts on and parses no
   * arguments. `direct` and `form` read a short body directly, because the sender is not authenticated; `form`
   * also accepts a form.
   */
  readonly reader?: 'direct' | 'call' | 'koa-body' | 'form';
  /**
   * `json-rpc`: the handler gets the bytes of the body and counts the requests in it (`request.consume`), its errors are JSON-RPC
   * errors, except those of authorization, and HEAD is not answered.
   */
  readonly speaks?: 'json-rpc';
  /** True for a route that other nodes may forward to this one; at those of the MCP endpoint they always may. */
  readonly isForwarded?: true;
  /** True for a route that the rate limit does not count: a caller over its limit may still log out. */
  readonly isFree?: boolean;
  /** True for a route of the gateway as a registry, which may be open to all. */
  readonly isRegistry?: true;
  /** True for a route that asks servers: a caller that does not read its answers is refused. */
  readonly asksServers?: boolean;
  /** False for a route that changes nothing here, though its method is not GET. Every other one is recorded in the audit log. */
  readonly isAudited?: false;
  /** The route does not match while a template of this name exists, whose route has the same path. */
  readonly unlessTemplate?: string;
  readonly requestHeaders?: Readonly<Record<string, string>>;
  readonly request: { readonly params?: TObject; readonly query?: TObject; readonly body?: TSchema };
  /** Throws for an invalid name in the path: 404, or 422 for invalid text. `run` does this, too. */
  checkPath(params: RawInput['params']): void;
  /** Validates the input, then calls the handler. Throws GatewayError. */
  run(raw: RawInput, services: Services): Reply | Promise<Reply>;
}

export interface RouteInput<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /**
   * The body of a call with its arrays, objects and unusual numbers as received text, for forwarding: ADR 43.
   * Empty for other routes, for a body that is not an object, and for MCP.
   */
  readonly fields: JsonFields;
  readonly request: HttpRequest;
  /** The caller; the anonymous admin while authentication is off; a principal without scopes on open routes. */
  readonly principal: Principal;
}

export interface RouteDefinition<P extends TObject, Q extends TObject, B extends TSchema>
  extends Omit<Route, 'method' | 'path' | 'errors' | 'request' | 'checkPath' | 'run'> {
  /** Errors of this route besides those of every route, of its scope, its body and the names in its path. */
  readonly errors?: readonly ErrorCode[];
  readonly request?: { readonly params?: P; readonly query?: Q; readonly body?: B };
  readonly handler: (
    input: RouteInput<StaticEncode<P>, StaticEncode<Q>, StaticEncode<B>>,
    services: Services,
  ) => Reply | Promise<Reply>;
}

/** The matched request before its validation; `query` is without `?`. */
export interface RawInput
  extends Omit<RouteInput<Readonly<Record<string, string>>, string, unknown>, 'fields'> {
  readonly bodyFields?: JsonFields | undefined;
}

/** Makes a route: compiles its schemas once and completes its list of errors. */
export function defineRoute<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TSchema = TUnknown,
>(method: Method, path: string, definition: RouteDefinition<P, Q, B>): Route {
  const { handler, request = {}, errors = [], ...access } = definition;
  const paramsShape = shapeOf(request.params, 'path');
  const queryShape = shapeOf(request.query, 'query');
  const bodyShape = shapeOf(access.speaks === 'json-rpc' ? undefined : request.body, 'body');
  const readQuery = queryReader(request.query);
  return {
    ...access,
    method,
    path,
    request,
    errors: [...new Set([...errors, ...commonErrors(access, request)])],
    checkPath: (params) => {
      if (!paramsShape.accepts(params)) throw pathRefused(method, path, params, paramsShape);
    },
    run: (raw, services) => {
      const { params, request, principal } = raw;
      if (!paramsShape.accepts(params)) throw pathRefused(method, path, raw.params, paramsShape);
      const query = readQuery(raw.query);
      const body = bodyShape.withoutNulls(raw.body);
      const fields = fieldsOf(raw, body);
      if (!queryShape.accepts(query) || !bodyShape.accepts(body))
        throw validationFailed([...queryShape.issues(query), ...bodyShape.issues(body)]);
      return handler({ params, query, body, fields, request, principal }, services);
    },
  };
}

/** The fields for forwarding, without what `body` no longer has: an object that lost a field is written again. */
function fieldsOf({ body: written, bodyFields = {} }: RawInput, body: unknown): JsonFields {
  if (body === written || !isJsonObject(body) || !isJsonObject(written)) return bodyFields;
  const fields = Object.entries(bodyFields).flatMap(([name, field]): [string, JsonFields[string]][] => {
    if (!Object.hasOwn(body, name)) return [];
    return [[name, body[name] === written[name] ? field : JsonText.ofValue(body[name])]];
  });
  return Object.fromEntries(fields);
}

/** The errors of every route, of its scope, its body and the names in its path. */
function commonErrors(
  { scope, isFree }: Pick<Route, 'scope' | 'isFree'>,
  { params, body }: Route['request'],
): ErrorCode[] {
  const codes: ErrorCode[] = scope === 'gateway:write' ? ['SHUTTING_DOWN'] : [];
  codes.push(
    ...Object.keys(params?.properties ?? {}).map((name) => NOT_FOUND[name]?.('').code ?? 'NOT_FOUND'),
  );
  if (body !== undefined) codes.push(...WITH_BODY);
  if (scope !== 'open') {
    codes.push(...WITH_CREDENTIALS);
    if (isFree !== true) codes.push('RATE_LIMIT_EXCEEDED');
    // The registry may not be loaded yet.
    if (readsRegistry([scope].flat())) codes.push('NO_HEALTHY_INSTANCE');
  }
  return [...codes, 'ORIGIN_NOT_ALLOWED', 'VALIDATION_ERROR', 'INTERNAL_ERROR'];
}

function shapeOf<S extends TSchema>(schema: S | undefined, part: InputPart): Shape<StaticEncode<S>> {
  return schema === undefined ? anything() : compileShape(schema, part);
}

const WITH_CREDENTIALS: readonly ErrorCode[] = [
  ...(['AUTHENTICATION_REQUIRED', 'INVALID_CREDENTIALS', 'TOKEN_EXPIRED'] as const),
  ...(['INSUFFICIENT_PERMISSIONS', 'DATABASE_UNAVAILABLE', 'ISSUER_UNAVAILABLE'] as const),
];

const WITH_BODY: readonly ErrorCode[] = [
  'MALFORMED_JSON',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'QUEUE_FULL',
];

/** Errors of a request to an instance of a template. */
export const FROM_BACKEND: readonly ErrorCode[] = [
  ...(['TEMPLATE_NOT_FOUND', 'QUEUE_FULL', 'TOOL_EXECUTION_FAILED', 'NO_HEALTHY_INSTANCE'] as const),
  ...(['BACKEND_UNAVAILABLE', 'BACKEND_TIMEOUT', 'SHUTTING_DOWN', 'CONNECTION_REQUIRED'] as const),
];

// --- parameters: an invalid name in a path is answered like an unknown one, with 404, but for PUT; values of a query are
// converted to their declared types.

export const TemplateParams = Type.Object({ template: TemplateId });
export const ViewParams = Type.Object({ view: Type.String({ ...TemplateId, examples: ['support'] }) });
/** An instance id, alone or after its template: see domain/instances/registration.ts. */
export const ServerParams = Type.Object({
  server_id: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._~-]{0,299}$', examples: ['everything-1'] }),
});
const accountId = (example: string) => Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$', examples: [example] });
export const UserParams = Type.Object({ user_id: accountId('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10') });
export const ApiKeyParams = Type.Object({ key_id: accountId('00112233445566ff') });
export const ConnectionParams = Type.Object({
  connection_id: Type.String({
    pattern: '^[A-Za-z0-9_-]{1,64}$',
    examples: ['5d41402abc4b2a76b9719d911017c592'],
  }),
});
export const GrantParams = Type.Object({
  grant_id: Type.String({
    pattern: '^[A-Za-z0-9_-]{1,64}$',
    examples: ['8c0e7f64-35a5-4a0e-9f43-8a3d9d2f6a11'],
  }),
});
export const SessionParams = Type.Object({
  session_id: Type.String({ pattern: '^[0-9a-f]{12}$', examples: ['0123456789ab'] }),
});
export const NodeParams = Type.Object({
  node_id: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,299}(?:/[0-9]{1,2})?$',
    examples: ['local'],
  }),
});
export const InstanceParams = Type.Object({ template: TemplateId, instance_id: InstanceId });

const NOT_FOUND: Readonly<Record<string, (name: string) => GatewayError>> = {
  template: templateNotFound,
  view: viewNotFound,
  instance_id: serverNotFound,
  server_id: serverNotFound,
  user_id: userNotFound,
  key_id: apiKeyNotFound,
  grant_id: grantNotFound,
  client_id: clientNotFound,
  session_id: sessionUnknown,
  node_id: nodeNotFound,
};

/**
 * The error for params that a shape refused: 422 for invalid text, and for a name that PUT would create, else the
 * not-found error of the first invalid name.
 */
function pathRefused(
  method: Method,
  path: string,
  params: RawInput['params'],
  shape: Shape<unknown>,
): GatewayError {
  // The router leaves a segment unchanged when it cannot decode it.
  const unreadable = Object.entries(params).filter(
    ([, value]) => !isCleanText(value) || HIDES_BAD_TEXT.test(value),
  );
  if (unreadable.length > 0)
    return validationFailed(unreadable.map(([field]) => ({ loc: ['path', field], ...NOT_UNICODE })));
  const issues = shape.issues(params);
  if (method === 'PUT') return validationFailed(issues);
  const field = String(issues[0]?.loc[1]);
  const name = cutText(params[field] ?? '', LIMITS.locCharacters);
  // Other parameters are names of files.
  return NOT_FOUND[field]?.(name) ?? routeNotFound('GET', path.slice(0, path.search(/[:*]/)) + name);
}

/**
 * Makes a reader that turns a query string (without `?`) into an object, and converts numbers and booleans. The
 * last value of a repeated field counts. Text that cannot be converted stays text, which validation refuses:
 * TypeBox's Convert would turn "5.5" into 5 and "" into 0. VALIDATION_ERROR for NUL characters and encoded
 * surrogates.
 */
export function queryReader(schema: TObject | undefined): (raw: string) => Readonly<Record<string, unknown>> {
  const fields = Object.entries(schema?.properties ?? {});
  const types = new Map(fields.map(([field, { type }]: [string, TypedSchema]) => [field, type]));
  return (raw) => {
    if (raw === '') return {};
    if (HIDES_BAD_TEXT.test(raw)) throw validationFailed([BAD_QUERY]);
    const texts = new Map(new URLSearchParams(raw));
    return Object.fromEntries([...texts].map(([field, text]) => [field, convert(text, types.get(field))]));
  };
}

type TypedSchema = TSchema & { readonly type?: unknown };

const BAD_QUERY: ValidationItem = { loc: ['query'], ...NOT_UNICODE };

function convert(text: string, type: unknown): unknown {
  if (type === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === 'boolean' && /^(?:true|1)$/i.test(text)) return true;
  if (type === 'boolean' && /^(?:false|0)$/i.test(text)) return false;
  return text;
}
