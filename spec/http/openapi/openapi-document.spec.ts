// The API description as a whole, single operations of it, and the schemas and examples that it is made of.

import { Validator } from '@seriousme/openapi-schema-validator';
import Type from 'typebox';
import * as Schema from 'typebox/schema';
import * as assert from 'uvu/assert';
import { SCOPES } from '../../../src/domain/accounts/account.ts';
import { HEADERS, SECURITY_SCHEMES } from '../../../src/http/openapi/answers.ts';
import { openApiDocument } from '../../../src/http/openapi/openapi-document.ts';
import { schemaWriter } from '../../../src/http/openapi/schema-writer.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the API description');
const document = JSON.parse(JSON.stringify(openApiDocument(ROUTES)));

test('is OpenAPI 3.1 of the API version', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  assert.ok(valid, JSON.stringify(errors));
  assert.equal([document.openapi, document.info.version], ['3.1.0', '2.0.0']);
});

test('has every route and no other', () => {
  const described = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(Object(item)).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const served = ROUTES.map(({ method, path }) => `${method} ${path.replaceAll(/[:*](\w+)/g, '{$1}')}`);
  assert.equal(described.sort(), served.sort());
});

test('gives every operation a unique id and a group that it describes', () => {
  const groups = document.tags.map(({ name }: { name: string }) => name);
  const ids = everyOperation().map(({ operationId }) => operationId);
  assert.equal([new Set(ids).size, new Set(groups).size], [ids.length, groups.length]);
  for (const { operationId, tags } of everyOperation()) {
    assert.match(operationId, /^[a-z][A-Za-z0-9]+$/);
    assert.ok(groups.includes(tags[0]), operationId);
  }
  // A group without operations would be an empty heading.
  assert.equal(
    groups.filter((name: string) => !everyOperation().some(({ tags }) => tags[0] === name)),
    [],
  );
});

test('has no $ref to a missing component', () => {
  for (const pointer of everywhere('$ref')) {
    const [, , kind = '', name = ''] = String(pointer).split('/');
    assert.ok(document.components[kind]?.[name], String(pointer));
  }
});

test('uses every component', () => {
  const pointers = new Set(everywhere('$ref'));
  for (const kind of ['schemas', 'responses', 'headers']) {
    for (const name of Object.keys(document.components[kind])) {
      assert.ok(pointers.has(`#/components/${kind}/${name}`), `${kind}/${name} is used by nobody`);
    }
  }
});

test('gives examples that fit their schemas', () => {
  let examined = 0;
  // Parts only: a named schema may be one part of another.
  const schemas = Object.entries(document.components.schemas).map(([name, schema]) => {
    const { properties } = Object(schema);
    return [name, { ...Object(schema), properties: closedParts(properties) }];
  });
  const components = { schemas: Object.fromEntries(schemas) };
  const fits = (schema: object, example: unknown): void => {
    examined += 1;
    const [isValid, errors] = Schema.Errors({ ...Object(closedParts(schema)), components }, example);
    assert.ok(isValid, `${JSON.stringify(example)?.slice(0, 300)}: ${JSON.stringify(errors).slice(0, 300)}`);
  };
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { schema, example } = Object(value);
    if (schema !== undefined && example !== undefined) fits(schema, example);
    for (const child of Object.values(value)) walk(child);
  };
  walk(document);
  for (const schema of Object.values(document.components.schemas)) {
    const { examples } = Object(schema);
    assert.is(examples.length, 1);
    fits(Object(schema), examples[0]);
  }
  assert.ok(examined > 150, `only ${examined} were found`);
});

/** As linters read them: an example has no field that its schema does not name, unless the schema says that there may be others. */
function closedParts(part: unknown, name = ''): unknown {
  if (typeof part !== 'object' || part === null || ['allOf', 'examples'].includes(name)) return part;
  if (Array.isArray(part)) return part.map((each) => closedParts(each));
  const closed = Object.entries(part).map(([key, value]) => [key, closedParts(value, key)] as const);
  const { type, additionalProperties, patternProperties } = Object(part);
  const isOpen = type !== 'object' || additionalProperties !== undefined || patternProperties !== undefined;
  return { ...(isOpen ? {} : { additionalProperties: false }), ...Object.fromEntries(closed) };
}

test('has an address without a slash at its end, and the main routes first', () => {
  assert.equal(
    document.servers.map(({ url }: { url: string }) => url),
    ['.'],
  );
  const [first, second, third, fourth] = document.tags.map(({ name }: { name: string }) => name);
  assert.equal([first, second, third, fourth], ['Templates', 'Gateway', 'Servers', 'Accounts']);
  const firstOf = (tag: string) => everyOperation().find(({ tags }) => tags[0] === tag)?.operationId;
  assert.equal(['Templates', 'Gateway', 'Servers', 'Accounts'].map(firstOf), [
    'postMcpToolsCall',
    'postGatewayRegister',
    'postToolsCall',
    'postAuthLogin',
  ]);
});

test('has an example for every JSON body of requests and answers', () => {
  for (const { operationId, requestBody, responses } of everyOperation()) {
    for (const content of contentsOf(requestBody)) assert.ok('example' in content, operationId);
    for (const response of Object.values(responses)) {
      for (const content of contentsOf(Object(response))) {
        const hasNone = content.schema.type === 'string' || Object.keys(content.schema).length === 0;
        assert.ok('example' in content || hasNone, operationId);
      }
    }
  }
});

test('contains no fields of TypeBox and no external URL', () => {
  const text = JSON.stringify(document);
  assert.not.match(text, /~kind|"\$id"|~optional/);
  assert.equal(text.match(/https?:\/\/(?!127\.0\.0\.1|[\w.]+\.example\b)[^"\\ ]*/g), null);
});

test('offers all scopes at the login, describes every header in a sentence, and gives a name to one schema only', () => {
  const { tokenUrl, scopes } = SECURITY_SCHEMES.login.flows.password;
  assert.equal([tokenUrl, Object.keys(scopes)], ['auth/login', [...SCOPES]]);
  for (const { description } of Object.values(HEADERS)) assert.match(description, /^[A-Z].*\.$/);
  const schemas = new Set<string>();
  JSON.stringify(ROUTES, (_, part) => {
    if ('schemaName' in Object(part)) schemas.add(JSON.stringify(part));
    return part;
  });
  const names = Array.from(schemas, (text) => JSON.parse(text).schemaName);
  assert.is(new Set(names).size, names.length, 'two schemas have the same name');
});

// --- single operations ----------------------------------------------------------------------------------------------

/** The operation `GET /x`. */
function operation(name: string) {
  const [method = '', path = ''] = name.split(' ');
  return Object(document.paths[path])[method.toLowerCase()];
}

const pointers = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
const LIMITED = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

test('has names, parameters and required scopes of an operation', () => {
  const { requestBody: _, responses: __, ...registration } = operation('POST /gateway/register');
  assert.equal(registration, {
    tags: ['Gateway'],
    operationId: 'postGatewayRegister',
    summary: 'Register an instance, or replace one in place',
    description: 'Needs the scope `gateway:write`.',
    parameters: [
      {
        ...{ name: 'wait', in: 'query', required: false, example: 5 },
        schema: { type: 'integer', minimum: 0, maximum: 300, examples: [5] },
      },
      {
        ...{ name: 'If-Match', in: 'header', required: false, schema: { type: 'string' } },
        description: 'The `updated_at` of the version that was read, in quotes: another one is not replaced.',
      },
    ],
    security: ['login', 'bearer', 'apiKey'].map((scheme) => ({ [scheme]: ['gateway:write'] })),
    'x-required-scopes': ['gateway:write'],
  });
  const { description, security, operationId } = operation('GET /mcp/{template}/tools/list');
  assert.equal([operationId, security.length], ['getMcpToolsList', 6]);
  assert.is(description, 'Needs the scope `gateway:read` or `tools:call`.');
  const ids = ['GET /mcp/sse', 'GET /servers/{server_id}'].map((name) => operation(name).operationId);
  assert.equal(ids, ['getMcpSseOfAll', 'getServersByServerId']);
});

test('offers the form first for a login, without credentials and with the header of the console', () => {
  const { requestBody, security, description, parameters, ...login } = operation('POST /auth/login');
  assert.equal(Object.keys(requestBody.content), ['application/x-www-form-urlencoded', 'application/json']);
  assert.equal([security, description, login['x-required-scopes']], [[], 'Needs no credentials.', []]);
  const [{ description: purpose, ...header }] = parameters;
  assert.equal(header, {
    ...{ name: 'X-Stagedoor-Console', in: 'header', required: false, schema: { type: 'string' } },
  });
  assert.match(purpose, 'session cookie');
});

test('lists the headers of an answer: rate limit unless the route is open, instance id, and those of the route', () => {
  const headersOf = (name: string) => operation(name).responses[200].headers;
  assert.equal(headersOf('GET /livez'), pointers('X-Request-ID'));
  assert.equal(headersOf('GET /auth/me'), pointers('X-Request-ID', ...LIMITED));
  const instance = pointers('X-Request-ID', 'X-Instance-ID', ...LIMITED);
  assert.equal(headersOf('GET /mcp/{template}/prompts/list'), instance);
  const total = { description: 'Number of all records', schema: { type: 'string' } };
  assert.equal(headersOf('GET /servers')['X-Total-Count'], total);
});

test('offers 429 for every route with credentials except the logout, which no limit counts', () => {
  assert.ok('429' in operation('GET /auth/me').responses);
  assert.not.ok('429' in operation('POST /auth/logout').responses);
});

test('adds an error to the body of the same status, and offers both forms of errors at the MCP endpoint', () => {
  const { description, content, headers } = operation('GET /readyz').responses[503];
  assert.is(description, 'The fields of an error, and the status');
  assert.ok('Retry-After' in headers);
  const { schema, example } = content['application/json'];
  assert.equal(schema.allOf[0].properties.status.enum, ['starting', 'draining', 'shutting down']);
  assert.ok(schema.allOf[1].allOf[1].properties.error_code.enum.includes('SHUTTING_DOWN'));
  assert.equal([example.status, example.error_code], ['starting', 'SHUTTING_DOWN']);

  const { default: refused, 404: unknown } = operation('POST /mcp/{template}').responses;
  const refusal = { $ref: '#/components/schemas/RpcRefusal' };
  assert.equal(refused.content['application/json'].schema, refusal);
  const name = unknown.$ref.split('/').at(-1);
  const [plain, other] = document.components.responses[name].content['application/json'].schema.anyOf;
  assert.equal([plain.allOf[1].properties.error_code.enum, other], [['TEMPLATE_NOT_FOUND'], refusal]);
});

test('describes event streams and files by their media types', () => {
  const contentOf = (name: string) => operation(name).responses[200].content;
  // ReDoc shows text of a schema in styles that its policy forbids.
  assert.equal(contentOf('GET /events'), { 'text/event-stream': {} });
  const { schema, example } = contentOf('POST /mcp/{template}/tools/call')['text/event-stream'];
  assert.equal(schema, { type: 'string' });
  assert.match(example, /^event: result\ndata: \{"content".*\}\n\n$/);
  assert.match(contentOf('POST /mcp')['text/event-stream'].example, /^event: message\ndata: /);
  const { 'text/css': css, 'image/png': png } = contentOf('GET /docs/assets/{file}');
  assert.equal([css, png], [{ schema: { type: 'string' } }, { schema: {} }]);
});

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, object>>;
}

function everyOperation(): Operation[] {
  return Object.values(document.paths).flatMap((item) => Object.values(Object(item)));
}

function contentsOf(holder: object | undefined): { readonly schema: object & { type?: string } }[] {
  return Object.entries(Object(holder).content ?? {})
    .filter(([type]) => type === 'application/json')
    .map(([, content]) => Object(content));
}

function everywhere(field: string, value: unknown = document): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => [
    ...(key === field ? [child] : []),
    ...everywhere(field, child),
  ]);
}

test.run();

const schemas = suite('schemas of the API description');

schemas('state the type of an enumeration of strings', () => {
  const { describe } = schemaWriter();
  assert.equal(describe(Type.Enum(['a', 'b'])), { type: 'string', enum: ['a', 'b'] });
  assert.equal(describe(Type.Enum([1, 'b'])), { enum: [1, 'b'] });
});

schemas('describe a pattern in the words of its refusal', () => {
  const { describe } = schemaWriter();
  assert.equal(describe(Type.Object({ name: Type.String({ pattern: '^a', 'x-words': 'a name' }) })), {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string', pattern: '^a', description: 'a name' } },
  });
});

schemas('write a record with any key as additionalProperties, and keep a pattern of keys', () => {
  const { describe } = schemaWriter();
  assert.equal(describe(Type.Record(Type.String(), Type.Integer())), {
    type: 'object',
    additionalProperties: { type: 'integer' },
  });
  const pattern = '^[A-Z]+$';
  assert.equal(
    describe(Type.Record(Type.String({ pattern }), Type.Integer(), { additionalProperties: false })),
    { type: 'object', patternProperties: { [pattern]: { type: 'integer' } }, additionalProperties: false },
  );
});

schemas.run();
