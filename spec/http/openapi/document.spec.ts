// The API description as a whole, one operation of it, and the parts that operations share.

import { Validator } from '@seriousme/openapi-schema-validator';
import Type from 'typebox';
import * as Schema from 'typebox/schema';
import * as assert from 'uvu/assert';
import { SCOPES } from '../../../src/domain/account.ts';
import { commandRefusal } from '../../../src/domain/command.ts';
import { ERROR_STATUS } from '../../../src/domain/errors.ts';
import { HEADERS, NAMED_SCHEMAS, SECURITY_SCHEMES } from '../../../src/http/openapi/components.ts';
import { openApiDocument, operationOf, tagOf } from '../../../src/http/openapi/document.ts';
import { ERROR_SAMPLES } from '../../../src/http/openapi/error-samples.ts';
import { schemaWriter } from '../../../src/http/openapi/schema.ts';
import { noContent } from '../../../src/http/reply.ts';
import { defineRoute, type RouteAccess } from '../../../src/http/route.ts';
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

test('names every operation once, and puts each into a group that it describes', () => {
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

test('points only to what is there', () => {
  for (const pointer of everywhere('$ref')) {
    const [, , kind = '', name = ''] = String(pointer).split('/');
    assert.ok(document.components[kind]?.[name], String(pointer));
  }
});

test('says of every route that needs the registry that it may not be loaded yet', () => {
  for (const { scope, errors, path } of ROUTES)
    if (scope !== 'open' && ![scope].flat().includes('admin'))
      assert.ok(errors.includes('NO_HEALTHY_INSTANCE'), path);
});

test('has no errors of bodies and counts where JSON-RPC is spoken: these are in its messages', () => {
  for (const { speaks, errors, path } of ROUTES)
    for (const code of ['MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'RATE_LIMIT_EXCEEDED'] as const)
      if (speaks === 'json-rpc') assert.not(errors.includes(code), `${path} ${code}`);
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
  const fits = (schema: object, example: unknown): void => {
    examined += 1;
    const [isValid, errors] = Schema.Errors({ ...schema, components: document.components }, example);
    assert.ok(isValid, `${JSON.stringify(example)?.slice(0, 300)}: ${JSON.stringify(errors).slice(0, 300)}`);
  };
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { schema, example, examples } = Object(value);
    if (schema !== undefined && example !== undefined) fits(schema, example);
    if (schema !== undefined && examples !== undefined) {
      for (const named of Object.values(examples)) fits(schema, Object(named).value);
    }
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

test('shows an example of every JSON body, in both directions', () => {
  for (const { operationId, requestBody, responses } of everyOperation()) {
    for (const content of contentsOf(requestBody)) assert.ok('example' in content, operationId);
    for (const response of Object.values(responses)) {
      for (const content of contentsOf(Object(response))) {
        assert.ok(
          'example' in content ||
            'examples' in content ||
            content.schema.type === 'string' ||
            isEmpty(content.schema),
          operationId,
        );
      }
    }
  }
});

test('says nothing of TypeBox, and asks for nothing that is elsewhere', () => {
  const text = JSON.stringify(document);
  assert.not.match(text, /~kind|"\$id"|~optional/);
  assert.equal(text.match(/https?:\/\/(?!127\.0\.0\.1)[^"\\ ]*/g), null);
});

test('puts operations into groups by path', () => {
  for (const [group, paths] of Object.entries({
    MCP: '/mcp /mcp/:template /mcp/:template/mcp /mcp/:template/sse /mcp/:template/messages /mcp/sse',
    Templates: '/mcp/:template/tools/call /mcp/:template/health',
    Gateway: '/gateway/registry',
    Servers: '/servers /servers/:server_id /tools/call /health',
    Accounts: '/auth/users /gateway/audit',
    Documents: '/docs/assets/:file /openapi.json /',
    Process: '/livez /serversless',
  }))
    for (const path of paths.split(' ')) assert.is(tagOf(path), group, path);
});

test('offers the scopes there are to whoever logs in, and describes every header in a sentence', () => {
  const { tokenUrl, scopes } = SECURITY_SCHEMES.login.flows.password;
  assert.equal([tokenUrl, Object.keys(scopes)], ['auth/login', [...SCOPES]]);
  for (const { description } of Object.values(HEADERS)) assert.match(description, /^[A-Z].*\.$/);
  const texts = Object.values(NAMED_SCHEMAS).map((schema) => JSON.stringify(schema));
  assert.is(new Set(texts).size, texts.length, 'two names for one schema');
});

test('has a sample of every error, in the words that the gateway uses', () => {
  assert.equal(Object.keys(ERROR_SAMPLES).sort(), Object.keys(ERROR_STATUS).sort());
  for (const [code, sample] of Object.entries(ERROR_SAMPLES)) {
    assert.is(sample.code, code);
    assert.match(sample.message, /^.{10,200}$/);
  }
  const refusal = commandRefusal({ words: ['sh'] }, { allowed: [], declaredNames: [] });
  assert.is(ERROR_SAMPLES.COMMAND_NOT_ALLOWED.message, refusal);
});

// --- one operation --------------------------------------------------------------------------------------------------

const facts: RouteAccess = {
  ...{ method: 'POST', path: '/servers/:server_id', summary: 'A route of the spec', errors: [] },
  ...{ scope: ['gateway:read', 'tools:call'], answers: { 204: { description: 'Done' } } },
};
const request = {
  params: Type.Object({ server_id: Type.String({ examples: ['everything-1'] }) }),
  query: Type.Object({ wait: Type.Optional(Type.Integer({ minimum: 0, examples: [5] })) }),
  body: Type.Object({ username: Type.String({ examples: ['ada'] }) }),
};
const operationFor = (over: Partial<RouteAccess> & { readonly request?: object }) => {
  const { method, path, ...definition } = { ...facts, ...over };
  return operationOf(defineRoute(method, path, { ...definition, handler: () => noContent() }), {
    errors: {},
    describe: schemaWriter({}).describe,
  });
};

test('has parameters, body and needed scopes of an operation', () => {
  const { responses: _, ...operation } = operationFor({ request });
  const username = { type: 'string', examples: ['ada'] };
  const schema = { type: 'object', required: ['username'], properties: { username } };
  assert.equal(operation, {
    tags: ['Servers'],
    operationId: 'postServersByServerId',
    summary: 'A route of the spec',
    description: 'Needs the scope `gateway:read` or `tools:call`.',
    parameters: [
      {
        ...{ name: 'server_id', in: 'path', required: true },
        ...{ schema: { type: 'string', examples: ['everything-1'] }, example: 'everything-1' },
      },
      {
        ...{ name: 'wait', in: 'query', required: false },
        ...{ schema: { type: 'integer', minimum: 0, examples: [5] }, example: 5 },
      },
    ],
    requestBody: {
      required: true,
      content: { 'application/json': { schema, example: { username: 'ada' } } },
    },
    security: ['gateway:read', 'tools:call'].flatMap((scope) =>
      ['login', 'bearer', 'apiKey'].map((scheme) => ({ [scheme]: [scope] })),
    ),
    'x-required-scopes': ['gateway:read', 'tools:call'],
  });
});

test('offers the form first where a form is taken, and prefers the example of a body to those of its fields', () => {
  const body = Type.Object(request.body.properties, { examples: [{ username: 'eve' }] });
  const { content } = Object(operationFor({ request: { ...request, body }, reader: 'form' }).requestBody);
  assert.equal(Object.keys(content), ['application/x-www-form-urlencoded', 'application/json']);
  assert.equal(content['application/json'].example, { username: 'eve' });
});

test('needs no credentials for an open operation, and lists the headers that a request may carry', () => {
  const open = operationFor({
    scope: 'open',
    path: '/x',
    requestHeaders: { 'Mcp-Session-Id': 'The session' },
  });
  assert.equal(
    [open.security, open.description, open['x-required-scopes']],
    [[], 'Needs no credentials.', []],
  );
  const header = { name: 'Mcp-Session-Id', in: 'header', required: false, description: 'The session' };
  assert.equal(open.parameters, [{ ...header, schema: { type: 'string' } }]);
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

function isEmpty(schema: object): boolean {
  return Object.keys(schema).length === 0;
}

function everywhere(field: string, value: unknown = document): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => [
    ...(key === field ? [child] : []),
    ...everywhere(field, child),
  ]);
}

test.run();
