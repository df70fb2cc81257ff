// A route: a row of the table with all data for validation, authentication and the API description, and a handler
// that does not depend on koa. app.ts mounts routes; routes/index.ts lists them.

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

/** What handlers use besides their input. */
export interface Services {
  readonly gateway: Gateway;
  readonly auth: Auth;
  /** The MCP endpoint. */
  readonly mcp: McpEndpoint;
  /** Commands that may be registered without the scope `admin`. */
  readonly allowedCommands: readonly AllowedCommand[];
  /** Template definitions, by id. */
  readonly definitions: ReadonlyMap<string, TemplateDefinition>;
  /** The newest events, for `GET /events`. */
  readonly events: RecentEvents;
  /** The load of the gateway, for readers of `GET /events`. */
  readonly samples: Samples;
  /** For `GET /metrics`. */
  readonly metrics: Pick<Prometheus, 'text'>;
  /** The API description and the pages that show it. */
  readonly documents: Documents;
  readonly consoleFiles: ConsoleFiles;
  /** The log; its level can be changed. */
  readonly log: { level: string };
  /** The settings in effect, secrets masked. */
  readonly settings: readonly ConfigRow[];
  /** Version of this package. */
  readonly build: string;
}

/** One kind of success. */
export interface AnswerDoc {
  readonly description: string;
  /** Schema of the body; absent when there is none. */
  readonly body?: TSchema;
  /** Media types of the body; `Accept` selects one when there are several. Default `application/json`. */
  readonly types?: readonly string[];
  /** An example of the body, for the API description. Default: made from the schema. */
  readonly example?: unknown;
  /** Descriptions of its own headers, by name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Name of the event of a stream that holds the example. Default `result`. */
  readonly event?: string;
  /** True when an error of the same status has its own body instead of being a part of this one. */
  readonly isApart?: boolean;
}

/** The part of a route that is data. */
export interface RouteAccess {
  readonly method: Method;
  /** Parameters are written `:name`; `*name` is the rest of the path, slashes included. */
  readonly path: string;
  /** One line for the API description. */
  readonly summary: string;
  /** Any one of these is enough; `open` needs none. */
  readonly scope: 'open' | Scope | readonly Scope[];
  /** Successes by status. */
  readonly answers: Readonly<Record<number, AnswerDoc>>;
  /** Errors it can answer. */
  readonly errors: readonly ErrorCode[];
  /**
   * Reader of the body: `direct` on hot routes, `koa-body` elsewhere (the default). Both give identical answers; `form`
   * also accepts a form.
   */
  readonly reader?: 'direct' | 'koa-body' | 'form';
  /**
   * `json-rpc`: the handler gets the bytes of the body and counts the requests in it (`request.consume`), and its errors are
   * JSON-RPC errors; refusals of authorization are ordinary errors. HEAD is not answered. Default: none of this.
   */
  readonly speaks?: 'json-rpc';
  /** Not counted by the rate limit: a caller over its limit may end its session. */
  readonly isFree?: boolean;
  /** Does not match while a template of this name exists: the path then belongs to the row of that template. */
  readonly unlessTemplate?: string;
  /** Request headers, for the API description: their purpose, by name. */
  readonly requestHeaders?: Readonly<Record<string, string>>;
}

/** What a handler gets. */
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
  /** The caller; the anonymous admin while authentication is off. On open routes a principal without any scope. */
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

/** The matched request, before any check. */
export interface RawInput {
  readonly params: Readonly<Record<string, string>>;
  /** Without `?`. */
  readonly query: string;
  readonly body: unknown;
  readonly bodyFields?: JsonFields | undefined;
  readonly request: HttpRequest;
  readonly principal: Principal;
}

/** A finished row: schemas to describe it, `run` to answer a request. */
export interface Route extends RouteAccess {
  readonly request: { readonly params?: TSchema; readonly query?: TSchema; readonly body?: TSchema };
  /** Throws for invalid names in the path: 404, or 422 for invalid text. `run` checks them, too. */
  checkPath(params: RawInput['params']): void;
  /** Validates, then calls the handler. Throws GatewayError; 404 for an invalid name in the path, 422 for the rest. */
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
      if (!queryShape.accepts(query) || !bodyShape.accepts(body)) {
        throw validationFailed([...queryShape.issues(query), ...bodyShape.issues(body)]);
      }
      return handler({ params, query, body, fields, request, principal }, services);
    },
  };
}

/** Raised by handlers that count requests themselves. */
const COUNTED: ErrorCode = 'RATE_LIMIT_EXCEEDED';

function shapeOf<S extends TSchema>(schema: S | undefined, place: Place): Shape<StaticEncode<S>> {
  return schema === undefined ? anything() : compileShape(schema, place);
}

/** Errors of every route. */
const EVERY_ROUTE: readonly ErrorCode[] = ['ORIGIN_NOT_ALLOWED', 'VALIDATION_ERROR', 'INTERNAL_ERROR'];

/** Further errors of every route that needs credentials. */
const WITH_CREDENTIALS: readonly ErrorCode[] = [
  'AUTHENTICATION_REQUIRED',
  'INVALID_CREDENTIALS',
  'TOKEN_EXPIRED',
  'INSUFFICIENT_PERMISSIONS',
  'RATE_LIMIT_EXCEEDED',
  'DATABASE_UNAVAILABLE',
];

/** Further errors of every route that needs the registry: it may not be loaded yet. */
const WHILE_STARTING: readonly ErrorCode[] = ['NO_HEALTHY_INSTANCE'];

/** Further errors of every route with a body. */
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
