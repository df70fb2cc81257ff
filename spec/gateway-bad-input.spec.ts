// Invalid input of programs without types: the facade refuses it with a VALIDATION_ERROR that names the field, before anything
// is stored, started or reported, and existing instances continue.

import { catchError, defaultIfEmpty, EMPTY, firstValueFrom, isObservable, lastValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { GatewayError } from '../src/domain/errors.ts';
import { createGateway, type Gateway } from '../src/gateway.ts';
import { MemoryStore } from '../src/persistence/memory-store.ts';
import { serving, text } from './helpers/function-backend.ts';
import { errorOf } from './helpers/outcome.ts';
import { suite } from './helpers/suite.ts';

const test = suite('gateway: bad input');

const endpoint = 'http://127.0.0.1:9/mcp';
const handler = serving({ say: () => text('said') });
let store: MemoryStore;
let gateway: Gateway;
test.before.each(async () => {
  store = new MemoryStore();
  gateway = await createGateway({ store });
  await gateway.register('t', { id: 'ok', handler }, { waitMs: 5_000 });
});
test.after.each(() => gateway.close({ graceMs: 0 }));

/** Calls any method with any arguments, as JavaScript can. */
function ask(method: string, ...args: readonly unknown[]): unknown {
  return Reflect.apply(Reflect.get(gateway, method), gateway, args);
}

/** The code, and the fields that are named; `accepted` when nothing is refused. */
async function verdictOn(method: string, ...args: readonly unknown[]): Promise<string> {
  try {
    const answer = ask(method, ...args);
    await (isObservable(answer) ? lastValueFrom(answer, { defaultValue: undefined }) : answer);
    return 'accepted';
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) return `no error of ours: ${thrown}`;
    const fields = (thrown.facts.items ?? []).map(({ loc }) => loc.slice(1).join('.') || loc.join('.'));
    return [thrown.code, ...fields].join(' ');
  }
}

const circle: Record<string, unknown> = {};
circle.self = circle;
const deep: unknown = JSON.parse(`${'{"deep":'.repeat(200)}1${'}'.repeat(200)}`);
const ownProto: unknown = JSON.parse(`{"endpoint":"${endpoint}","__proto__":{"command":"x"}}`);

/** Invalid instances, and the fields that the error names. */
const INSTANCES: readonly (readonly [name: string, input: unknown, verdict: string])[] = [
  ...[undefined, null, 'x', 5, [], () => {}].map((input) => [`${input}`, input, 'instance'] as const),
  ['an endpoint that is an URL', { endpoint: new URL(endpoint) }, 'instance.endpoint'],
  ['a long endpoint', { endpoint: `${endpoint}/${'x'.repeat(2_049)}` }, 'instance.endpoint'],
  ['an empty endpoint', { endpoint: '' }, 'instance.endpoint'],
  ['an empty command', { command: '' }, 'instance.command'],
  ['an empty folder', { command: 'x', working_dir: '' }, 'instance.working_dir'],
  ['a list as command', { command: ['a', 'b'] }, 'instance.command'],
  ['a text as args', { command: 'a', args: 'b c' }, 'instance.args'],
  ['too many args', { command: 'a', args: Array(257).fill('b') }, 'instance.args'],
  ['a number in args', { command: 'a', args: ['b', 1] }, 'instance.args.1'],
  ['a hole in args', { command: 'a', args: Array(1) }, 'instance.args.0'],
  ...['x', -1, 0, 1.5, 1_001, Number.NaN, Number.POSITIVE_INFINITY, null, '5'].map(
    (weight) => [`the weight ${weight}`, { endpoint, weight }, 'instance.weight'] as const,
  ),
  ...['websocket', 'in-process', {}, 'constructor'].map(
    (transport) => [`the transport ${transport}`, { endpoint, transport }, 'instance.transport'] as const,
  ),
  ['a number as header', { endpoint, headers: { a: 5 } }, 'instance.headers.a'],
  ['a bad name of a header', { endpoint, headers: { 'a b': 'c' } }, 'instance.headers.a b'],
  ['two lines in a header', { endpoint, headers: { a: 'b\nc' } }, 'instance.headers.a'],
  ...[null, [['a', 'b']], new Headers({ a: 'b' }), new Map([['a', 'b']])].map(
    (headers) => [`headers that are ${String(headers)}`, { endpoint, headers }, 'instance.headers'] as const,
  ),
  ['NUL in a variable', { command: 'x', env_vars: { A: 'a\0b' } }, 'instance.env_vars.A'],
  ['half a surrogate pair', { command: 'x', env_vars: { A: '\ud800' } }, 'instance.env_vars.A'],
  ['a bad name of a variable', { command: 'x', env_vars: { 'A=B': 'a' } }, 'instance.env_vars.A=B'],
  ['a number as variable', { command: 'x', env_vars: { A: 5 } }, 'instance.env_vars.A'],
  ['variables in a Map', { command: 'x', env_vars: new Map([['A', 'b']]) }, 'instance.env_vars'],
  ['NUL in a command', { command: 'x\0y' }, 'instance.command'],
  ['NUL in a word', { command: 'x', args: ['\0'] }, 'instance.args.0'],
  ['NUL in a folder', { command: 'x', working_dir: '/a\0' }, 'instance.working_dir'],
  ...['../x', 'a/b', '', '.a', '_a', 'a\n', 'ä', 'a'.repeat(129), '__proto__', 5, null, {}].map(
    (id) => [`the id ${id}`, { endpoint, id }, 'instance.id'] as const,
  ),
  ...[circle, { a: 1n }, [], 'x', new Date(), new Map([['a', 1]]), { toJSON: () => 5 }].map(
    (metadata, index) => [`metadata ${index}`, { endpoint, metadata }, 'instance.metadata'] as const,
  ),
  ['metadata that is nested too deeply', { endpoint, metadata: deep }, 'body'],
  ['NUL in metadata', { endpoint, metadata: { zone: ['\0'] } }, 'instance.metadata.zone.0'],
  ['fields of a prototype', ownProto, 'instance.__proto__'],
  ['an unknown field', { endpoint, wieght: 5 }, 'instance.wieght'],
  ['a field in other letters', { command: 'x', workingDir: '/' }, 'instance.workingDir'],
  ['several at once', { endpoint: 5, id: 5 }, 'instance.id instance.endpoint'],
  ['an endpoint of a program by pipe', { endpoint, command: 'x', transport: 'stdio' }, 'instance.endpoint'],
  ...['x', null, {}].map((it) => [`the function ${it}`, { handler: it }, 'instance.handler'] as const),
  ['a function with an endpoint', { handler, endpoint }, 'instance.endpoint'],
  ['a function with headers', { handler, headers: {} }, 'instance.headers'],
  ['a function with a bad id', { handler, id: 'a/b' }, 'instance.id'],
  ['a function with an invalid weight', { handler, weight: Number.NaN }, 'instance.weight'],
];

for (const [name, input, verdict] of INSTANCES)
  test(`an instance is not registered: ${name}`, async () => {
    const before = await everything();
    const events: string[] = [];
    const listening = gateway.events$.subscribe(({ type }) => events.push(type));
    assert.is(await verdictOn('register', 't', input), `VALIDATION_ERROR ${verdict}`);
    listening.unsubscribe();
    assert.equal([await everything(), events], [before, []]);
    assert.is(Object.hasOwn(Object.prototype, 'command'), false);
  });

test('an empty instance is incomplete, and one with only an endpoint is accepted', async () => {
  assert.is(await verdictOn('register', 't', {}), 'CONFIG_INCOMPLETE');
  assert.is(await verdictOn('register', 't', { endpoint, weight: undefined, id: undefined }), 'accepted');
  class Backend {
    readonly endpoint = endpoint;
    readonly id = 'of-a-class';
  }
  assert.is(await verdictOn('register', 't', new Backend()), 'accepted');
});

test('a registration with an invalid template name, or with unknown or invalid options, is refused', async () => {
  for (const template of [undefined, null, 5, {}, '', 'A', '../x', '__proto__', 'a'.repeat(129)])
    assert.is(await verdictOn('register', template, { endpoint }), 'VALIDATION_ERROR template_name');
  assert.equal(gateway.templates(), ['t']);
  const table: readonly (readonly [options: unknown, verdict: string])[] = [
    [null, 'options'],
    ['x', 'options'],
    ...['x', Number.NaN, -1, Number.POSITIVE_INFINITY, 1e12].map((waitMs) => [{ waitMs }, 'waitMs'] as const),
    [{ source: 'other' }, 'source'],
    [{ fingerprint: 5 }, 'fingerprint'],
    [{ loadBalancer: 'x' }, 'loadBalancer'],
    [{ loadBalancer: { timeout: Number.NaN } }, 'load_balancer'],
    [{ loadBalancer: { nope: 1 } }, 'load_balancer'],
    [{ handler: 5 }, 'handler'],
    [{ wait: 5 }, 'wait'],
  ];
  for (const [options, verdict] of table)
    assert.is(await verdictOn('register', 't', { endpoint }, options), `VALIDATION_ERROR ${verdict}`);
  assert.equal(await store.listInstances(), []);
});

test('changing the input after a registration or a change has no effect', async () => {
  const env_vars = { A: 'b', TOKEN: undefined };
  const input = Object({ id: 'a', endpoint, headers: { 'x-key': 'a' }, metadata: { zones: ['a'] } });
  const options = { loadBalancer: { timeout: 5 } };
  const registering = gateway.register('t', input, options);
  input.id = 'b';
  input.headers['x-key'] = 'b';
  input.metadata.zones.push('b');
  options.loadBalancer = { timeout: 6 };
  const { definition } = await registering;
  const { id, headers, metadata } = definition;
  assert.equal([id, headers, metadata], ['a', { 'x-key': 'a' }, { zones: ['a'] }]);
  assert.equal(gateway.template('t').settings.loadBalancer, { timeout: 5 });

  const program = Object({ id: 'p', command: '/nowhere', args: ['a'], env_vars });
  const starting = gateway.register('t', program);
  program.args.push('b');
  env_vars.A = 'c';
  const { args, env } = (await starting).definition;
  assert.equal([args, env], [['a'], { A: 'b' }]);

  const change = { weight: 5, metadata: { zones: ['c'] } };
  const changing = gateway.changeInstance('t', 'a', change);
  change.metadata.zones.push('d');
  assert.equal((await changing).metadata, { zones: ['c'] });
});

test('a change of an instance or a template with unknown or invalid fields is refused', async () => {
  const changes: readonly (readonly [change: unknown, verdict: string])[] = [
    ...[undefined, null, 'x', []].map((change) => [change, 'body'] as const),
    [{ weight: 'x' }, 'weight'],
    [{ weight: Number.NaN }, 'weight'],
    [{ metadata: circle }, 'metadata'],
    [{ metadata: null }, 'metadata'],
    [{ metadata: new Map([['a', 1]]) }, 'metadata'],
    [{ id: 'other' }, 'id'],
    [{ weight: 5, endpoint }, 'endpoint'],
  ];
  const before = gateway.instance('t', 'ok').definition;
  for (const [change, verdict] of changes)
    assert.is(await verdictOn('changeInstance', 't', 'ok', change), `VALIDATION_ERROR ${verdict}`);
  assert.equal(gateway.instance('t', 'ok').definition, before);
  const same = await gateway.changeInstance('t', 'ok', Object({ weight: undefined }));
  assert.equal({ ...same, updatedAt: before.updatedAt }, before);
  await gateway.changeTemplate('t', { timeout: 5 });
  const settings = [
    undefined,
    null,
    'x',
    [],
    { timeout: 'x' },
    { timeout: -1 },
    { strategy: 'x' },
    { nope: 1 },
  ];
  for (const change of settings)
    assert.is(await verdictOn('changeTemplate', 't', change), 'VALIDATION_ERROR load_balancer', `${change}`);
  const wrong = Object({ strategy: 'secret', timeout: 0.5, retries: 3 });
  const { facts } = await errorOf(gateway.changeTemplate('t', wrong));
  const found = facts.items?.map(({ msg }) => msg.split(':')[0]);
  assert.equal(new Set(found), new Set(['retries', 'strategy', 'timeout']));
  assert.not.match(JSON.stringify(facts.items), 'secret');
  await ask('changeTemplate', 't', { timeout: undefined, max_retries: undefined });
  assert.equal(await store.listTemplates(), [{ name: 't', loadBalancer: { timeout: 5 } }]);
});

test('`on` refuses unknown events, and names the nearest', async () => {
  for (const name of ['nope', 'toString', '__proto__', '', undefined, null, 5, {}, Object.create(null)])
    assert.is(await verdictOn('on', name), 'VALIDATION_ERROR name');
  assert.throws(() => ask('on', 'instance.helthy'), /the nearest is "instance\.healthy"/);
  assert.ok(gateway.on('registry.current'));
});

test('importFile refuses invalid contents, and reports an entry with invalid fields as a problem', async () => {
  const entry = (input: unknown) => ({
    templates: [],
    entries: [{ template: 'f', input, fingerprint: 'x' }],
  });
  const table: readonly (readonly [contents: unknown, verdict: string])[] = [
    [undefined, 'body'],
    [{}, 'templates entries'],
    [{ templates: [], entries: [null] }, 'entries.0'],
    [{ templates: [{ name: 'A/', loadBalancer: {} }], entries: [] }, 'templates.0.name'],
    [entry('x'), 'entries.0.input'],
  ];
  for (const [contents, verdict] of table)
    assert.is(await verdictOn('importFile', contents), `VALIDATION_ERROR ${verdict}`);
  const { problems } = Object(await ask('importFile', entry({ id: 'a', endpoint: 5 })));
  assert.equal(problems, [
    'f/a: The request is not valid: instance.endpoint: Input should be a valid string.',
  ]);
  assert.equal(gateway.templates(), ['t']);
});

const OPTIONS: readonly (readonly [options: unknown, verdict: string])[] = [
  [null, 'options'],
  ['x', 'options'],
  ...[Number.NaN, -1, 0, 'x'].map((timeoutMs) => [{ timeoutMs }, 'timeoutMs'] as const),
  [{ instanceId: 5 }, 'instanceId'],
  [{ signal: {} }, 'signal'],
];

test('a request without a method, or with invalid params, headers or options, is refused', async () => {
  const method = 'tools/list';
  const requests: readonly (readonly [request: unknown, verdict: string])[] = [
    ...[undefined, null, 'tools/list'].map((request) => [request, 'request'] as const),
    ...[{}, { method: 5 }, { method: '' }].map((request) => [request, 'method'] as const),
    ...['x', [], null].map((params) => [{ method, params }, 'params'] as const),
    [{ method, headers: 'x' }, 'headers'],
  ];
  for (const name of ['exchange', 'ask']) {
    for (const [request, verdict] of requests)
      assert.is(await verdictOn(name, 't', request), `VALIDATION_ERROR ${verdict}`);
    for (const [options, verdict] of OPTIONS)
      assert.is(await verdictOn(name, 't', { method }, options), `VALIDATION_ERROR ${verdict}`);
  }
  assert.is(await verdictOn('errorOf', 't', { method }, undefined), 'VALIDATION_ERROR answered');
  assert.is(await verdictOn('errorOf', 't', {}, { error: { code: 1 } }), 'VALIDATION_ERROR method');
  // Cold: nothing is sent before the subscription, and an invalid request is not counted.
  const refused$ = gateway.exchange('t', Object({ method: 5 })).pipe(catchError(() => EMPTY));
  assert.is(await firstValueFrom(refused$.pipe(defaultIfEmpty('nothing'))), 'nothing');
  assert.is(gateway.stats().totalRequests, 0);
});

test('a call without a tool name, and a list of an unknown kind, are refused', async () => {
  for (const tool of [undefined, null, 5, {}, ''])
    assert.is(await verdictOn('call', 't', tool), 'VALIDATION_ERROR tool');
  for (const args of ['x', null, []])
    assert.is(await verdictOn('call', 't', 'say', args), 'VALIDATION_ERROR args');
  for (const field of [undefined, 'nope', 5, '__proto__', 'toString'])
    assert.is(await verdictOn('list', 't', field), 'VALIDATION_ERROR field');
  for (const [options, verdict] of OPTIONS) {
    assert.is(await verdictOn('call', 't', 'say', {}, options), `VALIDATION_ERROR ${verdict}`);
    assert.is(await verdictOn('list', 't', 'tools', options), `VALIDATION_ERROR ${verdict}`);
  }
  assert.is(
    await verdictOn('call', 't', 'say', {}, { timeoutMs: 5_000, signal: new AbortController().signal }),
    'accepted',
  );
  assert.is(gateway.stats().totalRequests, 1);
});

test('close refuses invalid options, and the gateway keeps running', async () => {
  for (const options of [null, 'x']) assert.is(await verdictOn('close', options), 'VALIDATION_ERROR options');
  for (const graceMs of ['x', Number.NaN, -1, 1e12])
    assert.is(await verdictOn('close', { graceMs }), 'VALIDATION_ERROR graceMs');
  assert.is(gateway.phase, 'running');
  assert.equal((await gateway.call('t', 'say')).result, text('said'));
});

test.run();

/** The state of the gateway and of its store. */
async function everything(): Promise<unknown> {
  const { phase } = gateway;
  return [
    phase,
    gateway.templates(),
    gateway.servers().length,
    await store.listInstances(),
    await store.listTemplates(),
  ];
}
