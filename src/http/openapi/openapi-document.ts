// The API description: OpenAPI 3.1, made from the table of routes. Source: ADR 21.

import type { Scope } from '../../domain/accounts/account.ts';
import { API_VERSION } from '../../domain/version.ts';
import type { HttpRoute } from '../routing/route.ts';
import { answersOf, HEADERS, SECURITY_SCHEMES, type SharedAnswers } from './answers.ts';
import { type Described, exampleOf, schemaWriter } from './schema-writer.ts';

/** The document as plain JSON, with the fields that specs and tools read. */
interface OpenApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly [field: string]: unknown;
}

/** Addresses are relative to the document, so that it is also valid behind a path prefix. */
export function openApiDocument(routes: readonly HttpRoute[]): OpenApiDocument {
  const writer = schemaWriter();
  const shared: SharedAnswers = { errors: {}, describe: writer.describe };
  const paths = Map.groupBy(routes, ({ path }) => pathTemplate(path));
  const operations = [...paths].map(([path, rows]) => [
    path,
    Object.fromEntries(rows.map((route) => [route.method.toLowerCase(), operationOf(route, shared)])),
  ]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Stagedoor',
      version: API_VERSION,
      summary: 'One HTTP entrance in front of many MCP servers',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '.', description: 'The gateway that serves this document' }],
    tags: TAGS.map(({ name, description }) => ({ name, description })),
    paths: Object.fromEntries(operations),
    components: {
      schemas: Object.fromEntries(Object.entries(writer.named).sort()),
      responses: shared.errors,
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

const DESCRIPTION = `Calls by template and management by server of one gateway.

Send \`Authorization: Bearer <token>\` with a token of \`POST /auth/login\`, or \`X-API-Key: <key>\`. By
default a user has 1,000 requests per hour and an API key 5,000; an admin has no limit. The headers
\`X-RateLimit-*\` show the rest of the window.

Every error has \`detail\`, \`error_code\` and \`request_id\`. \`HEAD\` is answered wherever \`GET\` is, \`OPTIONS\` lists the
methods of a path, another method is \`405 METHOD_NOT_ALLOWED\`, and an unknown path is \`404 NOT_FOUND\`.

MCP clients connect to \`/mcp/{template}\`, or to \`/mcp\` for all templates they may use. Errors in their messages
are JSON-RPC errors; errors of authentication and authorization are those above. There the limit counts JSON-RPC requests,
and \`HEAD\` is not answered.`;

function operationOf(route: HttpRoute, shared: SharedAnswers): Described {
  const { path, summary, scope } = route;
  const scopes = scope === 'open' ? [] : [scope].flat();
  const parameters = [
    ...parametersOf(route, 'path', shared),
    ...parametersOf(route, 'query', shared),
    ...headersOf(route),
  ];
  const body = bodyOf(route, shared);
  return {
    tags: [tagOf(path)],
    operationId: operationId(route),
    summary,
    description: neededScopes(scopes),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: answersOf(route, shared),
    security: scopes.flatMap((scope) => Object.keys(SECURITY_SCHEMES).map((name) => ({ [name]: [scope] }))),
    'x-required-scopes': scopes,
  };
}

/** A path in the notation of OpenAPI, which has none for the rest of a path: `/mcp/{template}/health`. */
export function pathTemplate(path: string): string {
  return path.replaceAll(/[:*](\w+)/g, '{$1}');
}

/** Method and words of the path, its last parameter included, and `OfAll` for a route with `unlessTemplate`. */
function operationId({ method, path, unlessTemplate }: HttpRoute): string {
  const words = path
    .split('/')
    .filter((word, index, all) => !/^[:*]/.test(word) || index === all.length - 1)
    .map((word) => (/^[:*]/.test(word) ? `by-${word.slice(1)}` : word))
    .flatMap((word) => word.split(/[^A-Za-z0-9]+/))
    .filter((word) => word !== '');
  const capitals = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${method.toLowerCase()}${capitals.join('')}${unlessTemplate === undefined ? '' : 'OfAll'}`;
}

function neededScopes(scopes: readonly Scope[]): string {
  if (scopes.length === 0) return 'Needs no credentials.';
  return `Needs the scope ${scopes.map((scope) => `\`${scope}\``).join(' or ')}.`;
}

function parametersOf(
  { request }: HttpRoute,
  location: 'path' | 'query',
  { describe }: SharedAnswers,
): readonly Described[] {
  const schema = location === 'path' ? request.params : request.query;
  if (schema === undefined) return [];
  const required: readonly string[] = schema.required ?? [];
  const example = Object(exampleOf(schema));
  return Object.entries(schema.properties).map(([name, property]) => ({
    name,
    in: location,
    required: required.includes(name),
    schema: describe(property),
    ...(name in example ? { example: example[name] } : {}),
  }));
}

function headersOf({ requestHeaders = {} }: HttpRoute): readonly Described[] {
  return Object.entries(requestHeaders).map(([name, description]) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
  }));
}

function bodyOf(route: HttpRoute, { describe }: SharedAnswers): Described | undefined {
  const { body } = route.request;
  if (body === undefined) return undefined;
  const content = { schema: describe(body), example: exampleOf(body) };
  // The form is first, because interactive pages offer the first type.
  const types = route.bodyKind === 'form' ? ['application/x-www-form-urlencoded'] : [];
  return {
    required: true,
    content: Object.fromEntries([...types, 'application/json'].map((type) => [type, content])),
  };
}

interface Tag {
  readonly name: string;
  readonly description: string;
  /** Paths of its operations; the first match wins. */
  readonly paths: RegExp;
}

/** The tags in the order of their pages: those that most readers look for are first. */
export const TAGS: readonly Tag[] = [
  {
    name: 'Templates',
    description: 'Calls by template. The gateway chooses a healthy instance.',
    paths: /^\/mcp\/:template\/(?!(?:mcp|sse|messages)$)/,
  },
  {
    name: 'Gateway',
    description: 'The registry, its instances, health, statistics and events.',
    paths: /^\/(?:events$|gateway\/(?!audit(?:\/|$)))/,
  },
  {
    name: 'Servers',
    description: 'Servers by id, calls to one of them, health and statistics.',
    paths: /^\/(?:servers|tools|health|stats)(?:\/|$)/,
  },
  {
    name: 'Accounts',
    description: 'Login, users, API keys and the audit log.',
    paths: /^\/(?:auth|gateway\/audit)(?:\/|$)/,
  },
  {
    name: 'MCP',
    description: 'For MCP clients: each template, and all of them, as one MCP server.',
    paths: /^\/mcp(?:\/|$)/,
  },
  {
    name: 'Documents',
    description: 'This description, the pages that show it, and the console.',
    paths: /^\/(?:$|(?:docs|redoc|openapi\.json|console)(?:\/|$))/,
  },
  { name: 'Process', description: 'Liveness and readiness of the process.', paths: /^/ },
];

export function tagOf(path: string): string {
  return TAGS.find(({ paths }) => paths.test(path))?.name ?? '';
}
