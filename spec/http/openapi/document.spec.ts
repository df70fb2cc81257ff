import { Validator } from '@seriousme/openapi-schema-validator';
import * as Schema from 'typebox/schema';
import * as assert from 'uvu/assert';
import { openApiDocument } from '../../../src/http/openapi/document.ts';
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

test('has every path of the spec, on both surfaces', () => {
  const operations = [
    ...['post /mcp/{template}/tools/call', 'get /mcp/{template}/tools/list', 'get /mcp/{template}/health'],
    ...['get /mcp/{template}/resources/list', 'post /mcp/{template}/resources/read'],
    ...['get /gateway/health', 'get /gateway/stats', 'get /gateway/registry', 'post /gateway/register'],
    ...['delete /gateway/deregister/{template}/{instance_id}', 'get /health', 'post /auth/login'],
    ...[
      'post /auth/users',
      'post /auth/api-keys',
      'get /servers',
      'post /servers',
      'get /servers/{server_id}',
    ],
    ...['delete /servers/{server_id}', 'post /tools/call', 'get /stats'],
    ...['get /openapi.json', 'get /docs', 'get /redoc'],
    ...['post /mcp', 'get /mcp/{template}', 'delete /mcp/{template}/mcp'],
  ];
  for (const operation of operations) {
    const [method = '', path = ''] = operation.split(' ');
    assert.ok(document.paths[path]?.[method], operation);
  }
});

test('names every operation once, and puts each into a group that it describes', () => {
  const groups = document.tags.map(({ name }: { name: string }) => name);
  const ids = everyOperation().map(({ operationId }) => operationId);
  assert.equal(ids.length, new Set(ids).size);
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
