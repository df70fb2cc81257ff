// The answers of one route in the API description: successes and errors by status, with headers and examples; and
// the parts of the description that routes share.

import type { TSchema } from 'typebox';
import { SCOPES, type Scope } from '../../domain/accounts/account.ts';
import { type ErrorCode, statusesOf } from '../../domain/errors/errors.ts';
import { EVENT_STREAM_TYPE } from '../../domain/mcp/media-types.ts';
import { ErrorBody } from '../replies/error-reply.ts';
import { RpcRefusal } from '../routes/mcp-endpoint.ts';
import type { AnswerDoc, HttpRoute } from '../routing/route.ts';
import { type Described, exampleOf } from './schema-writer.ts';

export interface SharedAnswers {
  /** The error answers by name; complete after the last route was described. */
  readonly errors: Record<string, Described>;
  readonly describe: (schema: TSchema) => Described;
}

export function answersOf(route: HttpRoute, shared: SharedAnswers): Record<string, Described> {
  const { answers } = route;
  const raised = route.errors.flatMap((code) => statusesOf(code).map((status) => ({ code, status })));
  const byStatus = Map.groupBy(raised, ({ status }) => status);
  const frame = { ...shared, headers: headersOf(route), isRpc: route.speaks === 'json-rpc' };
  const successes = Object.entries(answers)
    .filter(([status]) => !byStatus.has(Number(status)))
    .map(([status, answer]) => [status, success(answer, frame)] as const);
  const errors = [...byStatus].map(([status, rows]) => {
    const own = answers[status];
    const failure = { status, codes: rows.map(({ code }) => code) };
    return [String(status), own ? mixed(own, failure, frame) : sharedError(failure, frame)] as const;
  });
  return {
    ...Object.fromEntries([...successes, ...errors]),
    ...(frame.isRpc ? { default: rpcRefusal(frame) } : {}),
  };
}

const STATUS_MEANINGS: Readonly<Record<number, string>> = {
  400: 'Refused',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  413: 'Too large',
  415: 'Unsupported media type',
  422: 'Not valid; `detail` lists every issue',
  429: 'Too many requests at once',
  500: 'Failed',
  503: 'Not available now',
};

interface StatusErrors {
  readonly status: number;
  readonly codes: readonly ErrorCode[];
}

/** The parts that all answers of one route have in common. */
interface Frame extends SharedAnswers {
  readonly headers: Described;
  /** True when errors may be those of JSON-RPC. */
  readonly isRpc: boolean;
}

function success(answer: AnswerDoc, { headers, describe, isRpc }: Frame): Described {
  const { description, body, types = ['application/json'] } = answer;
  const event = isRpc ? 'message' : 'result';
  const described = { description, headers: { ...headers, ...ownHeaders(answer) } };
  if (body === undefined) return described;
  const schema = describe(body);
  const example = answer.example ?? exampleOf(body);
  return {
    ...described,
    // The description explains events of a stream, because ReDoc shows schema text in styles that the policy forbids.
    content:
      types.join() === EVENT_STREAM_TYPE
        ? { [EVENT_STREAM_TYPE]: {} }
        : Object.fromEntries(types.map((type) => [type, contentOf(type, schema, example, event)])),
  };
}

/** Other types than JSON are text or bytes without a schema. */
function contentOf(type: string, schema: Described, example: unknown, event: string): Described {
  if (type === 'application/json') return { schema, example };
  if (type === EVENT_STREAM_TYPE)
    return { schema: { type: 'string' }, example: `event: ${event}\ndata: ${JSON.stringify(example)}\n\n` };
  return { schema: type.startsWith('image/') ? {} : { type: 'string' } };
}

/** Named by its codes, so that routes with the same codes share one answer. */
function sharedError(failure: StatusErrors, frame: Frame): Described {
  const limits = RATE_LIMITS.some((name) => name in frame.headers) ? ['limited'] : [];
  const name = [...failure.codes.toSorted(), ...limits, ...(frame.isRpc ? ['rpc'] : [])].join('.');
  frame.errors[name] ??= errorAnswer(failure, frame);
  return { $ref: `#/components/responses/${name}` };
}

function errorAnswer({ status, codes }: StatusErrors, { headers, isRpc, describe }: Frame): Described {
  const plain = errorSchema(codes, describe);
  const schema = isRpc ? { anyOf: [plain, describe(RpcRefusal)] } : plain;
  return {
    description: `${STATUS_MEANINGS[status] ?? 'An error'}: ${codes.map((code) => `\`${code}\``).join(', ')}`,
    headers: { ...headers, ...references(ERROR_HEADERS[status] ?? []) },
    content: { 'application/json': { schema, example: exampleError({ status, codes }) } },
  };
}

/** Every other refusal of the MCP endpoint; docs/reference/mcp.md lists the statuses. */
function rpcRefusal({ headers, describe }: Frame): Described {
  return {
    description: 'Refused, with a JSON-RPC error',
    headers: { ...headers, ...references(['Retry-After']) },
    content: { 'application/json': { schema: describe(RpcRefusal), example: exampleOf(RpcRefusal) } },
  };
}

/** A status of both a success and errors: the body also has the fields of the error, as in `/health` without a database. */
function mixed({ description, body = {} }: AnswerDoc, failure: StatusErrors, frame: Frame): Described {
  const schema = { allOf: [frame.describe(body), errorSchema(failure.codes, frame.describe)] };
  const example = { ...Object(exampleOf(body)), ...exampleError(failure) };
  return {
    ...errorAnswer(failure, frame),
    description,
    content: { 'application/json': { schema, example } },
  };
}

function errorSchema(codes: readonly ErrorCode[], describe: SharedAnswers['describe']): Described {
  return {
    allOf: [
      describe(ErrorBody),
      { type: 'object', properties: { error_code: { type: 'string', enum: [...codes] } } },
    ],
  };
}

/** The first error of a status, in the form that callers get. */
function exampleError({ status, codes }: StatusErrors): object {
  const issue = { loc: ['body', 'name'], msg: 'Field required', type: 'missing' };
  const detail = status === 422 ? [issue] : (STATUS_MEANINGS[status] ?? 'An error');
  return { detail, error_code: codes[0], request_id: HEADERS['X-Request-ID'].schema.examples[0] };
}

const RATE_LIMITS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const;

const ERROR_HEADERS: Readonly<Record<number, readonly (keyof typeof HEADERS)[]>> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

function headersOf({ scope, errors, speaks }: HttpRoute): Described {
  const isAnswered = errors.includes('NO_HEALTHY_INSTANCE') || speaks === 'json-rpc';
  return references([
    'X-Request-ID',
    ...(isAnswered ? (['X-Instance-ID'] as const) : []),
    ...(scope === 'open' ? [] : RATE_LIMITS),
  ]);
}

function references(names: readonly (keyof typeof HEADERS)[]): Described {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function ownHeaders({ headers = {} }: AnswerDoc): Described {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  );
}

const SCOPE_MEANINGS: Readonly<Record<Scope, string>> = {
  'gateway:read': 'Read status and configuration of the gateway',
  'gateway:write': 'Change the configuration and manage servers',
  'tools:call': 'Execute tools on MCP servers',
  admin: 'Everything, users and keys included',
};

/** Each scheme is sufficient. The form of an interactive page uses `login`, which gives a token for `bearer`. */
export const SECURITY_SCHEMES = {
  login: {
    type: 'oauth2',
    description: 'User name and password, for which the page gets a token.',
    flows: {
      password: {
        tokenUrl: 'auth/login',
        scopes: Object.fromEntries(SCOPES.map((scope) => [scope, SCOPE_MEANINGS[scope]])),
      },
    },
  },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'A token of `POST /auth/login`, or an API key.',
  },
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'An API key.' },
} as const;

const count = { type: 'integer', minimum: 0 } as const;

/** Headers of answers, by name. `required`: the answer is invalid without it. */
export const HEADERS = {
  'X-Request-ID': {
    description: 'Id of this request in the log. A valid id that the caller sends is kept.',
    required: true,
    schema: { type: 'string', examples: ['7f3c2a51-6f0e-4d6b-9a63-0b7a2f1c9d44'] },
  },
  'X-Instance-ID': {
    description:
      'The instance that answered; for a stream that began earlier, the instance that worked on the call.',
    schema: { type: 'string', examples: ['everything-1'] },
  },
  'X-RateLimit-Limit': {
    description: 'Requests per window. Present when the caller has a limit, like the next two headers.',
    schema: { ...count, examples: [1000] },
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the window.',
    schema: { ...count, examples: [987] },
  },
  'X-RateLimit-Reset': {
    description: 'When the window ends, as Unix time in seconds.',
    schema: { ...count, examples: [1_800_000_000] },
  },
  'Retry-After': {
    description: 'Seconds until another attempt makes sense. Only when nothing was done for this request.',
    schema: { ...count, examples: [2] },
  },
  'WWW-Authenticate': {
    description: 'Ways to authenticate.',
    required: true,
    schema: { type: 'string', examples: ['Bearer'] },
  },
} as const;
