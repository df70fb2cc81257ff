// Invalid input of programs without types: the facade refuses it with a VALIDATION_ERROR that names the field, before anything
// is stored, started or reported, and existing instances continue.

import { isObservable, lastValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../src/balancing/policy.ts';
import { GatewayError } from '../../src/domain/errors/errors.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { serving, text } from '../helpers/backends/function-backend.ts';
import { errorOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

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

/** Invalid instances, and the fields that the error names. The rules are in domain/registration/registration.spec.ts. */
const INSTANCES: readonly (readonly [name: string, input: unknown, verdict: string])[] = [
  ...[undefined, null, 'x', []].map((input) => [`${input}`, input, 'instance'] as const),
  ['a list as command', { command: ['a', 'b'] }, 'instance.command'],
  ...[0, 1.5, 1_001, Number.NaN, null, '5'].map(
    (weight) => [`the weight ${weight}`, { endpoint, weight }, 'instance.weight'] as const,
  ),
  ['the transport in-process', { endpoint, transport: 'in-process' }, 'instance.transport'],
  ...[null, [['a', 'b']]].map(
    (headers) => [`headers that are ${String(headers)}`, { endpoint, headers }, 'instance.headers'] as const,
  ),
  ['half a surrogate pair', { command: 'x', env_vars: { A: '\ud800' } }, 'instance.env_vars.A'],
  ...['../x', 'a\n', '__proto__', 5].map((id) => [`the id ${id}`, { endpoint, id }, 'instance.id'] as const),
  ...[circle, { a: 1n }].map(
    (metadata, index) => [`metadata without JSON ${index}`, { endpoint, metadata }, 'instance'] as const,
  ),
  ...[[], { toJSON: () => 5 }].map(
    (metadata, index) => [`metadata ${index}`, { endpoint, metadata }, 'instance.metadata'] as const,
  ),
  ['metadata that is nested too deeply', { endpoint, metadata: deep }, 'instance'],
  ['fields of a prototype', ownProto, 'instance.__proto__'],
  ['an unknown field', { endpoint, wieght: 5 }, 'instance.wieght'],
  ['several at once', { endpoint: 5, id: 5 }, 'instance.id instance.endpoint'],
  ['a function with an endpoint', { handler, endpoint }, 'instance.endpoint'],
  ['a function with a bad id', { handler, id: 'a/b' }, 'instance.id'],
  ...[null, 5, 'greet', {}].map(
    (other) =>
      [`a handler that is ${JSON.stringify(other)}`, { handler: other }, 'instance.handler'] as const,
  ),
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

test('a registration with an invalid template name, or with invalid settings, is refused', async () => {
  for (const template of [undefined, 5, '', 'A', '../x', '__proto__', 'a'.repeat(129)])
    assert.is(await verdictOn('register', template, { endpoint }), 'VALIDATION_ERROR template_name');
  assert.equal(gateway.templates(), ['t']);
  for (const [field, value] of Object.entries({ timeout: Number.NaN, nope: 1 }))
    assert.is(
      await verdictOn('register', 't', { endpoint }, { loadBalancer: { [field]: value } }),
      `VALIDATION_ERROR load_balancer.${field}`,
    );
  assert.equal(await store.instances.list(), []);
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
    [{ metadata: circle }, 'body'],
    [{ metadata: null }, 'metadata'],
    [{ metadata: { large: 'x'.repeat(70_000) } }, 'metadata'],
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
  for (const change of [undefined, null, 'x', []])
    assert.is(await verdictOn('changeTemplate', 't', change), 'VALIDATION_ERROR load_balancer', `${change}`);
  const wrong = Object({ strategy: 'secret', timeout: Number.NaN, retries: 3 });
  const { facts } = await errorOf(gateway.changeTemplate('t', wrong));
  const found = facts.items?.map(({ loc }) => loc.join('.'));
  const fields = ['retries', 'strategy', 'timeout'].map((field) => `body.load_balancer.${field}`);
  assert.equal(new Set(found), new Set(fields));
  assert.not.match(JSON.stringify(facts.items), 'secret');
  await ask('changeTemplate', 't', { timeout: undefined, max_retries: undefined });
  assert.equal(await store.templates.list(), [{ name: 't', loadBalancer: { timeout: 5 } }]);
});

test('`on` refuses unknown events', async () => {
  for (const name of ['nope', 'toString', '__proto__', '', undefined, 5, Object.create(null)])
    assert.is(await verdictOn('on', name), 'VALIDATION_ERROR name');
  assert.ok(gateway.on('registry.current'));
});

test('a request with a timeout that is no time is refused and not counted', async () => {
  for (const timeoutMs of [Number.NaN, -1, 0, 'x', null, 1n, Object.create(null)])
    for (const name of ['exchange', 'ask'])
      assert.is(
        await verdictOn(name, 't', { method: 'tools/list' }, { timeoutMs }),
        'VALIDATION_ERROR timeoutMs',
      );
  assert.is(await verdictOn('call', 't', 'say', {}, { timeoutMs: Number.NaN }), 'VALIDATION_ERROR timeoutMs');
  assert.is(gateway.stats().totalRequests, 0);
});

test('a request without the name of a template, a method or a list is refused and not counted', async () => {
  for (const name of [undefined, null, 5, {}, Symbol('t'), Object.create(null)]) {
    const what = `${typeof name}`;
    assert.is(await verdictOn('call', name, 'say'), 'VALIDATION_ERROR template', what);
    assert.is(await verdictOn('exchange', 't', { method: name }), 'VALIDATION_ERROR request.method', what);
    assert.is(await verdictOn('ask', 't', { method: name }), 'VALIDATION_ERROR request.method', what);
    assert.is(await verdictOn('list', 't', name), 'VALIDATION_ERROR field', what);
  }
  for (const request of [undefined, null, 'tools/list'])
    assert.is(await verdictOn('ask', 't', request), 'VALIDATION_ERROR request.method');
  assert.is(gateway.stats().totalRequests, 0);
});

test('a view with invalid fields is refused, and a later change of the input has no effect', async () => {
  const { views } = gateway;
  const wrong: readonly (readonly [definition: unknown, fields: string])[] = [
    ...[undefined, null, 'v', circle].map((definition) => [definition, 'body'] as const),
    [{ id: 'v' }, 'from'],
    [{ id: '../v', from: [{ template: 't' }] }, 'id'],
    [{ id: 'v', from: [{ template: 't', tools: 5 }] }, 'from.0.tools'],
  ];
  for (const [definition, fields] of wrong)
    for (const method of ['put', 'preview'] as const) {
      if (method === 'preview' && typeof definition === 'string') continue;
      const { code, facts } = await errorOf(Reflect.apply(views[method], views, [definition]));
      const found = facts.items?.map(({ loc }) => loc.slice(1).join('.') || loc.join('.'));
      assert.equal([code, found?.[0]], ['VALIDATION_ERROR', fields]);
    }
  assert.equal(views.list(), []);
  const written = { id: 'v', from: [{ template: 't' }] };
  await views.put(written);
  written.from.pop();
  assert.equal(views.find('v').definition, { id: 'v', from: [{ template: 't' }] });
});

test('a wait that is no time is refused, and nothing is registered or closed', async () => {
  for (const wait of [Number.NaN, -1, '5', null]) {
    const verdict = await verdictOn('register', 'u', { endpoint }, { waitMs: wait });
    assert.is(verdict, 'VALIDATION_ERROR waitMs', `${wait}`);
    assert.is(await verdictOn('close', { graceMs: wait }), 'VALIDATION_ERROR graceMs', `${wait}`);
  }
  assert.equal(gateway.templates(), ['t']);
  assert.is(gateway.phase, 'running');
});

/** Invalid options of a gateway, and the first issue of the error. */
const GATEWAYS: readonly (readonly [options: unknown, issue: string])[] = [
  [{ policy: { retries: 1 } }, 'policy.retries: Extra inputs are not permitted'],
  [{ policy: { strategy: 'bogus' } }, "policy.strategy: Input should be 'round_robin', "],
  [{ policy: { callTimeoutMs: '30' } }, 'policy.callTimeoutMs: Input should be a valid number'],
  [{ policy: { maxRetries: Number.NaN } }, 'policy.maxRetries: '],
  [{ graceMs: Number.POSITIVE_INFINITY }, 'graceMs: '],
  [{ nodeId: 'a' }, 'nodeId: Extra inputs are not permitted'],
  [{ programs: { passEnv: [], programUser: 'mcp' } }, 'programs.programUser: Extra inputs are not permitted'],
  [{ others: { successor: () => undefined } }, 'others.successor: Extra inputs are not permitted'],
  [{ sessions: { share: 0 } }, 'sessions.share: Input should be greater than 0'],
  [{ stateKeys: [Buffer.alloc(32), Buffer.alloc(8)] }, 'stateKeys: expected at least 32 bytes each'],
  [
    { programs: { protectedPaths: [{ path: 'keys', what: 'the keys' }] } },
    'programs.protectedPaths.0: expected an absolute path',
  ],
];

test('createGateway refuses invalid options, and takes undefined ones as not set', async () => {
  for (const [options, issue] of GATEWAYS) {
    const error = await errorOf(Reflect.apply(createGateway, undefined, [options]));
    assert.is(error.code, 'VALIDATION_ERROR');
    assert.ok(
      error.message.startsWith(`The argument of createGateway is not valid: ${issue}`),
      error.message,
    );
  }
  const made = await createGateway(Object({ policy: { strategy: undefined }, graceMs: undefined }));
  assert.equal(made.policy, DEFAULT_POLICY);
  await made.close();
});

test.run();

/** The state of the gateway and of its store. */
async function everything(): Promise<unknown> {
  const { phase } = gateway;
  return [
    phase,
    gateway.templates(),
    gateway.servers().length,
    await store.instances.list(),
    await store.templates.list(),
  ];
}
