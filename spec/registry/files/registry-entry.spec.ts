// The fields of one entry of a registry document, their names, and the problems of invalid entries.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import * as assert from 'uvu/assert';
import { REGISTRABLE_KINDS, TRANSPORT_TRAITS } from '../../../src/domain/instances/transport-kinds.ts';
import { NOT_UNICODE } from '../../../src/domain/text.ts';
import { InstanceRecord } from '../../../src/http/records/instance-record.ts';
import { FIELD_NAMES, readEntry } from '../../../src/registry/files/registry-entry.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('registry entry');

const variables = { TOKEN: 's3cret', TWO: 'a "b', EMPTY: '', GATEWAY_SECRET_KEY: 'own' };

function read(value: unknown, key?: string) {
  return readEntry({ value, path: 'here', template: 'demo', key, variables });
}

/** The input of an entry that is used without a problem. */
function inputOf(value: unknown, key?: string) {
  const { entry, problems } = read(value, key);
  assert.equal(problems, []);
  return entry?.input;
}

const TRANSPORT_WORDS = REGISTRABLE_KINDS.flatMap((kind) =>
  [kind, ...TRANSPORT_TRAITS[kind].aliases].map((word) => [word, kind] as const),
);

test('accepts each field under each of its aliases', () => {
  const values: Readonly<Record<string, unknown>> = {
    id: 'one',
    endpoint: 'http://127.0.0.1:1',
    command: 'run',
    args: ['a'],
    working_dir: '/srv',
    env_vars: { A: 'b' },
    secret_env_vars: ['A'],
    headers: { 'X-A': 'b' },
    transport: 'http',
    era: 'legacy',
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
  const text = readFileSync(new URL('../../../docs/guides/registry-file.md', import.meta.url), 'utf8');
  const fields = text.slice(text.indexOf('## Fields of an entry'));
  const documented = [...fields.matchAll(/^\| `(\w+)` +\|([^|]*)\|/gm)].map(([, name = '', others = '']) => [
    name,
    ...[...others.matchAll(/`(\w+)`/g)].map(([, other]) => other),
  ]);
  const known = [...Object.values(FIELD_NAMES), ['template_name', 'template']];
  assert.equal(documented.toSorted(), known.toSorted());
  for (const [word] of TRANSPORT_WORDS) assert.ok(fields.includes(`\`${word}\``), word);
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
    const way =
      TRANSPORT_TRAITS[transport].reachedBy === 'command'
        ? { command: 'run' }
        : { url: 'http://127.0.0.1:1' };
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

test('fills in the placeholders of MCP clients from its environment, each within its word', () => {
  const table: readonly (readonly [written: object, read: object])[] = [
    [{ url: 'http://h/${env:TOKEN}' }, { endpoint: 'http://h/s3cret' }],
    [
      { url: 'http://h', headers: { A: 'Bearer ${TOKEN}' } },
      { endpoint: 'http://h', headers: { A: 'Bearer s3cret' } },
    ],
    [
      { command: 'run', args: [], env: { A: '${NONE:-b}', B: '${EMPTY:-c}', C: '${EMPTY}' } },
      { command: 'run', args: [], env_vars: { A: 'b', B: 'c', C: '' } },
    ],
    [{ command: 'run ${TWO} x' }, { command: 'run', args: ['a "b', 'x'] }],
    [{ command: ['${TOKEN}', '-c', '$${TOKEN}'] }, { command: 's3cret', args: ['-c', '${TOKEN}'] }],
    [
      { command: 'run', args: ['${userHome}'] },
      { command: 'run', args: [homedir()] },
    ],
    // The shell fills in its own variables.
    [
      { command: '/bin/sh', args: ['-ec', 'for f in *; do run ${f} ${env:TOKEN}; done', '${f}'] },
      { command: '/bin/sh', args: ['-ec', 'for f in *; do run ${f} s3cret; done', '${f}'] },
    ],
  ];
  for (const [written, expected] of table)
    assert.equal(inputOf({ id: 'a', ...written }), { id: 'a', ...expected });
});

test('refuses an entry with a placeholder that cannot be filled in, and shows no value', () => {
  const table: readonly (readonly [text: string, problem: RegExp])[] = [
    ['${input:token}', /^here\.env\.A: "\$\{input:token\}" asks a person; write \$\{env:NAME\} instead$/],
    [
      '${env:NONE}',
      /^here\.env\.A: "\$\{env:NONE\}" cannot be filled in, because the gateway has no variable NONE$/,
    ],
    ['${workspaceFolder}/x', /the gateway has no variable workspaceFolder$/],
    [
      '${command:pick}',
      /^here\.env\.A: "\$\{command:pick\}" cannot be filled in; "\$\$\{" writes it literally$/,
    ],
    ['${A:-${TOKEN}}', /^here\.env\.A: "\$\{" cannot be filled in/],
    ['${env:GATEWAY_SECRET_KEY}', /is for the gateway itself, not for a server$/],
    ['${STAGEDOOR_API_KEY:-none}', /is for the gateway itself, not for a server$/],
  ];
  for (const [text, problem] of table) {
    const { entry, isDisabled, problems } = read({ id: 'a', command: 'run', env: { A: text } });
    assert.equal([entry, isDisabled, problems.length], [undefined, undefined, 1]);
    assert.match(problems[0] ?? '', problem);
  }
  for (const place of [{ command: 'sh', args: ['-c', '${input:x}'] }, { url: 'http://h/${input:x}' }])
    assert.match(read({ id: 'a', ...place }).problems.join(), /asks a person/);
});

test('reads no disabled entry', () => {
  const server = { command: 'run ${input:x}', colour: 'red' };
  for (const off of [{ disabled: true }, { enabled: false }, { config: { disabled: true } }])
    assert.equal(read({ ...server, ...off }), { isDisabled: true, problems: [] });
  assert.equal(inputOf({ id: 'a', command: 'run', disabled: false, enabled: true }), {
    id: 'a',
    command: 'run',
  });
  assert.equal(read({ id: 'a', command: 'run', disabled: 'true' }), {
    problems: ['here.disabled: must be true or false'],
  });
});

test('refuses an entry that leaves tools out, because the gateway would serve them', () => {
  const line = 'the gateway serves all tools of a server; the entry is used when this field is removed';
  for (const [field, value] of Object.entries({
    disabledTools: ['a'],
    exclude_tools: ['a'],
    enabledTools: [],
    tools: ['a'],
  }))
    assert.equal(read({ id: 'a', command: 'run', [field]: value }).problems, [`here.${field}: ${line}`]);
  for (const unlimited of [{ disabledTools: [] }, { tools: ['*'] }, { disabledTools: null }])
    assert.equal(inputOf({ id: 'a', command: 'run', ...unlimited }), { id: 'a', command: 'run' });
});

test.run();
