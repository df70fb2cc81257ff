// A route: a row of the table with the data for validation, authorization and the API description, and a handler that does not
// depend on koa. app.ts mounts the routes that routes/index.ts lists.

import type { StaticEncode, TSchema, TUnknown } from 'typebox';
import type { Auth } from '../auth/auth.ts';
import type { ConfigRow } from '../config.ts';
import type { Principal, Scope } from '../domain/account.ts';
import type { AllowedCommand } from '../domain/command.ts';
import { validationFailed } from '../domain/error-catalogue.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { JsonFields } from '../domain/json.ts';
import { anything, compileShape, type Place, type Shape } from '../domain/validation.ts';
import type { Gateway } from '../gateway.ts';
import type { Prometheus } from '../metrics/prometheus.ts';
import type { Samples } from '../metrics/samples.ts';
import type { McpEndpoint } from '../protocol/endpoint-types.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import { readsRegistry } from './caller-check.ts';
import type { ConsoleFiles } from './docs/console.ts';
import type { Documents } from './docs/documents.ts';
import { pathRefused, queryReader } from './parameters.ts';
import type { Reply } from './reply.ts';
import type { HttpRequest } from './request.ts';
import type { RecentEvents } from './sse/recent-events.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface Services {
  readonly gateway: Gateway;
  readonly auth: Auth;
  readonly mcp: McpEndpoint;
  /** Commands that callers without the scope `admin` may register. */
  readonly allowedCommands: readonly AllowedCommand[];
  /** By id. */
  readonly definitions: ReadonlyMap<string, TemplateDefinition>;
  readonly events: RecentEvents;
  readonly samples: Samples;
  readonly metrics: Pick<Prometheus, 'text'>;
  readonly documents: Documents;
  readonly consoleFiles: ConsoleFiles;
  readonly log: { level: string };
  /** The settings in effect, secrets masked. */
  readonly settings: readonly ConfigRow[];
  readonly build: string;
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
  /** Name of the event in the example of a stream. Default `result`. */
  readonly event?: string;
  /** True when an error of the same status has its own body; else its fields are added to this one. */
  readonly isApart?: boolean;
}

export interface RouteAccess {
  readonly method: Method;
  /** Parameters are written `:name`; `*name` is the rest of the path, slashes included. */
  readonly path: string;
  readonly summary: string;
  /** Any of them is sufficient; `open` needs no credentials. */
  readonly scope: 'open' | Scope | readonly Scope[];
  readonly answers: Readonly<Record<number, AnswerDoc>>;
  readonly errors: readonly ErrorCode[];
  /**
   * Reader of the body: `direct` on hot routes, else `koa-body` (the default), with identical answers. `form` also accepts a
   * form.
   */
  readonly reader?: 'direct' | 'koa-body' | 'form';
  /**
   * `json-rpc`: the handler gets the bytes of the body and counts the requests in it (`request.consume`), its errors are JSON-RPC
   * errors, except those of authorization, and HEAD is not answered.
   */
  readonly speaks?: 'json-rpc';
  /** True for a route that the rate limit does not count: a caller over its limit may log out. */
  readonly isFree?: boolean;
  /** The route does not match while a template of this name exists, whose route has the same path. */
  readonly unlessTemplate?: string;
  readonly requestHeaders?: Readonly<Record<string, string>>;
}

export interface RouteInput<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /**
   * The body with its arrays, objects and unusual numbers as received text, for forwarding: ADR 43. Empty for a body that
   * is not an object, and for MCP.
   */
  readonly fields: JsonFields;
  readonly request: HttpRequest;
  /** The caller; the anonymous admin while authentication is off; a principal without scopes on open routes. */
  readonly principal: Principal;
}

export interface RouteDefinition<P extends TSchema, Q extends TSchema, B extends TSchema>
  extends Omit<RouteAccess, 'method' | 'path' | 'errors'> {
  /** Errors of this route besides those that defineRoute adds. */
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

export interface Route extends RouteAccess {
  readonly request: { readonly params?: TSchema; readonly query?: TSchema; readonly body?: TSchema };
  /** Throws for an invalid name in the path: 404, or 422 for invalid text. `run` does this, too. */
  checkPath(params: RawInput['params']): void;
  /** Validates the input, then calls the handler. Throws GatewayError. */
  run(raw: RawInput, services: Services): Reply | Promise<Reply>;
}

/** Makes a route: compiles its schemas once and completes its list of errors. */
export function defineRoute<
  P extends TSchema = TUnknown,
  Q extends TSchema = TUnknown,
  B extends TSchema = TUnknown,
>(method: Method, path: string, definition: RouteDefinition<P, Q, B>): Route {
  const { handler, request = {}, errors = [], ...access } = definition;
  const paramsShape = shapeOf(request.params, 'path');
  const queryShape = shapeOf(request.query, 'query');
  const isRpc = access.speaks === 'json-rpc';
  const bodyShape = shapeOf(isRpc ? undefined : request.body, 'body');
  const readQuery = queryReader(request.query);
  return {
    ...access,
    method,
    path,
    request,
    errors: [
      ...new Set([
        ...errors,
        ...(request.body === undefined || isRpc ? [] : WITH_BODY),
        ...(access.scope === 'open' ? [] : WITH_CREDENTIALS.filter((code) => !isRpc || code !== COUNTED)),
        ...(access.scope !== 'open' && readsRegistry([access.scope].flat()) ? WHILE_STARTING : []),
        ...EVERY_ROUTE,
      ]),
    ],
    checkPath: (params) => {
      if (!paramsShape.accepts(params)) throw pathRefused(params, paramsShape);
    },
    run: (raw, services) => {
      const { params, body, bodyFields: fields = {}, request, principal } = raw;
      if (!paramsShape.accepts(params)) throw pathRefused(raw.params, paramsShape);
      const query = readQuery(raw.query);
      if (!queryShape.accepts(query) || !bodyShape.accepts(body))
        throw validationFailed([...queryShape.issues(query), ...bodyShape.issues(body)]);
      return handler({ params, query, body, fields, request, principal }, services);
    },
  };
}

/** Raised by handlers that count requests themselves. */
const COUNTED: ErrorCode = 'RATE_LIMIT_EXCEEDED';

function shapeOf<S extends TSchema>(schema: S | undefined, place: Place): Shape<StaticEncode<S>> {
  return schema === undefined ? anything() : compileShape(schema, place);
}

const EVERY_ROUTE: readonly ErrorCode[] = ['ORIGIN_NOT_ALLOWED', 'VALIDATION_ERROR', 'INTERNAL_ERROR'];

const WITH_CREDENTIALS: readonly ErrorCode[] = [
  'AUTHENTICATION_REQUIRED',
  'INVALID_CREDENTIALS',
  'TOKEN_EXPIRED',
  'INSUFFICIENT_PERMISSIONS',
  'RATE_LIMIT_EXCEEDED',
  'DATABASE_UNAVAILABLE',
];

/** Errors of every route that needs the registry, which may not be loaded yet. */
const WHILE_STARTING: readonly ErrorCode[] = ['NO_HEALTHY_INSTANCE'];

const WITH_BODY: readonly ErrorCode[] = [
  'MALFORMED_JSON',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'QUEUE_FULL',
];

/** Errors of a request to an instance of a template. */
export const FROM_BACKEND: readonly ErrorCode[] = [
  'TEMPLATE_NOT_FOUND',
  'QUEUE_FULL',
  'TOOL_EXECUTION_FAILED',
  'NO_HEALTHY_INSTANCE',
  'BACKEND_UNAVAILABLE',
  'BACKEND_TIMEOUT',
  'SHUTTING_DOWN',
];
