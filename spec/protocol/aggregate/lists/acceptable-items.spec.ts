// Items of the lists of all templates as clients accept them: repaired, or withheld alone. The clients of the official SDKs, which
// refuse a whole list for one bad item, are the measure.

import fc from 'fast-check';
import { of } from 'rxjs';
import * as assert from 'uvu/assert';
import { type JsonObject, JsonText } from '../../../../src/domain/json/json.ts';
import type { ListField, WithheldItem } from '../../../../src/domain/mcp/mcp.ts';
import { TaskScheduler } from '../../../../src/domain/time/task-scheduler.ts';
import { AggregateDirectory } from '../../../../src/protocol/aggregate/lists/directory.ts';
import { suite } from '../../../helpers/suite.ts';
import { aggregateLists, CLIENT, ListingBackends, shownTool } from '../../listing-backends.ts';
import { sdkClients } from '../sdk-clients.ts';

const test = suite('aggregate items');

const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';

/** The list of all templates with these items of one template, and what is withheld of it. `text`: of the whole result. */
async function listed(
  list: ListField,
  items: readonly unknown[],
  { protocolVersion = LEGACY, text = JSON.stringify({ [list]: items }) } = {},
) {
  const backends = new ListingBackends({});
  const event = { kind: 'result', result: JsonText.ofText(text) } as const;
  backends.instead = of({ event, instanceId: 'one', serverId: 'one' });
  let withheld: readonly WithheldItem[] = [];
  const lists = aggregateLists({
    backendsOf: () => backends,

    onListed: (_list, _template, found) => {
      withheld = found;
    },
  });
  const directory = new AggregateDirectory(lists, () => ['t'], new TaskScheduler());
  const client = { ...CLIENT, profile: { ...CLIENT.profile, protocolVersion } };
  const shown = (await directory.listing(list, client)).items;
  const shownText = JSON.stringify(shown);
  const parsed: JsonObject[] = JSON.parse(shownText);
  return { shown: parsed, shownText, withheld };
}

const inputSchema = { type: 'object' };

test('leaves out optional fields that are null or have a wrong type, and keeps everything else', async () => {
  const odd = {
    title: null,
    description: 5,
    icons: [{ src: 'a', mimeType: null, sizes: ['1', 2], theme: { toString: 1 } }, { src: null }, 'x'],
    annotations: { title: null, readOnlyHint: 'yes', idempotentHint: true, other: null },
    execution: { taskSupport: 'sometimes' },
    outputSchema: null,
    _meta: null,
    other: null,
  };
  const { shown, withheld } = await listed('tools', [{ name: 'x', inputSchema, ...odd }]);
  assert.equal(shown, [
    {
      ...shownTool('t__x'),
      icons: [{ src: 'a', sizes: ['1'] }],
      annotations: { idempotentHint: true, other: null },
      execution: {},
      other: null,
    },
  ]);
  assert.equal(withheld, []);
});

test('repairs the root of schemas', async () => {
  const table: readonly (readonly [given: unknown, shown: object])[] = [
    [null, { type: 'object' }],
    [true, { type: 'object' }],
    [[], { type: 'object' }],
    [{ type: 'object', properties: null, required: null }, { type: 'object' }],
    [{ type: 'object', properties: [], required: 'a' }, { type: 'object' }],
    [
      { type: ['object', 'null'], required: ['a', 1] },
      { type: 'object', required: ['a'] },
    ],
    [
      { $schema: 7, $defs: null },
      { type: 'object', $defs: null },
    ],
    [
      { properties: { a: true, b: false, c: null, d: { type: 'string' }, ['__proto__']: {} } },
      JSON.parse(
        '{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{},"d":{"type":"string"},"__proto__":{}}}',
      ),
    ],
  ];
  for (const [given, expected] of table) {
    const { shown } = await listed('tools', [
      { name: 'x', inputSchema: given },
      { name: 'y', inputSchema },
    ]);
    assert.equal(shown, [{ name: 't__x', inputSchema: expected }, shownTool('t__y')]);
  }
});

test('leaves out an output schema that clients do not accept or compile', async () => {
  const outputOf = async (outputSchema: unknown, protocolVersion: string) => {
    const { shown } = await listed('tools', [{ name: 'x', inputSchema, outputSchema }], { protocolVersion });
    return shown[0]?.outputSchema;
  };
  const compiling = { type: 'object', properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: {} } };
  for (const version of [LEGACY, MODERN]) {
    assert.equal(await outputOf(compiling, version), compiling);
    assert.is(await outputOf({ ...compiling, $defs: {} }, version), undefined);
    assert.is(
      await outputOf({ type: 'object', properties: { a: { pattern: '(?P<x>y)' } } }, version),
      undefined,
    );
  }
  const withPattern = (pattern: string) => ({ type: 'object', properties: { a: { pattern } } });
  assert.equal(await outputOf(withPattern('^\\p{L}+$'), MODERN), withPattern('^\\p{L}+$'));
  const startMs = performance.now();
  assert.is(await outputOf(withPattern('\\p{L}'.repeat(100_000)), MODERN), undefined);
  const many = Array.from({ length: 1_000 }, (_, index) => withPattern(`\\p{L}{${index}}\\p{N}\\p{P}\\p{S}`));
  assert.is(await outputOf({ type: 'object', anyOf: many }, MODERN), undefined);
  assert.ok(performance.now() - startMs < 2_000, 'the patterns took more than two seconds');
  // Legacy clients accept only schemas of objects.
  const list = { type: 'array', items: {} };
  assert.equal([await outputOf(list, LEGACY), await outputOf(list, MODERN)], [undefined, list]);
  const union = { anyOf: [{ type: 'object' }] };
  assert.equal(await outputOf(union, LEGACY), { ...union, type: 'object' });
  assert.equal(await outputOf(union, MODERN), union);
});

async function isShown(outputSchema: JsonObject): Promise<boolean> {
  const { shown } = await listed('tools', [{ name: 'x', inputSchema, outputSchema }]);
  return shown[0]?.outputSchema !== undefined;
}

test('leaves out an output schema that clients compile for seconds, or without end', async () => {
  const withProperties = (properties: JsonObject) => ({ type: 'object', properties });
  const numbered = (count: number, schemaOf: (n: number) => JsonObject) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, schemaOf(n)]));
  const next = (n: number) => ({ $ref: `#/properties/p${n + 1}` });
  const chain = (count: number, linkOf: (n: number) => JsonObject) =>
    withProperties({ ...numbered(count, linkOf), [`p${count}`]: { type: 'string' } });
  const endless = [
    withProperties({ a: { $ref: '#/properties/a' } }),
    withProperties({ 'a b': { $ref: '#/properties/a%20b', title: 'A' } }),
    withProperties({ a: { $ref: '#/properties/b' }, b: { $ref: '#/properties/a' } }),
    { $id: 'https://a.example/', ...withProperties({ a: { $ref: 'https://a.example/#/properties/a' } }) },
    { 'x-other': { a: { $ref: '#/x-other/a' } }, ...withProperties({ b: { $ref: '#/x-other/a' } }) },
    { type: 'object', $ref: '#' },
    withProperties({ a: { $anchor: 'a', $ref: '#a' } }),
    chain(1_000, next),
    chain(400, (n) => ({ type: 'object', properties: { next: next(n) } })),
  ];
  const wide = withProperties(numbered(100, () => ({ type: 'string' })));
  const costly = [
    withProperties(numbered(5_000, () => ({ type: 'string' }))),
    { $defs: { wide }, ...withProperties(numbered(100, () => ({ $ref: '#/$defs/wide' }))) },
    { $defs: { wide: { $anchor: 'w', ...wide } }, ...withProperties(numbered(100, () => ({ $ref: '#w' }))) },
  ];
  for (const schema of [...endless, ...costly])
    assert.is(await isShown(schema), false, JSON.stringify(schema).slice(0, 200));
  const tree = withProperties({ left: { $ref: '#' }, right: { $ref: '#' }, more: { items: { $ref: '#' } } });
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };
  const good = [
    tree,
    chain(50, next),
    { $defs: { node }, ...withProperties(numbered(500, () => ({ $ref: '#/$defs/node' }))) },
    { $defs: { wide }, ...withProperties(numbered(10, () => ({ $ref: '#/$defs/wide' }))) },
  ];
  for (const schema of good) assert.is(await isShown(schema), true, JSON.stringify(schema).slice(0, 200));
});

test('leaves out an output schema by which clients check a value for hours, or without end', async () => {
  const doubled = (levels: number, twice: (next: JsonObject) => JsonObject) => {
    const level = (n: number) => (n < levels ? twice({ $ref: `#/$defs/a${n + 1}` }) : { type: 'object' });
    const $defs = Object.fromEntries(Array.from({ length: levels + 1 }, (_, n) => [`a${n}`, level(n)]));
    return { $defs, $ref: '#/$defs/a0' };
  };
  const bad = [
    doubled(30, (next) => ({ allOf: [next, next] })),
    doubled(30, (next) => ({ anyOf: [next], oneOf: [next] })),
    doubled(30, (next) => Object.fromEntries(['if', 'then', 'else'].map((key) => [key, next]))),
    doubled(30, (next) => ({ ...next, not: next })),
    doubled(30, (next) => ({ dependentSchemas: { a: next, b: next } })),
    { properties: { a: doubled(30, (next) => ({ allOf: [next, next] })) } },
    { allOf: [{ $ref: '#' }] },
    {
      $defs: { a: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } },
      $ref: '#/$defs/a',
    },
  ];
  for (const schema of bad) assert.is(await isShown(schema), false, JSON.stringify(schema).slice(0, 200));
  const good = [
    doubled(8, (next) => ({ allOf: [next, next] })),
    { anyOf: [{ type: 'null' }, { properties: { next: { $ref: '#' } } }] },
    { allOf: Array.from({ length: 100 }, () => ({ $ref: '#/$defs/a' })), $defs: { a: { required: ['a'] } } },
  ];
  for (const schema of good) assert.is(await isShown(schema), true, JSON.stringify(schema).slice(0, 200));
});

test('repairs prompts and resources', async () => {
  const args = [{ name: 'a', description: null, required: null }, { description: 'no name' }, null];
  const prompts = await listed('prompts', [
    { name: 'p', arguments: args },
    { name: 'q', arguments: null },
  ]);
  assert.equal(prompts.shown, [{ name: 't__p', arguments: [{ name: 'a' }] }, { name: 't__q' }]);
  const annotations = { audience: ['user', 'all'], priority: 2, lastModified: '2026-02-30T00:00:00Z' };
  const resources = await listed('resources', [
    { uri: 'a:1', name: null, size: '7', mimeType: null, annotations },
    { uri: 'a:2', name: 'two', annotations: { priority: 1, lastModified: '2024-02-29T23:59:59.5+01:00' } },
  ]);
  assert.equal(resources.shown, [
    { uri: 'a:1', name: 'a:1', annotations: { audience: ['user'] } },
    { uri: 'a:2', name: 'two', annotations: { priority: 1, lastModified: '2024-02-29T23:59:59.5+01:00' } },
  ]);
  const templates = await listed('resourceTemplates', [{ uriTemplate: 'a:{b}', description: null }]);
  assert.equal(templates.shown, [{ uriTemplate: 'a:{b}', name: 'a:{b}' }]);
});

test('withholds items that cannot be named, alone and with a reason', async () => {
  const deep = JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`);
  const bad = [
    null,
    [],
    'x',
    {},
    { name: null },
    { name: '' },
    { name: '\ud800' },
    { name: 'n'.repeat(9_000) },
  ];
  const { shown, withheld } = await listed('tools', [...bad, { name: 'deep', deep }, { name: 'x' }]);
  assert.equal(shown, [shownTool('t__x')]);
  const found = withheld.map(({ list: _, ...item }) => item);
  assert.equal(found, [
    { name: 'tools[0]', reason: 'it is not an object' },
    { name: 'tools[1]', reason: 'it is not an object' },
    { name: 'tools[2]', reason: 'it is not an object' },
    { name: 'tools[3]', reason: 'its name is missing, or is not text' },
    { name: 'tools[4]', reason: 'its name is missing, or is not text' },
    { name: 'tools[5]', reason: 'its name is empty' },
    { name: '\ufffd', reason: 'its name is not valid Unicode' },
    { name: 'n'.repeat(256), reason: 'its name is longer than 8192 bytes' },
    { name: 'deep', reason: 'it is nested deeper than 128 levels' },
  ]);
});

test('shows what needs no repair as it was written', async () => {
  const fields =
    '"inputSchema":{"type":"object","properties":{"x":{"maximum":9007199254740993,"minimum":-0,"default":"\\ud800é"}}},' +
    '"outputSchema":{"type":"object","required":[]},"_meta":{"a":null},"description":"","other":null';
  const text = `{"tools":[{"name":"x",${fields}},{"name":"y",${fields},"title":null}]}`;
  const { shownText } = await listed('tools', [], { text });
  assert.is(shownText, `[{"name":"t__x",${fields}},{"name":"t__y",${fields}}]`);
});

test('shows no number that is infinite for clients', async () => {
  const text =
    '{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"a":{"maximum":1e400}}}}]}';
  const { shownText } = await listed('tools', [], { text });
  assert.ok(shownText.includes('"maximum":null'));
});

// --- whatever a server lists, the clients of the SDKs read the list -----------------------------------------------------

const odd = fc.constantFrom<unknown>(
  null,
  true,
  false,
  0,
  -1,
  1.5,
  '',
  'x',
  '(',
  [],
  [null],
  ['a'],
  [1],
  {},
  {
    a: null,
  },
);
const sometimes = (field: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 3, arbitrary: field }, { weight: 1, arbitrary: odd });
const KEYWORDS = [
  ...[
    'type',
    'properties',
    'required',
    '$ref',
    '$id',
    'id',
    '$anchor',
    '$schema',
    'pattern',
    'enum',
    'items',
    'format',
  ],
  ...[
    'anyOf',
    'additionalProperties',
    'minLength',
    'exclusiveMinimum',
    '$defs',
    'dependencies',
    'nullable',
    'const',
  ],
  ...[
    'patternProperties',
    'if',
    'not',
    'contains',
    'uniqueItems',
    'propertyNames',
    'title',
    'x-other',
    'minItems',
  ],
  ...[
    '$dynamicAnchor',
    '$dynamicRef',
    '$async',
    '$comment',
    'definitions',
    'default',
    'allOf',
    'prefixItems',
  ],
];
const { schema } = fc.letrec((tie) => ({
  operand: fc.oneof(
    { maxDepth: 3 },
    odd,
    fc.constantFrom(
      'object',
      'string',
      '#',
      '#/$defs/a',
      '#/properties/a',
      '#a',
      'http://x.y/z',
      '^a$',
      'date',
    ),
    fc.constantFrom(['object'], ['string', 'null'], ['a', 'b']),
    tie('schema'),
    fc.array(tie('schema'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', '(', '$id', '$anchor'), tie('schema'), { maxKeys: 2 }),
  ),
  schema: fc.dictionary(fc.constantFrom(...KEYWORDS), tie('operand'), { maxKeys: 4 }),
}));
const rootSchema = schema.map((fields) => ({ type: 'object', ...Object(fields) }));
const text = sometimes(fc.constant('text'));
const annotations = sometimes(
  fc.record(
    {
      ...{ title: text, readOnlyHint: sometimes(fc.boolean()), audience: sometimes(fc.constant(['user'])) },
      priority: sometimes(fc.double()),
      lastModified: sometimes(
        fc.oneof(
          fc.constantFrom(
            '2026-02-29T00:00:00Z',
            '2024-02-29T24:00:00Z',
            '2024-01-01T00:00Z',
            '0000-01-01T00:00:00Z',
          ),
          fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
        ),
      ),
    },
    { requiredKeys: [] },
  ),
);
const icons = sometimes(
  fc.array(
    sometimes(fc.record({ src: text, mimeType: text, sizes: odd, theme: odd }, { requiredKeys: [] })),
    {
      maxLength: 2,
    },
  ),
);
const FIELDS = {
  ...{
    title: text,
    description: text,
    icons,
    _meta: odd,
    annotations,
    execution: odd,
    mimeType: text,
    size: odd,
  },
  inputSchema: sometimes(rootSchema),
  outputSchema: sometimes(rootSchema),
  arguments: sometimes(fc.array(sometimes(fc.record({ name: text, description: text, required: odd })))),
};
const items = fc.array(
  sometimes(fc.record({ name: text, uri: text, uriTemplate: text, ...FIELDS }, { requiredKeys: [] })),
  { maxLength: 3 },
);

test('every client of the official SDKs reads every list', async () => {
  const clients = await sdkClients();
  const good = { name: 'good', uri: 'good:1', uriTemplate: 'good:{x}', inputSchema };
  const lists = fc.constantFrom<ListField>('tools', 'tools', 'prompts', 'resources', 'resourceTemplates');
  const property = fc.asyncProperty(lists, items, async (list, given) => {
    for (const { name, protocolVersion, read } of clients) {
      const { shown } = await listed(list, [...given, good], { protocolVersion });
      const found = await read(list, shown).catch((error) => assert.unreachable(`${name}: ${error.message}`));
      assert.is(found?.length, shown.length);
      assert.ok(shown.length > 0);
    }
  });
  await fc.assert(property, { numRuns: 300 });
});

test('withholds a tool that is too large, refers to nothing or repeats a name, and no other one', async () => {
  const properties = { text: { $ref: '#/$defs/text' }, any: { $ref: '#' }, near: { $ref: '#near' } };
  const $defs = { text: { type: 'string' }, near: { $anchor: 'near' } };
  const fine = {
    name: 'fine',
    inputSchema: { type: 'object', properties, $defs, default: { $ref: '#/no' } },
  };
  const lost = (reference: string) => ({ type: 'object', properties: { text: { $ref: reference } } });
  const { shown, withheld } = await listed('tools', [
    fine,
    { name: 'large', inputSchema, description: 'x'.repeat(128 * 1024) },
    { name: 'lost', inputSchema: lost('#/$defs/text') },
    { name: 'stray', inputSchema: lost('#text') },
    { name: 'outside', inputSchema: lost('https://example.com/schema') },
    { name: 'fine', inputSchema, title: 'Another' },
  ]);
  const outside = { name: 't__outside', inputSchema: lost('https://example.com/schema') };
  assert.equal(shown, [{ ...fine, name: 't__fine' }, outside]);
  assert.equal(
    withheld.map(({ name, reason }) => [name, reason]),
    [
      ['large', 'its definition is larger than 128 KiB'],
      ['lost', 'its input schema refers to a part that it does not have'],
      ['stray', 'its input schema refers to a part that it does not have'],
      ['fine', 'an earlier item of the list has its name'],
    ],
  );
});

test.run();
