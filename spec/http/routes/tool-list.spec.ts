import * as assert from 'uvu/assert';
import { toolList } from '../../../src/http/routes/tools.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the tool list view');

test('keeps every field and adds description, parameters and the count', () => {
  const inputSchema = {
    type: 'object',
    properties: {
      a: { type: 'string', description: 'A.', enum: ['x'] },
      b: {},
      c: { type: ['string', 'null'] },
    },
    required: ['a'],
  };
  const tool = { name: 'echo', title: 'Echo', annotations: { readOnlyHint: true }, inputSchema };
  assert.equal(toolList([tool]), {
    tools: [
      {
        ...tool,
        description: '',
        parameters: {
          type: 'object',
          properties: {
            a: { type: 'string', description: 'A.', enum: ['x'] },
            b: { type: 'any', description: '' },
            c: { type: ['string', 'null'], description: '' },
          },
          required: ['a'],
        },
      },
    ],
    count: 1,
  });
  assert.equal(inputSchema.properties.b, {}, 'the schema itself is not touched');
});

test('makes an object with properties of whatever the schema is', () => {
  const empty = { type: 'object', properties: {} };
  for (const inputSchema of [undefined, null, true, 'x', [], {}, { type: 'string' }, { properties: [] }]) {
    const { tools } = toolList([
      { name: 'x', description: 'X.', ...(inputSchema === undefined ? {} : { inputSchema }) },
    ]);
    assert.equal(tools[0]?.parameters, empty);
  }
  const { tools } = toolList([{ name: 'x', inputSchema: { properties: { a: true } } }]);
  assert.equal(tools[0]?.parameters.properties, { a: { type: 'any', description: '' } });
});

test('takes a parameter called __proto__ for a parameter', () => {
  const inputSchema = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}');
  const { tools } = toolList([{ name: 'x', inputSchema }]);
  assert.is(
    JSON.stringify(tools[0]?.parameters),
    '{"properties":{"__proto__":{"type":"string","description":""}},"type":"object"}',
  );
});

test('counts nothing as nothing', () => {
  assert.equal(toolList([]), { tools: [], count: 0 });
});

test.run();
