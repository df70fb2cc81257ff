// The fields of one entry of a registry document, their names, and the problems of invalid entries.

import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { NOT_UNICODE } from '../../src/domain/text.ts';
import { InstanceRecord } from '../../src/http/routes/instances.ts';
import { FIELD_NAMES, readEntry, TRANSPORT_WORDS } from '../../src/persistence/registry-entry.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry entry');

function read(value: unknown, key?: string) {
  return readEntry({ value, path: 'here', template: 'demo', key });
}

/** The input of an entry that is used without a problem. */
function inputOf(value: unknown, key?: string) {
  const { entry, problems } = read(value, key);
  assert.equal(problems, []);
  return entry?.input;
}

test('accepts each field under each of its aliases', () => {
  const values: Readonly<Record<string, unknown>> = {
    id: 'one',
    endpoint: 'http://127.0.0.1:1',
    command: 'run',
    args: ['a'],
    working_dir: '/srv',
    env_vars: { A: 'b' },
    headers: { 'X-A': 'b' },
    transport: 'http',
    force: true,
    weight: 2,
    metadata: { zone: 'a' },
  };
  for (const [field, names] of Object.entries(FIELD_NAMES)) {
    const { [field]: value, ...others } = values;
    for (const name of names) assert.equal(inputOf({ ...others, [name]: value }), values, name);
  }
});

test('accepts exactly the field names that docs/guides/registry-file.md lists', () => {
  const text = readFileSync(new URL('../../docs/guides/registry-file.md', import.meta.url), 'utf8');
  const fields = text.slice(text.indexOf('## Fields of an entry'));
  const documented = [...fields.matchAll(/^\| `(\w+)` +\|([^|]*)\|/gm)].map(([, name = '', others = '']) => [
    name,
    ...[...others.matchAll(/`(\w+)`/g)].map(([, other]) => other),
  ]);
  const known = [...Object.values(FIELD_NAMES), ['template_name', 'template']];
  assert.equal(documented.toSorted(), known.toSorted());
  for (const word of TRANSPORT_WORDS.keys()) assert.ok(fields.includes(`\`${word}\``), word);
});

test('reads the fields of `config`, unless the entry has them, too', () => {
  const input = inputOf({ id: 'one', weight: 2, config: { url: 'http://127.0.0.1:1', weight: 3 } });
  assert.equal(input, { id: 'one', endpoint: 'http://127.0.0.1:1', weight: 2 });
});

test('takes the id from the entry, else from its key, else from its content', () => {
  assert.is(inputOf({ id: 'one', command: 'run' }, 'key')?.id, 'one');
  assert.is(inputOf({ command: 'run' }, 'key')?.id, 'key');
  const { entry } = read({ command: 'run' });
  assert.is(entry?.input.id, `demo-${entry?.fingerprint.slice(0, 8)}`);
  assert.match(entry?.input.id ?? '', /^demo-[0-9a-f]{8}$/);
});

test('accepts other names of the transports', () => {
  for (const [word, transport] of TRANSPORT_WORDS) {
    const way = transport === 'stdio' ? { command: 'run' } : { url: 'http://127.0.0.1:1' };
    assert.is(inputOf({ type: word.toUpperCase(), ...way })?.transport, transport);
  }
});

test('accepts a list of words as a command, and numbers as strings', () => {
  const input = inputOf({ id: 'one', command: ['my run', '-x'], args: ['y'], env: { PORT: 8080, ON: true } });
  assert.equal(input, {
    id: 'one',
    command: 'my run',
    args: ['-x', 'y'],
    env_vars: { PORT: '8080', ON: 'true' },
  });
});

test('ignores null and the runtime fields of a running gateway', () => {
  const nulls = { command: null, working_dir: null, env_vars: {} };
  const running = { status: 'healthy', in_flight: 3, created_at: '2026-01-02T03:04:05.000Z' };
  const endpoint = 'http://127.0.0.1:1/mcp';
  const input = inputOf({ id: 'one', server_id: 'demo.one', endpoint, ...nulls, ...running });
  assert.equal(input, { id: 'one', endpoint: 'http://127.0.0.1:1/mcp' });
});

test('refuses a record of an instance in a container, and accepts every field that the API shows', () => {
  const contained = read({ id: 'one', command: 'node', args: [], container: 'a'.repeat(64) });
  assert.equal([contained.entry, contained.problems.length], [undefined, 1]);
  assert.match(contained.problems.join(), 'runs in a container');
  for (const name of Object.keys(InstanceRecord.properties)) {
    const { problems } = read({ id: 'one', endpoint: 'http://127.0.0.1:1/mcp', [name]: 1 });
    assert.not.match(problems.join(), 'unknown field');
  }
});

test('accepts an entry with fields that have no effect, and reports these', () => {
  const { entry, problems } = read({
    id: 'one',
    endpoint: 'http://127.0.0.1:1',
    url: 'http://127.0.0.1:2',
    colour: 'red',
    env: { A: 'b' },
    cwd: '/srv',
  });
  assert.equal(entry?.input, { id: 'one', endpoint: 'http://127.0.0.1:1' });
  assert.equal(problems, [
    'here.url: has no effect, because "endpoint" is given',
    'here.colour: unknown field',
    'here.cwd: has no effect, because there is no command',
    'here.env: has no effect, because there is no command',
  ]);
  assert.equal(read({ id: 'one', command: 'run', headers: { A: 'b' } }).problems, [
    'here.headers: has no effect, because there is no endpoint',
  ]);
});

test('refuses an invalid entry, and names the field as it was written', () => {
  const cases: [unknown, string][] = [
    [7, 'here: must be an object'],
    [{ command: 'run', template_name: 'other' }, 'here: says that it belongs to another template'],
    [{ url: 'ftp://h' }, 'here.url: The scheme of an endpoint must be http or https'],
    [
      { config: { url: 'nowhere' } },
      'here.config.url: An endpoint must be a URL such as http://127.0.0.1:9000/mcp',
    ],
    [{ command: 'run', weight: 0 }, 'here.weight: Input should be greater than or equal to 1'],
    [
      { command: 'run', instance_metadata: { weight: 'x' } },
      'here.instance_metadata.weight: A weight must be a whole number from 1 to 1000',
    ],
    [{ command: 'run', env: { 'BAD-KEY': 'x' } }, 'here.env.BAD-KEY: is not a valid name'],
    [{ command: 'run', env: { KEY: ['x'] } }, 'here.env.KEY: Input should be a valid string'],
    [{ type: 'ws', url: 'http://h/ws' }, "here.type: Input should be 'http', 'sse' or 'stdio'"],
    [{ type: 'constructor', url: 'http://h' }, "here.type: Input should be 'http', 'sse' or 'stdio'"],
    [
      { command: "run 'x" },
      "here.command: The command cannot be split into words: the ' at character 5 is never closed",
    ],
    [{}, 'here: The instance has neither "endpoint" nor "command".'],
    [{ command: 'r\0' }, `here.command: ${NOT_UNICODE.msg}`],
    [{ command: 'r', metadata: { '\ud800': 1 } }, `here.metadata: ${NOT_UNICODE.msg}`],
  ];
  for (const [value, problem] of cases) assert.equal(read(value), { problems: [problem] });
});

test('refuses an entry with masked secrets, as in a saved answer of the API', () => {
  const value = {
    command: 'run',
    endpoint: 'http://h',
    env_vars: { TOKEN: '***', MODE: 'plain' },
    headers: { Authorization: '***' },
  };
  assert.equal(read(value), {
    problems: [
      'here.env_vars.TOKEN: is masked; write the value itself',
      'here.headers.Authorization: is masked; write the value itself',
    ],
  });
});

test('refuses an entry that contains itself', () => {
  const metadata: Record<string, unknown> = {};
  metadata.again = metadata;
  assert.equal(read({ command: 'run', metadata }).problems, [
    'here: Input should be a dictionary that JSON can hold',
  ]);
});

test('has a fingerprint of the meaning of the entry, not of its notation', () => {
  const print = (value: unknown) => read(value).entry?.fingerprint;
  const written = print({
    id: 'one',
    url: 'http://h',
    metadata: { a: 1, b: { c: 2, d: 3 } },
    status: 'healthy',
  });
  const otherwise = print({
    metadata: { b: { d: 3, c: 2 }, a: 1 },
    endpoint: 'http://h',
    instance_id: 'one',
  });
  assert.match(written ?? '', /^[0-9a-f]{64}$/);
  assert.is(written, otherwise);
  assert.is.not(written, print({ id: 'one', url: 'http://h', metadata: { a: 2, b: { c: 2, d: 3 } } }));
  const stored = '7d0a846df3b80b77372d108a4acc2ddcfd9c3180d2497593f3955b37f431058f';
  assert.is(print({ url: 'http://127.0.0.1:1', command: [] }), stored, 'as an earlier version stored it');
});

test.run();
