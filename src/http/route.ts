// What a route is: a row of the table with everything that validation, authentication and the API description need,
// and a handler that knows no koa. Where routes hang is app.ts; which there are is routes/index.ts.

import type { StaticEncode, TSchema, TUnknown } from 'typebox';
import type { Auth } from '../auth/auth.ts';
import type { Principal, Scope } from '../domain/account.ts';
import type { AllowedCommand } from '../domain/command-policy.ts';
import type { ErrorCode } from '../domain/error-codes.ts';
import type { JsonFields } from '../domain/json.ts';
import { validationFailed } from '../domain/request-errors.ts';
import { anything, compileShape, type Place, type Shape } from '../domain/validation.ts';
import type { Gateway } from '../gateway.ts';
import type { McpEndpoint } from '../protocol/endpoint-types.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import { readsRegistry } from './caller-check.ts';
import type { Documents } from './docs/documents.ts';
import { pathRefused } from './path-params.ts';
import { queryReader } from './query.ts';
import type { RecentEvents } from './recent-events.ts';
import type { Reply } from './reply.ts';
import type { RequestState } from './request-state.ts';
import { EVERY_ROUTE, WHILE_STARTING, WITH_BODY, WITH_CREDENTIALS } from './route-errors.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** What handlers work with besides their input. */
export interface Services {
  readonly gateway: Gateway;
  readonly auth: Auth;
  /** MCP for those who speak it. */
  readonly mcp: McpEndpoint;
  /** Commands that may be registered without the scope `admin`. */
  readonly allowedCommands: readonly AllowedCommand[];
  /** What is known of templates from their definition files, by id. */
  readonly definitions: ReadonlyMap<string, TemplateDefinition>;
  /** The newest events, for readers of the stream. */
  readonly events: RecentEvents;
  /** The API description and the pages that show it. */
  readonly documents: Documents;
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
  /** A body as it may look, for the API description. Default: made from the schema. */
  readonly example?: unknown;
  /** Headers of its own: what each tells, by name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Name of the event of a stream that holds the example. Default `result`. */
  readonly event?: string;
  /** True when an error of the same status has the body of an error instead of being a part of this one. */
  readonly isApart?: boolean;
}

/** The part of a route that is data. */
export interface RouteAccess {
  readonly method: Method;
  /** Parameters are written `:name`. */
  readonly path: string;
  /** One line for the API description. */
  readonly summary: string;
  /** Any one of these is enough; `open` needs none. Source: decisions, "Scope per endpoint". */
  readonly scope: 'open' | Scope | readonly Scope[];
  /** Successes by status. */
  readonly answers: Readonly<Record<number, AnswerDoc>>;
  /** Errors it can answer. Those of every route, and of every body, are added by defineRoute. */
  readonly errors: readonly ErrorCode[];
  /**
   * Who reads the body: `direct` on hot routes, `koa-body` elsewhere (the default). Both give identical answers; `form`
   * takes a form, too.
   */
  readonly reader?: 'direct' | 'koa-body' | 'form';
  /**
   * `json-rpc`: the handler gets the bytes of the body, counts the requests in it (`request.charge`) and answers errors in
   * the words of that protocol; those of the door stay as they are. HEAD is not answered. Default: none of this.
   */
  readonly speaks?: 'json-rpc';
  /** The path belongs to the template of that name where one is known: then another row fits it, and this one does not. */
  readonly unlessTemplate?: string;
  /** Headers that the request may carry, for the API description: what each is for, by name. */
  readonly requestHeaders?: Readonly<Record<string, string>>;
  /** A request body as one would send it, for the API description. Default: made from the schema. */
  readonly example?: unknown;
}

/** What a handler gets. */
export interface RouteInput<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /**
   * The body with its arrays, objects and unusual numbers as the text they came in, for what is passed on: ADR 43.
   * Empty for what is no object, and for MCP.
   */
  readonly fields: JsonFields;
  readonly request: RequestState;
  /** Who asks; the anonymous admin while authentication is off. On open routes nobody, who may do nothing. */
  readonly principal: Principal;
}

export interface RouteDefinition<P extends TSchema, Q extends TSchema, B extends TSchema>
  extends RouteAccess {
  readonly request?: { readonly params?: P; readonly query?: Q; readonly body?: B };
  readonly handler: (
    input: RouteInput<StaticEncode<P>, StaticEncode<Q>, StaticEncode<B>>,
    services: Services,
  ) => Reply | Promise<Reply>;
}

/** What the router found, before any check. */
export interface RawInput {
  readonly params: Readonly<Record<string, string>>;
  /** Without `?`. */
  readonly query: string;
  readonly body: unknown;
  readonly bodyFields?: JsonFields | undefined;
  readonly request: RequestState;
  readonly principal: Principal;
}

/** A finished row: schemas to describe it, `run` to answer a request. */
export interface Route extends RouteAccess {
  readonly request: { readonly params?: TSchema; readonly query?: TSchema; readonly body?: TSchema };
  /** Throws for names of the path that cannot be: 404, or 422 for what is no text. `run` does it, too. */
  checkPath(params: RawInput['params']): void;
  /** Validates, then asks the handler. Throws GatewayError; 404 for a bad path name, 422 for the rest. */
  run(raw: RawInput, services: Services): Reply | Promise<Reply>;
}

/** Compiles the schemas of a route once and completes its list of errors. */
export function defineRoute<
  P extends TSchema = TUnknown,
  Q extends TSchema = TUnknown,
  B extends TSchema = TUnknown,
>(definition: RouteDefinition<P, Q, B>): Route {
  const { handler, request = {}, errors, ...facts } = definition;
  const paramsShape = shapeOf(request.params, 'path');
  const queryShape = shapeOf(request.query, 'query');
  const isRpc = facts.speaks === 'json-rpc';
  const bodyShape = shapeOf(isRpc ? undefined : request.body, 'body');
  const readQuery = queryReader(request.query);
  return {
    ...facts,
    request,
    errors: [
      ...new Set([
        ...errors,
        ...(request.body === undefined || isRpc ? [] : WITH_BODY),
        ...(facts.scope === 'open' ? [] : WITH_CREDENTIALS.filter((code) => !isRpc || code !== COUNTED)),
        ...(facts.scope !== 'open' && readsRegistry([facts.scope].flat()) ? WHILE_STARTING : []),
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
        throw validationFailed([...queryShape.findings(query), ...bodyShape.findings(body)]);
      }
      return handler({ params, query, body, fields, request, principal }, services);
    },
  };
}

/** What the handler raises where it counts. */
const COUNTED: ErrorCode = 'RATE_LIMIT_EXCEEDED';

function shapeOf<S extends TSchema>(schema: S | undefined, place: Place): Shape<StaticEncode<S>> {
  return schema === undefined ? anything() : compileShape(schema, place);
}
