// The API description: OpenAPI 3.1 made from the table of routes, so that it cannot tell another story than they do.
// Source: spec, "What the service does" 8; ADR 21.

import { API_VERSION } from '../../domain/version.ts';
import type { Route } from '../route.ts';
import type { SharedAnswers } from './answers.ts';
import { HEADERS, NAMED_SCHEMAS, SECURITY_SCHEMES } from './components.ts';
import { exampleOf } from './example.ts';
import { type OperationObject, operationOf, pathTemplate } from './operation.ts';
import { schemaWriter } from './schema.ts';
import { TAGS } from './tags.ts';

/** The parts of the document that programs of this repository look at; it is plain JSON. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly [field: string]: unknown;
}

/** Describes every route. Addresses are relative to the document, so it also holds behind a path prefix. */
export function openApiDocument(routes: readonly Route[]): OpenApiDocument {
  const writer = schemaWriter(NAMED_SCHEMAS);
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
      summary: 'One HTTP entrance to many MCP servers',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: './', description: 'The gateway that serves this document' }],
    tags: TAGS.map(({ name, description }) => ({ name, description })),
    paths: Object.fromEntries(operations),
    components: {
      schemas: Object.fromEntries(
        Object.entries(writer.named).map(([name, schema]) => [
          name,
          { ...schema, examples: [exampleOf(NAMED_SCHEMAS[name] ?? {})] },
        ]),
      ),
      responses: shared.errors,
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

const DESCRIPTION = `Calls by template (surface A) and management by server (surface B) of one gateway.

Send \`Authorization: Bearer <token>\` with a token of \`POST /auth/login\`, or \`X-API-Key: <key>\`. By
default a user has 1,000 requests per hour and an API key 5,000; an admin has as many as there are. The headers
\`X-RateLimit-*\` tell what is left.

Every error has \`detail\`, \`error_code\` and \`request_id\`. \`HEAD\` is answered wherever \`GET\` is, \`OPTIONS\` lists the
methods of a path, another method is \`405 METHOD_NOT_ALLOWED\`, and an unknown path is \`404 NOT_FOUND\`.

MCP clients connect to \`/mcp/{template}\`, or to \`/mcp\` for all templates they may use. What is wrong with their
messages is told in the words of JSON-RPC; who may not come in at all gets the errors above. There the limit counts
JSON-RPC requests, and \`HEAD\` is not answered.`;
