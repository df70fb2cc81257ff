// Valid instances and endpoints, the definition of a registration, and the errors of invalid ones.

import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import type { InstanceDefinition, InstanceInput } from '../../../src/domain/instances/instance.ts';
import { readEndpoint } from '../../../src/domain/registration/instance-endpoint.ts';
import {
  checkedInput,
  defineInstance,
  instanceShape,
  type RegistrationContext,
} from '../../../src/domain/registration/registration.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('registration');

const now = '2026-01-02T03:04:05.000Z';

function contextWith(changes: Partial<RegistrationContext> = {}): RegistrationContext {
  return {
    find: () => undefined,
    isServerIdTaken: () => false,
    randomHex: () => '0badcafe',
    now,
    ...changes,
  };
}

function define(input: InstanceInput, changes: Partial<RegistrationContext> = {}): InstanceDefinition {
  const checked = checkedInput(input, instanceShape, ['body', 'instance']);
  return defineInstance('demo', checked, contextWith(changes));
}

/** The code and, for VALIDATION_ERROR, the fields of its issues. */
function refusalOf(input: InstanceInput): string {
  try {
    define(input);
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError);
    return [thrown.code, ...(thrown.facts.items ?? []).map(({ loc }) => loc.join('.'))].join(' ');
  }
  return 'accepted';
}

test('defines a stdio instance by its command, split into words', () => {
  const definition = define({
    command: 'npx -y "@scope/my server" \'a b\'',
    working_dir: '/srv',
    env_vars: { KEY: 'v' },
    weight: 7,
    metadata: { zone: 'a', weight: 3 },
  });
  assert.equal(definition, {
    id: 'demo-0badcafe',
    serverId: 'demo-0badcafe',
    template: 'demo',
    transport: 'stdio',
    command: 'npx',
    args: ['-y', '@scope/my server', 'a b'],
    workingDir: '/srv',
    env: { KEY: 'v' },
    headers: {},
    weight: 7,
    metadata: { zone: 'a', weight: 3 },
    source: 'api',
    createdAt: now,
    updatedAt: now,
  });
});

test('a new program may run on any node, unless it names one, has a folder, or its gateway runs all of its programs itself', () => {
  const here = { nodeId: 'a', isAnyDefault: true };
  const nodeOf = (input: InstanceInput, changes: Partial<RegistrationContext> = here) =>
    define(input, changes).nodeId;
  const program = { id: 'one', command: 'x' };
  assert.is(nodeOf(program), 'any');
  assert.is(nodeOf({ ...program, node: 'b' }), 'b');
  assert.is(nodeOf({ ...program, working_dir: '/srv' }), 'a');
  assert.is(nodeOf({ ...program, working_dir: '/srv', node: 'any' }), 'any');
  assert.is(
    nodeOf({ ...program, endpoint: 'http://127.0.0.1:1' }),
    'a',
    'it serves an address of one machine',
  );
  assert.is(nodeOf({ endpoint: 'http://h' }), undefined);
  assert.is(nodeOf(program, { nodeId: 'a' }), 'a');
  const container = { engine: 'unix:///run/engine.sock', id: 'c' };
  assert.is(nodeOf(program, { ...here, container }), 'a');
});

test('a program that is registered again at its node stays there', () => {
  const program = { id: 'one', command: 'x' };
  const nodeOf = (stored: string, input: InstanceInput = program) => {
    const existing = { ...define(program), nodeId: stored };
    return define(input, { nodeId: 'a', isAnyDefault: true, find: () => existing }).nodeId;
  };
  assert.is(nodeOf('a'), 'a');
  assert.is(nodeOf('a', { ...program, node: 'any' }), 'any');
  assert.is(nodeOf('b'), 'any');
  assert.is(nodeOf('any'), 'any');
});

test('a program of one node is refused where names of nodes do not return', () => {
  const context = { nodeId: 'pod-1', isAnyDefault: true, hasEphemeralNodes: true };
  const refusal = (input: InstanceInput, changes: Partial<RegistrationContext> = context) => {
    try {
      return define(input, changes);
    } catch (thrown) {
      assert.instance(thrown, GatewayError);
      const { items } = thrown instanceof GatewayError ? thrown.facts : {};
      return items?.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
    }
  };
  const program = { id: 'one', command: 'x' };
  const at = (field: string) => [
    `body.instance.${field}: A program must not belong to one node: its name is not used again after it ends. Set "node" to "any"`,
  ];
  assert.equal(refusal({ ...program, node: 'pod-1' }), at('node'));
  assert.equal(refusal({ ...program, working_dir: '/srv' }), at('working_dir'));
  assert.equal(refusal(program, { ...context, isAnyDefault: false }), at('node'));
  assert.equal(refusal({ ...program, endpoint: 'http://127.0.0.1:1' }), [
    'body.instance.endpoint: A program that serves an endpoint belongs to one node, whose name is not used again after it ends. Run it as a service, and register its endpoint alone',
  ]);
  const nodeOf = (input: InstanceInput, changes: Partial<RegistrationContext> = {}) =>
    define(input, { ...context, ...changes }).nodeId;
  assert.is(nodeOf(program), 'any');
  assert.is(nodeOf({ ...program, working_dir: '/srv', node: 'any' }), 'any');
  assert.is(nodeOf({ endpoint: 'http://h' }), undefined);
  const existing = { ...define(program), nodeId: 'pod-1' };
  assert.is(nodeOf(program, { find: () => existing }), 'any', 'a stored program of this node');
  const container = { engine: 'unix:///run/engine.sock', id: 'c' };
  assert.is(nodeOf(program, { container }), 'pod-1', 'the next sync finds it again');
});

test('normalizes metadata to what JSON can hold', () => {
  const metadata = { gone: undefined, at: new Date(0), list: [undefined], '': { deep: [-0] } };
  const kept = { at: '1970-01-01T00:00:00.000Z', list: [null], '': { deep: [0] } };
  assert.equal(define({ endpoint: 'http://h', metadata }).metadata, kept);
});

test('qualifies the server id when another instance has the id', () => {
  const taken = new Set(['one', 'two', 'demo.two']);
  const changes = { isServerIdTaken: (serverId: string) => taken.has(serverId) };
  assert.is(define({ id: 'one', command: 'x' }, changes).serverId, 'demo.one');
  assert.is(define({ id: 'two', command: 'x' }, changes).serverId, 'demo.two.2');
  for (const id of ['one', 'free'])
    assert.is(define({ id, command: 'x' }, { ...changes, isLimited: true }).serverId, `demo~${id}`);
});

test('generates an id that is unused and not too long', () => {
  const existing = define({ command: 'x' });
  const digits = ['0badcafe', '0badcafe', '12345678'];
  const { id } = define(
    { command: 'x' },
    { find: (id) => (id === existing.id ? existing : undefined), randomHex: () => digits.shift() ?? '' },
  );
  assert.is(id, 'demo-12345678');
  const long = defineInstance('t'.repeat(128), { command: 'x' }, contextWith());
  assert.is(long.id, `${'t'.repeat(119)}-0badcafe`);
});

test('reads the weight from the metadata, and refuses an invalid one', () => {
  assert.is(define({ command: 'x', metadata: { weight: 5 } }).weight, 5);
  assert.is(define({ command: 'x', metadata: { weight: null } }).weight, 1);
  for (const weight of [0, 1.5, 1001, '5', true]) {
    const refusal = refusalOf({ command: 'x', metadata: { weight } });
    assert.is(refusal, 'VALIDATION_ERROR body.instance.metadata.weight', String(weight));
  }
});

test('uses the transport sse only if it is given', () => {
  const way = ({ transport, endpoint }: InstanceDefinition) => [transport, endpoint];
  assert.equal(way(define({ transport: 'sse', endpoint: 'http://h' })), ['sse', 'http://h/sse']);
  assert.equal(way(define({ transport: 'sse', endpoint: 'http://h/events' })), ['sse', 'http://h/events']);
  assert.equal(way(define({ transport: 'sse', endpoint: 'http://h', command: 'x' })), [
    'sse',
    'http://h/sse',
  ]);
  assert.equal(way(define({ endpoint: 'http://h/sse' })), ['http', 'http://h/sse']);
});

test('refuses an instance without endpoint or command with CONFIG_INCOMPLETE', () => {
  assert.throws(() => define({}), /neither "endpoint" nor "command"/);
  for (const input of [
    {},
    { weight: 2 },
    { args: ['x'] },
    { transport: 'http', command: 'x' },
    { transport: 'sse', command: 'x' },
    { transport: 'stdio' },
    { transport: 'stdio', endpoint: 'http://h' },
    { endpoint: 'http://h', args: ['x'] },
  ] satisfies InstanceInput[]) {
    assert.is(refusalOf(input), 'CONFIG_INCOMPLETE', JSON.stringify(input));
  }
});

test('refuses fields that contradict each other or have no effect', () => {
  const cases: [InstanceInput, string][] = [
    [{ transport: 'stdio', endpoint: 'http://h', command: 'x' }, 'endpoint'],
    [{ endpoint: 'http://h', working_dir: '/srv' }, 'working_dir'],
    [{ endpoint: 'http://h', env_vars: { A: 'b' } }, 'env_vars'],
    [{ command: 'x', headers: { A: 'b' } }, 'headers'],
  ];
  for (const [input, field] of cases) {
    assert.is(refusalOf(input), `VALIDATION_ERROR body.instance.${field}`);
  }
  assert.is(refusalOf({ endpoint: 'http://h', env_vars: {}, args: [] }), 'accepted');
  assert.is(refusalOf({ command: 'x', headers: {} }), 'accepted');
});

test('refuses a command without words and one with an open quote', () => {
  for (const input of [
    { command: '  ' },
    { command: "''" },
    { command: ' ', args: [] },
    { command: 'run "it' },
  ]) {
    assert.is(refusalOf(input), 'VALIDATION_ERROR body.instance.command', input.command);
  }
});

test('refuses too many variables or headers, header values of several lines, and too large metadata', () => {
  const issuesOf = (input: InstanceInput) => instanceShape.issues(input).map(({ loc }) => loc.join('.'));
  for (const value of ['b\r\nC: d', 'c\n', 'no \u20ac'])
    assert.equal(issuesOf({ headers: { A: 'b', B: value } }), ['body.headers.B']);
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`N${index}`, '']));
  const http = { endpoint: 'http://127.0.0.1:9/mcp' };
  assert.equal(issuesOf({ env_vars: many(256), headers: many(64) }), []);
  assert.equal(issuesOf({ env_vars: many(257), headers: many(65) }), ['body.env_vars', 'body.headers']);
  assert.is(refusalOf({ ...http, metadata: { text: 'x'.repeat(65_000) } }), 'accepted');
  const found = refusalOf({ ...http, metadata: { text: 'x'.repeat(66_000) } });
  assert.is(found, 'VALIDATION_ERROR body.instance.metadata');
});

test('refuses metadata with more than 1,000 values and keys', () => {
  const http = { endpoint: 'http://127.0.0.1:9/mcp' };
  const filled = (values: number) => ({ ...http, metadata: { list: Array(values - 3).fill({}) } }); // itself, the key, the list
  assert.is(refusalOf(filled(1_000)), 'accepted');
  assert.is(refusalOf(filled(1_001)), 'VALIDATION_ERROR body.instance.metadata');
});

test('refuses numbers in metadata that would be stored as other numbers', () => {
  const of = (value: unknown) =>
    refusalOf({ endpoint: 'http://127.0.0.1:9', metadata: { a: [{ b: value }] } });
  const kept = [0, -1, 0.1, 1e-300, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
  for (const value of kept) assert.is(of(value), 'accepted', String(value));
  const changed = ['1e400', '-1e400', '9007199254740993', '-9223372036854775808', '1e30'].map(Number);
  for (const value of [...changed, Number.NaN])
    assert.is(of(value), 'VALIDATION_ERROR body.instance.metadata.a.0.b', String(value));
});

/** The code, and for VALIDATION_ERROR the type of its only issue. */
function endpointRefusal(written: string): string {
  try {
    return `accepted as ${readEndpoint(written, ['body', 'endpoint'])}`;
  } catch (thrown) {
    assert.instance(thrown, GatewayError);
    if (!(thrown instanceof GatewayError)) throw thrown;
    assert.not.match(JSON.stringify([thrown.message, thrown.facts]), 's3cret');
    return [thrown.code, ...(thrown.facts.items ?? []).map(({ type }) => type)].join(' ');
  }
}

test('adds /mcp to an endpoint without a path, and keeps a given path, even a single slash', () => {
  for (const [written, read] of [
    ['http://127.0.0.1:3001', 'http://127.0.0.1:3001/mcp'],
    [' HTTPS://Example.com ', 'https://example.com/mcp'],
    ['http://[::1]:3001?key=1', 'http://[::1]:3001/mcp?key=1'],
    ['http://example.com/', 'http://example.com/'],
    ['http://example.com/api/v1', 'http://example.com/api/v1'],
    ['http://example.com/sse?x=a/b', 'http://example.com/sse?x=a/b'],
  ] as const)
    assert.is(readEndpoint(written, []), read);
  assert.is(readEndpoint('http://127.0.0.1:3001', [], '/sse'), 'http://127.0.0.1:3001/sse');
});

test('refuses endpoints that are no URL, with another scheme, a fragment or credentials, without repeating these', () => {
  for (const [written, expected] of [
    ['example.com:80', 'VALIDATION_ERROR url_parsing'],
    ['http:/example.com', 'VALIDATION_ERROR url_parsing'],
    ['http:\\\\example.com', 'VALIDATION_ERROR url_parsing'],
    ['http:///mcp', 'VALIDATION_ERROR url_parsing'],
    ['http://a b/', 'VALIDATION_ERROR url_parsing'],
    ['http://s3cret@example.com:99999/', 'VALIDATION_ERROR url_parsing'],
    ['/mcp', 'VALIDATION_ERROR url_parsing'],
    ['ws://example.com', 'VALIDATION_ERROR url_scheme'],
    ['file:///etc/passwd', 'VALIDATION_ERROR url_scheme'],
    ['http://example.com/mcp#top', 'VALIDATION_ERROR url_syntax_violation'],
    ['http://user:s3cret@example.com/mcp', 'ENDPOINT_NOT_ALLOWED'],
    ['http://s3cret@example.com', 'ENDPOINT_NOT_ALLOWED'],
    ['http://@example.com', 'ENDPOINT_NOT_ALLOWED'],
  ] as const)
    assert.is(endpointRefusal(written), expected, written);
});

test.run();
