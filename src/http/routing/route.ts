// A route: a row of the table with the data for validation, authorization and the API description, and a handler that does not
// depend on koa. route-listener.ts finds the route of a request, among the routes that routes/index.ts lists.

import type { StaticEncode, TObject, TSchema, TUnknown } from 'typebox';
import type { Scope } from '../../domain/accounts/account.ts';
import type { Principal } from '../../domain/accounts/principal.ts';
import type { ErrorCode } from '../../domain/errors/errors.ts';
import { validationFailed } from '../../domain/errors/request-errors.ts';
import { anything, compileShape, type InputPart, type Shape } from '../../domain/errors/validation.ts';
import { isJsonObject, type JsonFields, JsonText } from '../../domain/json/json.ts';
import { readsRegistry } from '../callers/caller-check.ts';
import type { Reply } from '../replies/reply.ts';
import type { HttpRequest } from '../request.ts';
import type { Services } from '../services.ts';
import { type Method, NOT_FOUND, pathRefused, queryReader } from './route-params.ts';

/**
 * The way in which a body is read. `json`: parsed. `short`: the same, but few bytes are taken, because the sender is not
 * authenticated; `form`: the same or a form. `call`: JSON whose arguments are not parsed and whose texts are all passed on.
 * `bytes`: JSON that is not parsed at all.
 */
export type BodyKind = 'json' | 'short' | 'form' | 'call' | 'bytes';

export interface AnswerDoc {
  readonly description: string;
  /** Schema of the body; absent when there is none. */
  readonly body?: TSchema;
  /** Media types of the body, selected by `Accept`. Default: `application/json`. */
  readonly types?: readonly string[];
  /** An example of the body. Default: made from the schema. */
  readonly example?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A method and a path with their handler. Its flags are read in `routing/route-tables.ts` (`speaks`, `isForwarded`,
 * `isRegistry`), `middleware/authorize.ts` (`speaks`, `isUncounted`, `asksServers`), `middleware/audit-trail.ts` and
 * `routing/worker-routes.ts` (`changesNothing`), and `routing/route-listener.ts` (`unlessTemplate`).
 */
export interface HttpRoute {
  readonly method: Method;
  /** Parameters are written `:name`; `*name` is the rest of the path, slashes included. */
  readonly path: string;
  readonly summary: string;
  /** Any of them is sufficient; `open` needs no credentials. */
  readonly scope: 'open' | Scope | readonly Scope[];
  readonly answers: Readonly<Record<number, AnswerDoc>>;
  readonly errors: readonly ErrorCode[];
  /** The kind of body. Default: `json`. */
  readonly bodyKind?: BodyKind;
  /**
   * `json-rpc`: the handler counts the requests in the body (`request.consume`), its errors are JSON-RPC errors, except those of
   * authorization, and HEAD is not answered.
   */
  readonly speaks?: 'json-rpc';
  /** True for a route that other nodes may forward to this one; at those of the MCP endpoint they always may. */
  readonly isForwarded?: boolean;
  /** True for a route that the rate limit does not count: a caller over its limit may still log out. */
  readonly isUncounted?: boolean;
  /** True for a route of the gateway as a registry, which may be open to all. */
  readonly isRegistry?: boolean;
  /** True for a route that asks servers: a caller that does not read its answers is refused. */
  readonly asksServers?: boolean;
  /** True for a route that changes nothing here, though its method is not GET. Every other one is recorded in the audit log. */
  readonly changesNothing?: boolean;
  /** True for a route that does not match while a template of this name exists, whose route has the same path. */
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
   * The body of a call with its arrays, objects and unusual numbers as received text: it is forwarded byte for byte.
   * Empty for other routes, for a body that is not an object, and for MCP.
   */
  readonly fields: JsonFields;
  readonly request: HttpRequest;
  /** The caller; the anonymous admin while authentication is off; a principal without scopes on open routes. */
  readonly principal: Principal;
}

interface RouteDefinition<P extends TObject, Q extends TObject, B extends TSchema>
  extends Omit<HttpRoute, 'method' | 'path' | 'errors' | 'request' | 'checkPath' | 'run'> {
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
>(method: Method, path: string, definition: RouteDefinition<P, Q, B>): HttpRoute {
  const { handler, request = {}, errors = [], ...access } = definition;
  const paramsShape = shapeOf(request.params, 'path');
  const queryShape = shapeOf(request.query, 'query');
  const bodyShape = shapeOf(access.bodyKind === 'bytes' ? undefined : request.body, 'body');
  const readQuery = queryReader(request.query);
  return {
    ...access,
    method,
    path,
    request,
    errors: [...new Set([...errors, ...commonErrors({ ...access, method }, request)])],
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

/** The fields for forwarding, without those that `body` no longer has: an object that lost a field is written again. */
function fieldsOf({ body: written, bodyFields = {} }: RawInput, body: unknown): JsonFields {
  if (body === written || !isJsonObject(body) || !isJsonObject(written)) return bodyFields;
  const fields = Object.entries(bodyFields).flatMap(([name, field]): [string, JsonFields[string]][] => {
    if (!Object.hasOwn(body, name)) return [];
    return [[name, body[name] === written[name] ? field : JsonText.ofValue(body[name])]];
  });
  return Object.fromEntries(fields);
}

/**
 * True for a route that changes the registry or its instances, or starts a server to test it; of each caller, few such
 * requests are under way at one time.
 */
export function changesInstances({
  method,
  scope,
  changesNothing = false,
}: Pick<HttpRoute, 'method' | 'scope' | 'changesNothing'>): boolean {
  return method !== 'GET' && scope === 'gateway:write' && !changesNothing;
}

/** The errors of every route, of its scope, its body and the names in its path. */
function commonErrors(
  access: Pick<HttpRoute, 'method' | 'scope' | 'isUncounted' | 'changesNothing'>,
  { params, body }: HttpRoute['request'],
): ErrorCode[] {
  const { scope, isUncounted } = access;
  const codes: ErrorCode[] = scope === 'gateway:write' ? ['SHUTTING_DOWN'] : [];
  if (changesInstances(access)) codes.push('QUEUE_FULL');
  codes.push(
    ...Object.keys(params?.properties ?? {}).map((name) => NOT_FOUND[name]?.('').code ?? 'NOT_FOUND'),
  );
  if (body !== undefined) codes.push(...WITH_BODY);
  if (scope !== 'open') {
    codes.push(...WITH_CREDENTIALS);
    if (isUncounted !== true) codes.push('RATE_LIMIT_EXCEEDED');
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
